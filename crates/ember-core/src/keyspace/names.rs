//! The records of a shard about the keys of a database, in addition to their entries: sorted names, for a store that
//! returns keys in order; and the number of keys in each slot, for a node of a cluster.

use std::collections::BTreeSet;
use std::ops::Bound;

use bitflags::bitflags;
use ember_cluster::slots::slot_of;

use crate::entries::hash::{SLOTS_PER_SHARD, index_in_shard};
use crate::memory::size_class;

/// The bytes of a name in the tree in addition to those of the name itself: a pointer and a length in nodes that are
/// about two thirds full.
const NAME_OVERHEAD_BYTES: usize = 24;

bitflags! {
    /// The kinds of records that a shard keeps about its keys.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct RecordKinds: u8 {
        /// Their names, sorted.
        const NAMES = 1;
        /// The number of keys in each cluster slot.
        const SLOTS = 2;
    }
}

/// The records about the keys of a database in one shard. Both kinds are in one allocation, so that a shard that records
/// nothing tests one pointer.
pub(super) struct KeyRecords {
    names: Option<OrderedNames>,
    /// The number of keys in each slot of the shard, at its [`index_in_shard`].
    slots: Option<Box<[u32; SLOTS_PER_SHARD]>>,
}

impl KeyRecords {
    /// Returns records of these kinds without keys.
    pub(super) fn new(kinds: RecordKinds) -> KeyRecords {
        KeyRecords {
            names: kinds.contains(RecordKinds::NAMES).then(OrderedNames::default),
            slots: kinds.contains(RecordKinds::SLOTS).then(|| Box::new([0; SLOTS_PER_SHARD])),
        }
    }

    /// Records a new key.
    pub(super) fn add(&mut self, key: &[u8]) {
        if let Some(names) = &mut self.names {
            names.add(key);
        }
        if let Some(slots) = &mut self.slots {
            slots[index_in_shard(slot_of(key))] += 1;
        }
    }

    /// Records that a key was removed.
    pub(super) fn remove(&mut self, key: &[u8]) {
        if let Some(names) = &mut self.names {
            names.remove(key);
        }
        if let Some(slots) = &mut self.slots {
            slots[index_in_shard(slot_of(key))] -= 1;
        }
    }

    /// Returns the sorted names, if they are recorded.
    pub(super) fn names(&self) -> Option<&OrderedNames> {
        self.names.as_ref()
    }

    /// Returns the number of keys in a slot of the shard; 0 if they are not counted.
    pub(super) fn keys_in_slot(&self, slot: u16) -> usize {
        self.slots.as_ref().map_or(0, |slots| slots[index_in_shard(slot)] as usize)
    }

    /// Returns the memory of the records in bytes.
    pub(super) fn bytes(&self) -> usize {
        let names = self.names.as_ref().map_or(0, OrderedNames::bytes);
        names + self.slots.as_ref().map_or(0, |slots| size_of_val(&**slots))
    }

    /// Checks the numbers of keys in slots, for tests. O(keys).
    ///
    /// # Panics
    /// Panics if a number is wrong.
    pub(super) fn check_counts<'k>(&self, keys: impl Iterator<Item = &'k [u8]>) {
        let Some(slots) = &self.slots else { return };
        let mut counted = [0; SLOTS_PER_SHARD];
        keys.for_each(|key| counted[index_in_shard(slot_of(key))] += 1);
        assert!(**slots == counted, "the keys of each slot are counted");
    }
}

/// The names of keys, sorted bytewise.
#[derive(Default)]
pub struct OrderedNames {
    names: BTreeSet<Box<[u8]>>,
    /// The approximate memory of the names in bytes.
    bytes: usize,
}

fn bytes_of(name: &[u8]) -> usize {
    size_class(name.len().max(1)) + NAME_OVERHEAD_BYTES
}

impl OrderedNames {
    /// Adds the name of a new key. O(log n).
    pub(super) fn add(&mut self, name: &[u8]) {
        if self.names.insert(name.into()) {
            self.bytes += bytes_of(name);
        }
    }

    /// Removes the name of a removed key. O(log n).
    pub(super) fn remove(&mut self, name: &[u8]) {
        if self.names.remove(name) {
            self.bytes -= bytes_of(name);
        }
    }

    /// Returns the approximate memory of the names in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the number of names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the names that begin with `prefix`, in order. O(log n) for the first name.
    pub fn starting_with<'n>(&'n self, prefix: &'n [u8]) -> impl Iterator<Item = &'n [u8]> {
        let range = self.names.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        range.map(|name| &**name).take_while(move |name| name.starts_with(prefix))
    }
}
