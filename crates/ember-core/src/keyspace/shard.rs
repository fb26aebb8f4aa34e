//! A shard: the data that one lock protects, which are a table for each database, the expiry index and the byte
//! account.

pub mod cold_values;
pub mod fetch_tickets;
pub(crate) mod moving;
mod saving;
pub(crate) mod snapshot_queue;
pub(crate) mod unsaved;

use std::sync::Arc;

use self::fetch_tickets::ColdState;
pub use self::saving::Detached;
use self::saving::Saving;
pub(crate) use self::saving::{Cursor, Held};
use super::expiry::{ExpiryIndex, Reference, TICK_MS};
use super::names::{KeyRecords, OrderedNames, RecordKinds};
use super::states::state_of;
use crate::effects::capture::State;
use crate::effects::events::{ChangedKey, Event, Notices};
use crate::effects::journal::Names;
use crate::effects::live_query::LiveQuery;
use crate::effects::observers::{Observers, TagFilter};
use crate::entries::entry::{Dues, EntryRef, Generation, NewValue, SharedValue, Slot};
use crate::entries::external::Facts;
use crate::entries::hash::KeyHash;
use crate::entries::table::{Position, Table};
use crate::eviction::ghosts::EvictedKeys;
use crate::turn::Turn;
use crate::types::Aggregate;

/// The part of a numbered database that one shard contains.
#[derive(Default)]
#[repr(C)]
pub struct Database {
    table: Table,
    /// The number of entries with an expiry.
    volatile: usize,
    /// The memory of the entries in bytes.
    entry_bytes: usize,
    /// The name of this database in the expiry index and snapshots: its original number, which SWAPDB does not change.
    expiry_name: usize,
    /// The number of entries that expire as a whole or in part: entries with an expiry, and entries with elements that
    /// have an expiry.
    due: usize,
    /// The number of entries with elements that have an expiry.
    expiring: usize,
    /// The records about the keys; `None` if the shard keeps no records or there were no keys.
    records: Option<Box<KeyRecords>>,
}

impl Database {
    const fn new(expiry_name: usize) -> Database {
        Database {
            table: Table::EMPTY,
            volatile: 0,
            entry_bytes: 0,
            expiry_name,
            due: 0,
            expiring: 0,
            records: None,
        }
    }

    /// Updates the counts for an entry whose expiries have changed.
    #[inline]
    fn count_dues(&mut self, before: Dues, after: Dues) {
        let change = |count: &mut usize, before: Option<i64>, after: Option<i64>| {
            *count = *count + usize::from(after.is_some()) - usize::from(before.is_some());
        };
        change(&mut self.volatile, before.key_ms, after.key_ms);
        change(&mut self.expiring, before.elements_ms, after.elements_ms);
        change(&mut self.due, before.next_ms(), after.next_ms());
    }

    /// Returns the number of entries with elements that expire.
    #[inline]
    pub fn expiring(&self) -> usize {
        self.expiring
    }

    /// Returns the table of the database's entries.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// Returns the number of entries with an expiry.
    pub fn volatile(&self) -> usize {
        self.volatile
    }

    /// Returns the sorted names of the keys; `None` if there are no keys or the shard does not keep their order.
    pub fn names(&self) -> Option<&OrderedNames> {
        self.records.as_ref().and_then(|records| records.names())
    }

    /// Returns the number of keys in a cluster slot, whether or not they have expired, if the shard counts them.
    pub fn keys_in_slot(&self, slot: u16) -> usize {
        self.records.as_ref().map_or(0, |records| records.keys_in_slot(slot))
    }

    fn records_bytes(&self) -> usize {
        self.records.as_ref().map_or(0, |records| records.bytes())
    }
}

/// The data that a shard's lock protects.
///
/// Entries change only through this type's methods, so that the byte account and the expiry index are exact after each
/// change. The databases' `expiry_name`s are a permutation of their numbers.
///
/// The fields that every command reads, up to the table of database 0, are first, on the cache line of the lock; the
/// fields that every change reads follow.
#[derive(Default)]
#[repr(C)]
pub struct ShardData {
    /// Whether the shard has changed since [`ShardData::take_growth`].
    is_changed: bool,
    /// Whether the keys have observers other than live queries.
    has_clients: bool,
    /// The kinds of records that the databases keep about their keys.
    kinds: RecordKinds,
    /// The generation of all entries except those that the current snapshot has not saved yet.
    generation: Generation,
    /// The generation of all entries except those that the current checkpoint has not saved yet.
    cut: Generation,
    /// Database 0, which nearly all commands use.
    first: Database,
    /// The observers of this shard's keys; `None` if the keys have no observers.
    observers: Option<Box<Observers>>,
    /// The state of the current snapshot of this shard, until the whole shard is saved.
    saving: Option<Box<Saving>>,
    /// The state of cold values; `None` if that state is empty.
    cold_state: Option<Box<ColdState>>,
    /// The part of [`ShardData::bytes`] that was already added to the keyspace's total.
    published_bytes: usize,
    /// The filter of the hash tags of keys that live queries read.
    queried: TagFilter,
    expiry: ExpiryIndex,
    /// The ghosts of evicted keys; `None` unless the eviction policy needs it.
    evicted: Option<EvictedKeys>,
    /// Unix time in ms of tick 0 of the expiry index.
    epoch_ms: i64,
    /// The databases other than database 0, at the index of their number minus one, up to the highest number that was
    /// ever used.
    others: Vec<Database>,
}

// In a shard, two words and the lock are before these fields; together they take one cache line.
const _: () = assert!(std::mem::offset_of!(ShardData, first) + size_of::<Table>() <= 40);

static NO_DATABASE: Database = Database::new(0);

/// Returns whether a record of an entry's value exists, whether the value is cold or resident, or a checkpoint is
/// saving the value.
fn has_record(entry: EntryRef<'_>) -> bool {
    entry.is_cold() || entry.is_copied() || entry.is_pending()
}

/// Returns the facts of an entry's value if the value is cold.
fn cold_facts_of(entry: EntryRef<'_>) -> Option<Facts> {
    entry.external().map(|external| external.facts)
}

impl ShardData {
    /// Returns an empty shard whose expiry index counts from `epoch_ms`.
    pub fn new(epoch_ms: i64, kinds: RecordKinds) -> ShardData {
        ShardData { epoch_ms, kinds, ..ShardData::default() }
    }

    /// Returns the memory of entries, table slots, sorted names, the expiry index and the ghosts of evicted keys in
    /// bytes.
    pub fn bytes(&self) -> usize {
        let databases = self.all_databases();
        let bytes_of = |database: &Database| {
            database.entry_bytes + database.table.slots_bytes() + database.records_bytes()
        };
        let copies = self.cold_state.as_ref().map_or(0, |cold_state| cold_state.bytes());
        let ghosts = self.evicted.as_ref().map_or(0, EvictedKeys::bytes);
        databases.map(bytes_of).sum::<usize>() + self.expiry.bytes() + copies + ghosts
    }

    /// Returns whether an entry, a table, the expiry index or the observers have changed since
    /// [`ShardData::take_growth`].
    #[inline]
    pub(super) fn is_changed(&self) -> bool {
        self.is_changed
    }

    /// Returns the growth of the shard in bytes since the last call. O(databases in use).
    pub(super) fn take_growth(&mut self) -> i64 {
        self.is_changed = false;
        let bytes = self.bytes();
        let growth = bytes as i64 - self.published_bytes as i64;
        self.published_bytes = bytes;
        growth
    }

    /// Returns a database, which is empty if it was never used.
    #[inline]
    pub fn database(&self, index: usize) -> &Database {
        match index {
            0 => &self.first,
            _ => self.others.get(index - 1).unwrap_or(&NO_DATABASE),
        }
    }

    /// Returns the highest database number that was ever used, plus one.
    pub fn databases_used(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns a mutable database, which is added first if it was never used.
    #[inline]
    fn database_mut(&mut self, index: usize) -> &mut Database {
        self.is_changed = true;
        if index == 0 {
            return &mut self.first;
        }
        let known = self.others.len() + 1;
        self.others.extend((known..=index).map(Database::new));
        &mut self.others[index - 1]
    }

    /// Returns all databases that were ever used.
    pub(super) fn all_databases(&self) -> impl Iterator<Item = &Database> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// Returns the number of entries that need a reference in the expiry index.
    fn due(&self) -> usize {
        self.all_databases().map(|database| database.due).sum()
    }

    /// Returns whether any entry has elements that expire.
    pub fn has_expiring_elements(&self) -> bool {
        self.all_databases().any(|database| database.expiring > 0)
    }

    /// Finds the entry of a key, whether or not it has expired.
    #[inline]
    pub fn find(&self, database: usize, hash: KeyHash, key: &[u8]) -> Option<Position> {
        self.database(database).table.find(hash.tag(), key)
    }

    /// Returns the entry at a position; the position was found in this database after its last change.
    #[inline]
    pub fn entry(&self, database: usize, at: Position) -> EntryRef<'_> {
        self.database(database).table.slot(at).entry()
    }

    /// Reserves capacity for `entries` entries in total in a database, so that its table need not grow up to that
    /// number.
    pub fn reserve_for(&mut self, database: usize, entries: usize) {
        self.database_mut(database).table.reserve_for(entries);
    }

    /// Releases unused capacity of a database's table.
    pub fn release_capacity(&mut self, database: usize) {
        self.database_mut(database).table.shrink_if_sparse();
    }

    /// Adds an entry for a key that does not exist.
    pub fn insert(
        &mut self,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        value: NewValue<'_>,
        expire_at_ms: Option<i64>,
        clock: u32,
    ) -> Position {
        let at = self.insert_quietly(database, hash, key, value, expire_at_ms, clock);
        if self.cold_state.is_some() {
            self.mark_unsaved(database, at);
        }
        at
    }

    /// Like [`ShardData::insert`], for a key that the store contains: the entry is not marked as unsaved.
    fn insert_quietly(
        &mut self,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        value: NewValue<'_>,
        expire_at_ms: Option<i64>,
        clock: u32,
    ) -> Position {
        let cold = if let NewValue::External(external) = &value { Some(external.facts) } else { None };
        let mut slot = Slot::new(hash.tag(), key, value, expire_at_ms, clock);
        slot.set_generation(self.generation);
        slot.set_cut(self.cut);
        let dues = slot.entry().dues();
        let kinds = self.kinds;
        let target = self.database_mut(database);
        if !kinds.is_empty() {
            target.records.get_or_insert_with(|| Box::new(KeyRecords::new(kinds))).add(key);
        }
        target.entry_bytes += slot.entry().footprint_bytes();
        target.count_dues(Dues::NONE, dues);
        let at = target.table.insert_new(slot);
        if let Some(due_ms) = dues.next_ms() {
            self.refer(database, hash.tag(), due_ms);
        }
        if let Some(facts) = cold {
            let name = self.database_name(database);
            self.cold_state.get_or_insert_default().count_in(name, facts);
        }
        at
    }

    /// Calls `edit` to change the value, expiry or eviction clock of an entry.
    #[inline]
    pub fn edit<R>(&mut self, database: usize, at: Position, edit: impl FnOnce(&mut Slot) -> R) -> R {
        self.edit_sized(database, at, edit).0
    }

    /// Like [`ShardData::edit`]; also returns the bytes that the entry took before and takes after the change.
    #[inline]
    pub fn edit_sized<R>(
        &mut self,
        database: usize,
        at: Position,
        edit: impl FnOnce(&mut Slot) -> R,
    ) -> (R, usize, usize) {
        if self.saving.is_some() {
            self.save_before_change(database, at);
        }
        let has_record = self.cold_state.is_some() && has_record(self.entry(database, at));
        let cold_facts = if has_record { cold_facts_of(self.entry(database, at)) } else { None };
        let target = self.database_mut(database);
        let slot = target.table.slot_mut(at);
        let bytes_before = slot.entry().footprint_bytes();
        let dues_before = slot.entry().dues();
        let result = edit(slot);
        let dues_after = slot.entry().dues();
        let bytes_after = slot.entry().footprint_bytes();
        target.entry_bytes = target.entry_bytes + bytes_after - bytes_before;
        if dues_before != dues_after {
            let tag = slot.tag();
            target.count_dues(dues_before, dues_after);
            // If the new expiry is later than the old one, the earlier reference remains: the expiry is read again when
            // that reference is due.
            if let Some(after) = dues_after.next_ms()
                && dues_before.next_ms().is_none_or(|before| after < before)
            {
                self.refer(database, tag, after);
            }
        }
        if has_record {
            self.record_replaced(database, at, cold_facts);
        }
        if self.cold_state.is_some() {
            self.mark_unsaved(database, at);
        }
        (result, bytes_before, bytes_after)
    }

    /// Records a change of a value with a record, or of its expiry.
    #[cold]
    fn record_replaced(&mut self, database: usize, at: Position, cold_facts: Option<Facts>) {
        if self.entry(database, at).is_cold() {
            // The store still contains the value, but not the entry's current metadata.
            let slot = self.slot_mut(database, at);
            slot.set_stored(false);
            slot.set_pending(false);
        } else {
            self.forget_record(database, at, cold_facts);
        }
    }

    /// Removes the record of an entry's value, and the mark of a checkpoint that has saved the value; `cold_facts` are
    /// the facts of the value if it was cold.
    #[cold]
    fn forget_record(&mut self, database: usize, at: Position, cold_facts: Option<Facts>) {
        let ShardData { first, others, cold_state, .. } = self;
        let database = if database == 0 { first } else { &mut others[database - 1] };
        let slot = database.table.slot_mut(at);
        if let Some(cold_state) = cold_state {
            let (name, key) = (database.expiry_name, slot.entry().key());
            if let Some(facts) = cold_facts {
                cold_state.count_out(name, facts);
                cold_state.end_ticket(name, slot.tag(), key);
            } else {
                cold_state.take_copy(name, key);
            }
        }
        slot.set_copied(false);
        slot.set_pending(false);
        self.drop_cold_state_if_empty();
    }

    fn slot_mut(&mut self, database: usize, at: Position) -> &mut Slot {
        let target = if database == 0 { &mut self.first } else { &mut self.others[database - 1] };
        target.table.slot_mut(at)
    }

    /// Records that a fetched value was used for the first time since its fetch.
    #[cold]
    pub fn clear_fetched(&mut self, database: usize, at: Position) {
        self.slot_mut(database, at).clear_fetched();
    }

    /// Sets the eviction clock of an entry, which does not count as a change.
    #[inline]
    pub fn set_clock(&mut self, database: usize, at: Position, clock: u32) {
        let target = if database == 0 { &mut self.first } else { &mut self.others[database - 1] };
        target.table.slot_mut(at).set_clock(clock);
    }

    /// Shares the value of a key, with its expiry, with the shard `to` of an offloaded call: if the key exists, has not
    /// expired by `expired_ms`, and `to` does not contain it yet. Returns whether the value was shared by this call.
    /// O(1), plus a copy of a string that is not large.
    pub(crate) fn lend(
        &mut self,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        expired_ms: i64,
        to: &mut ShardData,
    ) -> bool {
        if to.find(database, hash, key).is_some() {
            return false;
        }
        let Some(at) = self.find(database, hash, key) else { return false };
        let from = if database == 0 { &mut self.first } else { &mut self.others[database - 1] };
        let slot = from.table.slot_mut(at);
        if slot.entry().is_expired(expired_ms) {
            return false;
        }
        let (expire_at_ms, clock) = (slot.entry().expire_at_ms(), slot.entry().clock());
        if let Some(SharedValue::Aggregate(shared)) = slot.share() {
            let value_type = shared.value_type();
            let at = to.insert(database, hash, key, NewValue::Int(0), expire_at_ms, clock);
            to.edit(database, at, |slot| slot.write_shared(shared, value_type));
        } else {
            to.insert(database, hash, key, slot.entry().to_value(&mut Vec::new()), expire_at_ms, clock);
        }
        true
    }

    /// Removes and returns an entry.
    pub fn remove(&mut self, database: usize, at: Position) -> Slot {
        if self.saving.is_some() {
            self.save_before_change(database, at);
        }
        if self.cold_state.is_some() {
            self.update_cold_state(database, at);
        }
        let target = self.database_mut(database);
        let slot = target.table.remove(at);
        if let Some(records) = &mut target.records {
            records.remove(slot.entry().key());
        }
        target.entry_bytes -= slot.entry().footprint_bytes();
        target.count_dues(slot.entry().dues(), Dues::NONE);
        let name = target.expiry_name;
        if self.pinned() > 0 {
            self.forget_pin(name, slot.entry().key());
        }
        if self.expiry.is_bloated(self.due()) {
            self.rebuild_expiry();
        }
        slot
    }

    /// Adds an evicted key with its counter of uses to the ghosts. Amortized O(1): the ghosts have the size of the
    /// tables, and are emptied when that size has doubled or halved.
    pub(crate) fn remember_evicted(&mut self, hash: KeyHash, counter: u8) {
        let slots = self.all_databases().map(|database| database.table.capacity()).sum();
        if !self.evicted.as_ref().is_some_and(|evicted| evicted.fits(slots)) {
            self.evicted = Some(EvictedKeys::for_slots(slots));
        }
        if let Some(evicted) = &mut self.evicted {
            evicted.add(hash, counter);
        }
    }

    /// Removes the ghost of an evicted key and returns its counter of uses. `None` if the key was not evicted, or
    /// too long ago.
    pub(crate) fn recall_evicted(&mut self, hash: KeyHash) -> Option<u8> {
        self.evicted.as_mut()?.take(hash)
    }

    /// Frees the ghosts of evicted keys.
    pub(crate) fn forget_evicted(&mut self) {
        if self.evicted.take().is_some() {
            self.is_changed = true;
        }
    }

    /// Updates the state of cold values before an entry is removed.
    #[cold]
    fn update_cold_state(&mut self, database: usize, at: Position) {
        let entry = self.entry(database, at);
        if has_record(entry) {
            self.forget_record(database, at, cold_facts_of(entry));
        }
        self.record_unsaved_removal(database, at);
        let (name, keys) = (self.database_name(database), self.database(database).table.len());
        if let Some(cold_state) = &mut self.cold_state {
            cold_state.bound_returned(name, keys - 1);
        }
    }

    /// Notifies the observers of a key that the key has changed; `tag` is the tag of the key's hash.
    #[inline]
    pub fn notify_change(&mut self, database: usize, tag: u32, key: &[u8], notices: &mut Notices) {
        if self.observers.is_some() || notices.collects_changes {
            self.notify_observers(database, tag, key, notices);
        }
    }

    /// Like [`ShardData::notify_change`], for a key that expiry or eviction has changed.
    pub fn notify_server_change(&mut self, database: usize, tag: u32, key: &[u8], notices: &mut Notices) {
        notices.is_server_change = true;
        self.notify_change(database, tag, key, notices);
        notices.is_server_change = false;
    }

    /// Wakes the blocked clients that wait for a key.
    pub fn wake_waiters(&self, database: usize, key: &[u8], notices: &mut Notices) {
        if let Some(observers) = &self.observers {
            observers.wake_waiters(database, key, notices);
        }
    }

    #[cold]
    fn notify_observers(&mut self, database: usize, tag: u32, key: &[u8], notices: &mut Notices) {
        if self.queried.may_have(tag)
            && let Some(observers) = &self.observers
        {
            observers.mark_queries(database, tag, notices);
        }
        if self.has_clients {
            self.edit_observers(|observers| observers.notify_clients(database, key, notices));
        }
        if notices.collects_changes {
            let is_server_change = notices.is_server_change;
            notices.changed.push(ChangedKey { name: key.into(), is_server_change });
        }
    }

    /// Returns the observers of this shard's keys; `None` if the keys have no observers.
    pub fn observers(&self) -> Option<&Observers> {
        self.observers.as_deref()
    }

    /// Calls `edit` on the observers of this shard's keys.
    pub fn edit_observers(&mut self, edit: impl FnOnce(&mut Observers)) {
        self.edit_queries(|observers, _| edit(observers));
    }

    /// Calls `edit` on the observers and the filter of live queries; returns the growth in bytes of the live queries'
    /// memory.
    fn edit_queries(&mut self, edit: impl FnOnce(&mut Observers, &mut TagFilter)) -> isize {
        self.is_changed = true;
        let before = self.queries_bytes();
        let observers = self.observers.get_or_insert_default();
        edit(observers, &mut self.queried);
        self.has_clients = observers.has_clients();
        self.observers.take_if(|observers| observers.is_empty());
        self.queries_bytes().cast_signed() - before.cast_signed()
    }

    fn queries_bytes(&self) -> usize {
        let observers = self.observers.as_ref().map_or(0, |observers| observers.queries_bytes());
        observers + self.queried.memory_bytes()
    }

    /// Adds a live query to the keys whose hashes have this tag; returns the growth in bytes of the live queries'
    /// memory in this shard.
    pub fn enter_query(&mut self, tag: u32, query: &Arc<LiveQuery>) -> isize {
        self.edit_queries(|observers, queried| observers.enter_query(tag, query, queried))
    }

    /// Removes a live query from the keys whose hashes have this tag; returns the same as [`ShardData::enter_query`].
    pub fn leave_query(&mut self, tag: u32, query: &Arc<LiveQuery>) -> isize {
        self.edit_queries(|observers, queried| observers.leave_query(tag, query, queried))
    }

    /// Returns the address of the word that a change of a key with this tag reads first in the filter of live queries,
    /// for prefetching only.
    #[inline]
    pub(super) fn queried_address(&self, tag: u32) -> *const u8 {
        self.queried.address(tag)
    }

    fn tick_of(&self, at_ms: i64) -> u32 {
        let ticks = at_ms.saturating_sub(self.epoch_ms).max(0) / TICK_MS;
        u32::try_from(ticks).unwrap_or(u32::MAX)
    }

    fn refer(&mut self, database: usize, tag: u32, due_ms: i64) {
        // One tick later, because then the whole millisecond `due_ms` has passed.
        let due = self.tick_of(due_ms).saturating_add(1);
        self.expiry.add(due, Reference::new(self.database(database).expiry_name, tag));
        if self.expiry.is_bloated(self.due()) {
            self.rebuild_expiry();
        }
    }

    /// Rebuilds the expiry index without stale references. O(entries); Called rarely: only if
    /// [`ExpiryIndex::is_bloated`].
    fn rebuild_expiry(&mut self) {
        self.expiry.clear();
        let due: Vec<(usize, u32, i64)> = self
            .all_databases()
            .filter(|database| database.due > 0)
            .flat_map(|database| {
                database.table.slots().filter_map(move |slot| {
                    let due_ms = slot.entry().next_due_ms()?;
                    Some((database.expiry_name, slot.tag(), due_ms))
                })
            })
            .collect();
        for (name, tag, due_ms) in due {
            let due = self.tick_of(due_ms).saturating_add(1);
            self.expiry.add(due, Reference::new(name, tag));
        }
    }

    /// Removes an expired entry, records the removal and notifies observers and subscribers.
    pub fn expire(&mut self, database: usize, at: Position, turn: &mut Turn) -> Slot {
        if turn.journal.captures() {
            self.mark_for_server(database, at, "expired", turn);
        }
        let slot = self.remove(database, at);
        self.notify_server_change(database, slot.tag(), slot.entry().key(), &mut turn.notices);
        let removal = turn.settings.removals.expired;
        turn.journal.record_removal(database, slot.entry().key(), removal);
        turn.notices.notify(Event::EXPIRED, database, slot.entry().key());
        slot
    }

    /// Removes a key like [`ShardData::expire`], if the key exists and has expired, unless [`Turn::keeps_expired`].
    pub fn expire_key(&mut self, database: usize, hash: KeyHash, key: &[u8], turn: &mut Turn) {
        if !turn.keeps_expired
            && let Some(at) = self.find(database, hash, key)
            && self.entry(database, at).is_expired(turn.now_ms)
        {
            drop(self.expire(database, at, turn));
            turn.counters.expired += 1;
        }
    }

    /// Like [`ShardData::expire_key`], but also removes the expired elements of a value whose key has not expired.
    /// O(removed elements).
    pub fn expire_all_of(&mut self, database: usize, hash: KeyHash, key: &[u8], turn: &mut Turn) {
        self.expire_key(database, hash, key, turn);
        while !turn.keeps_expired
            && let Some(at) = self.find(database, hash, key)
            && self.entry(database, at).next_due_ms().is_some_and(|due_ms| due_ms <= turn.now_ms)
        {
            self.expire_elements(database, at, turn, usize::MAX);
        }
    }

    /// Removes expired entries and elements, and records the removals; checks at most `budget` references and elements.
    /// Returns the removed entries and the number of checks.
    pub fn expire_due(&mut self, turn: &mut Turn, budget: usize) -> (Vec<Slot>, usize) {
        let now_ms = turn.now_ms;
        let now = self.tick_of(now_ms);
        let (mut removed, mut examined) = (Vec::new(), 0);
        self.is_changed = true;
        while examined < budget {
            let Some(reference) = self.expiry.pop_due(now) else { break };
            examined += 1;
            let named = |database: &Database| database.expiry_name == reference.database();
            let database = self.all_databases().position(named);
            let database = database.expect("a reference is to a database that was used, and those stay");
            let tag = reference.tag();
            let is_expired = |entry: EntryRef<'_>| entry.is_expired(now_ms);
            while let Some(at) = self.database(database).table.find_by_tag(tag, is_expired) {
                removed.push(self.expire(database, at, turn));
            }
            let is_due = |entry: EntryRef<'_>| entry.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms);
            while examined < budget
                && let Some(at) = self.database(database).table.find_by_tag(tag, is_due)
            {
                examined += self.expire_elements(database, at, turn, budget - examined);
            }
            let mut earliest: Option<i64> = None;
            self.database(database).table.find_by_tag(tag, |entry| {
                if let Some(due_ms) = entry.next_due_ms() {
                    earliest = Some(earliest.map_or(due_ms, |other| other.min(due_ms)));
                }
                false
            });
            if let Some(due_ms) = earliest {
                self.refer(database, tag, due_ms);
            }
        }
        (removed, examined)
    }

    /// Removes expired elements of an entry, and the entry if no elements remain, and records the removals. Checks at
    /// most `visits_max` elements. Returns the number of checks, at least 1.
    fn expire_elements(
        &mut self,
        database: usize,
        at: Position,
        turn: &mut Turn,
        visits_max: usize,
    ) -> usize {
        let now_ms = turn.now_ms;
        if turn.journal.captures() {
            self.mark_for_server(database, at, "fields-expired", turn);
        }
        let mut names = Names::for_journal(&turn.journal);
        let (expired, is_vacant, tag) = self.edit(database, at, |slot| {
            let tag = slot.tag();
            let value = slot.aggregate_mut().expect("only a value with elements is due before its key");
            (value.remove_expired(now_ms, visits_max, &mut names), value.is_vacant(), tag)
        });
        turn.counters.expired_fields += expired as u64;
        let entry = self.entry(database, at);
        let is_still_due = entry.next_due_ms().is_some_and(|due_ms| due_ms <= now_ms);
        if turn.journal.captures() {
            let bytes_max = turn.journal.captured_bytes_max().unwrap_or_default();
            let after = || if is_vacant { State::Absent } else { state_of(entry, bytes_max) };
            turn.journal.settle_by_server((database, entry.key()), (expired > 0).then(after));
        }
        let key: Box<[u8]> = if expired > 0 { entry.key().into() } else { Box::default() };
        if expired > 0 {
            names.journal_expired(&mut turn.journal, database, &key, 0);
            self.notify_server_change(database, tag, &key, &mut turn.notices);
            turn.notices.notify(Event::ELEMENTS_EXPIRED, database, &key);
        }
        if is_vacant {
            turn.notices.notify(Event::DEL, database, &key);
            self.remove(database, at);
        }
        if is_still_due { visits_max } else { expired.max(1) }
    }

    /// Marks an entry for the history, before the server changes or removes it.
    #[cold]
    pub(crate) fn mark_for_server(
        &self,
        database: usize,
        at: Position,
        cause: &'static str,
        turn: &mut Turn,
    ) {
        let entry = self.entry(database, at);
        let state = |bytes_max| state_of(entry, bytes_max);
        turn.journal.mark((database, entry.key()), Some(cause), state);
    }

    /// Returns the Unix time in ms at which [`ShardData::expire_due`] has work next; `None` if nothing expires.
    pub fn next_due_ms(&self) -> Option<i64> {
        self.expiry.next_due().map(|tick| self.epoch_ms + i64::from(tick) * TICK_MS)
    }

    /// Removes and returns the contents of a database. O(databases in use). Freeing the returned database may take
    /// long, so the caller frees it without the lock. Returns `None` if the database is empty, or if the current
    /// snapshot has not saved the whole database yet: then the contents are passed to the snapshot.
    pub fn take_database(&mut self, index: usize) -> Option<Database> {
        let mut taken = None;
        if !self.database(index).table.is_empty() {
            let database = self.database_mut(index);
            let emptied = Database::new(database.expiry_name);
            let contents = std::mem::replace(database, emptied);
            if let Some(cold_state) = &mut self.cold_state {
                cold_state.forget_database(contents.expiry_name);
                self.drop_cold_state_if_empty();
            }
            if self.saving.is_some() {
                self.detach_for_snapshot(contents);
            } else {
                taken = Some(contents);
            }
        }
        if self.all_databases().all(|database| database.table.is_empty()) {
            self.forget_evicted();
        }
        // This also removes references to keys that were deleted long ago.
        if self.due() == 0 && self.expiry.bytes() > 0 {
            self.expiry.clear();
            self.is_changed = true;
        }
        taken
    }

    /// Exchanges the contents of two databases. O(1), because the contents keep their names in the expiry index.
    pub fn swap_databases(&mut self, one: usize, other: usize) {
        if one == other {
            return;
        }
        let taken = std::mem::take(self.database_mut(one));
        let taken = std::mem::replace(self.database_mut(other), taken);
        *self.database_mut(one) = taken;
    }

    /// Checks the byte account, the counters and the tables, for tests. O(entries).
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        for database in self.all_databases() {
            database.table.check_invariants();
            assert!(
                self.saving.is_some()
                    || database.table.iter().all(|entry| entry.generation() == self.generation),
                "without a snapshot all entries are of one generation"
            );
            assert!(
                self.saving.is_some() || !self.has_store() || self.finds_all_unsaved(database),
                "a checkpoint finds what the store does not have"
            );
            database.table.iter().filter_map(EntryRef::aggregate).for_each(Aggregate::check_invariants);
            let bytes = database.table.iter().map(EntryRef::footprint_bytes).sum::<usize>();
            assert_eq!(bytes, database.entry_bytes, "the byte account is exact");
            let copied = |entry: EntryRef<'_>| {
                let copy =
                    |cold_state: &ColdState| cold_state.copy(database.expiry_name, entry.key()).is_some();
                self.cold_state.as_deref().is_some_and(copy)
            };
            assert!(
                self.has_store() || database.table.iter().all(|entry| entry.is_copied() == copied(entry)),
                "copies are known"
            );
            let cold = database.table.iter().filter(|entry| entry.is_cold()).count();
            let counted =
                self.cold_state.as_ref().map_or(0, |cold_state| cold_state.cold_in(database.expiry_name));
            assert_eq!(cold, counted, "the cold values are counted");
            let names = database.names().map_or(0, OrderedNames::len);
            let ordered = if self.kinds.contains(RecordKinds::NAMES) { database.table.len() } else { 0 };
            assert_eq!(names, ordered, "each key has its name in order");
            if let Some(records) = &database.records {
                records.check_counts(database.table.iter().map(EntryRef::key));
            }
            let volatile = database.table.iter().filter(|entry| entry.expire_at_ms().is_some()).count();
            assert_eq!(volatile, database.volatile, "volatile counts the entries with an expiry");
            let due = database.table.iter().filter(|entry| entry.next_due_ms().is_some()).count();
            assert_eq!(due, database.due, "due counts the entries that expire, wholly or in part");
            let expiring = database.table.iter().filter(|entry| entry.dues().elements_ms.is_some()).count();
            assert_eq!(expiring, database.expiring, "expiring counts the entries with elements that expire");
        }
        let mut names: Vec<usize> = self.all_databases().map(|database| database.expiry_name).collect();
        names.sort_unstable();
        assert!(names.iter().copied().eq(0..names.len()), "the names are a permutation");
    }
}
