//! How long the data have exceeded `maxmemory`; worker 0 measures in its ticks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The total time so far. One thread writes, any reads.
#[derive(Debug, Default)]
pub(crate) struct OverLimit {
    /// The start of the present excess, Unix time in ms; 0 if there is none.
    since_ms: AtomicI64,
    /// The time in ms of past excesses.
    over_ms: AtomicU64,
}

impl OverLimit {
    /// Records whether the limit is exceeded.
    pub(crate) fn record(&self, now_ms: i64, is_over: bool) {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        if is_over && since_ms == 0 {
            self.since_ms.store(now_ms, Ordering::Relaxed);
        } else if !is_over && since_ms != 0 {
            self.over_ms.fetch_add(self.current_ms(now_ms), Ordering::Relaxed);
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }

    /// Returns how long the present excess has lasted, in ms; 0 if there is none.
    pub(crate) fn current_ms(&self, now_ms: i64) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(now_ms - since_ms).unwrap_or(0),
        }
    }

    /// Returns the total time in ms.
    pub(crate) fn total_ms(&self, now_ms: i64) -> u64 {
        self.over_ms.load(Ordering::Relaxed) + self.current_ms(now_ms)
    }

    /// Resets the times, for `CONFIG RESETSTAT`.
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
