//! What a thread of the load generator has used: the processor, and the waiting for one.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Where Linux says how long a thread was ready to run and did not.
const SCHEDULER_FILE: &str = "/proc/thread-self/schedstat";

/// Times of one thread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ThreadTime {
    /// On a processor.
    pub(super) cpu: Duration,
    /// Ready to run, but other threads had the processors. Zero where the system does not say.
    pub(super) waiting: Duration,
}

impl ThreadTime {
    /// That of the calling thread since it began.
    pub(super) fn now() -> ThreadTime {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        let cpu = Duration::new(
            u64::try_from(time.tv_sec).unwrap_or_default(),
            u32::try_from(time.tv_nsec).unwrap_or_default(),
        );
        // "Time on a processor, time waiting for one, number of slices", times in nanoseconds.
        let text = std::fs::read_to_string(SCHEDULER_FILE).unwrap_or_default();
        let waiting = text.split_whitespace().nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
        ThreadTime { cpu, waiting: Duration::from_nanos(waiting) }
    }

    /// The time since then.
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
    fn work_takes_time_of_a_processor() {
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
