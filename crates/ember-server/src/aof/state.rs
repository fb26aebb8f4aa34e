//! How it goes with the AOF, as INFO, metrics and commands want to know it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::time::Instant;

use crate::system::clock::unix_ms;

/// What the AOF writer tells others. All of it may be read at any time.
pub(crate) struct AofState {
    /// Whether there is an AOF.
    pub(crate) is_enabled: AtomicBool,
    /// Bytes of all its files.
    pub(crate) size: AtomicU64,
    /// Bytes of all its files after the last rewrite, or when they were read.
    pub(crate) base_size: AtomicU64,
    /// Bytes of records that wait to be written.
    pub(crate) waiting_bytes: AtomicU64,
    /// Bytes in the file that no fsync has made durable: after a failed one they are written again.
    pub(crate) unsynced_bytes: AtomicU64,
    /// Whether an fsync is under way on a thread of its own.
    pub(crate) is_syncing: AtomicBool,
    /// The fsync that is under way, on whatever thread.
    pub(crate) sync: DiskCall,
    /// What the journal's thread or a worker is writing, and whatever else appending waits for.
    pub(crate) write: DiskCall,
    /// How often an fsync was due while another one was under way.
    pub(crate) delayed_syncs: AtomicU64,
    /// Since when a rewrite is under way, Unix time in ms; 0 if none is.
    pub(crate) rewriting_since_ms: AtomicI64,
    /// Whether a rewrite is to begin when the snapshot that is under way has ended.
    pub(crate) is_rewrite_scheduled: AtomicBool,
    /// Whether the AOF writer waits for the data of now, to begin, or to begin anew.
    pub(crate) wants_base: AtomicBool,
    /// Whether the AOF was switched on and its first base is not complete: a start would find no data in its files.
    pub(crate) lacks_base: AtomicBool,
    /// How long the last rewrite took, in s; -1 if there was none.
    pub(crate) last_rewrite_s: AtomicI64,
    /// Whether the last rewrite failed.
    pub(crate) rewrite_failed: AtomicBool,
    /// Rewrites that have failed since one succeeded.
    pub(crate) failed_in_a_row: AtomicU64,
    /// Rewrites that have begun.
    pub(crate) rewrites: AtomicU64,
    /// Since when writing fails, Unix time in ms; 0 if it does not.
    pub(crate) failing_since_ms: AtomicI64,
}

/// A kind of call that waits for the disk: the one under way and the last one. One thread at a time makes it.
#[derive(Default)]
pub(crate) struct DiskCall {
    /// Since when one is under way, Unix time in ms; 0 if none is.
    since_ms: AtomicI64,
    /// How long the last one took.
    last_ms: AtomicU64,
}

impl DiskCall {
    /// One begins.
    pub(super) fn begin(&self, now_ms: i64) {
        self.since_ms.store(now_ms, Ordering::Relaxed);
    }

    /// It has ended.
    pub(super) fn end(&self) {
        if let Some(ms) = self.running_ms() {
            self.last_ms.store(ms, Ordering::Relaxed);
        }
        self.since_ms.store(0, Ordering::Relaxed);
    }

    /// For how many ms one is under way; `None` if none is.
    pub(crate) fn running_ms(&self) -> Option<u64> {
        let since_ms = self.since_ms.load(Ordering::Relaxed);
        (since_ms != 0).then(|| u64::try_from(unix_ms() - since_ms).unwrap_or(0))
    }

    /// How many ms the last one took.
    pub(crate) fn last_ms(&self) -> u64 {
        self.last_ms.load(Ordering::Relaxed)
    }
}

/// The reports of a slow disk.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// When the log has said last that it is slow.
    pub(super) logged: Option<Instant>,
    /// The log has said so, and not yet that it is over.
    pub(super) is_announced: bool,
    /// The second of the last sample of the latency monitor, Unix time.
    pub(super) sampled_s: i64,
}

impl Default for AofState {
    fn default() -> AofState {
        AofState {
            is_enabled: AtomicBool::new(false),
            size: AtomicU64::new(0),
            base_size: AtomicU64::new(0),
            waiting_bytes: AtomicU64::new(0),
            unsynced_bytes: AtomicU64::new(0),
            is_syncing: AtomicBool::new(false),
            sync: DiskCall::default(),
            write: DiskCall::default(),
            delayed_syncs: AtomicU64::new(0),
            rewriting_since_ms: AtomicI64::new(0),
            is_rewrite_scheduled: AtomicBool::new(false),
            wants_base: AtomicBool::new(false),
            lacks_base: AtomicBool::new(false),
            last_rewrite_s: AtomicI64::new(-1),
            rewrite_failed: AtomicBool::new(false),
            failed_in_a_row: AtomicU64::new(0),
            rewrites: AtomicU64::new(0),
            failing_since_ms: AtomicI64::new(0),
        }
    }
}

impl AofState {
    /// Whether a rewrite is under way.
    pub(crate) fn is_rewriting(&self) -> bool {
        self.rewriting_since_ms.load(Ordering::Relaxed) != 0
    }

    /// Whether a rewrite is to begin when nothing else is under way.
    pub(crate) fn is_scheduled(&self) -> bool {
        self.is_rewrite_scheduled.load(Ordering::Relaxed) || self.wants_base.load(Ordering::Relaxed)
    }

    /// For how many s a rewrite is under way; -1 if none is.
    pub(crate) fn rewriting_s(&self) -> i64 {
        match self.rewriting_since_ms.load(Ordering::Relaxed) {
            0 => -1,
            since_ms => (unix_ms() - since_ms) / 1000,
        }
    }

    /// For how many ms writing fails; 0 if it does not.
    pub(crate) fn failing_ms(&self) -> i64 {
        match self.failing_since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => (unix_ms() - since_ms).max(1),
        }
    }

    /// A rewrite begins.
    pub(super) fn begin_rewrite(&self) {
        self.rewriting_since_ms.store(unix_ms(), Ordering::Relaxed);
        self.rewrites.fetch_add(1, Ordering::Relaxed);
    }

    /// A rewrite has ended.
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
