//! Snapshots: all entries as they were at one moment, saved while commands run. Nothing is forked and no table copied.
//!
//! ```text
//! begin      exclusive access: each shard's generation changes, so all entries are older than it
//! before a change   an entry that is still to be saved is handed over      [`crate::keyspace::shard`]
//! the walk   [`Walker`]s, on any number of threads: shard by shard, a few entries under the lock at a time
//! the rest   [`Saver::next_piece`], on the thread that writes: heavy values one at a time, shared and not copied
//! ```
//!
//! What is saved waits in a queue as [`Piece`]s. The walk stops while that is full; calls that would hand over more wait
//! ([`crate::keyspace::shard::ShardData::must_wait`]). So the memory a snapshot takes is bounded, whatever the values'
//! sizes and however slow the disk: by [`QueueLimits`] and what is removed or changed by what cannot wait (expiry,
//! scripts that touch keys they do not declare). [`HeldBack`] has it for those who hold to a limit of memory.
//!
//! A snapshot that is not taken to its end only gives all entries their generation.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

pub use crate::keyspace::shard::Detached;
pub use crate::keyspace::shard::handover::{
    AwayKey, HeldBack, HeldKey, Piece, QueueLimits, Snapshot, SnapshotOptions,
};
use crate::keyspace::shard::handover::{BLOCK_BYTES, Gathering, Waiting};
pub use crate::keyspace::shard::unsaved::{Gone, StoredKey};
use crate::keyspace::shard::{Cursor, Held};
use crate::keyspace::{Keyspace, SHARDS};
use crate::sync::yield_now;

impl Keyspace {
    /// Begins a snapshot of all entries as they are now. The caller has exclusive access and holds no lock, and no other
    /// snapshot is under way: the [`Saver`] of the last one is gone. O(shards).
    pub fn begin_snapshot(&self, options: SnapshotOptions) -> Arc<Snapshot> {
        // One pass: everybody waits.
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
    /// Walks through all shards that no other thread has taken.
    pub fn walk(&self, keyspace: &Keyspace) {
        let mut walker = Walker::new(self);
        let mut pace = Pace::default();
        while walker.step(keyspace) {
            pace.keep();
        }
    }
}

/// How long a thread that saves keeps a core at a time: workers that have something to do on it would wait for the whole
/// time slice of the system, some milliseconds, and for one of each such thread.
const RUN_TIME_MAX: Duration = Duration::from_micros(500);

/// Lets workers have the core of a thread that saves, often enough.
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
    /// Called between two parts of the work.
    pub fn keep(&mut self) {
        if self.since.elapsed() >= RUN_TIME_MAX {
            yield_now();
            self.since = Instant::now();
        }
    }
}

/// Saves what is not saved yet, except heavy values, shard by shard. Any number of threads may do this at once; it waits
/// when the [`Saver`] does not take pieces out.
pub struct Walker<'s> {
    snapshot: &'s Snapshot,
    gathering: Gathering<'s>,
    /// The shard, and how far it is.
    shard: Option<(usize, Cursor)>,
    walked: usize,
}

impl<'s> Walker<'s> {
    /// A walker that begins with the next shard that no thread has taken.
    pub fn new(snapshot: &'s Snapshot) -> Walker<'s> {
        Walker { snapshot, gathering: Gathering::new(snapshot), shard: None, walked: 0 }
    }

    /// Saves a few entries. False when there is no shard left.
    pub fn step(&mut self, keyspace: &Keyspace) -> bool {
        let next = || (self.snapshot.next_shard.fetch_add(1, Ordering::Relaxed), Cursor::default());
        let (shard, cursor) = self.shard.get_or_insert_with(next);
        if *shard >= SHARDS {
            self.gathering.flush(1);
            let mut queue = self.snapshot.queue.lock();
            queue.shards_left -= std::mem::take(&mut self.walked);
            // The saver may be waiting for that, or the thread that cancels the snapshot.
            self.snapshot.filled.notify_all();
            return false;
        }
        let goes_on = keyspace.lock(*shard).save_step(cursor, &mut self.gathering);
        self.gathering.flush(BLOCK_BYTES);
        if !goes_on {
            self.shard = None;
            self.walked += 1;
        }
        true
    }
}

/// Takes what is saved out of a snapshot, for the thread that writes. Dropped before the end, it ends the snapshot.
pub struct Saver<'k> {
    snapshot: Arc<Snapshot>,
    keyspace: &'k Keyspace,
    /// The shard of the value that was held last.
    held: Option<usize>,
    /// The shard whose heavy values are saved, and how far that is.
    shard: usize,
    cursor: Cursor,
    /// Called when calls that had to wait may be tried again.
    on_release: Box<dyn Fn() + Send + 'k>,
    is_over: bool,
}

impl<'k> Saver<'k> {
    /// The one saver of a snapshot of `keyspace`. `on_release` is called, without any lock, when calls that had to wait may
    /// be tried again.
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

    /// The next piece; `None` when all is saved. What was given before has been written by now: others may change it. Waits
    /// for the [`Walker`]s.
    pub fn next_piece(&mut self) -> Option<Piece> {
        self.let_go();
        loop {
            if let Some(piece) = self.take() {
                return Some(piece);
            }
            // All shards are walked through.
            if self.shard == SHARDS {
                self.end();
                return None;
            }
            if let Some(piece) = self.next_heavy() {
                return Some(piece);
            }
        }
    }

    /// Wakes those who wait, if there are any, to try again.
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

    fn let_go(&mut self) {
        if let Some(shard) = self.held.take() {
            self.keyspace.lock(shard).let_go();
            self.release();
        }
    }

    /// What is asked for or waits in the queue; `None` when nothing does, and all shards are walked through.
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
            if let Some(Waiting { piece, bytes, is_handed }) = queue.pieces.pop_front() {
                if is_handed {
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

    /// Subtracts `bytes` from those that were handed over and wait.
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

    /// Gives all entries their generation, without saving them. O(entries), unless all is saved already.
    fn cancel(&mut self) {
        self.let_go();
        let snapshot = &self.snapshot;
        snapshot.is_cancelled.store(true, Ordering::Relaxed);
        {
            // Under the lock, so that no walker misses it between looking and waiting.
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
            // Nothing is held of a snapshot that is cancelled.
            let _ = self.next_heavy();
        }
        // What was handed over meanwhile.
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
