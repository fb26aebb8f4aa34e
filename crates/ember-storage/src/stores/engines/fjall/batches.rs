//! Atomic visibility of fjall's batches.
//!
//! A snapshot of fjall is a number: it contains the rows written under smaller numbers. A batch has one number, and its
//! commit makes that number the limit of new snapshots once all its rows are in memory. But a thread that flushes or
//! merges tables also takes a number, and moves the limit past that number as soon as the table exists, possibly past a
//! batch of which only a part is in memory. A snapshot taken then contains only that part at first, and soon the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use ::fjall::{Database, OwnedWriteBatch, Snapshot};
use parking_lot::Mutex;

/// Ensures that the snapshots of a database contain all or nothing of each batch.
pub(super) struct Batches {
    /// Held while a batch is committed.
    committing: Mutex<()>,
    /// Snapshots with numbers up to this one contain nothing of the batch that is being committed.
    undisturbed: AtomicU64,
    /// Incremented when a change of several batches begins and when it ends: odd during such a change.
    phases: AtomicU64,
}

impl Batches {
    pub(super) fn new() -> Batches {
        Batches {
            committing: Mutex::new(()),
            undisturbed: AtomicU64::new(u64::MAX),
            phases: AtomicU64::new(0),
        }
    }

    /// Commits a batch.
    pub(super) fn commit(&self, database: &Database, batch: OwnedWriteBatch) -> ::fjall::Result<()> {
        let _committing = self.committing.lock();
        self.undisturbed.store(database.snapshot().seqno(), Ordering::SeqCst);
        let committed = batch.commit();
        self.undisturbed.store(u64::MAX, Ordering::SeqCst);
        committed
    }

    /// Begins a change of several batches. Only one can be active at a time.
    pub(super) fn begin_several(&self) {
        self.phases.fetch_add(1, Ordering::SeqCst);
    }

    /// Ends the change of several batches.
    pub(super) fn end_several(&self) {
        self.phases.fetch_add(1, Ordering::SeqCst);
    }

    /// Returns a snapshot that contains all or nothing of each batch, and whether it may contain only some batches of
    /// one change. Waits only if fjall has moved its snapshot limit into a batch.
    pub(super) fn snapshot(&self, database: &Database) -> (Snapshot, bool) {
        let before = self.phases.load(Ordering::SeqCst);
        let mut snapshot = database.snapshot();
        // If the batch was committed before this check, the snapshot now contains all of it.
        if snapshot.seqno() > self.undisturbed.load(Ordering::SeqCst) {
            let _committed = self.committing.lock();
            snapshot = database.snapshot();
        }
        let is_between = before % 2 == 1 || self.phases.load(Ordering::SeqCst) != before;
        (snapshot, is_between)
    }
}
