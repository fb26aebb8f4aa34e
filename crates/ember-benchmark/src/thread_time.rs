//! Processor time of a load generator thread, and its time waiting for a processor.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// The file in which Linux reports how long a thread was ready but not running.
const SCHEDULER_FILE: &str = "/proc/thread-self/schedstat";

/// The times of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// Time in which the thread ran on a processor.
    pub(super) cpu: Duration,
    /// Time in which the thread was ready to run while other threads used the processors. Zero if the system does not
    /// report it.
    pub(super) waiting: Duration,
}

impl ThreadTime {
    /// Returns the times of the calling thread since its start.
    pub(super) fn now() -> ThreadTime {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::new(
            u64::try_from(time.tv_sec).unwrap_or_default(),
            u32::try_from(time.tv_nsec).unwrap_or_default(),
        );
        // The file contains the time on a processor, the time waiting for a processor (both in nanoseconds), and the
        // number of time slices.
        let text = std::fs::read_to_string(SCHEDULER_FILE).unwrap_or_default();
        let waiting = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        ThreadTime { cpu, waiting: Duration::from_nanos(waiting) }
    }

    /// Returns the times since `before`.
    pub(super) fn since(self, before: ThreadTime) -> ThreadTime {
        ThreadTime {
            cpu: self.cpu.saturating_sub(before.cpu),
            waiting: self.waiting.saturating_sub(before.waiting),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn busy_threads_accumulate_cpu_time() {
        let before = ThreadTime::now();
        let mut used = ThreadTime::default();
        let mut sum = 0_u64;
        while used.cpu < Duration::from_millis(5) {
            sum = sum.wrapping_mul(31).wrapping_add(std::hint::black_box(7));
            used = ThreadTime::now().since(before);
        }
        assert_ne!(sum, 1);
    }
}
