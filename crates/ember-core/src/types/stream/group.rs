//! A consumer group: how far it has read the stream, and which entries its consumers have yet to acknowledge.
//!
//! # Invariants
//!
//! * Each pending entry is in `pending` once, with the number of its consumer; each consumer has the IDs of its own
//!   pending entries.
//! * A consumer's number is its index in `consumers`; `numbers` maps names to numbers. Numbers of removed consumers are
//!   reused.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::ops::RangeInclusive;
use std::sync::Arc;

use super::StreamId;
use super::log::Log;
use super::tree_share;
use crate::memory::size_class;

/// The number of a consumer in its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsumerNumber(u32);

/// An entry that was delivered and not acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The time of its last delivery, Unix time in ms.
    pub delivered_ms: i64,
    /// The number of its deliveries.
    pub deliveries: u64,
    /// The consumer to which it was last delivered.
    pub consumer: ConsumerNumber,
}

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// The time of the consumer's last attempt to read or claim entries, Unix time in ms.
    pub seen_ms: i64,
    /// The time at which the consumer last received an entry, Unix time in ms; `None` if it never did.
    pub active_ms: Option<i64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Returns the name of the consumer.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// Returns the number of entries that the consumer has yet to acknowledge. O(1).
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the IDs within `ids` of the entries that the consumer has yet to acknowledge, in order. O(log pending +
    /// IDs read).
    pub fn pending(&self, ids: RangeInclusive<StreamId>) -> impl Iterator<Item = StreamId> {
        range_of(&ids).into_iter().flat_map(|ids| self.pending.range(ids)).copied()
    }
}

/// Returns the range if `BTreeMap::range` accepts it: its end must not be before its start.
fn range_of(ids: &RangeInclusive<StreamId>) -> Option<RangeInclusive<StreamId>> {
    (ids.start() <= ids.end()).then(|| ids.clone())
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The greatest ID that was delivered, or the ID that was set instead.
    pub last_id: StreamId,
    /// The number of entries ever added to the stream up to `last_id`; `None` if unknown.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: Vec<Option<Consumer>>,
    numbers: BTreeMap<Arc<[u8]>, ConsumerNumber>,
    /// Bytes of memory of the consumers' names.
    name_bytes: usize,
}

/// Returns the bytes of memory of a consumer's name, with its two reference counts.
fn name_bytes(name: &[u8]) -> usize {
    size_class(name.len() + 2 * size_of::<usize>())
}

impl Group {
    /// Returns a group without consumers.
    pub fn new(last_id: StreamId, entries_read: Option<i64>) -> Group {
        Group {
            last_id,
            entries_read,
            pending: BTreeMap::new(),
            consumers: Vec::new(),
            numbers: BTreeMap::new(),
            name_bytes: 0,
        }
    }

    /// Returns a group without consumers that has read up to `last_id`, with the number of entries read if that is
    /// known without counting.
    pub fn reckoned(log: &Log, last_id: StreamId) -> Group {
        Group::new(last_id, entries_up_to(log, last_id))
    }

    /// Returns the approximate bytes of memory that the group owns. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let per_pending = tree_share(size_of::<(StreamId, Pending)>()) + tree_share(size_of::<StreamId>());
        let per_name = tree_share(size_of::<(Arc<[u8]>, ConsumerNumber)>());
        let consumers = match self.consumers.capacity() {
            0 => 0,
            capacity => size_class(capacity * size_of::<Option<Consumer>>()),
        };
        self.pending.len() * per_pending + self.numbers.len() * per_name + consumers + self.name_bytes
    }

    /// Returns the number of a consumer. O(log consumers).
    pub fn number_of(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.numbers.get(name).copied()
    }

    /// Returns the consumer with a number.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers[number.0 as usize].as_ref().expect("the consumer of a number exists")
    }

    /// Returns a mutable reference to the consumer with a number.
    pub fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers[number.0 as usize].as_mut().expect("the consumer of a number exists")
    }

    /// Returns all consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.numbers.values().map(|&number| self.consumer(number))
    }

    /// Adds a consumer whose name does not exist yet. O(consumers) at worst.
    pub fn add_consumer(&mut self, name: &[u8], now_ms: i64) -> ConsumerNumber {
        let shared: Arc<[u8]> = name.into();
        let consumer = Consumer {
            name: Arc::clone(&shared),
            seen_ms: now_ms,
            active_ms: None,
            pending: BTreeSet::new(),
        };
        let free = if self.numbers.len() < self.consumers.len() {
            self.consumers.iter().position(Option::is_none)
        } else {
            None
        };
        let at = free.unwrap_or_else(|| {
            self.consumers.push(None);
            self.consumers.len() - 1
        });
        let number = ConsumerNumber(u32::try_from(at).expect("names of 2^32 consumers fit no memory"));
        self.consumers[at] = Some(consumer);
        self.numbers.insert(shared, number);
        self.name_bytes += name_bytes(name);
        number
    }

    /// Removes a consumer and its pending entries. Returns their number, or `None` if it does not exist. O(its pending
    /// entries).
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.numbers.remove(name)?;
        self.name_bytes -= name_bytes(name);
        let consumer = self.consumers[number.0 as usize].take().expect("names are those of consumers");
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// Returns the number of pending entries. O(1).
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// Returns the pending entries with IDs in `ids`, in order. O(log pending + read).
    pub fn pending(
        &self,
        ids: RangeInclusive<StreamId>,
    ) -> impl DoubleEndedIterator<Item = (StreamId, &Pending)> {
        range_of(&ids).into_iter().flat_map(|ids| self.pending.range(ids)).map(|(&id, pending)| (id, pending))
    }

    /// Returns the state of a pending entry. O(log pending).
    pub fn pending_entry(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Makes an entry pending, or replaces its state and consumer, if it is pending already. O(log pending).
    pub fn set_pending(&mut self, id: StreamId, pending: Pending) {
        let before = self.pending.insert(id, pending);
        if before.is_some_and(|before| before.consumer == pending.consumer) {
            return;
        }
        if let Some(before) = before {
            self.consumer_mut(before.consumer).pending.remove(&id);
        }
        self.consumer_mut(pending.consumer).pending.insert(id);
    }

    /// Records that an entry is no longer pending. Returns false if it was not pending. O(log pending).
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.consumer_mut(pending.consumer).pending.remove(&id);
        true
    }

    /// Records the delivery of the entry of `log` with this ID to a consumer, if it is the first delivery to the group.
    pub fn advance(&mut self, log: &Log, id: StreamId) {
        if id <= self.last_id {
            return;
        }
        self.entries_read = match self.entries_read {
            Some(read) if self.last_id >= log.first_id() && !has_tombstones_from(log, self.last_id) => {
                Some(read.wrapping_add(1))
            }
            read if log.entries_added() == 0 => read,
            _ => entries_up_to(log, id),
        };
        self.last_id = id;
    }

    /// Returns the number of entries of `log` not delivered yet; `None` if deletions make it unknown. O(1).
    pub fn lag(&self, log: &Log) -> Option<i64> {
        let added = log.entries_added() as i64;
        if log.entries_added() == 0 || log.is_empty() {
            Some(0)
        } else if self.last_id < log.first_id() && log.max_deleted_id() < log.first_id() {
            Some(log.len() as i64)
        } else {
            let known = self.entries_read.filter(|_| !has_tombstones_from(log, self.last_id));
            known.or_else(|| entries_up_to(log, self.last_id)).map(|read| added.wrapping_sub(read))
        }
    }

    /// Panics if an invariant is broken. For tests.
    pub(super) fn check_invariants(&self) {
        assert_eq!(self.consumers.iter().flatten().count(), self.numbers.len());
        for (name, &number) in &self.numbers {
            assert_eq!(self.consumer(number).name(), &**name);
            for id in &self.consumer(number).pending {
                assert_eq!(self.pending[id].consumer, number);
            }
        }
        let of_consumers: usize = self.consumers().map(Consumer::pending_count).sum();
        assert_eq!(of_consumers, self.pending.len());
        assert_eq!(
            self.name_bytes,
            self.consumers().map(|consumer| name_bytes(consumer.name())).sum::<usize>()
        );
    }
}

/// Returns whether an entry with ID `start` or a greater one may have been deleted from the middle of the stream.
fn has_tombstones_from(log: &Log, start: StreamId) -> bool {
    !log.is_empty() && log.max_deleted_id() != StreamId::MIN && start <= log.max_deleted_id()
}

/// Returns the number of entries added up to this ID, where it is known without counting: at the stream's ends, or
/// before its beginning, if nothing was deleted in between.
fn entries_up_to(log: &Log, id: StreamId) -> Option<i64> {
    let (added, len) = (log.entries_added() as i64, log.len() as i64);
    if added == 0 {
        return Some(0);
    }
    if len == 0 && id <= log.last_id() {
        return Some(added);
    }
    if id != StreamId::MIN && id < log.max_deleted_id() {
        return None;
    }
    if id >= log.last_id() {
        return (id == log.last_id()).then_some(added);
    }
    if log.max_deleted_id() == StreamId::MIN || log.max_deleted_id() < log.first_id() {
        if id < log.first_id() {
            return Some(added.wrapping_sub(len));
        }
        if id == log.first_id() {
            return Some(added.wrapping_sub(len).wrapping_add(1));
        }
    }
    None
}

/// The consumer groups of a stream, by name.
#[derive(Debug, Default)]
pub struct Groups {
    groups: BTreeMap<Box<[u8]>, Group>,
    memory_bytes: usize,
}

impl Clone for Groups {
    fn clone(&self) -> Groups {
        // A copy has no spare capacity.
        let groups = self.groups.clone();
        let memory_bytes = groups.iter().map(|(name, group)| group_bytes(name, group)).sum();
        Groups { groups, memory_bytes }
    }
}

/// Returns the bytes of memory of a group and its name.
fn group_bytes(name: &[u8], group: &Group) -> usize {
    size_class(name.len()) + tree_share(size_of::<(Box<[u8]>, Group)>()) + group.memory_bytes()
}

impl Groups {
    /// Returns the number of groups. O(1).
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Returns the bytes of memory of the groups. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// Returns the group with this name. O(log groups).
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// Returns all groups in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Adds a group. Returns false if the name exists already.
    pub fn create(&mut self, name: &[u8], group: Group) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.memory_bytes += group_bytes(name, &group);
        self.groups.insert(name.into(), group);
        true
    }

    /// Removes a group. Returns false if it does not exist.
    pub fn destroy(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        self.memory_bytes -= group_bytes(name, &group);
        true
    }

    /// Lets `edit` change an existing group.
    pub fn edit<R>(&mut self, name: &[u8], edit: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.groups.get_mut(name)?;
        let before = group.memory_bytes();
        let result = edit(group);
        self.memory_bytes = self.memory_bytes - before + group.memory_bytes();
        Some(result)
    }

    /// Records in all groups that an entry is no longer pending. Calls `visit` with the names of the groups in which it
    /// was pending. O(groups · log pending).
    pub fn acknowledge_everywhere(&mut self, id: StreamId, mut visit: impl FnMut(&[u8])) {
        for (name, group) in &mut self.groups {
            let before = group.memory_bytes();
            if group.acknowledge(id) {
                visit(name);
            }
            self.memory_bytes = self.memory_bytes - before + group.memory_bytes();
        }
    }

    /// Records in all groups that the entries from `begin` up to `end` are no longer pending. Calls `acknowledged` with
    /// the group's name and the ID for each of them. O(groups · log pending + removed · log pending).
    pub fn acknowledge_range(
        &mut self,
        begin: StreamId,
        end: Bound<StreamId>,
        mut acknowledged: impl FnMut(&[u8], StreamId),
    ) {
        let is_empty = match end {
            Bound::Excluded(end) => end <= begin,
            Bound::Included(end) => end < begin,
            Bound::Unbounded => false,
        };
        if is_empty {
            return;
        }
        for (name, group) in &mut self.groups {
            let ids: Vec<StreamId> =
                group.pending.range((Bound::Included(begin), end)).map(|(&id, _)| id).collect();
            let before = group.memory_bytes();
            for id in ids {
                group.acknowledge(id);
                acknowledged(name, id);
            }
            self.memory_bytes = self.memory_bytes - before + group.memory_bytes();
        }
    }

    /// Returns whether a group has yet to read the entry with this ID or to acknowledge it. O(groups · log pending).
    pub fn need(&self, id: StreamId) -> bool {
        self.groups.values().any(|group| group.last_id < id || group.pending.contains_key(&id))
    }

    /// Panics if an invariant is broken. For tests.
    pub(super) fn check_invariants(&self) {
        self.groups.values().for_each(Group::check_invariants);
        let sum: usize = self.groups.iter().map(|(name, group)| group_bytes(name, group)).sum();
        assert_eq!(sum, self.memory_bytes);
    }
}
