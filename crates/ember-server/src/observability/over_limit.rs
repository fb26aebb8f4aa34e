//! How long the data has taken more than `maxmemory` allows: looked at by worker 0 in its ticks.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

/// The time up to now. One thread writes, any reads.
#[derive(Debug, Default)]
pub(crate) struct OverLimit {
    /// Unix time in ms since when it does; 0 if it does not.
    since_ms: AtomicI64,
    /// Time in ms of the spells that are over.
    over_ms: AtomicU64,
}

impl OverLimit {
    /// Notes whether it does.
    pub(crate) fn look(&self, now_ms: i64, is_over: bool) {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        if is_over && since_ms == 0 {
            self.since_ms.store(now_ms, Ordering::Relaxed);
        } else if !is_over && since_ms != 0 {
            self.over_ms.fetch_add(self.current_ms(now_ms), Ordering::Relaxed);
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }

    /// How long it does already, in ms; 0 if it does not.
    pub(crate) fn current_ms(&self, now_ms: i64) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(now_ms - since_ms).unwrap_or(0),
        }
    }

    /// How long it has in all, in ms.
    pub(crate) fn total_ms(&self, now_ms: i64) -> u64 {
        self.over_ms.load(Ordering::Relaxed) + self.current_ms(now_ms)
    }

    /// `CONFIG RESETSTAT`.
    pub(crate) fn reset(&self) {
        self.since_ms.store(0, Ordering::Relaxed);
        self.over_ms.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spells_above_the_limit_add_up() {
        let over = OverLimit::default();
        for (now_ms, is_over) in
            [(100, false), (200, true), (300, true), (350, false), (400, false), (500, true)]
        {
            over.look(now_ms, is_over);
        }
        assert_eq!((over.current_ms(530), over.total_ms(530)), (30, 180));
        over.reset();
        assert_eq!((over.current_ms(600), over.total_ms(600)), (0, 0));
    }
}
