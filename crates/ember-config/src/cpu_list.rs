//! A list of processor cores in the syntax of `taskset -c`: `0,2,8-11`, `0-20:2`.

/// The exclusive limit on core numbers, as in the kernel's `cpu_set_t`.
const CORES_MAX: usize = 1024;

/// A list of processor cores; an empty list means all cores.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CpuList {
    text: String,
    cores: Vec<usize>,
}

impl CpuList {
    /// Reads a list: numbers and ranges separated by commas, ranges optionally with a step.
    ///
    /// # Errors
    /// Returns a sentence that describes the expected form.
    pub(super) fn parse(text: &str) -> Result<CpuList, String> {
        let mut cores = Vec::new();
        if !text.is_empty() {
            for part in text.split(',') {
                cores.extend(range(part).ok_or_else(|| {
                    format!("argument must be a list of cores below {CORES_MAX}, such as 0,2,8-11 or 0-20:2")
                })?);
            }
        }
        cores.sort_unstable();
        cores.dedup();
        Ok(CpuList { text: text.to_owned(), cores })
    }

    /// Returns the list as the text that [`CpuList::parse`] has read.
    pub(super) fn format(&self) -> String {
        self.text.clone()
    }

    /// Returns the cores in ascending order; an empty list means all cores.
    pub fn cores(&self) -> &[usize] {
        &self.cores
    }
}

/// Returns the cores of one part of a list: `a`, `a-b` or `a-b:step`.
fn range(part: &str) -> Option<impl Iterator<Item = usize>> {
    let number =
        |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse::<usize>().ok())?;
    let (first, last, step) = match part.split_once('-') {
        None => (number(part)?, number(part)?, 1),
        Some((first, rest)) => {
            let (last, step) = rest.split_once(':').unwrap_or((rest, "1"));
            (number(first)?, number(last)?, number(step)?)
        }
    };
    (first <= last && last < CORES_MAX && step > 0).then(|| (first..=last).step_by(step))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ranges_and_steps_are_read() {
        for (text, cores) in
            [("", &[][..]), ("3", &[3]), ("8-10,0,2", &[0, 2, 8, 9, 10]), ("0-7:3,6", &[0, 3, 6])]
        {
            let list = CpuList::parse(text).unwrap();
            assert_eq!((list.cores(), list.format().as_str()), (cores, text));
        }
    }

    #[test]
    fn invalid_cpu_lists_are_rejected() {
        for text in ["a", "1,", "3-1", "0-7:0", "0-1024", "-1", "+1", " 1", "99999999999999999999"] {
            assert!(CpuList::parse(text).is_err(), "{text}");
        }
    }
}
