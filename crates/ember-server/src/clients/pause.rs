//! Pauses by `CLIENT PAUSE`, FAILOVER, CLUSTER FAILOVER and SHUTDOWN, during which commands wait.

use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// The pauses that are in effect.
#[derive(Default)]
pub(crate) struct Pause {
    /// Whether there is a pause, possibly one that has expired without being ended; while false, the other fields are
    /// not read.
    is_any: AtomicBool,
    /// The end of the pause by `CLIENT PAUSE`, as Unix time in ms; 0 if there is none.
    until_ms: AtomicI64,
    /// Whether `CLIENT PAUSE` delays reads, too.
    all: AtomicBool,
    /// Whether writes wait until a replica has taken over as primary.
    for_failover: AtomicBool,
    /// Whether writes wait until a replica in the cluster has taken over the slots.
    for_hand_over: AtomicBool,
    /// Whether writes wait until the replicas have received all data and the server exits.
    for_shutdown: AtomicBool,
}

/// A pause in effect: its reason, its scope, and its remaining time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Paused {
    /// The reason, as INFO shows it.
    pub(crate) reason: &'static str,
    /// Whether reads wait as well as writes.
    pub(crate) all: bool,
    /// Milliseconds until the pause by `CLIENT PAUSE` ends; 0 if there is none.
    pub(crate) left_ms: i64,
}

impl Pause {
    /// Begins or extends a pause by `CLIENT PAUSE`. While a pause of all commands lasts, it is not reduced to a pause
    /// of writes.
    pub(crate) fn begin(&self, now_ms: i64, until_ms: i64, all: bool) {
        let continues = self.until_ms.load(Ordering::Relaxed) > now_ms;
        let until_ms = if continues { until_ms.max(self.until_ms.load(Ordering::Relaxed)) } else { until_ms };
        let all = all || (continues && self.all.load(Ordering::Relaxed));
        self.all.store(all, Ordering::Relaxed);
        self.until_ms.store(until_ms, Ordering::Relaxed);
        self.is_any.store(true, Ordering::Relaxed);
    }

    /// Ends the pause by `CLIENT PAUSE`.
    pub(crate) fn end(&self) {
        self.until_ms.store(0, Ordering::Relaxed);
        self.update_any();
    }

    /// Begins or ends the pause by FAILOVER.
    pub(crate) fn wait_for_failover(&self, waits: bool) {
        self.for_failover.store(waits, Ordering::Relaxed);
        self.update_any();
    }

    /// Begins or ends the pause by CLUSTER FAILOVER.
    pub(crate) fn wait_for_hand_over(&self, waits: bool) {
        self.for_hand_over.store(waits, Ordering::Relaxed);
        self.update_any();
    }

    /// Returns whether writes wait until a replica in the cluster has taken over the slots.
    pub(crate) fn is_handing_over(&self) -> bool {
        self.for_hand_over.load(Ordering::Relaxed)
    }

    /// Begins or ends the pause by SHUTDOWN.
    pub(crate) fn wait_for_shutdown(&self, waits: bool) {
        self.for_shutdown.store(waits, Ordering::Relaxed);
        self.update_any();
    }

    fn update_any(&self) {
        let is_any = self.writes_wait() || self.until_ms.load(Ordering::Relaxed) != 0;
        self.is_any.store(is_any, Ordering::Relaxed);
    }

    /// Returns whether a pause without a known end delays writes.
    fn writes_wait(&self) -> bool {
        self.for_failover.load(Ordering::Relaxed)
            || self.for_shutdown.load(Ordering::Relaxed)
            || self.is_handing_over()
    }

    /// Returns the pause in effect, if any.
    pub(crate) fn current(&self, now_ms: i64) -> Option<Paused> {
        let left_ms = (self.until_ms.load(Ordering::Relaxed) - now_ms).max(0);
        let all = left_ms > 0 && self.all.load(Ordering::Relaxed);
        if self.for_failover.load(Ordering::Relaxed) || self.is_handing_over() {
            return Some(Paused { reason: "failover_in_progress", all, left_ms });
        }
        if self.for_shutdown.load(Ordering::Relaxed) {
            return Some(Paused { reason: "shutdown_in_progress", all, left_ms });
        }
        (left_ms > 0).then_some(Paused { reason: "client_pause", all, left_ms })
    }

    /// Returns whether a pause delays a command; `writes`: whether the command writes.
    #[inline]
    pub(crate) fn holds(&self, now_ms: i64, writes: bool) -> bool {
        self.is_any.load(Ordering::Relaxed) && self.holds_now(now_ms, writes)
    }

    #[cold]
    fn holds_now(&self, now_ms: i64, writes: bool) -> bool {
        (writes && self.writes_wait())
            || (self.until_ms.load(Ordering::Relaxed) > now_ms
                && (writes || self.all.load(Ordering::Relaxed)))
    }
}
