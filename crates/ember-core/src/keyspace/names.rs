//! The sorted names of a database's keys, for a store that returns keys in order.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::memory::size_class;

/// The bytes of a name in the tree in addition to those of the name itself: a pointer and a length in nodes that are
/// about two thirds full.
const NAME_OVERHEAD_BYTES: usize = 24;

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
