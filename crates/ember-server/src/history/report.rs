//! The figures of the history for TEMPORAL INFO, INFO and metrics.

use std::sync::atomic::{AtomicU64, Ordering};

use super::History;
use crate::server::Server;

/// The figures of a history; all zero if it is off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) is_on: bool,
    /// The oldest moment that can be read, Unix time in ms.
    pub(crate) oldest_ms: u64,
    /// The time of the last change.
    pub(crate) last_ms: u64,
    /// Keys with versions.
    pub(crate) keys: u64,
    pub(crate) versions: u64,
    /// The memory of the index and of buffers.
    pub(crate) memory_bytes: u64,
    pub(crate) stored_bytes: u64,
    pub(crate) segments: u64,
    /// The number of records that are passed on and not taken in.
    pub(crate) lag: u64,
    pub(crate) changes: u64,
    pub(crate) lost: u64,
    pub(crate) reads: u64,
    pub(crate) disk_reads: u64,
    pub(crate) write_errors: u64,
}

impl Figures {
    /// Returns the present figures of a server. O(segments).
    pub(crate) fn of(server: &Server) -> Figures {
        let Some(history) = History::of(server) else { return Figures::default() };
        let log = history.log.statistics();
        let index = history.index.read();
        let counters = &history.counters;
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Figures {
            is_on: true,
            oldest_ms: index.oldest.at_ms.max(0).unsigned_abs(),
            last_ms: index.last.at_ms.max(0).unsigned_abs(),
            keys: index.keys() as u64,
            versions: index.versions as u64,
            memory_bytes: index.bytes() as u64 + log.buffer_bytes,
            stored_bytes: log.stored_bytes,
            segments: log.segments,
            lag: history.passed.load(Ordering::Relaxed).saturating_sub(history.taken_in()),
            changes: count(&counters.changes),
            lost: count(&counters.lost),
            reads: count(&counters.reads),
            disk_reads: count(&counters.disk_reads),
            write_errors: count(&counters.write_errors),
        }
    }

    /// Returns the figures as pairs of name and value.
    pub(crate) fn pairs(&self) -> [(&'static str, u64); 14] {
        [
            ("enabled", u64::from(self.is_on)),
            ("oldest_ms", self.oldest_ms),
            ("last_change_ms", self.last_ms),
            ("keys", self.keys),
            ("versions", self.versions),
            ("memory_bytes", self.memory_bytes),
            ("stored_bytes", self.stored_bytes),
            ("segments", self.segments),
            ("lag_records", self.lag),
            ("changes", self.changes),
            ("lost_states", self.lost),
            ("reads", self.reads),
            ("disk_reads", self.disk_reads),
            ("write_errors", self.write_errors),
        ]
    }
}
