//! The time for which the data set has exceeded `maxmemory`, which worker 0 measures in its ticks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The time above the limit so far. One thread writes it, any thread may read it.
#[derive(Debug, Default)]
pub(crate) struct OverLimit {
    /// The start of the current period above the limit, as Unix time in ms; 0 if the limit is not exceeded.
    since_ms: AtomicI64,
    /// The total length in ms of past periods above the limit.
    over_ms: AtomicU64,
}

impl OverLimit {
    /// Records whether the limit is currently exceeded.
    pub(crate) fn record(&self, now_ms: i64, is_over: bool) {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        if is_over && since_ms == 0 {
            self.since_ms.store(now_ms, Ordering::Relaxed);
        } else if !is_over && since_ms != 0 {
            self.over_ms.fetch_add(self.current_ms(now_ms), Ordering::Relaxed);
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the length in ms of the current period above the limit; 0 if the limit is not exceeded.
    pub(crate) fn current_ms(&self, now_ms: i64) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(now_ms - since_ms).unwrap_or(0),
        }
    }

    /// Returns the total time above the limit in ms.
    pub(crate) fn total_ms(&self, now_ms: i64) -> u64 {
        self.over_ms.load(Ordering::Relaxed) + self.current_ms(now_ms)
    }

    /// Resets the measured times, for `CONFIG RESETSTAT`.
    pub(crate) fn reset(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
        self.over_ms.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_above_the_limit_are_summed() {
        let over = OverLimit::default();
        for (now_ms, is_over) in
            [(100, false), (200, true), (300, true), (350, false), (400, false), (500, true)]
        {
            over.record(now_ms, is_over);
        }
        assert_eq!((over.current_ms(530), over.total_ms(530)), (30, 180));
        over.reset();
        assert_eq!((over.current_ms(600), over.total_ms(600)), (0, 0));
    }
}
