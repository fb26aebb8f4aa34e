//! A shard's state of cold values: their number and size, the calls that wait for them, and the pinned keys.
//!
//! ```text
//! demote   the value is encoded and appended to a log, and its entry keeps the location            ([`super::cold_values`])
//! ask      a call misses a value: a [`Ticket`] represents the read, and a second call joins the first one's
//! arrive   the value was read: it is stored if its ticket still exists, and all waiting calls are notified
//! ```
//!
//! A ticket represents the read of the value that was cold when the ticket was created. An operation that replaces or
//! removes that value (a change, a removal, FLUSHALL) also removes the ticket, under the same lock, and notifies the
//! waiting calls. The result of the read is then dropped, so that no old value is restored.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use super::ShardData;
use super::unsaved::Unsaved;
use crate::entries::external::{ExternalRef, Facts, Record};
use crate::entries::hash::KeyHash;
use crate::entries::table::Position;
use crate::memory::size_class;

/// Returns the approximate memory in bytes of an entry in `copies`: the key, and a slot of a table that is three
/// quarters full.
fn copy_bytes(key: &[u8]) -> usize {
    size_class(key.len().max(1)) + size_of::<(Box<[u8]>, (usize, Record))>() * 4 / 3
}

/// The function that is called when all requested values have been read, or with the reason if a value cannot be read.
type OnEnd = Box<dyn Fn(Option<&str>) + Send + Sync>;

/// A caller that waits until any number of requested values have been read.
pub struct FetchWaiter {
    /// The number of values that are still missing, plus 1 until all values were requested.
    left: AtomicUsize,
    failure: OnceLock<Box<str>>,
    on_end: OnEnd,
}

impl FetchWaiter {
    /// Returns a caller that waits for no value yet. `on_end` is called at most once ([`FetchWaiter::finish_requests`]),
    /// possibly under a shard's lock, so it must not take a shard's lock.
    pub fn new(on_end: impl Fn(Option<&str>) + Send + Sync + 'static) -> Arc<FetchWaiter> {
        Arc::new(FetchWaiter {
            left: AtomicUsize::new(1),
            failure: OnceLock::new(),
            on_end: Box::new(on_end),
        })
    }

    fn expect(&self) {
        self.left.fetch_add(1, Ordering::Relaxed);
    }

    /// Records that the caller has requested all values that it needs. Returns true if all have been read already: then
    /// `on_end` is not called.
    pub fn finish_requests(&self) -> bool {
        // Pairs with the decrement of the thread that has read the last value.
        let is_last = self.left.fetch_sub(1, Ordering::AcqRel) == 1;
        if is_last && let Some(failure) = self.failure.get() {
            (self.on_end)(Some(failure));
            return false;
        }
        is_last
    }

    fn finish_one(&self, failure: Option<&str>) {
        if let Some(failure) = failure {
            // Only the first failure is reported.
            let _ = self.failure.set(failure.into());
        }
        // AcqRel: the thread that calls `on_end` sees the failures recorded by all other threads.
        if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
            (self.on_end)(self.failure.get().map(|failure| &**failure));
        }
    }
}

/// The number of the next ticket. Numbers are unique in a process, so that the result of a late read is never stored
/// for another ticket.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(0);

/// The read of a cold value that is in progress.
struct Ticket {
    name: usize,
    tag: u32,
    key: Box<[u8]>,
    number: u64,
    waiting: Vec<Arc<FetchWaiter>>,
}

/// An order to read a cold value.
#[derive(Debug)]
pub struct FetchOrder {
    /// The shard's name of the key's database ([`ShardData::database_name`]).
    pub database_name: usize,
    /// The hash of the key.
    pub hash: KeyHash,
    /// The key.
    pub key: Box<[u8]>,
    /// The name of the value's encoding before its demotion, which the fetched value has again.
    pub encoding_name: &'static str,
    /// The memory in bytes that the fetched value will take.
    pub memory_bytes: usize,
    /// The record that contains the value.
    pub record: Record,
    pub(super) number: u64,
}

impl FetchOrder {
    fn new(
        database_name: usize,
        hash: KeyHash,
        key: &[u8],
        external: ExternalRef,
        number: u64,
    ) -> FetchOrder {
        FetchOrder {
            database_name,
            hash,
            key: key.into(),
            encoding_name: external.facts.encoding_name(),
            memory_bytes: external.facts.memory_bytes(),
            record: Record::new(external.location),
            number,
        }
    }
}

/// The result of requesting a value.
#[derive(Debug)]
pub enum Requested {
    /// The value is resident, or the key does not exist.
    Resident,
    /// The value was requested before, and its read is in progress.
    Joined,
    /// The caller must read the value.
    Begun(FetchOrder),
}

/// An element of the queue of fetched values: the position of the entry and its eviction clock when the value was
/// queued.
#[derive(Clone, Copy)]
pub(super) struct Returned {
    pub(super) at: Position,
    pub(super) clock: u32,
}

/// The cold values of a database, and its queue of fetched values.
#[derive(Default)]
struct ColdValues {
    count: usize,
    /// The memory in bytes that the cold values would take if they were resident, with their keys.
    bytes: usize,
    /// The queue of fetched values, oldest first. Its elements are hints: entries move when keys are added or removed,
    /// and values may be demoted again.
    returned: VecDeque<Returned>,
}

/// A shard's state of cold values.
#[derive(Default)]
pub(super) struct ColdState {
    /// The cold values of each database, at the index of the shard's name of the database.
    cold: Vec<ColdValues>,
    tickets: Vec<Ticket>,
    /// The records of resident values, by key, each with the shard's name of the key's database. If two databases have
    /// such a value for the same key, the map contains only one of them.
    copies: HashMap<Box<[u8]>, (usize, Record)>,
    /// The approximate memory of `copies` in bytes.
    copies_bytes: usize,
    /// The keys whose values are pinned in memory, by the shard's name of their database; no set is empty.
    pinned: HashMap<usize, HashSet<Box<[u8]>>>,
    /// The changes that the store does not contain yet; `None` if no store has the data set.
    pub(super) unsaved: Option<Box<Unsaved>>,
}

impl ColdState {
    pub(super) fn is_empty(&self) -> bool {
        self.tickets.is_empty()
            && self.copies.is_empty()
            && self.pinned.is_empty()
            && self.unsaved.is_none()
            && !self.has_cold_values()
    }

    /// Counts a value that has become cold; `facts` are its facts.
    pub(super) fn count_in(&mut self, name: usize, facts: Facts) {
        if self.cold.len() <= name {
            self.cold.resize_with(name + 1, ColdValues::default);
        }
        self.cold[name].count += 1;
        self.cold[name].bytes += facts.memory_bytes();
    }

    /// Returns the queue of fetched values of a database.
    pub(super) fn returned_mut(&mut self, name: usize) -> Option<&mut VecDeque<Returned>> {
        self.cold.get_mut(name).map(|cold| &mut cold.returned)
    }

    /// Stops counting a value that is no longer cold; `facts` are its facts.
    pub(super) fn count_out(&mut self, name: usize, facts: Facts) {
        self.cold[name].count -= 1;
        self.cold[name].bytes -= facts.memory_bytes();
    }

    /// Truncates the queue of fetched values of a database to the number of its keys.
    pub(super) fn bound_returned(&mut self, name: usize, keys: usize) {
        let Some(returned) = self.returned_mut(name) else { return };
        returned.truncate(keys);
        if returned.len() * 4 <= returned.capacity() {
            returned.shrink_to(returned.len() * 2);
        }
    }

    pub(super) fn returned_in(&self, name: usize) -> usize {
        self.cold.get(name).map_or(0, |cold| cold.returned.len())
    }

    pub(super) fn cold_in(&self, name: usize) -> usize {
        self.cold.get(name).map_or(0, |cold| cold.count)
    }

    /// Returns whether the shard has cold values.
    #[inline]
    fn has_cold_values(&self) -> bool {
        self.cold.iter().any(|cold| cold.count > 0)
    }

    fn place(&self, name: usize, tag: u32, key: &[u8]) -> Option<usize> {
        self.tickets.iter().position(|ticket| ticket.tag == tag && ticket.name == name && *ticket.key == *key)
    }

    /// Removes the ticket of a key whose cold value was changed or removed, and notifies the waiting calls, which check
    /// the key again.
    pub(super) fn end_ticket(&mut self, name: usize, tag: u32, key: &[u8]) {
        if let Some(at) = self.place(name, tag, key) {
            self.tickets.swap_remove(at).waiting.iter().for_each(|arrival| arrival.finish_one(None));
        }
    }

    /// Resets the state of a database that is emptied: removes the tickets of its keys and notifies the waiting calls.
    pub(super) fn forget_database(&mut self, name: usize) {
        for ticket in self.tickets.extract_if(.., |ticket| ticket.name == name) {
            ticket.waiting.iter().for_each(|arrival| arrival.finish_one(None));
        }
        if let Some(cold) = self.cold.get_mut(name) {
            *cold = ColdValues::default();
        }
        self.pinned.remove(&name);
        if let Some(unsaved) = &mut self.unsaved {
            unsaved.record_emptied(name);
        }
        let bytes = &mut self.copies_bytes;
        self.copies.retain(|key, (other, _)| {
            *bytes -= if *other == name { copy_bytes(key) } else { 0 };
            *other != name
        });
    }

    /// Adds the record of a resident value; returns false if there is already a record for a key with this name.
    pub(super) fn add_copy(&mut self, name: usize, key: &[u8], record: Record) -> bool {
        if self.copies.contains_key(key) {
            return false;
        }
        self.copies.insert(key.into(), (name, record));
        self.copies_bytes += copy_bytes(key);
        true
    }

    /// Removes and returns the record of a resident value.
    pub(super) fn take_copy(&mut self, name: usize, key: &[u8]) -> Option<Record> {
        if self.copies.get(key).is_none_or(|(other, _)| *other != name) {
            return None;
        }
        self.copies_bytes -= copy_bytes(key);
        self.copies.remove(key).map(|(_, record)| record)
    }

    pub(super) fn copy(&self, name: usize, key: &[u8]) -> Option<&Record> {
        self.copies.get(key).filter(|(other, _)| *other == name).map(|(_, record)| record)
    }

    /// Returns the memory of this state in bytes, excluding the entries.
    pub(super) fn bytes(&self) -> usize {
        let returned = self.cold.iter().map(|cold| cold.returned.capacity() * size_of::<Returned>());
        self.copies_bytes
            + returned.sum::<usize>()
            + self.unsaved.as_ref().map_or(0, |unsaved| unsaved.bytes())
    }

    /// Removes the ticket of an order, if it still exists, and returns the calls that wait for its value.
    pub(super) fn take_ticket(&mut self, order: &FetchOrder) -> Option<Vec<Arc<FetchWaiter>>> {
        let at = self.place(order.database_name, order.hash.tag(), &order.key)?;
        (self.tickets[at].number == order.number).then(|| self.tickets.swap_remove(at).waiting)
    }

    pub(super) fn is_pinned(&self, name: usize, key: &[u8]) -> bool {
        self.pinned.get(&name).is_some_and(|keys| keys.contains(key))
    }

    /// Pins the value of a key in memory; returns whether it was not pinned before.
    fn pin(&mut self, name: usize, key: &[u8]) -> bool {
        self.pinned.entry(name).or_default().insert(key.into())
    }

    /// Unpins the value of a key; returns whether it was pinned.
    fn unpin(&mut self, name: usize, key: &[u8]) -> bool {
        let Some(keys) = self.pinned.get_mut(&name) else { return false };
        let was_pinned = keys.remove(key);
        if keys.is_empty() {
            self.pinned.remove(&name);
        }
        was_pinned
    }
}

impl ShardData {
    /// Returns the number of cold values.
    pub fn cold_count(&self) -> usize {
        self.cold_state.as_ref().map_or(0, |cold_state| cold_state.cold.iter().map(|cold| cold.count).sum())
    }

    /// Returns the memory in bytes that the cold values would take if they were resident, with their keys.
    pub fn cold_bytes(&self) -> usize {
        self.cold_state.as_ref().map_or(0, |cold_state| cold_state.cold.iter().map(|cold| cold.bytes).sum())
    }

    /// Returns whether the value of a key is cold, and the key has not expired by `expired_ms`. O(1); a few
    /// instructions while the shard has no cold values.
    #[inline]
    pub fn is_missing(&self, database: usize, hash: KeyHash, key: &[u8], expired_ms: i64) -> bool {
        self.cold_state.as_ref().is_some_and(|cold_state| cold_state.has_cold_values())
            && self.find(database, hash, key).is_some_and(|at| {
                let entry = self.entry(database, at);
                entry.is_cold() && !entry.is_expired(expired_ms)
            })
    }

    /// Requests the value of a key; `arrival`, if any, is notified when the value has been read.
    pub fn request_value(
        &mut self,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        arrival: Option<&Arc<FetchWaiter>>,
    ) -> Requested {
        let Some(at) = self.find(database, hash, key) else { return Requested::Resident };
        let Some(external) = self.entry(database, at).external() else { return Requested::Resident };
        let name = self.database_name(database);
        let cold_state = self.cold_state.get_or_insert_default();
        if let Some(arrival) = arrival {
            arrival.expect();
        }
        if let Some(at) = cold_state.place(name, hash.tag(), key) {
            cold_state.tickets[at].waiting.extend(arrival.cloned());
            return Requested::Joined;
        }
        let number = NEXT_NUMBER.fetch_add(1, Ordering::Relaxed);
        let waiting = arrival.cloned().into_iter().collect();
        cold_state.tickets.push(Ticket { name, tag: hash.tag(), key: key.into(), number, waiting });
        Requested::Begun(FetchOrder::new(name, hash, key, external, number))
    }

    /// Returns an order for a cold value, even if another order for the value exists: the value that is read first is
    /// stored.
    pub fn order_now(&mut self, database: usize, hash: KeyHash, key: &[u8]) -> Option<FetchOrder> {
        match self.request_value(database, hash, key, None) {
            Requested::Resident => None,
            Requested::Begun(order) => Some(order),
            Requested::Joined => {
                let database_name = self.database_name(database);
                let cold_state = self.cold_state.as_ref()?;
                let number = cold_state.tickets[cold_state.place(database_name, hash.tag(), key)?].number;
                let external = self.entry(database, self.find(database, hash, key)?).external()?;
                Some(FetchOrder::new(database_name, hash, key, external, number))
            }
        }
    }

    /// Removes the ticket of an order whose value cannot be read, and notifies the waiting calls of the reason. The
    /// entry does not change.
    pub fn fail(&mut self, order: &FetchOrder, reason: &str) {
        let waiting = self.cold_state.as_mut().and_then(|cold_state| cold_state.take_ticket(order));
        waiting.into_iter().flatten().for_each(|arrival| arrival.finish_one(Some(reason)));
        self.drop_cold_state_if_empty();
    }

    /// Notifies the calls that have waited for a value that it is resident.
    pub(super) fn notify_arrivals(&mut self, waiting: &[Arc<FetchWaiter>]) {
        waiting.iter().for_each(|arrival| arrival.finish_one(None));
    }

    /// Pins the value of a key in memory, or unpins it; returns whether this has changed the state.
    pub fn set_pinned(&mut self, database: usize, hash: KeyHash, key: &[u8], is_pinned: bool) -> bool {
        if is_pinned && self.find(database, hash, key).is_none() {
            return false;
        }
        let name = self.database_name(database);
        let cold_state = self.cold_state.get_or_insert_default();
        let is_new = if is_pinned { cold_state.pin(name, key) } else { cold_state.unpin(name, key) };
        self.drop_cold_state_if_empty();
        is_new
    }

    /// Returns whether the value of a key is pinned in memory.
    pub fn is_pinned(&self, database: usize, key: &[u8]) -> bool {
        let name = self.database_name(database);
        self.cold_state.as_ref().is_some_and(|cold_state| cold_state.is_pinned(name, key))
    }

    /// Unpins the value of a key that is removed.
    #[cold]
    pub(super) fn forget_pin(&mut self, name: usize, key: &[u8]) {
        if let Some(cold_state) = &mut self.cold_state {
            cold_state.unpin(name, key);
        }
        self.drop_cold_state_if_empty();
    }

    /// Returns the number of pinned keys.
    pub fn pinned(&self) -> usize {
        self.cold_state.as_ref().map_or(0, |cold_state| cold_state.pinned.values().map(HashSet::len).sum())
    }

    /// Returns the shard's name of a database: its original number, which SWAPDB does not change.
    pub fn database_name(&self, database: usize) -> usize {
        match database {
            0 => self.first.expiry_name,
            _ => self.others.get(database - 1).map_or(database, |other| other.expiry_name),
        }
    }

    /// Returns the current number of the database with this name.
    pub fn database_of(&self, name: usize) -> Option<usize> {
        self.all_databases().position(|database| database.expiry_name == name)
    }

    pub(super) fn drop_cold_state_if_empty(&mut self) {
        self.cold_state.take_if(|cold_state| cold_state.is_empty());
    }
}
