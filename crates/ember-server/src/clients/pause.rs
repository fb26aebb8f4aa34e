//! `CLIENT PAUSE`: commands that wait for its end.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// `CLIENT PAUSE`.
#[derive(Default)]
pub(crate) struct Pause {
    /// Unix time in ms until which commands wait; 0 when there is no pause.
    until_ms: AtomicI64,
    /// Whether reading commands wait too.
    all: AtomicBool,
}

impl Pause {
    /// Begins or extends a pause. A pause of all commands is not weakened to one of writes while it lasts.
    pub(crate) fn begin(&self, now_ms: i64, until_ms: i64, all: bool) {
        let goes_on = self.until_ms.load(Ordering::Relaxed) > now_ms;
        let until_ms = if goes_on { until_ms.max(self.until_ms.load(Ordering::Relaxed)) } else { until_ms };
        let all = all || (goes_on && self.all.load(Ordering::Relaxed));
        self.all.store(all, Ordering::Relaxed);
        self.until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Ends the pause.
    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
    }

    /// The pause there is: whether it is one of all commands, and the milliseconds to its end.
    pub(crate) fn current(&self, now_ms: i64) -> Option<(bool, i64)> {
        let left_ms = self.until_ms.load(Ordering::Relaxed) - now_ms;
        (left_ms > 0).then(|| (self.all.load(Ordering::Relaxed), left_ms))
    }

    /// Whether a command waits: one that writes, or any.
    #[inline]
    pub(crate) fn holds(&self, now_ms: i64, writes: bool) -> bool {
        let until_ms = self.until_ms.load(Ordering::Relaxed);
        until_ms != 0 && until_ms > now_ms && (writes || self.all.load(Ordering::Relaxed))
    }
}
