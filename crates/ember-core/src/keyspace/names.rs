//! The names of a database's keys in order, for a store that answers in order.

use std::collections::BTreeSet;
use std::ops::Bound;

use crate::memory::size_class;

/// What a name takes in the tree beside its own bytes: a pointer and a length in nodes that are about two thirds full.
const NAME_OVERHEAD_BYTES: usize = 24;

/// Names in the order of their bytes.
#[derive(Default)]
pub struct OrderedNames {
    names: BTreeSet<Box<[u8]>>,
    /// Bytes of memory that the names take, about.
    bytes: usize,
}

fn bytes_of(name: &[u8]) -> usize {
    size_class(name.len().max(1)) + NAME_OVERHEAD_BYTES
}

impl OrderedNames {
    /// Adds the name of a key that has come. O(log n).
    pub(super) fn add(&mut self, name: &[u8]) {
        if self.names.insert(name.into()) {
            self.bytes += bytes_of(name);
        }
    }

    /// Removes the name of a key that has gone. O(log n).
    pub(super) fn remove(&mut self, name: &[u8]) {
        if self.names.remove(name) {
            self.bytes -= bytes_of(name);
        }
    }

    /// Bytes of memory that it takes, about.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of names.
    pub(super) fn len(&self) -> usize {
        self.names.len()
    }

    /// The names that begin with `prefix`, in order. O(log n) for the first.
    pub fn starting_with<'n>(&'n self, prefix: &'n [u8]) -> impl Iterator<Item = &'n [u8]> {
        let range = self.names.range::<[u8], _>((Bound::Included(prefix), Bound::Unbounded));
        range.map(|name| &**name).take_while(move |name| name.starts_with(prefix))
    }
}
