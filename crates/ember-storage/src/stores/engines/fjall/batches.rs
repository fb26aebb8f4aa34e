//! Batches of fjall that readers see as a whole.
//!
//! A snapshot of fjall is a number: it has what was written under smaller ones. A batch has one number, which its commit
//! makes the limit of new snapshots when all its rows are in memory. But whoever writes a table or merges some takes a
//! number too, and moves the limit behind that as soon as the table is there: over a batch of which only a part is in
//! memory. A snapshot taken just then has that part, and soon the rest.

use std::sync::atomic::{AtomicU64, Ordering};

use ::fjall::{Database, OwnedWriteBatch, Snapshot};
use parking_lot::Mutex;

/// What is between the batches and the snapshots of a database.
pub(super) struct Batches {
    /// Held while a batch is committed.
    committing: Mutex<()>,
    /// Snapshots up to this number have nothing of the batch that is being committed.
    undisturbed: AtomicU64,
    /// How often several batches that are one change have begun or ended: odd while they are made.
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

    /// Batches follow that are one change. There is one such change at a time.
    pub(super) fn begin_several(&self) {
        self.phases.fetch_add(1, Ordering::SeqCst);
    }

    /// They are made.
    pub(super) fn end_several(&self) {
        self.phases.fetch_add(1, Ordering::SeqCst);
    }

    /// A snapshot that has all of each batch or nothing, and whether it may be one between several that are one change.
    /// Waits only where fjall has moved its limit into a batch.
    pub(super) fn snapshot(&self, database: &Database) -> (Snapshot, bool) {
        let before = self.phases.load(Ordering::SeqCst);
        let mut snapshot = database.snapshot();
        // When the batch was committed before this look at it, the snapshot has come to have all of it.
        if snapshot.seqno() > self.undisturbed.load(Ordering::SeqCst) {
            let _committed = self.committing.lock();
            snapshot = database.snapshot();
        }
        let is_between = before % 2 == 1 || self.phases.load(Ordering::SeqCst) != before;
        (snapshot, is_between)
    }
}
