//! The part of a current snapshot in a shard: entries saved before they change, and entries saved in order by the walk.
//!
//! While a shard has a [`Saving`], entries with another generation than the shard's are older than the snapshot and not
//! saved. A checkpoint uses a separate flag, and only for entries that the store does not have: its walk visits only
//! the places with such entries, and leaves all others unchanged ([`Ages`]). A worker that is about to change an
//! unsaved entry hands it over first; the others are found by a walk in the order of tags, which continues at the right
//! place however the table changes in between. Saving an entry gives it the shard's generation, which new entries have
//! from the beginning, so none is saved twice.
//!
//! Values that are *apart* (behind a pointer, and not small) are shared, not copied: under the lock this takes a
//! moment, whatever their size. Changing a *heavy* one while it is shared would copy it as a whole. Therefore
//! [`crate::keyspace::snapshot::Saver`] saves heavy values one at a time, and calls that would change one wait
//! meanwhile ([`ShardData::must_wait`]), so that it need not be copied.

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

/// Size from which a string is heavy: copying a shorter one takes less than 0.1 ms.
const HEAVY_STRING_BYTES: usize = 1024 * 1024;

/// For a value that is shared in parts, the first change copies about one byte out of this many: pointers to its parts.
const BYTES_PER_COPIED: usize = 256;

/// Groups of entries saved at a time under the lock: some 50 µs.
const STEP_GROUPS: usize = 8;
/// Bytes of entries saved at a time under the lock.
const STEP_BYTES: usize = 16 * 1024;

/// Identifies entries that are older than a snapshot or a checkpoint.
#[derive(Clone, Copy)]
struct Ages {
    is_checkpoint: bool,
    /// The generation of entries that are saved or newer.
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
    /// The places that the walk visits; all places if `None`.
    places: Option<Arc<Places>>,
    /// For each name of a database its number when the snapshot was taken.
    numbers: Vec<usize>,
    /// Entries that were handed over, by number of their database.
    preimages: Vec<(usize, Encoded)>,
    /// The key of the heavy value that is currently being saved.
    held: Option<Box<[u8]>>,
}

/// A database that was emptied while some of its entries were still to be saved.
pub struct Detached {
    /// Its number when the snapshot was taken.
    pub number: usize,
    database: Database,
    /// For a checkpoint, entries that the store has are omitted.
    ages: Ages,
}

impl Detached {
    /// Returns its name in the shard.
    pub fn name(&self) -> usize {
        self.database.expiry_name
    }

    /// Returns the entries to be saved. O(all entries).
    pub fn entries(&self) -> impl Iterator<Item = EntryRef<'_>> {
        let is_saved = |entry: &EntryRef<'_>| self.ages.is_checkpoint && entry.is_copied();
        let older = self.database.table.iter().filter(|entry| self.ages.is_older(*entry));
        older.filter(move |entry| !is_saved(entry))
    }
}

/// The result of [`ShardData::hold_next`].
pub(crate) enum Held {
    /// A key.
    Key(HeldKey),
    /// None in this step.
    NotYet,
    /// None up to the end of the shard.
    End,
}

/// The position of the walk in a shard.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// The name of the database.
    pub(super) name: usize,
    pub(super) tag: u32,
    /// Whether the walk has omitted a heavy value.
    leaves_heavy: bool,
}

impl Cursor {
    /// Advances to the first of these places that is not before the cursor. Returns false if there is none.
    pub(super) fn advance_to(&mut self, places: Option<&Places>) -> bool {
        let Some(places) = places else { return true };
        let next = places.next(self.name, self.tag);
        if let Some(next) = next {
            (self.name, self.tag) = next;
        }
        next.is_some()
    }
}

/// Returns whether changing a value while it is shared would take long. Such a value is apart. In a value that is
/// shared in parts, only the changed parts are copied.
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

/// Returns the bytes that exist twice when a shared value is changed: for one that is shared in parts, only a few at
/// first.
fn copied_bytes(entry: EntryRef<'_>) -> usize {
    let is_shared_in_parts = entry.aggregate().is_some_and(Aggregate::is_shared_in_parts);
    entry.footprint_bytes() / if is_shared_in_parts { BYTES_PER_COPIED } else { 1 }
}

impl Saving {
    /// Hands over the location of an entry's value if it is cold; it may have been demoted after the walk has omitted
    /// it.
    fn save_cold_preimage(&mut self, name: usize, slot: &Slot) -> bool {
        let Some(key) = self.snapshot.cold_key(self.numbers[name], name, slot.entry()) else { return false };
        let bytes = key.held_bytes();
        if !self.snapshot.is_cancelled() {
            self.snapshot.count_preimage(bytes);
            self.snapshot.push_preimage(Piece::Cold(vec![key]), bytes);
        }
        true
    }

    /// Hands over an entry in its current state.
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

    /// Shares a value that is to be saved now, and holds back changes of it meanwhile.
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

    /// Queues the data that were handed over.
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

    /// Saves an entry, if it is not saved yet, before it is changed or removed.
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

    /// Hands over a database that was emptied, for entries that are still to be saved.
    #[cold]
    pub(super) fn detach_for_snapshot(&mut self, database: Database) {
        let Some(saving) = &mut self.saving else { return };
        // A database that was first used after the snapshot was taken has no number, and nothing to be saved.
        if let Some(&number) = saving.numbers.get(database.expiry_name) {
            let detached = Detached { number, database, ages: saving.ages };
            saving.snapshot.push_preimage(Piece::Detached(detached), 0);
        }
    }

    /// Returns whether a call that changes a key must wait: because a heavy value of that name, in any database, is not
    /// saved yet or is being saved, or because the queue is full. Requests the save that the call waits for. One branch
    /// without a snapshot.
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

    /// Saves some entries. Returns false at the end of the shard.
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

    /// Holds the heavy value of a key, if it is not saved yet.
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

    /// Holds the next unsaved value after `cursor`. When there is none, the whole shard is saved.
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

    /// Releases the held value.
    pub(crate) fn release_held(&mut self) {
        if let Some(saving) = &mut self.saving {
            saving.held = None;
        }
    }
}

/// Returns the table of the database with this name, which has been used.
pub(super) fn table_named<'d>(
    first: &'d mut Database,
    others: &'d mut [Database],
    name: usize,
) -> &'d mut Table {
    let mut databases = std::iter::once(first).chain(others);
    let named = databases.find(|database| database.expiry_name == name);
    &mut named.expect("databases that were used stay").table
}
