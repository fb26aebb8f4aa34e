//! A rate limiter for load in tests.

use std::thread;
use std::time::{Duration, Instant};

/// The maximum delay that is made up for by a higher rate afterwards.
const SLACK: Duration = Duration::from_millis(20);

/// A limiter of operations to a rate per second.
#[derive(Debug)]
pub struct Pace {
    per_second: u64,
    next: Instant,
}

impl Pace {
    /// Creates a limiter.
    pub fn new(per_second: u64) -> Pace {
        Pace { per_second, next: Instant::now() }
    }

    /// Counts `count` operations, and sleeps until they are due at the limiter's rate.
    pub fn pass(&mut self, count: u64) {
        let now = Instant::now();
        let takes = Duration::from_secs_f64(count as f64 / self.per_second as f64);
        self.next = self.next.max(now.checked_sub(SLACK).unwrap_or(now)) + takes;
        thread::sleep(self.next.saturating_duration_since(now));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pace_limits_the_rate() {
        let begun = Instant::now();
        let mut pace = Pace::new(1_000_000);
        (0..50).for_each(|_| pace.pass(2_000));
        assert!(begun.elapsed() > Duration::from_millis(75));
        let mut free = Pace::new(u64::MAX);
        (0..1000).for_each(|_| free.pass(u64::from(u32::MAX)));
    }
}
