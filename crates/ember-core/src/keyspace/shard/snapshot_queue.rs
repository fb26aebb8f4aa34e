//! The state that a snapshot and the shards share: the queue of saved data that wait to be written.
//!
//! A shard adds entries that are about to change, the walk adds all other entries, and the saver takes both from the
//! queue. [`crate::keyspace::snapshot`] contains the walk and the saver; `saving` contains the shard's operations.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use super::cold_values::demotable_facts;
use super::saving::Detached;
use crate::entries::entry::{EntryRef, SharedValue, Slot};
use crate::entries::external::Record;
use crate::entries::hash::KeyHash;
use crate::eviction::policy::ClockReading;
use crate::rdb::{Encoded, KeyFacts, KeyForm};
use crate::types::value::StringValue;

/// The limits of the saved data that wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// The bytes saved by the walk above which the walk waits.
    pub walked_bytes: usize,
    /// The bytes of preimages above which calls that change keys wait.
    pub preimage_bytes: usize,
}

impl Default for QueueLimits {
    /// Returns limits that equal the bytes that a disk writes in some tenths of a second: higher limits would not make
    /// snapshots faster.
    fn default() -> QueueLimits {
        QueueLimits { walked_bytes: 8 << 20, preimage_bytes: 64 << 20 }
    }
}

/// Counters of the memory that the current snapshot, if any, holds back. Any user of a keyspace may read them.
#[derive(Debug, Default)]
pub struct HeldBack {
    /// The bytes that the walk has copied and that are not written yet.
    walked_bytes: AtomicUsize,
    /// The bytes of preimages that are not written yet. May be inexact while other threads update it.
    preimage_bytes: AtomicUsize,
    // The limits; 0 while there is no snapshot.
    walked_max: AtomicUsize,
    preimage_max: AtomicUsize,
    /// Whether a call has begun to wait since waiting calls were last notified.
    is_awaited: AtomicBool,
}

impl HeldBack {
    /// Returns the memory that the snapshot holds back, in bytes, capped at the limits. Preimages of calls that cannot
    /// wait may exceed the limits; if the excess were counted, an eviction could cause another eviction.
    pub fn bytes(&self) -> usize {
        let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let held = load(&self.walked_bytes) + load(&self.preimage_bytes);
        held.min(load(&self.walked_max) + load(&self.preimage_max))
    }

    /// Returns whether the bytes of preimages have reached their limit.
    pub fn is_full(&self) -> bool {
        let max = self.preimage_max.load(Ordering::Relaxed);
        max > 0 && self.preimage_bytes.load(Ordering::SeqCst) >= max
    }

    /// Returns whether a call must wait because the preimages have reached their limit. The call is to be tried again
    /// when these bytes have been written.
    pub fn must_wait(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        // The limit is checked again after the store, which pairs with `Saver::discount`: either this check sees the
        // discount, or `Saver::discount` sees the waiting call.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// Returns whether a call has waited since the last call of this function.
    pub(crate) fn take_awaited(&self) -> bool {
        self.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Subtracts the bytes of a preimage that is being written. Returns whether less than half of the limit is in use
    /// then, so that a waiting call that is tried again does not have to wait again at once.
    pub(crate) fn discount(&self, bytes: usize) -> bool {
        let left = self.preimage_bytes.fetch_sub(bytes, Ordering::SeqCst).saturating_sub(bytes);
        left < self.preimage_max.load(Ordering::Relaxed) / 2
    }

    fn begin(&self, limits: QueueLimits) {
        self.end();
        self.walked_max.store(limits.walked_bytes, Ordering::Relaxed);
        self.preimage_max.store(limits.preimage_bytes, Ordering::Relaxed);
    }

    /// Resets the counters at the end of a snapshot.
    pub(crate) fn end(&self) {
        for counter in [&self.walked_bytes, &self.preimage_bytes, &self.walked_max, &self.preimage_max] {
            counter.store(0, Ordering::SeqCst);
        }
    }
}

/// The size in bytes from which the walk queues a block of entries.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// The allocated bytes of a block of the walk: a step may exceed [`BLOCK_BYTES`].
const BLOCK_CAPACITY_BYTES: usize = BLOCK_BYTES + BLOCK_BYTES / 8;

/// The maximum number of spare blocks kept for the walk: about one for each of its threads.
const SPARE_MAX: usize = 4;

/// The maximum size in bytes from which a block of preimages of a shard is queued. A lower size applies if the unqueued
/// blocks of all shards could otherwise take more than a quarter of the limit of preimages.
const PREIMAGE_BLOCK_MAX_BYTES: usize = 16 * 1024;

/// The minimum of that size in bytes: smaller blocks would take more memory in the queue than their contents.
const PREIMAGE_BLOCK_MIN_BYTES: usize = 512;

/// The maximum number of keys whose save calls have requested. Calls that request further keys wait until the walk is
/// done.
const REQUESTS_MAX: usize = 1024;

/// The minimum size of a heavy aggregate: writing a smaller aggregate takes less than 0.1 ms.
pub(super) const HEAVY_AGGREGATE_BYTES: usize = 64 * 1024;

/// Options of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOptions {
    /// The format of the saved entries.
    pub form: KeyForm,
    /// The parameters for reading eviction clocks.
    pub clocks: ClockReading,
    /// The limits of the saved data that wait to be written.
    pub limits: QueueLimits,
}

/// A key whose value is shared with its entry until it is written.
#[derive(Debug)]
pub struct HeldKey {
    /// The metadata of the key.
    pub facts: KeyFacts,
    /// The name of the key.
    pub name: Box<[u8]>,
    /// The value of the key.
    pub value: SharedValue,
}

/// A key whose value is cold.
#[derive(Debug)]
pub struct ColdKey {
    /// The metadata of the key.
    pub facts: KeyFacts,
    /// The shard's name of the key's database, which the record contains.
    pub database_name: usize,
    /// The name of the key.
    pub name: Box<[u8]>,
    /// The record that contains the value.
    pub record: Record,
}

impl ColdKey {
    /// Returns the approximate memory of the key in the queue, in bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<ColdKey>() + self.name.len()
    }
}

/// A unit of a snapshot's data that is queued and written as a whole.
pub enum Piece {
    /// Encoded keys and values of the database with this number.
    Keys(usize, Encoded),
    /// A key with a large value, which is shared with its entry.
    Value(HeldKey),
    /// Keys of one database with cold values.
    Cold(Vec<ColdKey>),
    /// A database that was emptied.
    Detached(Detached),
}

/// A piece that waits in the queue.
pub(crate) struct Waiting {
    pub(crate) piece: Piece,
    pub(crate) bytes: usize,
    /// Whether the piece is a preimage, rather than saved by the walk.
    pub(crate) is_preimage: bool,
}

/// The queue of pieces that wait to be written, and of keys that calls wait for.
pub(crate) struct Queue {
    pub(crate) pieces: VecDeque<Waiting>,
    /// The bytes saved by the walk that wait in the queue, including shared values.
    pub(crate) walked_bytes: usize,
    /// The keys whose save is requested by waiting calls.
    pub(crate) requests: VecDeque<(KeyHash, Box<[u8]>)>,
    /// The number of shards whose walk is not complete.
    pub(crate) shards_left: usize,
}

/// A current snapshot, shared by the threads that save, change and write entries.
pub struct Snapshot {
    // Fields that do not change after the snapshot has begun.
    options: SnapshotOptions,
    sizes: Vec<(u64, u64)>,
    preimage_block_bytes: usize,
    // Fields that all threads of the snapshot change.
    pub(crate) next_shard: AtomicUsize,
    pub(crate) is_cancelled: AtomicBool,
    pub(crate) held_back: Arc<HeldBack>,
    preimage_total_bytes: AtomicU64,
    /// Empty blocks that the walk reuses.
    spare: Mutex<Vec<Encoded>>,
    pub(crate) queue: Mutex<Queue>,
    /// Notified when the queue has a piece or a request for the writing thread.
    pub(crate) filled: Condvar,
    /// Notified when the queue has space for pieces of the walk.
    pub(crate) emptied: Condvar,
}

/// Returns whether an entry's value is shared, rather than copied, when it is saved.
pub(crate) fn is_apart(entry: EntryRef<'_>) -> bool {
    match entry.aggregate() {
        Some(aggregate) => aggregate.footprint_bytes() >= HEAVY_AGGREGATE_BYTES,
        None if entry.is_cold() => false,
        None => matches!(entry.string(), StringValue::Large(_)),
    }
}

impl Snapshot {
    /// Returns a snapshot of `shards` shards, where `sizes` contains the number of keys and of keys with an expiry in
    /// each database. `held_back` counts the memory that the snapshot holds back.
    pub(crate) fn new(
        options: SnapshotOptions,
        sizes: Vec<(u64, u64)>,
        shards: usize,
        held_back: Arc<HeldBack>,
    ) -> Snapshot {
        held_back.begin(options.limits);
        Snapshot {
            options,
            sizes,
            preimage_block_bytes: (options.limits.preimage_bytes / 4 / shards)
                .clamp(PREIMAGE_BLOCK_MIN_BYTES, PREIMAGE_BLOCK_MAX_BYTES),
            next_shard: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            held_back,
            preimage_total_bytes: AtomicU64::new(0),
            spare: Mutex::default(),
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

    /// Returns the options of the snapshot.
    pub fn options(&self) -> &SnapshotOptions {
        &self.options
    }

    /// Returns the number of keys, and of keys with an expiry, in each database at the time of the snapshot.
    pub fn sizes(&self) -> &[(u64, u64)] {
        &self.sizes
    }

    /// Returns the total bytes of preimages since the snapshot began.
    pub fn preimage_total_bytes(&self) -> u64 {
        self.preimage_total_bytes.load(Ordering::Relaxed)
    }

    /// Records that a call waits for a held key. The caller holds the lock of the key's shard.
    pub(crate) fn awaits_held(&self) {
        self.held_back.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Requests an early save of a key, for a call that must wait for that save. The caller holds the lock of the key's
    /// shard.
    pub(crate) fn request(&self, hash: KeyHash, key: &[u8]) {
        self.held_back.is_awaited.store(true, Ordering::SeqCst);
        let mut queue = self.queue.lock();
        let is_known = queue.requests.iter().any(|(_, other)| **other == *key);
        if !is_known && queue.requests.len() < REQUESTS_MAX {
            queue.requests.push_back((hash, key.into()));
            self.filled.notify_one();
        }
    }

    /// Returns the metadata of an entry in the database with this number.
    pub fn facts(&self, number: usize, entry: EntryRef<'_>) -> KeyFacts {
        KeyFacts {
            database: number,
            expire_at_ms: entry.expire_at_ms(),
            idle_s: self.options.clocks.idle_s(entry.clock()),
            frequency: self.options.clocks.frequency(entry.clock()),
            cold_facts: if self.is_checkpoint() { demotable_facts(entry) } else { None },
        }
    }

    /// Returns an entry's key and its value, which is now shared; `None` if the value is stored within the entry.
    pub(crate) fn share(&self, number: usize, slot: &mut Slot) -> Option<HeldKey> {
        let value = slot.share()?;
        let entry = slot.entry();
        Some(HeldKey { facts: self.facts(number, entry), name: entry.key().into(), value })
    }

    /// Returns the key and the record of a cold value; `None` if the value is resident.
    pub fn cold_key(&self, number: usize, name: usize, entry: EntryRef<'_>) -> Option<ColdKey> {
        let record = Record::new(entry.external()?.location);
        Some(ColdKey {
            facts: self.facts(number, entry),
            database_name: name,
            name: entry.key().into(),
            record,
        })
    }

    /// Returns an empty block that stores keys uncompressed, because the worker that changes an entry must not be
    /// delayed by compression.
    pub(crate) fn plain_block(&self) -> Encoded {
        Encoded::new(self.options.form.unpacked())
    }

    /// Returns an empty block for entries that the walk saves.
    fn walked_block(&self) -> Encoded {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(|| Encoded::with_capacity(self.options.form, BLOCK_CAPACITY_BYTES))
    }

    /// Takes a written piece back to reuse its memory: the whole data set passes through a few blocks. If blocks were
    /// freed and allocated repeatedly, they would temporarily take twice the memory, because the allocator returns
    /// freed memory to the system with a delay.
    pub fn take_back(&self, piece: Piece) {
        if let Piece::Keys(_, mut block) = piece
            && block.form() == self.options.form
            && block.capacity_bytes() >= BLOCK_CAPACITY_BYTES
        {
            let mut spare = self.spare.lock();
            if spare.len() < SPARE_MAX {
                block.clear();
                spare.push(block);
            }
        }
    }

    /// Subtracts a piece that the walk has saved from the bytes held back.
    pub(crate) fn discount_walked(&self, piece: &Piece, bytes: usize) {
        self.held_back.walked_bytes.fetch_sub(copied_bytes(piece, bytes), Ordering::Relaxed);
    }

    /// Returns whether the snapshot is a checkpoint, which omits entries that the store contains.
    pub fn is_checkpoint(&self) -> bool {
        self.options.form == KeyForm::Rows
    }

    /// Returns whether an entry need not be saved.
    #[inline]
    pub(crate) fn leaves_out(&self, entry: EntryRef<'_>) -> bool {
        entry.is_copied() && self.is_checkpoint()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Returns the size in bytes from which a block of preimages of a shard is queued.
    pub(crate) fn preimage_block_bytes(&self) -> usize {
        self.preimage_block_bytes
    }

    /// Counts the bytes of a preimage; called before [`Snapshot::push_preimage`].
    pub(crate) fn count_preimage(&self, bytes: usize) {
        self.held_back.preimage_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.preimage_total_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Queues a preimage. The caller holds the lock of a shard, so this does not wait.
    pub(crate) fn push_preimage(&self, piece: Piece, bytes: usize) {
        self.queue.lock().pieces.push_back(Waiting { piece, bytes, is_preimage: true });
        self.filled.notify_one();
    }

    /// Queues a piece that the walk has saved, and waits first if the queue is full. The caller holds no lock.
    fn push_walked(&self, piece: Piece, bytes: usize) {
        let mut queue = self.queue.lock();
        while queue.walked_bytes >= self.options.limits.walked_bytes && !self.is_cancelled() {
            self.emptied.wait(&mut queue);
        }
        if !self.is_cancelled() {
            queue.walked_bytes += bytes;
            self.held_back.walked_bytes.fetch_add(copied_bytes(&piece, bytes), Ordering::Relaxed);
            queue.pieces.push_back(Waiting { piece, bytes, is_preimage: false });
            self.filled.notify_one();
        }
    }
}

/// Returns the bytes that only the piece owns: 0 for a value that the walk has shared with its entry.
fn copied_bytes(piece: &Piece, bytes: usize) -> usize {
    if matches!(piece, Piece::Keys(..) | Piece::Cold(_)) { bytes } else { 0 }
}

/// The entries that one thread of the walk has saved and not queued yet.
pub(crate) struct Gathering<'s> {
    snapshot: &'s Snapshot,
    number: usize,
    block: Encoded,
    cold: Vec<ColdKey>,
    cold_bytes: usize,
    /// The complete pieces, each with its size in bytes.
    complete: Vec<(Piece, usize)>,
    /// The total bytes of all entries that were ever added.
    total_bytes: usize,
}

impl<'s> Gathering<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot) -> Gathering<'s> {
        let block = snapshot.walked_block();
        Gathering {
            snapshot,
            number: 0,
            block,
            cold: Vec::new(),
            cold_bytes: 0,
            complete: Vec::new(),
            total_bytes: 0,
        }
    }

    /// Selects the database of the entries that are added next, by its number.
    pub(crate) fn select(&mut self, number: usize) {
        if number != self.number {
            self.complete_block();
            self.number = number;
        }
    }

    /// Adds an entry of the database with the shard's name `name` in its current state; a value that is apart is
    /// shared.
    pub(crate) fn add(&mut self, name: usize, slot: &mut Slot) {
        if let Some(key) = self.snapshot.cold_key(self.number, name, slot.entry()) {
            let bytes = key.held_bytes();
            self.cold.push(key);
            self.cold_bytes += bytes;
            self.total_bytes += bytes;
            return;
        }
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

    /// Returns the total bytes of all entries added so far.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    fn complete_block(&mut self) {
        if !self.cold.is_empty() {
            let cold = Piece::Cold(std::mem::take(&mut self.cold));
            self.complete.push((cold, std::mem::take(&mut self.cold_bytes)));
        }
        if self.block.keys() > 0 {
            let mut block = std::mem::replace(&mut self.block, self.snapshot.walked_block());
            block.release_capacity();
            let bytes = block.bytes().len();
            self.complete.push((Piece::Keys(self.number, block), bytes));
        }
    }

    /// Queues the complete pieces, and the incomplete piece if it has at least `bytes_min` bytes. The caller holds no
    /// lock.
    pub(crate) fn flush(&mut self, bytes_min: usize) {
        if self.block.bytes().len() + self.cold_bytes >= bytes_min {
            self.complete_block();
        }
        self.complete.drain(..).for_each(|(piece, bytes)| self.snapshot.push_walked(piece, bytes));
    }
}
