//! The state that a snapshot and the shards share: the saved data, and the queue in which they wait to be written.
//!
//! A shard adds entries that are about to change, the walk adds the entries that it finds, and the saver takes both.
//! [`crate::keyspace::snapshot`] drives the walk and the saver; `saving` is the shard's side.

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

/// Limits of the data that wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Bytes saved by the walk, above which it waits.
    pub walked_bytes: usize,
    /// Bytes handed over before changes, above which changes wait.
    pub preimage_bytes: usize,
}

impl Default for QueueLimits {
    /// Returns the amount that a disk writes in some tenths of a second: higher limits would not be faster.
    fn default() -> QueueLimits {
        QueueLimits { walked_bytes: 8 << 20, preimage_bytes: 64 << 20 }
    }
}

/// The memory that the current snapshot, if there is one, holds back. All users of a keyspace may read it.
#[derive(Debug, Default)]
pub struct HeldBack {
    /// Bytes that the walk has copied; a plain counter, like the next.
    walked_bytes: AtomicUsize,
    /// Bytes that were handed over before changes. It may be inexact for a moment.
    preimage_bytes: AtomicUsize,
    // The limits; 0 outside a snapshot.
    walked_max: AtomicUsize,
    preimage_max: AtomicUsize,
    /// Whether a call has begun to wait since waiting calls were last woken.
    is_awaited: AtomicBool,
}

impl HeldBack {
    /// Returns the bytes of memory, capped at the limits. Data handed over by calls that cannot wait may exceed them:
    /// if those were counted, an eviction could cause another one.
    pub fn bytes(&self) -> usize {
        let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let held = load(&self.walked_bytes) + load(&self.preimage_bytes);
        held.min(load(&self.walked_max) + load(&self.preimage_max))
    }

    /// Returns whether the data handed over have reached their limit.
    pub fn is_full(&self) -> bool {
        let max = self.preimage_max.load(Ordering::Relaxed);
        max > 0 && self.preimage_bytes.load(Ordering::SeqCst) >= max
    }

    /// Returns whether a call must wait because too much was handed over; it is to be tried again when that is written.
    pub fn must_wait(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        // Checked again after the store, which pairs with `Saver::discount`: one of the two sees the other.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// Returns whether a call has waited since the last call of this function.
    pub(crate) fn take_awaited(&self) -> bool {
        self.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Subtracts bytes that were handed over and are being written. Returns whether there is ample space then, so that
    /// waiting calls do not have to wait again at once.
    pub(crate) fn discount(&self, bytes: usize) -> bool {
        let left = self.preimage_bytes.fetch_sub(bytes, Ordering::SeqCst).saturating_sub(bytes);
        left < self.preimage_max.load(Ordering::Relaxed) / 2
    }

    fn begin(&self, limits: QueueLimits) {
        self.end();
        self.walked_max.store(limits.walked_bytes, Ordering::Relaxed);
        self.preimage_max.store(limits.preimage_bytes, Ordering::Relaxed);
    }

    /// Resets the account at the end of a snapshot.
    pub(crate) fn end(&self) {
        for counter in [&self.walked_bytes, &self.preimage_bytes, &self.walked_max, &self.preimage_max] {
            counter.store(0, Ordering::SeqCst);
        }
    }
}

/// Bytes of entries that the walk queues together.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// Capacity of such a block, which a step may fill beyond its limit.
const BLOCK_CAPACITY_BYTES: usize = BLOCK_BYTES + BLOCK_BYTES / 8;

/// Spare blocks kept for the walk: about one for each of its threads.
const SPARE_MAX: usize = 4;

/// Limit in bytes of a block of entries handed over in a shard; in addition, the unqueued blocks of all shards take at
/// most a quarter of the limit.
const PREIMAGE_BLOCK_MAX_BYTES: usize = 16 * 1024;

/// Smaller blocks would take more memory for the queue than for their contents.
const PREIMAGE_BLOCK_MIN_BYTES: usize = 512;

/// Keys that calls have requested to be saved. Calls that exceed it wait until the walk is over.
const REQUESTS_MAX: usize = 1024;

/// Size from which an aggregate is heavy: writing a smaller one takes less than 0.1 ms.
pub(super) const HEAVY_AGGREGATE_BYTES: usize = 64 * 1024;

/// Options of a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct SnapshotOptions {
    /// The form of the saved entries.
    pub form: KeyForm,
    /// The interpretation of eviction clocks.
    pub clocks: ClockReading,
    /// The limits of the data that wait to be written.
    pub limits: QueueLimits,
}

/// A key whose value is shared with its entry.
#[derive(Debug)]
pub struct HeldKey {
    /// The metadata of the key.
    pub facts: KeyFacts,
    /// Its name.
    pub name: Box<[u8]>,
    /// Its value.
    pub value: SharedValue,
}

/// A key whose value is cold.
#[derive(Debug)]
pub struct ColdKey {
    /// The metadata of the key.
    pub facts: KeyFacts,
    /// The shard's name of its database, which records use.
    pub database_name: usize,
    /// Its name.
    pub name: Box<[u8]>,
    /// The location of its value.
    pub record: Record,
}

impl ColdKey {
    /// Returns its approximate bytes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<ColdKey>() + self.name.len()
    }
}

/// A part of a snapshot to be written.
pub enum Piece {
    /// Keys of the database with this number.
    Keys(usize, Encoded),
    /// A key with a large value.
    Value(HeldKey),
    /// Keys of one database with cold values.
    Cold(Vec<ColdKey>),
    /// A database that was emptied.
    Detached(Detached),
}

/// A piece in the queue.
pub(crate) struct Waiting {
    pub(crate) piece: Piece,
    pub(crate) bytes: usize,
    /// Whether it was handed over before a change.
    pub(crate) is_preimage: bool,
}

/// The pieces that wait to be written, and the keys that calls wait for.
pub(crate) struct Queue {
    pub(crate) pieces: VecDeque<Waiting>,
    /// Bytes saved by the walk, including shared values.
    pub(crate) walked_bytes: usize,
    /// Keys that calls wait for.
    pub(crate) requests: VecDeque<(KeyHash, Box<[u8]>)>,
    /// Shards that were not walked through yet.
    pub(crate) shards_left: usize,
}

/// A current snapshot, shared by the threads that save, change and write entries.
pub struct Snapshot {
    // Fixed after startup.
    options: SnapshotOptions,
    sizes: Vec<(u64, u64)>,
    preimage_block_bytes: usize,
    // Shared.
    pub(crate) next_shard: AtomicUsize,
    pub(crate) is_cancelled: AtomicBool,
    pub(crate) held_back: Arc<HeldBack>,
    preimage_total_bytes: AtomicU64,
    /// Empty blocks for the walk.
    spare: Mutex<Vec<Encoded>>,
    pub(crate) queue: Mutex<Queue>,
    /// Notified when the queue has something for the writing thread.
    pub(crate) filled: Condvar,
    /// Notified when the queue has space for walking threads.
    pub(crate) emptied: Condvar,
}

/// Returns whether a value is shared when it is saved.
pub(crate) fn is_apart(entry: EntryRef<'_>) -> bool {
    match entry.aggregate() {
        Some(aggregate) => aggregate.footprint_bytes() >= HEAVY_AGGREGATE_BYTES,
        None if entry.is_cold() => false,
        None => matches!(entry.string(), StringValue::Large(_)),
    }
}

impl Snapshot {
    /// Returns a snapshot of `shards` shards, with the number of keys and of volatile ones in each database. The data
    /// that it holds back are counted in `held_back`.
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

    /// Returns for each database the numbers of keys, and of those with an expiry, at the time of the snapshot.
    pub fn sizes(&self) -> &[(u64, u64)] {
        &self.sizes
    }

    /// Returns the bytes that were handed over before changes so far.
    pub fn preimage_total_bytes(&self) -> u64 {
        self.preimage_total_bytes.load(Ordering::Relaxed)
    }

    /// Records that a call waits for a key that is held. Called under the lock of its shard.
    pub(crate) fn awaits_held(&self) {
        self.held_back.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Requests that a key is saved soon, for a call that must wait for it. Called under the lock of its shard.
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

    /// Returns an entry's key and its value, which is shared; `None` for a value that is stored in its entry.
    pub(crate) fn share(&self, number: usize, slot: &mut Slot) -> Option<HeldKey> {
        let value = slot.share()?;
        let entry = slot.entry();
        Some(HeldKey { facts: self.facts(number, entry), name: entry.key().into(), value })
    }

    /// Returns a key with a cold value; `None` for one with a resident value.
    pub fn cold_key(&self, number: usize, name: usize, entry: EntryRef<'_>) -> Option<ColdKey> {
        let record = Record::new(entry.external()?.location);
        Some(ColdKey {
            facts: self.facts(number, entry),
            database_name: name,
            name: entry.key().into(),
            record,
        })
    }

    /// Returns an empty block of unpacked keys, because the worker that changes them must not wait for the packing.
    pub(crate) fn plain_block(&self) -> Encoded {
        Encoded::new(self.options.form.unpacked())
    }

    /// Returns an empty block for the walk.
    fn walked_block(&self) -> Encoded {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(|| Encoded::with_capacity(self.options.form, BLOCK_CAPACITY_BYTES))
    }

    /// Takes a written piece back to reuse its memory: the whole data set passes through a few blocks. If blocks were
    /// freed and allocated repeatedly, they would take twice the memory for a while, because the allocator returns it
    /// to the system a little later.
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

    /// Subtracts a piece of the walk from the account.
    pub(crate) fn discount_walked(&self, piece: &Piece, bytes: usize) {
        self.held_back.walked_bytes.fetch_sub(copied_bytes(piece, bytes), Ordering::Relaxed);
    }

    /// Returns whether entries that the store has are omitted.
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

    /// Returns the bytes from which a block of entries handed over in a shard is queued.
    pub(crate) fn preimage_block_bytes(&self) -> usize {
        self.preimage_block_bytes
    }

    /// Counts data that are handed over, before [`Snapshot::push_preimage`].
    pub(crate) fn count_preimage(&self, bytes: usize) {
        self.held_back.preimage_bytes.fetch_add(bytes, Ordering::Relaxed);
        self.preimage_total_bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Queues data that were handed over. Called under the lock of a shard, so it does not wait.
    pub(crate) fn push_preimage(&self, piece: Piece, bytes: usize) {
        self.queue.lock().pieces.push_back(Waiting { piece, bytes, is_preimage: true });
        self.filled.notify_one();
    }

    /// Queues data that the walk has saved, when there is space. The caller holds no lock.
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

/// Returns the bytes that only the piece owns: values shared by the walk still belong to their entries.
fn copied_bytes(piece: &Piece, bytes: usize) -> usize {
    if matches!(piece, Piece::Keys(..) | Piece::Cold(_)) { bytes } else { 0 }
}

/// Entries that one thread of the walk has saved and not queued yet.
pub(crate) struct Gathering<'s> {
    snapshot: &'s Snapshot,
    number: usize,
    block: Encoded,
    cold: Vec<ColdKey>,
    cold_bytes: usize,
    /// Complete pieces, with their bytes.
    complete: Vec<(Piece, usize)>,
    /// Bytes of everything that was ever added.
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

    /// Selects the database of the entries that follow, by its number.
    pub(crate) fn select(&mut self, number: usize) {
        if number != self.number {
            self.complete_block();
            self.number = number;
        }
    }

    /// Adds an entry in its current state, of the database with the shard's name `name`; a value that is apart is
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

    /// Returns the bytes added so far.
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

    /// Queues complete pieces, and the rest if it has at least `bytes_min` bytes. The caller holds no lock.
    pub(crate) fn flush(&mut self, bytes_min: usize) {
        if self.block.bytes().len() + self.cold_bytes >= bytes_min {
            self.complete_block();
        }
        self.complete.drain(..).for_each(|(piece, bytes)| self.snapshot.push_walked(piece, bytes));
    }
}
