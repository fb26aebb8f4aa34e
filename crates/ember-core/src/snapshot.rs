//! Snapshots: all entries as they were at one moment, saved while commands go on. Nothing is forked and no table copied.
//!
//! ```text
//! begin      nobody else at the keyspace: each shard's generation changes, so all entries are older than it
//! before a change   an entry that is still to be saved is handed over      [`crate::keyspace::shard`]
//! the walk   [`Walker`]s, on any number of threads: shard by shard, a few entries under the lock at a time
//! the rest   [`Saver::next_piece`], on the thread that writes: heavy values one at a time, shared and not copied
//! ```
//!
//! What is saved waits in a queue as [`Piece`]s. The walk stops while that is full; calls that would hand over more wait
//! ([`crate::keyspace::shard::ShardData::must_wait`]). So the memory a snapshot takes is bounded, whatever the values'
//! sizes and however slow the disk: by [`QUEUE_MAX_BYTES`], [`HANDED_MAX_BYTES`] and the heavy values that are removed or
//! changed by what cannot wait (expiry, eviction, scripts that touch keys they do not declare).
//!
//! A snapshot that is not taken to its end only gives all entries their generation.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use crate::eviction::policy::ClockReading;
use crate::keyspace::entry::{EntryRef, SharedValue, Slot};
use crate::keyspace::hash::KeyHash;
pub use crate::keyspace::shard::Detached;
use crate::keyspace::shard::{Cursor, Held, is_apart};
use crate::keyspace::{Keyspace, SHARDS};
use crate::rdb::{Encoded, KeyFacts};

/// Bytes that the walk has saved and that wait to be written.
pub const QUEUE_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that were handed over before changes and wait to be written; when there are more, changes wait.
pub const HANDED_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Entries that the walk gives on together, in bytes.
const BLOCK_BYTES: usize = 256 * 1024;

/// Keys whose saving was asked for. Who asks for more waits until the walk is over.
const REQUESTS_MAX: usize = 1024;

/// How entries are saved.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOptions {
    /// The version of the format whose readers are to understand it.
    pub version: u16,
    /// Whether strings that get shorter by LZF are packed.
    pub is_packed: bool,
    /// How eviction clocks are read.
    pub clocks: ClockReading,
}

/// A key whose value is shared with its entry.
#[derive(Debug)]
pub struct HeldKey {
    /// What is said of it.
    pub facts: KeyFacts,
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: SharedValue,
}

/// Something to be written.
pub enum Piece {
    /// Keys of the database of this number.
    Keys(usize, Encoded),
    /// A key with a large value.
    Value(HeldKey),
    /// A database that was emptied.
    Detached(Detached),
}

struct Waiting {
    piece: Piece,
    bytes: usize,
    /// Whether it was handed over before a change.
    is_handed: bool,
}

/// What is to be written, and what is asked for.
struct Queue {
    pieces: VecDeque<Waiting>,
    /// Bytes of those that the walk has saved.
    walked_bytes: usize,
    /// Keys that calls wait for.
    requests: VecDeque<(KeyHash, Box<[u8]>)>,
    /// Shards through which nobody has walked.
    shards_left: usize,
}

/// A snapshot under way, shared by those who save, those who change entries, and the one who writes.
pub struct Snapshot {
    // Fixed after the start.
    options: SnapshotOptions,
    sizes: Vec<(u64, u64)>,
    // Shared.
    next_shard: AtomicUsize,
    is_cancelled: AtomicBool,
    /// Bytes handed over that wait; a plain counter, which may be off for a moment.
    handed_bytes: AtomicUsize,
    handed_total_bytes: AtomicU64,
    /// Whether somebody waits, since those who do were last told to try again.
    is_awaited: AtomicBool,
    queue: Mutex<Queue>,
    /// There is something in the queue for the one who writes.
    filled: Condvar,
    /// There is room in the queue for those who walk.
    emptied: Condvar,
}

impl Keyspace {
    /// Begins a snapshot of all entries as they are now. The caller is alone at the keyspace and holds no lock, and no other
    /// snapshot is under way: the [`Saver`] of the last one is gone. O(shards).
    pub fn begin_snapshot(&self, options: SnapshotOptions) -> Arc<Snapshot> {
        let count = |database: usize| (self.len(database) as u64, self.volatile(database) as u64);
        let snapshot = Arc::new(Snapshot {
            options,
            sizes: (0..self.databases()).map(count).collect(),
            next_shard: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            handed_bytes: AtomicUsize::new(0),
            handed_total_bytes: AtomicU64::new(0),
            is_awaited: AtomicBool::new(false),
            queue: Mutex::new(Queue {
                pieces: VecDeque::new(),
                walked_bytes: 0,
                requests: VecDeque::new(),
                shards_left: SHARDS,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        });
        (0..SHARDS).for_each(|shard| self.lock(shard).begin_saving(&snapshot));
        snapshot
    }
}

impl Snapshot {
    /// How the entries are saved.
    pub fn options(&self) -> &SnapshotOptions {
        &self.options
    }

    /// For each database the numbers of keys, and of those with an expiry, at the moment.
    pub fn sizes(&self) -> &[(u64, u64)] {
        &self.sizes
    }

    /// Bytes that were handed over before changes so far.
    pub fn handed_total_bytes(&self) -> u64 {
        self.handed_total_bytes.load(Ordering::Relaxed)
    }

    /// Whether a call must wait because too much was handed over; it is to be tried again when that is written.
    pub(crate) fn awaits_room(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        // Looked at again behind the store, which pairs with `Saver::discount`: one of the two sees the other.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// Notes that a call waits for a key that is held. Under the lock of its shard.
    pub(crate) fn awaits_held(&self) {
        self.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Asks for a key to be saved soon, for a call that must wait for it. Under the lock of its shard.
    pub(crate) fn request(&self, hash: KeyHash, key: &[u8]) {
        self.is_awaited.store(true, Ordering::SeqCst);
        let mut queue = self.queue.lock();
        let is_known = queue.requests.iter().any(|(_, other)| **other == *key);
        if !is_known && queue.requests.len() < REQUESTS_MAX {
            queue.requests.push_back((hash, key.into()));
            self.filled.notify_one();
        }
    }

    /// Walks through all shards through which nobody else does.
    pub fn walk(&self, keyspace: &Keyspace) {
        let mut walker = Walker::new(self);
        while walker.step(keyspace) {}
    }

    /// What is said of an entry of the database of this number.
    pub fn facts(&self, number: usize, entry: EntryRef<'_>) -> KeyFacts {
        KeyFacts {
            database: number,
            expire_at_ms: entry.expire_at_ms(),
            idle_s: self.options.clocks.idle_s(entry.clock()),
            frequency: self.options.clocks.frequency(entry.clock()),
        }
    }

    /// An entry's key and its value, which is shared; `None` for a value that stands in its entry.
    pub(crate) fn share(&self, number: usize, slot: &mut Slot) -> Option<HeldKey> {
        let value = slot.share()?;
        let entry = slot.entry();
        Some(HeldKey { facts: self.facts(number, entry), name: entry.key().into(), value })
    }

    /// An empty block of keys that are not packed: the worker that changes them does not wait for that.
    pub(crate) fn plain_block(&self) -> Encoded {
        Encoded::new(self.options.version, false)
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Whether what was handed over is as much as may wait.
    pub(crate) fn is_full(&self) -> bool {
        self.handed_bytes.load(Ordering::SeqCst) >= HANDED_MAX_BYTES
    }

    /// Counts what is handed over, before it is given to [`Snapshot::push_handed`].
    pub(crate) fn count_handed(&self, bytes: usize) {
        self.handed_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.handed_total_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Queues what was handed over. Under the lock of a shard: it waits for nobody.
    pub(crate) fn push_handed(&self, piece: Piece, bytes: usize) {
        self.queue.lock().pieces.push_back(Waiting { piece, bytes, is_handed: true });
        self.filled.notify_one();
    }

    /// Queues what the walk has saved, when there is room. No lock is held.
    fn push_walked(&self, piece: Piece, bytes: usize) {
        let mut queue = self.queue.lock();
        while queue.walked_bytes >= QUEUE_MAX_BYTES && !self.is_cancelled() {
            self.emptied.wait(&mut queue);
        }
        if !self.is_cancelled() {
            queue.walked_bytes += bytes;
            queue.pieces.push_back(Waiting { piece, bytes, is_handed: false });
            self.filled.notify_one();
        }
    }
}

/// What one thread of the walk has saved and not given on.
pub(crate) struct Gathering<'s> {
    snapshot: &'s Snapshot,
    number: usize,
    block: Encoded,
    /// What is complete, with its bytes.
    complete: Vec<(Piece, usize)>,
    /// Bytes of all that was ever added.
    total_bytes: usize,
}

impl<'s> Gathering<'s> {
    fn new(snapshot: &'s Snapshot) -> Gathering<'s> {
        let SnapshotOptions { version, is_packed, .. } = snapshot.options;
        let block = Encoded::new(version, is_packed);
        Gathering { snapshot, number: 0, block, complete: Vec::new(), total_bytes: 0 }
    }

    /// Entries of the database of this number follow.
    pub(crate) fn select(&mut self, number: usize) {
        if number != self.number {
            self.complete_block();
            self.number = number;
        }
    }

    /// Adds an entry as it is now; one that is apart is shared.
    pub(crate) fn add(&mut self, slot: &mut Slot) {
        if is_apart(slot.entry()) {
            let bytes = slot.entry().footprint_bytes();
            let key = self.snapshot.share(self.number, slot);
            self.complete.extend(key.map(|key| (Piece::Value(key), bytes)));
            self.total_bytes += BLOCK_BYTES.min(bytes);
            return;
        }
        let (entry, before) = (slot.entry(), self.block.bytes().len());
        self.block.push(&self.snapshot.facts(self.number, entry), entry.key(), entry);
        self.total_bytes += self.block.bytes().len() - before;
    }

    /// Bytes that were added so far.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    fn complete_block(&mut self) {
        if self.block.keys() > 0 {
            let SnapshotOptions { version, is_packed, .. } = self.snapshot.options;
            let block = std::mem::replace(&mut self.block, Encoded::new(version, is_packed));
            let bytes = block.bytes().len();
            self.complete.push((Piece::Keys(self.number, block), bytes));
        }
    }

    /// Gives on what is complete, and the rest if that is at least so many bytes. No lock is held.
    fn give_on(&mut self, bytes_min: usize) {
        if self.block.bytes().len() >= bytes_min {
            self.complete_block();
        }
        self.complete.drain(..).for_each(|(piece, bytes)| self.snapshot.push_walked(piece, bytes));
    }
}

/// Saves what nobody else has saved, but for heavy values: shard by shard. Any number of threads may do this at once; it
/// needs somebody who takes what is saved out of the [`Saver`].
pub struct Walker<'s> {
    snapshot: &'s Snapshot,
    gathering: Gathering<'s>,
    /// The shard, and how far it is.
    shard: Option<(usize, Cursor)>,
    walked: usize,
}

impl<'s> Walker<'s> {
    /// One that begins with the next shard through which nobody walks.
    pub fn new(snapshot: &'s Snapshot) -> Walker<'s> {
        Walker { snapshot, gathering: Gathering::new(snapshot), shard: None, walked: 0 }
    }

    /// Saves a few entries. False when there is no shard left.
    pub fn step(&mut self, keyspace: &Keyspace) -> bool {
        let next = || (self.snapshot.next_shard.fetch_add(1, Ordering::Relaxed), Cursor::default());
        let (shard, cursor) = self.shard.get_or_insert_with(next);
        if *shard >= SHARDS {
            self.gathering.give_on(1);
            let mut queue = self.snapshot.queue.lock();
            queue.shards_left -= std::mem::take(&mut self.walked);
            // The saver may be waiting for that, or somebody who ends the snapshot.
            self.snapshot.filled.notify_all();
            return false;
        }
        let goes_on = keyspace.lock(*shard).save_step(cursor, &mut self.gathering);
        self.gathering.give_on(BLOCK_BYTES);
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

    /// Tells those who wait, if there are any, to try again.
    fn release(&self) {
        if self.snapshot.is_awaited.swap(false, Ordering::SeqCst) {
            (self.on_release)();
        }
    }

    fn end(&mut self) {
        self.is_over = true;
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

    /// Notes that so many bytes that were handed over do not wait any more.
    fn discount(&mut self, bytes: usize) {
        let left = self.snapshot.handed_bytes.fetch_sub(bytes, Ordering::SeqCst).saturating_sub(bytes);
        // Half of it, so that those who wait do not have to do so again at once.
        if left < HANDED_MAX_BYTES / 2 {
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
            // Under the lock, so that nobody of the walk misses it between looking and waiting.
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
