//! What a snapshot and the shards share: what is saved, and the queue in which it waits to be written.
//!
//! A shard puts in what is about to change, the walk what it finds; the saver takes out. [`crate::keyspace::snapshot`]
//! drives the walk and the saver; `saving` is the shard's side.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use super::saving::Detached;
use crate::entries::entry::{EntryRef, SharedValue, Slot};
use crate::entries::hash::KeyHash;
use crate::eviction::policy::ClockReading;
use crate::rdb::{Encoded, KeyFacts, KeyForm};
use crate::types::value::StringValue;

/// Bytes that the walk has saved and that wait to be written.
pub const QUEUE_MAX_BYTES: usize = 8 * 1024 * 1024;

/// Bytes that were handed over before changes and wait to be written; when there are more, changes wait.
pub const HANDED_MAX_BYTES: usize = 64 * 1024 * 1024;

/// Bytes of entries that the walk queues together.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// Keys whose saving was asked for. Who asks for more waits until the walk is over.
const REQUESTS_MAX: usize = 1024;

/// From this size on an aggregate is heavy: writing a smaller one takes less than 0.1 ms.
pub(super) const HEAVY_AGGREGATE_BYTES: usize = 64 * 1024;

/// How entries are saved.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOptions {
    /// In which form.
    pub form: KeyForm,
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

/// A piece in the queue.
pub(crate) struct Waiting {
    pub(crate) piece: Piece,
    pub(crate) bytes: usize,
    /// Whether it was handed over before a change.
    pub(crate) is_handed: bool,
}

/// The pieces that wait to be written, and the keys that calls wait for.
pub(crate) struct Queue {
    pub(crate) pieces: VecDeque<Waiting>,
    /// Bytes of those that the walk has saved.
    pub(crate) walked_bytes: usize,
    /// Keys that calls wait for.
    pub(crate) requests: VecDeque<(KeyHash, Box<[u8]>)>,
    /// Shards not walked through yet.
    pub(crate) shards_left: usize,
}

/// A snapshot under way, shared by those who save, those who change entries, and the one who writes.
pub struct Snapshot {
    // Fixed after the start.
    options: SnapshotOptions,
    sizes: Vec<(u64, u64)>,
    // Shared.
    pub(crate) next_shard: AtomicUsize,
    pub(crate) is_cancelled: AtomicBool,
    /// Bytes handed over that wait; a plain counter, which may be off for a moment.
    pub(crate) handed_bytes: AtomicUsize,
    handed_total_bytes: AtomicU64,
    /// Whether a call waits since waiting calls were last woken.
    pub(crate) is_awaited: AtomicBool,
    pub(crate) queue: Mutex<Queue>,
    /// There is something in the queue for the one who writes.
    pub(crate) filled: Condvar,
    /// There is room in the queue for those who walk.
    pub(crate) emptied: Condvar,
}

/// Whether a value is shared when it is saved.
pub(crate) fn is_apart(entry: EntryRef<'_>) -> bool {
    match entry.aggregate() {
        Some(aggregate) => aggregate.footprint_bytes() >= HEAVY_AGGREGATE_BYTES,
        None => matches!(entry.string(), StringValue::Large(_)),
    }
}

impl Snapshot {
    /// A snapshot of that many shards, with the number of keys and of volatile ones in each database.
    pub(crate) fn new(options: SnapshotOptions, sizes: Vec<(u64, u64)>, shards: usize) -> Snapshot {
        Snapshot {
            options,
            sizes,
            next_shard: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            handed_bytes: AtomicUsize::new(0),
            handed_total_bytes: AtomicU64::new(0),
            is_awaited: AtomicBool::new(false),
            queue: Mutex::new(Queue {
                pieces: VecDeque::new(),
                walked_bytes: 0,
                requests: VecDeque::new(),
                shards_left: shards,
            }),
            filled: Condvar::new(),
            emptied: Condvar::new(),
        }
    }

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
        Encoded::new(self.options.form.unpacked())
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

    /// Queues what was handed over. Under the lock of a shard: it does not wait.
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

/// What one thread of the walk has saved and not queued yet.
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
    pub(crate) fn new(snapshot: &'s Snapshot) -> Gathering<'s> {
        let block = Encoded::new(snapshot.options.form);
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
            let block = std::mem::replace(&mut self.block, Encoded::new(self.snapshot.options.form));
            let bytes = block.bytes().len();
            self.complete.push((Piece::Keys(self.number, block), bytes));
        }
    }

    /// Queues what is complete, and the rest if that is at least `bytes_min`. No lock is held.
    pub(crate) fn flush(&mut self, bytes_min: usize) {
        if self.block.bytes().len() >= bytes_min {
            self.complete_block();
        }
        self.complete.drain(..).for_each(|(piece, bytes)| self.snapshot.push_walked(piece, bytes));
    }
}
