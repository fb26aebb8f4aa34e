//! The state of the AOF for INFO, metrics and commands.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use crate::system::clock::unix_ms;

/// State that the AOF subscriber publishes. Any thread may read it at any time.
pub(crate) struct AofState {
    /// Whether the AOF is enabled.
    pub(crate) is_enabled: AtomicBool,
    /// The size of all its files in bytes.
    pub(crate) size: AtomicU64,
    /// The size of all its files in bytes after the last rewrite, or when they were loaded.
    pub(crate) base_size: AtomicU64,
    /// The size in bytes of all files that rewrites have replaced and that are kept.
    pub(crate) kept_bytes: AtomicU64,
    /// Bytes of records waiting to be written.
    pub(crate) waiting_bytes: AtomicU64,
    /// Bytes in the file that no fsync has made durable yet; after a failed fsync they are written again.
    pub(crate) unsynced_bytes: AtomicU64,
    /// Whether an fsync is running on its own thread.
    pub(crate) is_syncing: AtomicBool,
    /// The fsync that is running, on whichever thread.
    pub(crate) sync: DiskCall,
    /// The running call that delays appending: a write by the journal's thread or a worker, or another disk call.
    pub(crate) write: DiskCall,
    /// The number of times that an fsync was due while another one was running.
    pub(crate) delayed_syncs: AtomicU64,
    /// The start of the running rewrite, Unix time in ms; 0 if there is none.
    pub(crate) rewriting_since_ms: AtomicI64,
    /// Whether a rewrite begins when the running snapshot ends.
    pub(crate) is_rewrite_scheduled: AtomicBool,
    /// Whether the AOF subscriber waits for the data of a base, to begin or restart the AOF.
    pub(crate) awaits_base: AtomicBool,
    /// Whether the AOF was enabled and its first base is not complete, so that a restart would find no data in its
    /// files.
    pub(crate) needs_base: AtomicBool,
    /// The duration of the last rewrite in s; -1 if there was none.
    pub(crate) last_rewrite_s: AtomicI64,
    /// Whether the last rewrite failed.
    pub(crate) rewrite_failed: AtomicBool,
    /// The number of failed rewrites since the last success.
    pub(crate) failed_in_a_row: AtomicU64,
    /// The number of rewrites begun.
    pub(crate) rewrites: AtomicU64,
    /// When writing began to fail, Unix time in ms; 0 while it succeeds.
    pub(crate) failing_since_ms: AtomicI64,
}

/// A kind of disk call on which a thread blocks: its running and its last call. Only one thread at a time makes such a
/// call.
#[derive(Default)]
pub(crate) struct DiskCall {
    /// The start of the running call, Unix time in ms; 0 if there is none.
    since_ms: AtomicI64,
    /// The duration of the last call in ms.
    last_ms: AtomicU64,
}

impl DiskCall {
    /// Records that a call begins.
    pub(super) fn begin(&self, now_ms: i64) {
        self.since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// Records that the call has ended.
    pub(super) fn end(&self) {
        if let Some(ms) = self.running_ms() {
            self.last_ms.store(ms, Ordering::Relaxed);
        }
        self.since_ms.store(0, Ordering::Relaxed);
    }

    /// Returns how many ms the running call has taken so far; `None` if none is running.
    pub(crate) fn running_ms(&self) -> Option<u64> {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        (since_ms != 0).then(|| u64::try_from(unix_ms() - since_ms).unwrap_or(0))
    }

    /// Returns the duration of the last call in ms.
    pub(crate) fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }
}

/// The state of slow-disk reports.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// When a slow disk was last logged.
    pub(super) logged: Option<Instant>,
    /// Whether a slow disk was logged, and not yet that it is no longer slow.
    pub(super) is_announced: bool,
    /// When the latency monitor last received a sample of the running call, Unix time in s.
    pub(super) sampled_s: i64,
}

impl Default for AofState {
    fn default() -> AofState {
        AofState {
            is_enabled: AtomicBool::new(false),
            size: AtomicU64::new(0),
            base_size: AtomicU64::new(0),
            kept_bytes: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            unsynced_bytes: AtomicU64::new(0),
            is_syncing: AtomicBool::new(false),
            sync: DiskCall::default(),
            write: DiskCall::default(),
            delayed_syncs: AtomicU64::new(0),
            rewriting_since_ms: AtomicI64::new(0),
            is_rewrite_scheduled: AtomicBool::new(false),
            awaits_base: AtomicBool::new(false),
            needs_base: AtomicBool::new(false),
            last_rewrite_s: AtomicI64::new(-1),
            rewrite_failed: AtomicBool::new(false),
            failed_in_a_row: AtomicU64::new(0),
            rewrites: AtomicU64::new(0),
            failing_since_ms: AtomicI64::new(0),
        }
    }
}

impl AofState {
    /// Whether a rewrite is running.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewriting_since_ms.load(Ordering::Relaxed) != 0
    }

    /// Whether a rewrite is to begin when no other snapshot is running.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.is_rewrite_scheduled.load(Ordering::Relaxed) || self.awaits_base.load(Ordering::Relaxed)
    }

    /// Returns how many s the running rewrite has taken so far; -1 if none is running.
    pub(crate) fn rewriting_s(&self) -> i64 {
        match self.rewriting_since_ms.load(Ordering::Relaxed) {
            0 => -1,
            since_ms => (unix_ms() - since_ms) / 1000,
        }
    }

    /// Returns how long writing has been failing, in ms; 0 if it does not fail.
    pub(crate) fn failing_ms(&self) -> i64 {
        match self.failing_since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => (unix_ms() - since_ms).max(1),
        }
    }

    /// Records that a rewrite begins.
    pub(super) fn begin_rewrite(&self) {
        self.rewriting_since_ms.store(unix_ms(), Ordering::Relaxed);
        self.rewrites.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that a rewrite has ended.
    pub(super) fn end_rewrite(&self, succeeded: bool) {
        self.last_rewrite_s.store(self.rewriting_s(), Ordering::Relaxed);
        self.rewriting_since_ms.store(0, Ordering::Relaxed);
        self.rewrite_failed.store(!succeeded, Ordering::Relaxed);
        match succeeded {
            true => self.failed_in_a_row.store(0, Ordering::Relaxed),
            false => _ = self.failed_in_a_row.fetch_add(1, Ordering::Relaxed),
        }
    }
}
