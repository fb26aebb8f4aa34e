//! OOM score adjustments: how likely the kernel is to kill the process when memory runs out.

/// The maximum absolute value, because `relative` values may span the kernel's whole scale of -1000 to 1000.
const DISTANCE_MAX: i32 = 2000;

/// The adjustments for a primary, a replica, and a child process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OomScoreValues([i32; 3]);

impl OomScoreValues {
    /// Reads three integers.
    ///
    /// # Errors
    /// Returns Redis's error text.
    pub(super) fn parse(text: &str) -> Result<OomScoreValues, String> {
        let words: Vec<&str> = text.split_whitespace().collect();
        let [primary, replica, child] = words[..] else { return Err("wrong number of arguments".to_owned()) };
        let number = |word: &str| {
            let number =
                word.parse::<i32>().ok().filter(|number| (-DISTANCE_MAX..=DISTANCE_MAX).contains(number));
            number.ok_or_else(|| {
                format!("Invalid oom-score-adj-values, elements must be between -{DISTANCE_MAX} and {DISTANCE_MAX}.")
            })
        };
        Ok(OomScoreValues([number(primary)?, number(replica)?, number(child)?]))
    }

    /// Returns the text that [`OomScoreValues::parse`] reads.
    pub(super) fn format(self) -> String {
        self.0.map(|value| value.to_string()).join(" ")
    }

    /// Returns the adjustment for a primary or a replica.
    pub fn of_role(self, is_replica: bool) -> i32 {
        self.0[usize::from(is_replica)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_numbers_are_read() {
        assert_eq!(OomScoreValues::parse("-5  200 2000").unwrap().format(), "-5 200 2000");
        assert_eq!(OomScoreValues::parse("1 2"), Err("wrong number of arguments".to_owned()));
        for text in ["1 2 2001", "a 2 3", "-2147483648 1 1"] {
            let error = "Invalid oom-score-adj-values, elements must be between -2000 and 2000.";
            assert_eq!(OomScoreValues::parse(text), Err(error.to_owned()));
        }
    }
}
