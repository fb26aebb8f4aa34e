//! Processor time of the process and its threads, as reported by the system.

use super::proc_file;

/// The processor time used, in seconds.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ProcessorTime {
    pub(crate) user: f64,
    pub(crate) system: f64,
    pub(crate) children_user: f64,
    pub(crate) children_system: f64,
}

impl ProcessorTime {
    /// Returns the processor time of the process; `None` if the system does not report it.
    pub(crate) fn of_process() -> Option<ProcessorTime> {
        ProcessorTime::read("/proc/self/stat")
    }

    /// Returns the processor time of the main thread; `None` if the system does not report it.
    pub(crate) fn of_main_thread() -> Option<ProcessorTime> {
        ProcessorTime::read(&format!("/proc/self/task/{}/stat", std::process::id()))
    }

    /// Reads a `/proc` file in the format of `stat` (proc_pid_stat(5)); returns `None` if it does not exist.
    fn read(path: &str) -> Option<ProcessorTime> {
        let ticks_per_second = rustix::param::clock_ticks_per_second() as f64;
        ProcessorTime::parse(&proc_file::read_line(path)?, ticks_per_second)
    }

    fn parse(stat: &str, ticks_per_second: f64) -> Option<ProcessorTime> {
        // The second field is a name in parentheses, which may contain spaces and parentheses. The text after it begins
        // with field 3; the times are fields 14 to 17.
        let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
        let seconds = |field: usize| {
            let ticks: f64 = fields.get(field - 3)?.parse().ok()?;
            Some(ticks / ticks_per_second)
        };
        Some(ProcessorTime {
            user: seconds(14)?,
            system: seconds(15)?,
            children_user: seconds(16)?,
            children_system: seconds(17)?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processor_times_are_parsed_after_any_thread_name() {
        let stat = "42 (a ) b) R 1 2 3 4 5 6 7 8 9 10 250 50 100 7 20 0 1 0";
        let times = ProcessorTime { user: 2.5, system: 0.5, children_user: 1.0, children_system: 0.07 };
        assert_eq!(ProcessorTime::parse(stat, 100.0), Some(times));
        assert_eq!(ProcessorTime::parse("42 (a) R 1", 100.0), None);
        assert_eq!(ProcessorTime::parse("", 100.0), None);
    }
}
