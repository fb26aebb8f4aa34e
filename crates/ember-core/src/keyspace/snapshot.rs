//! Snapshots: the state of all entries at one moment, saved while commands run, without a fork and without copies of
//! tables.
//!
//! ```text
//! begin             exclusive access: each shard's generation changes, so all entries have an older one
//! before a change   an entry that is still to be saved is saved first, as a *preimage*    [`crate::keyspace::shard`]
//! the walk          [`Walker`]s, on any number of threads: shard by shard, a few entries under the lock at a time
//! the rest          [`Saver::next_piece`], on the writing thread: heavy values one at a time, shared and not copied
//! ```
//!
//! Saved data wait in a queue as [`Piece`]s. While the queue is full, the walk pauses, and calls that would add
//! preimages wait ([`crate::keyspace::shard::ShardData::must_wait`]). So a snapshot's memory is bounded by
//! [`QueueLimits`], whatever the values' sizes and the disk's speed, plus the entries removed or changed without
//! waiting (by expiry, and by scripts that access undeclared keys). [`HeldBack`] reports this memory for the memory
//! limit.
//!
//! If the [`Saver`] is dropped before the end, all entries are only assigned the current generation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use crate::keyspace::shard::Detached;
use crate::keyspace::shard::snapshot_queue::{BLOCK_BYTES, Gathering, Waiting};
pub use crate::keyspace::shard::snapshot_queue::{
    ColdKey, HeldBack, HeldKey, Piece, QueueLimits, Snapshot, SnapshotOptions,
};
pub use crate::keyspace::shard::unsaved::{RemovedKeys, StoredKey};
use crate::keyspace::shard::{Cursor, Held};
use crate::keyspace::{Keyspace, SHARDS};
use crate::sync::yield_now;

impl Keyspace {
    /// Begins a snapshot of all entries in their current state. The caller has exclusive access and holds no lock, and
    /// there is no other snapshot: the [`Saver`] of the previous snapshot was dropped. O(shards).
    pub fn begin_snapshot(&self, options: SnapshotOptions) -> Arc<Snapshot> {
        // A single pass over the shards, because all workers wait for it.
        let mut sizes = vec![(0, 0); self.databases()];
        for shard in 0..SHARDS {
            let data = self.lock(shard);
            for (database, (keys, volatile)) in sizes.iter_mut().enumerate().take(data.databases_used()) {
                *keys += data.database(database).table().len() as u64;
                *volatile += data.database(database).volatile() as u64;
            }
        }
        let snapshot = Arc::new(Snapshot::new(options, sizes, SHARDS, Arc::clone(&self.held_back)));
        (0..SHARDS).for_each(|shard| self.lock(shard).begin_saving(&snapshot));
        snapshot
    }
}

impl Snapshot {
    /// Saves all shards that no other thread has taken.
    pub fn walk(&self, keyspace: &Keyspace) {
        let mut walker = Walker::new(self);
        let mut pace = Pace::default();
        while walker.step(keyspace) {
            pace.keep();
        }
    }
}

/// The maximum time for which a saving thread occupies a core without yielding. Otherwise a worker on that core would
/// wait for a whole scheduler time slice, some milliseconds, for each such thread.
const RUN_TIME_MAX: Duration = Duration::from_micros(500);

/// Yields the core of a saving thread to workers at regular intervals.
#[derive(Debug)]
pub struct Pace {
    since: Instant,
}

impl Default for Pace {
    fn default() -> Pace {
        Pace { since: Instant::now() }
    }
}

impl Pace {
    /// Yields the core if `RUN_TIME_MAX` has passed; called between two units of work.
    pub fn keep(&mut self) {
        if self.since.elapsed() >= RUN_TIME_MAX {
            yield_now();
            self.since = Instant::now();
        }
    }
}

/// Saves all unsaved entries except heavy values, shard by shard. Any number of threads may run walkers concurrently;
/// walkers wait while the queue is full.
pub struct Walker<'s> {
    snapshot: &'s Snapshot,
    gathering: Gathering<'s>,
    /// The shard that the walker is saving, and the position in it.
    shard: Option<(usize, Cursor)>,
    walked: usize,
}

impl<'s> Walker<'s> {
    /// Returns a walker that begins with the next shard that no thread has taken.
    pub fn new(snapshot: &'s Snapshot) -> Walker<'s> {
        Walker { snapshot, gathering: Gathering::new(snapshot), shard: None, walked: 0 }
    }

    /// Saves the entries of one step. Returns false when no shard is left.
    pub fn step(&mut self, keyspace: &Keyspace) -> bool {
        let next = || (self.snapshot.next_shard.fetch_add(1, Ordering::Relaxed), Cursor::default());
        let (shard, cursor) = self.shard.get_or_insert_with(next);
        if *shard >= SHARDS {
            self.gathering.flush(1);
            let mut queue = self.snapshot.queue.lock();
            queue.shards_left -= std::mem::take(&mut self.walked);
            // The saver, or the thread that cancels the snapshot, may be waiting for this walker.
            self.snapshot.filled.notify_all();
            return false;
        }
        let continues = keyspace.lock(*shard).save_step(cursor, &mut self.gathering);
        self.gathering.flush(BLOCK_BYTES);
        if !continues {
            self.shard = None;
            self.walked += 1;
        }
        true
    }
}

/// The reader of a snapshot's queue, with which the writing thread takes the saved pieces. Dropping the saver before
/// the end cancels the snapshot.
pub struct Saver<'k> {
    snapshot: Arc<Snapshot>,
    keyspace: &'k Keyspace,
    /// The shard whose value is held, if any.
    held: Option<usize>,
    /// The shard whose heavy values the saver is saving, and the position in that shard.
    shard: usize,
    cursor: Cursor,
    /// Called when waiting calls may be tried again.
    on_release: Box<dyn Fn() + Send + 'k>,
    is_over: bool,
}

impl<'k> Saver<'k> {
    /// Returns the only saver of a snapshot of `keyspace`. `on_release` is called, without any lock, when waiting calls
    /// may be tried again.
    pub fn new(
        snapshot: Arc<Snapshot>,
        keyspace: &'k Keyspace,
        on_release: impl Fn() + Send + 'k,
    ) -> Saver<'k> {
        Saver {
            snapshot,
            keyspace,
            held: None,
            shard: 0,
            cursor: Cursor::default(),
            on_release: Box::new(on_release),
            is_over: false,
        }
    }

    /// Returns the next piece; `None` when all entries are saved. The caller must have written the previous piece:
    /// other threads may change that piece's value from now on. Waits for the [`Walker`]s.
    pub fn next_piece(&mut self) -> Option<Piece> {
        self.release_held();
        loop {
            if let Some(piece) = self.take() {
                return Some(piece);
            }
            // The walk has saved all shards, so heavy values are next.
            if self.shard == SHARDS {
                self.end();
                return None;
            }
            if let Some(piece) = self.next_heavy() {
                return Some(piece);
            }
        }
    }

    /// Notifies waiting calls, if there are any, so that they are tried again.
    fn release(&self) {
        if self.snapshot.held_back.take_awaited() {
            (self.on_release)();
        }
    }

    fn end(&mut self) {
        self.is_over = true;
        self.snapshot.held_back.end();
        (self.on_release)();
    }

    fn release_held(&mut self) {
        if let Some(shard) = self.held.take() {
            self.keyspace.lock(shard).release_held();
            self.release();
        }
    }

    /// Returns a requested key or a queued piece; `None` when there is neither and the walk is complete.
    fn take(&mut self) -> Option<Piece> {
        let snapshot = Arc::clone(&self.snapshot);
        let mut queue = snapshot.queue.lock();
        loop {
            if let Some((hash, key)) = queue.requests.pop_front() {
                drop(queue);
                if let Some(key) = self.keyspace.lock(hash.shard()).hold(hash, &key) {
                    self.held = Some(hash.shard());
                    return Some(Piece::Value(key));
                }
                self.release();
                queue = snapshot.queue.lock();
                continue;
            }
            if let Some(Waiting { piece, bytes, is_preimage }) = queue.pieces.pop_front() {
                if is_preimage {
                    drop(queue);
                    self.discount(bytes);
                } else {
                    queue.walked_bytes -= bytes;
                    drop(queue);
                    snapshot.discount_walked(&piece, bytes);
                    snapshot.emptied.notify_all();
                }
                return Some(piece);
            }
            if queue.shards_left == 0 {
                return None;
            }
            snapshot.filled.wait(&mut queue);
        }
    }

    /// Subtracts `bytes` from the size of the handed-over data that wait to be written.
    fn discount(&mut self, bytes: usize) {
        if self.snapshot.held_back.discount(bytes) {
            self.release();
        }
    }

    fn next_heavy(&mut self) -> Option<Piece> {
        let held = self.keyspace.lock(self.shard).hold_next(&mut self.cursor);
        match held {
            Held::Key(key) => {
                self.held = Some(self.shard);
                Some(Piece::Value(key))
            }
            Held::NotYet => None,
            Held::End => {
                (self.shard, self.cursor) = (self.shard + 1, Cursor::default());
                None
            }
        }
    }

    /// Assigns the current generation to all entries, without saving them. O(entries), unless all entries are saved
    /// already.
    fn cancel(&mut self) {
        self.release_held();
        let snapshot = &self.snapshot;
        snapshot.is_cancelled.store(true, Ordering::Relaxed);
        {
            // The flag is set under the lock, so that no walker misses it between its check and its wait.
            let mut queue = snapshot.queue.lock();
            queue.pieces.clear();
            queue.requests.clear();
            snapshot.emptied.notify_all();
        }
        snapshot.walk(self.keyspace);
        let mut queue = snapshot.queue.lock();
        while queue.shards_left > 0 {
            snapshot.filled.wait(&mut queue);
        }
        drop(queue);
        while self.shard < SHARDS {
            // A cancelled snapshot holds no values.
            let _ = self.next_heavy();
        }
        // Drops the pieces that were queued meanwhile.
        self.snapshot.queue.lock().pieces.clear();
        self.end();
    }
}

impl Drop for Saver<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancel();
        }
    }
}
