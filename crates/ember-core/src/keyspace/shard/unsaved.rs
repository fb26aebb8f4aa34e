//! The changes of a shard since the last checkpoint of its store, and the marks of keys that the store contains.
//!
//! ```text
//! COPIED    the store has this very key: the value, its expiry, and the facts kept while the value is cold
//! neither   the key has changed since the last checkpoint: its value stays resident, or its cold value has other facts
//! PENDING   a checkpoint has saved the key in its current state; becomes COPIED if that succeeds
//! ```
//!
//! A removed key has no entry for a mark: its name is stored until a checkpoint takes it. [`Places`] contains the
//! places of keys with neither mark, so that a checkpoint reads little more than the changed entries.

use std::collections::HashSet;
use std::sync::Arc;

use super::saving::table_named;
use super::{Cursor, Database, ShardData};
use crate::entries::entry::{NewValue, Slot};
use crate::entries::external::{External, Facts, Location, Record};
use crate::entries::hash::TAG_BITS;
use crate::entries::table::Position;
use crate::keyspace::{Keyspace, SHARDS};
use crate::memory::size_class;
use crate::types::value::ValueType;

/// The number of groups of entries that one step settles under the lock: about 50 µs of work.
const STEP_GROUPS: usize = 64;

/// The changes of a shard that the store does not contain yet: removals, and the places of changed entries.
#[derive(Default)]
pub(super) struct Unsaved {
    /// Removed keys that the store may contain, each with the shard's name of its database; some of them may exist
    /// again.
    removed: HashSet<(usize, Box<[u8]>)>,
    removed_bytes: usize,
    /// The names of databases that were emptied.
    emptied: Vec<usize>,
    /// The places of entries that have changed since the last checkpoint began.
    changed: Places,
    /// The places that the current checkpoint saves.
    cut: Arc<Places>,
}

/// The number of places in a table is two to this power; [`Places`] has a bit for each place. With a million keys in a
/// database, one place in four contains a key.
const PLACE_BITS: u32 = if cfg!(shuttle) { 6 } else { 12 };
const PLACES: usize = 1 << PLACE_BITS;
const PLACE_SHIFT: u32 = TAG_BITS - PLACE_BITS;

/// A set of places in the tables of a shard. A place is a range of tags: an entry stays in its place when the table
/// moves the entry.
#[derive(Clone, Default)]
pub(super) struct Places {
    /// The bits of each database, at the index of the shard's name of the database; an array has at least one set bit.
    databases: Vec<Option<Box<[u64; PLACES / 64]>>>,
}

impl Places {
    fn add(&mut self, name: usize, tag: u32) {
        if self.databases.len() <= name {
            self.databases.resize(name + 1, None);
        }
        let place = (tag >> PLACE_SHIFT) as usize;
        self.databases[name].get_or_insert_with(|| Box::new([0; PLACES / 64]))[place / 64] |=
            1 << (place % 64);
    }

    fn has(&self, name: usize, tag: u32) -> bool {
        let place = (tag >> PLACE_SHIFT) as usize;
        let bits = self.databases.get(name).and_then(Option::as_ref);
        bits.is_some_and(|bits| bits[place / 64] & 1 << (place % 64) != 0)
    }

    fn add_all(&mut self, others: &Places) {
        if self.databases.len() < others.databases.len() {
            self.databases.resize(others.databases.len(), None);
        }
        for (mine, other) in self.databases.iter_mut().zip(&others.databases) {
            match (mine, other) {
                (Some(mine), Some(other)) => {
                    mine.iter_mut().zip(&**other).for_each(|(mine, other)| *mine |= other)
                }
                (mine @ None, Some(other)) => *mine = Some(other.clone()),
                (_, None) => {}
            }
        }
    }

    fn forget(&mut self, name: usize) {
        if let Some(bits) = self.databases.get_mut(name) {
            *bits = None;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.databases.iter().all(Option::is_none)
    }

    fn bytes(&self) -> usize {
        self.databases.iter().flatten().count() * (PLACES / 8)
    }

    /// Returns the first tag at or after `tag` in database `name`, or in a later database, that is in one of the
    /// places, with the name of its database. O(words).
    pub(super) fn next(&self, name: usize, tag: u32) -> Option<(usize, u32)> {
        let mut place = (tag >> PLACE_SHIFT) as usize;
        for (other, bits) in self.databases.iter().enumerate().skip(name) {
            let from = if other == name { tag } else { 0 };
            place = if other == name { place } else { 0 };
            let Some(bits) = bits else { continue };
            let mut ahead = u64::MAX << (place % 64);
            for (word, bits) in bits.iter().enumerate().skip(place / 64) {
                let there = bits & ahead;
                if there != 0 {
                    let found = (word * 64) as u32 + there.trailing_zeros();
                    return Some((other, (found << PLACE_SHIFT).max(from)));
                }
                ahead = u64::MAX;
            }
        }
        None
    }
}

/// Returns the approximate memory in bytes of a removed key's name: the name, and a slot of a table that is three
/// quarters full.
fn name_bytes(key: &[u8]) -> usize {
    size_class(key.len().max(1)) + size_of::<(usize, Box<[u8]>)>() * 4 / 3
}

impl Unsaved {
    pub(super) fn bytes(&self) -> usize {
        self.removed_bytes + self.changed.bytes() + self.cut.bytes()
    }

    fn record_removed(&mut self, name: usize, key: Box<[u8]>) {
        let bytes = name_bytes(&key);
        if self.removed.insert((name, key)) {
            self.removed_bytes += bytes;
        }
    }

    /// Records that a database was emptied.
    pub(super) fn record_emptied(&mut self, name: usize) {
        if !self.emptied.contains(&name) {
            self.emptied.push(name);
        }
        self.changed.forget(name);
        let bytes = &mut self.removed_bytes;
        self.removed.retain(|(other, key)| {
            *bytes -= if *other == name { name_bytes(key) } else { 0 };
            *other != name
        });
    }
}

/// The keys removed since the last checkpoint.
#[derive(Debug, Default)]
pub struct RemovedKeys {
    /// The shards' names of databases that were emptied; this precedes all removals in `removed`.
    pub emptied: Vec<usize>,
    /// The removed keys, each with the shards' name of its database; some keys may exist again.
    pub removed: Vec<(usize, Box<[u8]>)>,
}

impl ShardData {
    /// Returns whether a store contains the data set.
    pub fn has_store(&self) -> bool {
        self.cold_state.as_ref().is_some_and(|cold_state| cold_state.unsaved.is_some())
    }

    /// Records the removal of an entry that is about to be removed, if the store may contain it.
    pub(super) fn record_unsaved_removal(&mut self, database: usize, at: Position) {
        let name = self.database_name(database);
        if self.has_store() {
            let key = self.entry(database, at).key().into();
            self.is_changed = true;
            if let Some(unsaved) = self.cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut())
            {
                unsaved.record_removed(name, key);
            }
        }
    }

    /// Records that the entry is new or has changed since the last checkpoint.
    #[inline]
    pub(super) fn mark_unsaved(&mut self, database: usize, at: Position) {
        let ShardData { first, others, cold_state, cut, .. } = self;
        let Some(unsaved) = cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut()) else {
            return;
        };
        let database = if database == 0 { first } else { &mut others[database - 1] };
        let slot = database.table.slot_mut(at);
        // The generation must be set: while the store contained the entry, its generation was not maintained.
        slot.set_cut(*cut);
        unsaved.changed.add(database.expiry_name, slot.tag());
    }

    /// Begins a checkpoint; returns the places of the entries that have changed.
    pub(super) fn cut_places(&mut self) -> Arc<Places> {
        let Some(unsaved) = self.cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut())
        else {
            return Arc::default();
        };
        // A checkpoint that was abandoned before it was settled leaves places in `cut`.
        unsaved.changed.add_all(&unsaved.cut);
        unsaved.cut = Arc::new(std::mem::take(&mut unsaved.changed));
        Arc::clone(&unsaved.cut)
    }

    /// Returns whether every entry that the store does not contain is in a place of the next or the current checkpoint.
    pub(super) fn finds_all_unsaved(&self, database: &Database) -> bool {
        let Some(unsaved) = self.cold_state.as_ref().and_then(|cold_state| cold_state.unsaved.as_ref())
        else {
            return true;
        };
        let name = database.expiry_name;
        let is_found = |slot: &Slot| {
            let (tag, entry) = (slot.tag(), slot.entry());
            let is_known = unsaved.changed.has(name, tag) || unsaved.cut.has(name, tag);
            entry.is_copied() || (entry.cut() == self.cut && is_known)
        };
        database.table.slots().all(is_found)
    }

    fn take_removed(&mut self, removed_keys: &mut RemovedKeys) {
        let Some(unsaved) = self.cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut())
        else {
            return;
        };
        unsaved.removed_bytes = 0;
        removed_keys.removed.extend(std::mem::take(&mut unsaved.removed));
        removed_keys.emptied.append(&mut unsaved.emptied);
        removed_keys.emptied.sort_unstable();
        removed_keys.emptied.dedup();
        self.is_changed = true;
    }

    /// Settles a checkpoint for the entries of one step. Returns false at the end of the shard.
    fn settle_step(&mut self, cursor: &mut Cursor, has_succeeded: bool) -> bool {
        let ShardData { first, others, cold_state, is_changed, .. } = self;
        let Some(unsaved) = cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut()) else {
            return false;
        };
        for _ in 0..STEP_GROUPS {
            if !cursor.advance_to(Some(&unsaved.cut)) {
                let cut = std::mem::take(&mut unsaved.cut);
                if !has_succeeded {
                    unsaved.changed.add_all(&cut);
                }
                *is_changed = true;
                return false;
            }
            let table = table_named(first, others, cursor.name);
            let next = table.scan_mut(cursor.tag, |slot| {
                if slot.entry().is_pending() {
                    slot.set_pending(false);
                    slot.set_stored(has_succeeded);
                }
            });
            match next {
                Some(tag) => cursor.tag = tag,
                None => (cursor.name, cursor.tag) = (cursor.name + 1, 0),
            }
        }
        true
    }
}

/// A key that a store contains, without its value.
#[derive(Debug)]
pub struct StoredKey<'k> {
    /// The number of the key's database.
    pub database: usize,
    /// The key.
    pub key: &'k [u8],
    /// The type of the value.
    pub value_type: ValueType,
    /// The expiry of the key, as Unix time in ms.
    pub expire_at_ms: Option<i64>,
    /// The eviction clock of the key.
    pub clock: u32,
}

impl Keyspace {
    /// Declares that a store contains the data set from now on. No key exists yet.
    pub fn keep_in_store(&self) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.cold_state.get_or_insert_default().unsaved.get_or_insert_default();
        }
    }

    /// Returns the shards' names of the databases, in the order of the databases' numbers. The caller has exclusive
    /// access.
    pub fn database_names(&self) -> Vec<usize> {
        // Shard 0 is representative, because SWAPDB has the same effect in all shards.
        let data = self.lock(0);
        (0..self.databases()).map(|database| data.database_name(database)).collect()
    }

    /// Sets the shards' names of the databases, in the order of the databases' numbers. No key exists yet. Returns
    /// false if the names are not a permutation of the numbers.
    pub fn set_database_names(&self, names: &[usize]) -> bool {
        let mut is_known = vec![false; names.len()];
        for &name in names {
            match is_known.get_mut(name) {
                Some(known) if !*known => *known = true,
                _ => return false,
            }
        }
        if names.len() > self.databases() {
            return false;
        }
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            for (number, &name) in names.iter().enumerate() {
                if data.database_name(number) != name
                    && let Some(other) =
                        (number..names.len()).find(|&other| data.database_name(other) == name)
                {
                    data.swap_databases(number, other);
                }
            }
            self.publish_bytes(self.release(shard, data));
        }
        true
    }

    /// Adds a key of the store, whose value remains cold. Returns false if the key exists.
    pub fn insert_cold(&self, key: &StoredKey<'_>, facts: Facts) -> bool {
        let record = Record::new(Location::STORE);
        let value = External { value_type: key.value_type, facts, record };
        self.insert_stored(key, NewValue::External(value))
    }

    /// Adds a key of the store, whose value becomes resident. Returns false if the key exists.
    pub fn insert_stored(&self, key: &StoredKey<'_>, value: NewValue<'_>) -> bool {
        let hash = self.hash(key.key);
        let mut data = self.lock(hash.shard());
        if data.find(key.database, hash, key.key).is_some() {
            return false;
        }
        let at = data.insert_quietly(key.database, hash, key.key, value, key.expire_at_ms, key.clock);
        data.slot_mut(key.database, at).set_stored(true);
        self.publish_bytes(self.release(hash.shard(), data));
        true
    }

    /// Takes the keys removed since the last checkpoint. The caller has exclusive access. O(removed keys + shards).
    pub fn take_removed(&self) -> RemovedKeys {
        let mut removed_keys = RemovedKeys::default();
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.take_removed(&mut removed_keys);
            self.publish_bytes(self.release(shard, data));
        }
        removed_keys
    }

    /// Returns the removed keys of a failed checkpoint to the shards, for the next checkpoint.
    pub fn restore_removed(&self, removed_keys: RemovedKeys) {
        for (name, key) in removed_keys.removed {
            let shard = self.hash(&key).shard();
            let mut data = self.lock(shard);
            if let Some(unsaved) = data.cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut())
            {
                unsaved.record_removed(name, key);
                data.is_changed = true;
            }
            self.publish_bytes(self.release(shard, data));
        }
        // The names of emptied databases are stored in one shard only, which suffices.
        if let Some(unsaved) =
            self.lock(0).cold_state.as_mut().and_then(|cold_state| cold_state.unsaved.as_mut())
        {
            for name in removed_keys.emptied {
                if !unsaved.emptied.contains(&name) {
                    unsaved.emptied.push(name);
                }
            }
        }
    }

    /// Settles a checkpoint in all shards. If it `has_succeeded`, the store contains all entries that the checkpoint
    /// has saved; otherwise none of them. O(entries in the checkpoint's places), in steps.
    pub fn settle_checkpoint(&self, has_succeeded: bool) {
        for shard in 0..SHARDS {
            let mut cursor = Cursor::default();
            while self.lock(shard).settle_step(&mut cursor, has_succeeded) {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::hash::{HashFunction, KeyHash, KeyHasher};
    use crate::eviction::policy::{ClockReading, EvictionPolicy};
    use crate::keyspace::names::RecordKinds;
    use crate::keyspace::shard::snapshot_queue::Gathering;
    use crate::rdb::KeyForm;
    use crate::snapshot::{HeldBack, Piece, QueueLimits, Snapshot, SnapshotOptions};

    fn snapshot(form: KeyForm) -> Arc<Snapshot> {
        let clocks =
            ClockReading { policy: EvictionPolicy::default(), lfu_decay_minutes: 1, now_ms: 0, now_tick: 0 };
        let options = SnapshotOptions { form, clocks, limits: QueueLimits::default() };
        Arc::new(Snapshot::new(options, vec![(0, 0); 4], 1, Arc::<HeldBack>::default()))
    }

    fn key(number: u64) -> (KeyHash, Vec<u8>) {
        let key = format!("key:{number}").into_bytes();
        (KeyHasher::seeded(HashFunction::Siphash, 1, 2).hash(&key), key)
    }

    fn set(data: &mut ShardData, database: usize, number: u64) {
        let (hash, key) = key(number);
        match data.find(database, hash, &key) {
            Some(at) => data.edit(database, at, |slot| slot.set(NewValue::Int(number as i64), None)),
            None => _ = data.insert(database, hash, &key, NewValue::Int(0), None, 0),
        }
    }

    /// Saves all entries of a shard in a snapshot; returns the number of saved keys and the number of steps.
    fn save(
        data: &mut ShardData,
        snapshot: &Arc<Snapshot>,
        between: impl FnOnce(&mut ShardData),
    ) -> (u64, usize) {
        data.begin_saving(snapshot);
        between(data);
        let (mut cursor, mut steps) = (Cursor::default(), 1);
        let mut gathering = Gathering::new(snapshot);
        while data.save_step(&mut cursor, &mut gathering) {
            steps += 1;
        }
        gathering.flush(1);
        let pieces = std::mem::take(&mut snapshot.queue.lock().pieces);
        let keys = pieces.into_iter().map(|waiting| match waiting.piece {
            Piece::Keys(_, block) => block.keys(),
            _ => 0,
        });
        (keys.sum(), steps)
    }

    fn checkpoint(
        data: &mut ShardData,
        has_succeeded: bool,
        between: impl FnOnce(&mut ShardData),
    ) -> (u64, usize) {
        let saved = save(data, &snapshot(KeyForm::Rows), between);
        data.check_invariants();
        let mut cursor = Cursor::default();
        while data.settle_step(&mut cursor, has_succeeded) {}
        data.check_invariants();
        saved
    }

    fn shard(keys: u64) -> ShardData {
        let mut data = ShardData::new(0, RecordKinds::empty());
        data.cold_state.get_or_insert_default().unsaved.get_or_insert_default();
        (0..keys).for_each(|number| set(&mut data, 0, number));
        data
    }

    #[test]
    fn a_checkpoint_scans_only_changed_keys() {
        let mut data = shard(50_000);
        let (keys, all_steps) = checkpoint(&mut data, true, |_| {});
        assert_eq!(keys, 50_000);
        assert_eq!(checkpoint(&mut data, true, |_| {}), (0, 1));
        (0..10).for_each(|number| set(&mut data, 0, number * 17));
        set(&mut data, 3, 1);
        let (keys, steps) = checkpoint(&mut data, true, |_| {});
        assert_eq!(keys, 11);
        assert!(steps <= 16 && all_steps > 500, "{steps} of {all_steps}");
    }

    #[test]
    fn changes_during_a_checkpoint_belong_to_the_next_one_too() {
        let mut data = shard(1000);
        let change = |data: &mut ShardData| (500..2000).for_each(|number| set(data, 0, number));
        assert_eq!(checkpoint(&mut data, true, change).0, 1000);
        assert_eq!(checkpoint(&mut data, true, |_| {}).0, 1500);
        // The generations of these keys are not maintained, because the store contains the keys.
        assert_eq!(checkpoint(&mut data, true, change).0, 0);
        assert_eq!(checkpoint(&mut data, true, |_| {}).0, 1500);
        assert_eq!(checkpoint(&mut data, true, |_| {}).0, 0);
    }

    #[test]
    fn changes_of_a_failed_checkpoint_belong_to_the_next_one() {
        let mut data = shard(1000);
        assert_eq!(checkpoint(&mut data, false, |_| {}).0, 1000);
        assert_eq!(checkpoint(&mut data, true, |data| set(data, 0, 7)).0, 1000);
        assert_eq!(checkpoint(&mut data, false, |_| {}).0, 1);
        assert_eq!(checkpoint(&mut data, true, |_| {}).0, 1);
        assert_eq!(checkpoint(&mut data, true, |_| {}).0, 0);
    }

    #[test]
    fn a_full_snapshot_has_all_keys_after_any_checkpoints() {
        let mut data = shard(1000);
        for round in 0..5 {
            checkpoint(&mut data, true, |data| (0..round * 100).for_each(|number| set(data, 0, number)));
            assert_eq!(save(&mut data, &snapshot(KeyForm::Commands), |data| set(data, 0, round)).0, 1000);
            data.check_invariants();
        }
    }

    #[test]
    fn places_are_found_in_order_from_any_start() {
        let mut places = Places::default();
        assert_eq!(places.next(0, 0), None);
        let last = (1 << TAG_BITS) - 1;
        for (name, tag) in [(0, 5), (0, last), (2, 70 << PLACE_SHIFT)] {
            places.add(name, tag);
        }
        assert_eq!(places.next(0, 0), Some((0, 0)));
        assert_eq!(places.next(0, 3), Some((0, 3)));
        let last_place = last >> PLACE_SHIFT << PLACE_SHIFT;
        assert_eq!(places.next(0, 1 << PLACE_SHIFT), Some((0, last_place)));
        assert_eq!(places.next(0, last), Some((0, last)));
        assert_eq!(places.next(1, 9), Some((2, 70 << PLACE_SHIFT)));
        assert_eq!(places.next(2, 71 << PLACE_SHIFT), None);
        places.forget(2);
        assert_eq!(places.next(1, 0), None);
    }
}
