//! A consumer group: how far it has read the stream, and which entries its consumers have yet to acknowledge.
//!
//! # Invariants
//!
//! * What is pending stands once, in `pending`, with the number of its consumer; each consumer has the IDs of its own.
//! * A consumer's number is its index in `consumers`; `numbers` finds it by name. Numbers of consumers that are gone are
//!   given again.

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
    /// When it was delivered last, Unix time in ms.
    pub delivered_ms: i64,
    /// How often it was delivered.
    pub deliveries: u64,
    /// To whom it was delivered last.
    pub consumer: ConsumerNumber,
}

/// A consumer.
#[derive(Clone, Debug)]
pub struct Consumer {
    name: Arc<[u8]>,
    /// When it last tried to do something, Unix time in ms.
    pub seen_ms: i64,
    /// When it last got an entry, Unix time in ms; `None` if it never did.
    pub active_ms: Option<i64>,
    pending: BTreeSet<StreamId>,
}

impl Consumer {
    /// Its name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// How many entries it has yet to acknowledge. O(1).
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// The IDs in `ids` of entries it has yet to acknowledge, in order. O(log pending + IDs read).
    pub fn pending(&self, ids: RangeInclusive<StreamId>) -> impl Iterator<Item = StreamId> {
        range_of(&ids).into_iter().flat_map(|ids| self.pending.range(ids)).copied()
    }
}

/// A range that a tree takes: one whose end is not before its start.
fn range_of(ids: &RangeInclusive<StreamId>) -> Option<RangeInclusive<StreamId>> {
    (ids.start() <= ids.end()).then(|| ids.clone())
}

/// A consumer group.
#[derive(Clone, Debug)]
pub struct Group {
    /// The greatest ID that was delivered, or what was set instead.
    pub last_id: StreamId,
    /// How many entries of the stream come up to `last_id`, counting from the first one ever added; `None` if unknown.
    pub entries_read: Option<i64>,
    pending: BTreeMap<StreamId, Pending>,
    consumers: Vec<Option<Consumer>>,
    numbers: BTreeMap<Arc<[u8]>, ConsumerNumber>,
    /// Memory behind the names of consumers.
    name_bytes: usize,
}

/// Memory behind the name of a consumer: the bytes and the two counts of their owners.
fn name_bytes(name: &[u8]) -> usize {
    size_class(name.len() + 2 * size_of::<usize>())
}

impl Group {
    /// A group without consumers.
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

    /// A group without consumers that has read up to `last_id`; how many entries of `log` that are is known where it can be
    /// without counting.
    pub fn reckoned(log: &Log, last_id: StreamId) -> Group {
        Group::new(last_id, entries_up_to(log, last_id))
    }

    /// Bytes of memory that the group owns, about. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let per_pending = tree_share(size_of::<(StreamId, Pending)>()) + tree_share(size_of::<StreamId>());
        let per_name = tree_share(size_of::<(Arc<[u8]>, ConsumerNumber)>());
        let consumers = match self.consumers.capacity() {
            0 => 0,
            capacity => size_class(capacity * size_of::<Option<Consumer>>()),
        };
        self.pending.len() * per_pending + self.numbers.len() * per_name + consumers + self.name_bytes
    }

    /// The number of a consumer. O(log consumers).
    pub fn number_of(&self, name: &[u8]) -> Option<ConsumerNumber> {
        self.numbers.get(name).copied()
    }

    /// The consumer with a number.
    pub fn consumer(&self, number: ConsumerNumber) -> &Consumer {
        self.consumers[number.0 as usize].as_ref().expect("a number is that of a consumer that is there")
    }

    /// The same, to be changed.
    pub fn consumer_mut(&mut self, number: ConsumerNumber) -> &mut Consumer {
        self.consumers[number.0 as usize].as_mut().expect("a number is that of a consumer that is there")
    }

    /// All consumers in the order of their names.
    pub fn consumers(&self) -> impl ExactSizeIterator<Item = &Consumer> {
        self.numbers.values().map(|&number| self.consumer(number))
    }

    /// Adds a consumer whose name is not taken. O(consumers) at worst.
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

    /// Removes a consumer with all it has pending; how much that was, or `None` if it was not there. O(pending of it).
    pub fn remove_consumer(&mut self, name: &[u8]) -> Option<usize> {
        let number = self.numbers.remove(name)?;
        self.name_bytes -= name_bytes(name);
        let consumer = self.consumers[number.0 as usize].take().expect("names are those of consumers");
        for id in &consumer.pending {
            self.pending.remove(id);
        }
        Some(consumer.pending.len())
    }

    /// How many entries are pending. O(1).
    pub fn pending_count(&self) -> usize {
        self.pending.len()
    }

    /// What is pending with IDs in `ids`, in order. O(log pending + read).
    pub fn pending(
        &self,
        ids: RangeInclusive<StreamId>,
    ) -> impl DoubleEndedIterator<Item = (StreamId, &Pending)> {
        range_of(&ids).into_iter().flat_map(|ids| self.pending.range(ids)).map(|(&id, pending)| (id, pending))
    }

    /// What is known of a pending entry. O(log pending).
    pub fn pending_entry(&self, id: StreamId) -> Option<&Pending> {
        self.pending.get(&id)
    }

    /// Makes an entry pending, or another's: `pending` says whose it is and how. O(log pending).
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

    /// Notes that an entry is no longer pending; false if it was not. O(log pending).
    pub fn acknowledge(&mut self, id: StreamId) -> bool {
        let Some(pending) = self.pending.remove(&id) else { return false };
        self.consumer_mut(pending.consumer).pending.remove(&id);
        true
    }

    /// Notes that the entry of `log` with this ID is delivered to one of the consumers, if it is the first time.
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

    /// How many entries of `log` were not delivered yet; `None` if deletions make that unknown. O(1).
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

/// Whether an entry with an ID from `start` on may have been deleted from the midst of the others.
fn has_tombstones_from(log: &Log, start: StreamId) -> bool {
    !log.is_empty() && log.max_deleted_id() != StreamId::MIN && start <= log.max_deleted_id()
}

/// How many entries were added up to the one with this ID, where that is known without counting: at the stream's ends,
/// or before its beginning, if nothing was deleted from its midst.
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
        // A copy has no more room than it needs.
        let groups = self.groups.clone();
        let memory_bytes = groups.iter().map(|(name, group)| group_bytes(name, group)).sum();
        Groups { groups, memory_bytes }
    }
}

/// Bytes of memory of a group with its name.
fn group_bytes(name: &[u8], group: &Group) -> usize {
    size_class(name.len()) + tree_share(size_of::<(Box<[u8]>, Group)>()) + group.memory_bytes()
}

impl Groups {
    /// How many groups there are. O(1).
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Bytes of memory behind the groups. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.memory_bytes
    }

    /// The group with this name. O(log groups).
    pub fn get(&self, name: &[u8]) -> Option<&Group> {
        self.groups.get(name)
    }

    /// All groups in the order of their names.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&[u8], &Group)> {
        self.groups.iter().map(|(name, group)| (&**name, group))
    }

    /// Adds a group; false if the name is taken.
    pub fn create(&mut self, name: &[u8], group: Group) -> bool {
        if self.groups.contains_key(name) {
            return false;
        }
        self.memory_bytes += group_bytes(name, &group);
        self.groups.insert(name.into(), group);
        true
    }

    /// Removes a group; false if it is not there.
    pub fn destroy(&mut self, name: &[u8]) -> bool {
        let Some(group) = self.groups.remove(name) else { return false };
        self.memory_bytes -= group_bytes(name, &group);
        true
    }

    /// Lets `edit` change a group that is there.
    pub fn edit<R>(&mut self, name: &[u8], edit: impl FnOnce(&mut Group) -> R) -> Option<R> {
        let group = self.groups.get_mut(name)?;
        let before = group.memory_bytes();
        let result = edit(group);
        self.memory_bytes = self.memory_bytes - before + group.memory_bytes();
        Some(result)
    }

    /// Notes in all groups that an entry is no longer pending. `told` gets the names of those where it was. O(groups · log
    /// pending).
    pub fn acknowledge_everywhere(&mut self, id: StreamId, mut told: impl FnMut(&[u8])) {
        for (name, group) in &mut self.groups {
            let before = group.memory_bytes();
            if group.acknowledge(id) {
                told(name);
            }
            self.memory_bytes = self.memory_bytes - before + group.memory_bytes();
        }
    }

    /// The same for all entries from `begin` up to `end`. `acknowledged` gets the name of the group and the ID of each.
    /// O(groups · log pending + removed · log pending).
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

    /// Whether a group has yet to read the entry with this ID or to acknowledge it. O(groups · log pending).
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
