//! The part of a current snapshot in a shard: saving of entries before they change, and of all other entries in order
//! by the walk.
//!
//! While a shard has a [`Saving`], entries whose generation differs from the shard's are older than the snapshot and
//! not saved yet. A checkpoint uses a separate generation, and only for entries that the store does not contain: its
//! walk visits only the places with such entries, and leaves all other entries unchanged ([`Ages`]). A worker that is
//! about to change an unsaved entry first appends the entry to the snapshot's queue, as a *preimage*. The walk saves
//! the other entries in the order of their tags, so it continues at the right place even if the table has changed
//! between two steps. A saved entry is assigned the shard's generation, which new entries have from the beginning, so
//! no entry is saved twice.
//!
//! Values that are *apart* (referenced by a pointer, and not small) are shared, not copied: this takes constant time
//! under the lock, whatever their size. A change of a shared *heavy* value would copy the whole value. To avoid such
//! copies, [`crate::keyspace::snapshot::Saver`] saves heavy values one at a time, and calls that would change such a
//! value wait until it is saved ([`ShardData::must_wait`]).

use std::sync::Arc;

use super::snapshot_queue::{Gathering, HEAVY_AGGREGATE_BYTES, HeldKey, Piece, Snapshot, is_apart};
use super::unsaved::Places;
use super::{Database, ShardData};
use crate::entries::entry::{EntryRef, Generation, Slot};
use crate::entries::hash::KeyHash;
use crate::entries::table::{Position, Table};
use crate::rdb::Encoded;
use crate::types::Aggregate;
use crate::types::value::StringValue;

/// The minimum size of a heavy string: copying a shorter string takes less than 0.1 ms.
const HEAVY_STRING_BYTES: usize = 1024 * 1024;

/// The size of a value that is shared in parts, divided by the bytes that its first change copies: pointers to its
/// parts.
const BYTES_PER_COPIED: usize = 256;

/// The maximum number of groups of entries that one step saves under the lock: about 50 µs of work.
const STEP_GROUPS: usize = 8;
/// The number of saved bytes after which a step releases the lock.
const STEP_BYTES: usize = 16 * 1024;

/// Distinguishes entries that are older than a snapshot or a checkpoint, and not saved yet, from all others.
#[derive(Clone, Copy)]
struct Ages {
    is_checkpoint: bool,
    /// The generation of entries that are saved, or newer than the snapshot or checkpoint.
    generation: Generation,
}

impl Ages {
    fn is_older(self, entry: EntryRef<'_>) -> bool {
        self.generation != if self.is_checkpoint { entry.cut() } else { entry.generation() }
    }

    /// Marks an entry as saved.
    fn renew(self, slot: &mut Slot) {
        if self.is_checkpoint {
            slot.set_cut(self.generation);
        } else {
            slot.set_generation(self.generation);
        }
    }
}

/// The state of a current snapshot in a shard.
pub(super) struct Saving {
    snapshot: Arc<Snapshot>,
    ages: Ages,
    /// The places that the walk visits; `None` means all places.
    places: Option<Arc<Places>>,
    /// The number that each database had when the snapshot was taken, indexed by the database's name in the shard.
    numbers: Vec<usize>,
    /// The preimages that are not queued yet, by the number of their database.
    preimages: Vec<(usize, Encoded)>,
    /// The key of the heavy value that is currently being saved.
    held: Option<Box<[u8]>>,
}

/// A database that was emptied before the snapshot had saved all of its entries.
pub struct Detached {
    /// The number of the database when the snapshot was taken.
    pub number: usize,
    database: Database,
    /// The marks that determine which entries are still to be saved; a checkpoint also omits entries that the store
    /// contains.
    ages: Ages,
}

impl Detached {
    /// Returns the shard's name of the database.
    pub fn name(&self) -> usize {
        self.database.expiry_name
    }

    /// Returns the entries that are still to be saved. O(all entries of the database).
    pub fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let is_saved = |entry: &EntryRef<'_>| self.ages.is_checkpoint && entry.is_copied();
        let older = self.database.table.iter().filter(|entry| self.ages.is_older(*entry));
        older.filter(move |entry| !is_saved(entry))
    }
}

/// The result of [`ShardData::hold_next`].
pub(crate) enum Held {
    /// A key whose value is held.
    Key(HeldKey),
    /// This step has found no value to hold; the walk continues.
    NotYet,
    /// The walk has reached the end of the shard without finding a value to hold.
    End,
}

/// The position of a snapshot walk in a shard.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The shard's name of the database.
    pub(super) name: usize,
    pub(super) tag: u32,
    /// Whether the walk has omitted a heavy value, which the saver must save.
    leaves_heavy: bool,
}

impl Cursor {
    /// Advances to the first of these places at or after the cursor. Returns false if there is no such place.
    pub(super) fn advance_to(&mut self, places: Option<&Places>) -> bool {
        let Some(places) = places else { return true };
        let next = places.next(self.name, self.tag);
        if let Some(next) = next {
            (self.name, self.tag) = next;
        }
        next.is_some()
    }
}

/// Returns whether a change of a value while it is shared would take long. Such a value is apart, and is not shared in
/// parts: a change of a value that is shared in parts copies only the changed parts.
fn is_heavy(entry: EntryRef<'_>) -> bool {
    match entry.aggregate() {
        Some(aggregate) => {
            aggregate.footprint_bytes() >= HEAVY_AGGREGATE_BYTES && !aggregate.is_shared_in_parts()
        }
        None if entry.is_cold() => false,
        None => match entry.string() {
            StringValue::Large(large) => large.bytes().len() >= HEAVY_STRING_BYTES,
            StringValue::Int(_) | StringValue::Inline(_) => false,
        },
    }
}

/// Returns the bytes that a change of a shared value duplicates: for a value that is shared in parts, those of the
/// first change.
fn copied_bytes(entry: EntryRef<'_>) -> usize {
    let is_shared_in_parts = entry.aggregate().is_some_and(Aggregate::is_shared_in_parts);
    entry.footprint_bytes() / if is_shared_in_parts { BYTES_PER_COPIED } else { 1 }
}

impl Saving {
    /// If the value of an entry is cold, queues its location as a preimage and returns true. The value may have been
    /// demoted after the walk has omitted it.
    fn save_cold_preimage(&mut self, name: usize, slot: &Slot) -> bool {
        let Some(key) = self.snapshot.cold_key(self.numbers[name], name, slot.entry()) else { return false };
        let bytes = key.held_bytes();
        if !self.snapshot.is_cancelled() {
            self.snapshot.count_preimage(bytes);
            self.snapshot.push_preimage(Piece::Cold(vec![key]), bytes);
        }
        true
    }

    /// Hands over an entry in its current state, before it is changed.
    fn save_preimage(&mut self, name: usize, slot: &mut Slot) {
        if self.snapshot.leaves_out(slot.entry()) || self.save_cold_preimage(name, slot) {
            return;
        }
        let number = self.numbers[name];
        let Saving { snapshot, preimages, .. } = self;
        if snapshot.is_cancelled() {
            return;
        }
        if is_apart(slot.entry()) {
            let bytes = copied_bytes(slot.entry());
            snapshot.count_preimage(bytes);
            if let Some(key) = snapshot.share(number, slot) {
                snapshot.push_preimage(Piece::Value(key), bytes);
            }
            return;
        }
        let found = preimages.iter().position(|(other, _)| *other == number);
        let at = found.unwrap_or_else(|| {
            preimages.push((number, snapshot.plain_block()));
            preimages.len() - 1
        });
        let (_, block) = &mut preimages[at];
        let (entry, before) = (slot.entry(), block.bytes().len());
        block.push(&snapshot.facts(number, entry), entry.key(), entry);
        snapshot.count_preimage(block.bytes().len() - before);
        if block.bytes().len() >= snapshot.preimage_block_bytes() {
            let (number, mut block) = preimages.swap_remove(at);
            block.release_capacity();
            let bytes = block.bytes().len();
            snapshot.push_preimage(Piece::Keys(number, block), bytes);
        }
    }

    /// Shares a value that is to be saved next; until it is released, calls that would change it wait.
    fn hold(&mut self, name: usize, slot: &mut Slot) -> Option<HeldKey> {
        self.ages.renew(slot);
        if self.snapshot.is_cancelled() || self.snapshot.leaves_out(slot.entry()) {
            return None;
        }
        if self.snapshot.is_checkpoint() {
            slot.set_pending(true);
        }
        if self.save_cold_preimage(name, slot) {
            return None;
        }
        let key = self.snapshot.share(self.numbers[name], slot)?;
        self.held = Some(key.name.clone());
        Some(key)
    }

    /// Queues the remaining preimages.
    fn flush(&mut self) {
        for (number, mut block) in self.preimages.drain(..) {
            block.release_capacity();
            let bytes = block.bytes().len();
            self.snapshot.push_preimage(Piece::Keys(number, block), bytes);
        }
    }
}

impl ShardData {
    /// Begins a snapshot of all current entries. The caller has exclusive access, and there is no other snapshot.
    pub(crate) fn begin_saving(&mut self, snapshot: &Arc<Snapshot>) {
        assert!(self.saving.is_none(), "there is one snapshot at a time");
        let is_checkpoint = snapshot.is_checkpoint();
        let (generation, places) = if is_checkpoint {
            self.cut = self.cut.next();
            let places = self.cut_places();
            if places.is_empty() {
                return;
            }
            (self.cut, Some(places))
        } else {
            self.generation = self.generation.next();
            (self.generation, None)
        };
        if self.all_databases().all(|database| database.table.is_empty()) {
            return;
        }
        let mut numbers = vec![0; self.others.len() + 1];
        for (number, database) in self.all_databases().enumerate() {
            numbers[database.expiry_name] = number;
        }
        let (snapshot, ages) = (Arc::clone(snapshot), Ages { is_checkpoint, generation });
        self.saving =
            Some(Box::new(Saving { snapshot, ages, places, numbers, preimages: Vec::new(), held: None }));
    }

    /// Saves an entry before it is changed or removed, unless it is saved already.
    #[cold]
    pub(super) fn save_before_change(&mut self, database: usize, at: Position) {
        let ShardData { first, others, saving, .. } = self;
        let database = if database == 0 { first } else { &mut others[database - 1] };
        let slot = database.table.slot_mut(at);
        if let Some(saving) = saving
            && saving.ages.is_older(slot.entry())
        {
            saving.save_preimage(database.expiry_name, slot);
            saving.ages.renew(slot);
        }
    }

    /// Hands over a database that was emptied, because the snapshot may not have saved all of its entries yet.
    #[cold]
    pub(super) fn detach_for_snapshot(&mut self, database: Database) {
        let Some(saving) = &mut self.saving else { return };
        // A database that was first used after the snapshot was taken has no number, and no entries to save.
        if let Some(&number) = saving.numbers.get(database.expiry_name) {
            let detached = Detached { number, database, ages: saving.ages };
            saving.snapshot.push_preimage(Piece::Detached(detached), 0);
        }
    }

    /// Returns whether a call that changes a key must wait. The reason is that a heavy value of a key with this name,
    /// in any database, is being saved or not saved yet, or that the queue is full. Requests the save that the call
    /// waits for. Costs one branch if there is no snapshot.
    #[inline]
    pub fn must_wait(&self, hash: KeyHash, key: &[u8]) -> bool {
        self.saving.as_deref().is_some_and(|saving| self.must_wait_for(saving, hash, key))
    }

    #[cold]
    fn must_wait_for(&self, saving: &Saving, hash: KeyHash, key: &[u8]) -> bool {
        if saving.snapshot.is_cancelled() {
            return false;
        }
        if saving.held.as_ref().is_some_and(|held| **held == *key) {
            saving.snapshot.awaits_held();
            return true;
        }
        let mut found = self.all_databases().filter_map(|database| {
            let entry = database.table.slot(database.table.find(hash.tag(), key)?).entry();
            let is_unsaved = saving.ages.is_older(entry) && !saving.snapshot.leaves_out(entry);
            is_unsaved.then_some(entry)
        });
        let Some(entry) = found.next() else { return false };
        if is_heavy(entry) || found.any(is_heavy) {
            saving.snapshot.request(hash, key);
            return true;
        }
        saving.snapshot.held_back.must_wait()
    }

    /// Saves the entries of one step of the walk. Returns false at the end of the shard.
    pub(crate) fn save_step(&mut self, cursor: &mut Cursor, gathering: &mut Gathering<'_>) -> bool {
        let ShardData { first, others, saving, .. } = self;
        let Some(saving) = saving else { return false };
        let (snapshot, ages) = (&*saving.snapshot, saving.ages);
        let (mut groups, bytes_before) = (0, gathering.total_bytes());
        while cursor.advance_to(saving.places.as_deref())
            && let Some(&number) = saving.numbers.get(cursor.name)
        {
            gathering.select(number);
            let table = table_named(first, others, cursor.name);
            let next = table.scan_mut(cursor.tag, |slot| {
                if !ages.is_older(slot.entry()) {
                    return;
                }
                if !snapshot.is_cancelled() && !snapshot.leaves_out(slot.entry()) {
                    if is_heavy(slot.entry()) {
                        cursor.leaves_heavy = true;
                        return;
                    }
                    gathering.add(cursor.name, slot);
                    if snapshot.is_checkpoint() {
                        slot.set_pending(true);
                    }
                }
                ages.renew(slot);
            });
            match next {
                Some(tag) => cursor.tag = tag,
                None => (cursor.name, cursor.tag) = (cursor.name + 1, 0),
            }
            groups += 1;
            if groups >= STEP_GROUPS || gathering.total_bytes() - bytes_before >= STEP_BYTES {
                return true;
            }
        }
        saving.flush();
        if !cursor.leaves_heavy && saving.held.is_none() {
            self.saving = None;
        }
        false
    }

    /// Holds the heavy value of a key, if it is not saved yet, and returns the key with its shared value.
    pub(crate) fn hold(&mut self, hash: KeyHash, key: &[u8]) -> Option<HeldKey> {
        let ShardData { first, others, saving, .. } = self;
        let saving = saving.as_deref_mut()?;
        for database in std::iter::once(first).chain(others) {
            let Some(at) = database.table.find(hash.tag(), key) else { continue };
            let slot = database.table.slot_mut(at);
            if saving.ages.is_older(slot.entry()) && is_heavy(slot.entry()) {
                return saving.hold(database.expiry_name, slot);
            }
        }
        None
    }

    /// Holds the next unsaved value after `cursor`. If there is no such value, the whole shard is saved.
    pub(crate) fn hold_next(&mut self, cursor: &mut Cursor) -> Held {
        let ShardData { first, others, saving, .. } = self;
        let Some(saving) = saving.as_deref_mut() else { return Held::End };
        for _ in 0..STEP_GROUPS {
            if !cursor.advance_to(saving.places.as_deref()) || cursor.name >= saving.numbers.len() {
                saving.flush();
                self.saving = None;
                return Held::End;
            }
            let mut found = None;
            let next = table_named(first, others, cursor.name).scan_mut(cursor.tag, |slot| {
                if found.is_none() && saving.ages.is_older(slot.entry()) {
                    found = saving.hold(cursor.name, slot);
                }
            });
            if let Some(key) = found {
                return Held::Key(key);
            }
            match next {
                Some(tag) => cursor.tag = tag,
                None => (cursor.name, cursor.tag) = (cursor.name + 1, 0),
            }
        }
        Held::NotYet
    }

    /// Releases the held value, which is saved.
    pub(crate) fn release_held(&mut self) {
        if let Some(saving) = &mut self.saving {
            saving.held = None;
        }
    }
}

/// Returns the table of the database with this name in the shard; the database was used before.
pub(super) fn table_named<'d>(
    first: &'d mut Database,
    others: &'d mut [Database],
    name: usize,
) -> &'d mut Table {
    let mut databases = std::iter::once(first).chain(others);
    let named = databases.find(|database| database.expiry_name == name);
    &mut named.expect("databases that were used stay").table
}
