//! What a snapshot and the shards share: what is saved, and the queue in which it waits to be written.
//!
//! A shard puts in what is about to change, the walk what it finds; the saver takes out. [`crate::keyspace::snapshot`]
//! drives the walk and the saver; `saving` is the shard's side.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use parking_lot::{Condvar, Mutex};

use super::away::facts_away;
use super::saving::Detached;
use crate::entries::entry::{EntryRef, SharedValue, Slot};
use crate::entries::external::Record;
use crate::entries::hash::KeyHash;
use crate::eviction::policy::ClockReading;
use crate::rdb::{Encoded, KeyFacts, KeyForm};
use crate::types::value::StringValue;

/// What may wait to be written.
#[derive(Clone, Copy, Debug)]
pub struct QueueLimits {
    /// Bytes that the walk has saved; when there are more, it waits.
    pub walked_bytes: usize,
    /// Bytes that were handed over before changes; when there are more, changes wait.
    pub handed_bytes: usize,
}

impl Default for QueueLimits {
    /// As much as a disk takes in some tenths of a second: more would make nothing faster.
    fn default() -> QueueLimits {
        QueueLimits { walked_bytes: 8 << 20, handed_bytes: 64 << 20 }
    }
}

/// What the snapshot under way, if there is one, holds back in memory. All who share a keyspace may look at it.
#[derive(Debug, Default)]
pub struct HeldBack {
    /// Bytes that the walk has copied; a plain counter, as the next.
    walked_bytes: AtomicUsize,
    /// Bytes that were handed over before changes. It may be off for a moment.
    handed_bytes: AtomicUsize,
    // The limits; 0 outside a snapshot.
    walked_max: AtomicUsize,
    handed_max: AtomicUsize,
    /// Whether a call waits since waiting calls were last woken.
    is_awaited: AtomicBool,
}

impl HeldBack {
    /// The bytes of memory; not more than may be there. What is handed over because it cannot wait may exceed that: were it
    /// counted, an eviction could be the reason for another one.
    pub fn bytes(&self) -> usize {
        let load = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let held = load(&self.walked_bytes) + load(&self.handed_bytes);
        held.min(load(&self.walked_max) + load(&self.handed_max))
    }

    /// Whether what was handed over is as much as may wait.
    pub fn is_full(&self) -> bool {
        let max = self.handed_max.load(Ordering::Relaxed);
        max > 0 && self.handed_bytes.load(Ordering::SeqCst) >= max
    }

    /// Whether a call must wait because too much was handed over; it is to be tried again when that is written.
    pub fn awaits_room(&self) -> bool {
        if !self.is_full() {
            return false;
        }
        // Looked at again behind the store, which pairs with `Saver::discount`: one of the two sees the other.
        self.is_awaited.store(true, Ordering::SeqCst);
        self.is_full()
    }

    /// Whether a call has waited since this was last asked.
    pub(crate) fn take_awaited(&self) -> bool {
        self.is_awaited.swap(false, Ordering::SeqCst)
    }

    /// Subtracts bytes that were handed over and are being written. Whether there is room then, and some to spare, so that
    /// those who wait do not have to do so again at once.
    pub(crate) fn discount(&self, bytes: usize) -> bool {
        let left = self.handed_bytes.fetch_sub(bytes, Ordering::SeqCst).saturating_sub(bytes);
        left < self.handed_max.load(Ordering::Relaxed) / 2
    }

    fn begin(&self, limits: QueueLimits) {
        self.end();
        self.walked_max.store(limits.walked_bytes, Ordering::Relaxed);
        self.handed_max.store(limits.handed_bytes, Ordering::Relaxed);
    }

    /// Nothing is held back any more.
    pub(crate) fn end(&self) {
        for counter in [&self.walked_bytes, &self.handed_bytes, &self.walked_max, &self.handed_max] {
            counter.store(0, Ordering::SeqCst);
        }
    }
}

/// Bytes of entries that the walk queues together.
pub(crate) const BLOCK_BYTES: usize = 256 * 1024;

/// Room of such a block: what one step adds may exceed it.
const BLOCK_ROOM_BYTES: usize = BLOCK_BYTES + BLOCK_BYTES / 8;

/// Blocks that are kept for the walk: one for each thread of it, about.
const SPARE_MAX: usize = 4;

/// Bytes of entries handed over in a shard that are queued together, at most: and no more than a quarter of what may wait is
/// in blocks of all shards that are not queued yet.
const HANDED_BLOCK_MAX_BYTES: usize = 16 * 1024;

/// Shorter blocks would take more for the queue than for what they hold.
const HANDED_BLOCK_MIN_BYTES: usize = 512;

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
    /// How much may wait to be written.
    pub limits: QueueLimits,
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

/// A key whose value is away.
#[derive(Debug)]
pub struct AwayKey {
    /// What is said of it.
    pub facts: KeyFacts,
    /// What its shard calls its database: records name it so.
    pub database_name: usize,
    /// Its name.
    pub name: Box<[u8]>,
    /// Where its value is.
    pub record: Record,
}

impl AwayKey {
    /// About the bytes that it takes.
    pub(crate) fn held_bytes(&self) -> usize {
        size_of::<AwayKey>() + self.name.len()
    }
}

/// Something to be written.
pub enum Piece {
    /// Keys of the database of this number.
    Keys(usize, Encoded),
    /// A key with a large value.
    Value(HeldKey),
    /// Keys of one database whose values are away.
    Away(Vec<AwayKey>),
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
    /// Bytes of those that the walk has saved, values that are shared included.
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
    handed_block_bytes: usize,
    // Shared.
    pub(crate) next_shard: AtomicUsize,
    pub(crate) is_cancelled: AtomicBool,
    pub(crate) held_back: Arc<HeldBack>,
    handed_total_bytes: AtomicU64,
    /// Empty blocks for the walk.
    spare: Mutex<Vec<Encoded>>,
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
        None if entry.is_away() => false,
        None => matches!(entry.string(), StringValue::Large(_)),
    }
}

impl Snapshot {
    /// A snapshot of that many shards, with the number of keys and of volatile ones in each database. What it holds back is
    /// counted in `held_back`.
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
            handed_block_bytes: (options.limits.handed_bytes / 4 / shards)
                .clamp(HANDED_BLOCK_MIN_BYTES, HANDED_BLOCK_MAX_BYTES),
            next_shard: AtomicUsize::new(0),
            is_cancelled: AtomicBool::new(false),
            held_back,
            handed_total_bytes: AtomicU64::new(0),
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

    /// Notes that a call waits for a key that is held. Under the lock of its shard.
    pub(crate) fn awaits_held(&self) {
        self.held_back.is_awaited.store(true, Ordering::SeqCst);
    }

    /// Asks for a key to be saved soon, for a call that must wait for it. Under the lock of its shard.
    pub(crate) fn request(&self, hash: KeyHash, key: &[u8]) {
        self.held_back.is_awaited.store(true, Ordering::SeqCst);
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
            away: if self.is_checkpoint() { facts_away(entry) } else { None },
        }
    }

    /// An entry's key and its value, which is shared; `None` for a value that stands in its entry.
    pub(crate) fn share(&self, number: usize, slot: &mut Slot) -> Option<HeldKey> {
        let value = slot.share()?;
        let entry = slot.entry();
        Some(HeldKey { facts: self.facts(number, entry), name: entry.key().into(), value })
    }

    /// A key whose value is away; `None` for one whose value is here.
    pub fn away(&self, number: usize, name: usize, entry: EntryRef<'_>) -> Option<AwayKey> {
        let record = Record::new(entry.external()?.location);
        Some(AwayKey {
            facts: self.facts(number, entry),
            database_name: name,
            name: entry.key().into(),
            record,
        })
    }

    /// An empty block of keys that are not packed: the worker that changes them does not wait for that.
    pub(crate) fn plain_block(&self) -> Encoded {
        Encoded::new(self.options.form.unpacked())
    }

    /// An empty block of what the walk saves.
    fn walked_block(&self) -> Encoded {
        let spare = self.spare.lock().pop();
        spare.unwrap_or_else(|| Encoded::with_room(self.options.form, BLOCK_ROOM_BYTES))
    }

    /// Takes a piece back that is written, for its memory: all of a data set goes through a few blocks, and what is freed
    /// and allocated again and again would be there twice for a while, because the allocator gives it back a little later.
    pub fn take_back(&self, piece: Piece) {
        if let Piece::Keys(_, mut block) = piece
            && block.form() == self.options.form
            && block.room_bytes() >= BLOCK_ROOM_BYTES
        {
            let mut spare = self.spare.lock();
            if spare.len() < SPARE_MAX {
                block.clear();
                spare.push(block);
            }
        }
    }

    /// Takes a piece of the walk out of the account.
    pub(crate) fn discount_walked(&self, piece: &Piece, bytes: usize) {
        self.held_back.walked_bytes.fetch_sub(copied_bytes(piece, bytes), Ordering::Relaxed);
    }

    /// Whether what the store has is left out.
    pub fn is_checkpoint(&self) -> bool {
        self.options.form == KeyForm::Rows
    }

    /// Whether an entry need not be saved.
    #[inline]
    pub(crate) fn leaves_out(&self, entry: EntryRef<'_>) -> bool {
        entry.is_copied() && self.is_checkpoint()
    }

    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// From how many bytes on a block of what is handed over in a shard is queued.
    pub(crate) fn handed_block_bytes(&self) -> usize {
        self.handed_block_bytes
    }

    /// Counts what is handed over, before it is given to [`Snapshot::push_handed`].
    pub(crate) fn count_handed(&self, bytes: usize) {
        self.held_back.handed_bytes.fetch_add(bytes, Ordering::Relaxed);
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
        while queue.walked_bytes >= self.options.limits.walked_bytes && !self.is_cancelled() {
            self.emptied.wait(&mut queue);
        }
        if !self.is_cancelled() {
            queue.walked_bytes += bytes;
            self.held_back.walked_bytes.fetch_add(copied_bytes(&piece, bytes), Ordering::Relaxed);
            queue.pieces.push_back(Waiting { piece, bytes, is_handed: false });
            self.filled.notify_one();
        }
    }
}

/// The part of a piece's bytes that is there for the piece alone: what the walk shares is its entry's still.
fn copied_bytes(piece: &Piece, bytes: usize) -> usize {
    if matches!(piece, Piece::Keys(..) | Piece::Away(_)) { bytes } else { 0 }
}

/// What one thread of the walk has saved and not queued yet.
pub(crate) struct Gathering<'s> {
    snapshot: &'s Snapshot,
    number: usize,
    block: Encoded,
    away: Vec<AwayKey>,
    away_bytes: usize,
    /// What is complete, with its bytes.
    complete: Vec<(Piece, usize)>,
    /// Bytes of all that was ever added.
    total_bytes: usize,
}

impl<'s> Gathering<'s> {
    pub(crate) fn new(snapshot: &'s Snapshot) -> Gathering<'s> {
        let block = snapshot.walked_block();
        Gathering {
            snapshot,
            number: 0,
            block,
            away: Vec::new(),
            away_bytes: 0,
            complete: Vec::new(),
            total_bytes: 0,
        }
    }

    /// Entries of the database of this number follow.
    pub(crate) fn select(&mut self, number: usize) {
        if number != self.number {
            self.complete_block();
            self.number = number;
        }
    }

    /// Adds an entry as it is now, of the database that its shard calls `name`; one that is apart is shared.
    pub(crate) fn add(&mut self, name: usize, slot: &mut Slot) {
        if let Some(key) = self.snapshot.away(self.number, name, slot.entry()) {
            let bytes = key.held_bytes();
            self.away.push(key);
            self.away_bytes += bytes;
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

    /// Bytes that were added so far.
    pub(crate) fn total_bytes(&self) -> usize {
        self.total_bytes
    }

    fn complete_block(&mut self) {
        if !self.away.is_empty() {
            let away = Piece::Away(std::mem::take(&mut self.away));
            self.complete.push((away, std::mem::take(&mut self.away_bytes)));
        }
        if self.block.keys() > 0 {
            let mut block = std::mem::replace(&mut self.block, self.snapshot.walked_block());
            block.give_back_room();
            let bytes = block.bytes().len();
            self.complete.push((Piece::Keys(self.number, block), bytes));
        }
    }

    /// Queues what is complete, and the rest if that is at least `bytes_min`. No lock is held.
    pub(crate) fn flush(&mut self, bytes_min: usize) {
        if self.block.bytes().len() + self.away_bytes >= bytes_min {
            self.complete_block();
        }
        self.complete.drain(..).for_each(|(piece, bytes)| self.snapshot.push_walked(piece, bytes));
    }
}
