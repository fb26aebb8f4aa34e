//! A node of a large list: a listpack of a few kilobytes, or one large element.

use std::sync::Arc;

use super::End;
use super::element::{Element, Needle, NewElement};
use crate::keyspace::entry::size_class;
use crate::types::listpack::{self, Listpack};

/// What Redis adds to the length of an element when it asks whether a node has room for it.
const ENTRY_OVERHEAD_BYTES: usize = 8;

/// The bytes of a node whose size is given as a number of elements may not exceed this, as in Redis.
const COUNTED_BYTES_MAX: usize = 8192;

/// The bytes that `list-max-listpack-size` -1 stands for; each step down doubles them.
const SIZED_BYTES_MIN: usize = 4096;

/// The lowest `list-max-listpack-size` that differs from the one above it.
const LEVEL_LOWEST: i64 = -5;

/// Two numbers and the bytes behind an `Arc<Vec<u8>>` before the vector's own.
const SHARED_BYTES: usize = 2 * size_of::<usize>() + size_of::<Vec<u8>>();

/// How much a node may hold: `list-max-listpack-size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimit {
    bytes_max: usize,
    /// `usize::MAX` where the limit is one of bytes.
    count_max: usize,
}

impl NodeLimit {
    /// The limit that `list-max-listpack-size` means: -1 to -5 are 4, 8, 16, 32 and 64 KiB, a positive number counts
    /// elements.
    pub fn new(list_max_listpack_size: i64) -> NodeLimit {
        match usize::try_from(list_max_listpack_size) {
            Ok(count) => NodeLimit { bytes_max: COUNTED_BYTES_MAX, count_max: count.max(1) },
            Err(_) => {
                let level = -1 - list_max_listpack_size.max(LEVEL_LOWEST);
                NodeLimit { bytes_max: SIZED_BYTES_MIN << level, count_max: usize::MAX }
            }
        }
    }

    /// A limit of bytes too small for the parameter, so that tests need not fill kilobytes.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes_max: usize) -> NodeLimit {
        NodeLimit { bytes_max, count_max: usize::MAX }
    }

    /// Whether so much is too much for a node.
    pub(super) fn is_exceeded_by(self, bytes: usize, count: usize) -> bool {
        bytes > self.bytes_max || count > self.count_max
    }

    /// Whether so little may leave the form of nodes after a removal: half a node, so that the form does not change with
    /// every removal and addition.
    pub(super) fn half_fits(self, bytes: usize, count: usize) -> bool {
        if self.count_max == usize::MAX { bytes <= self.bytes_max / 2 } else { count <= self.count_max / 2 }
    }

    /// Whether an element of `bytes` is kept outside of listpacks.
    pub(super) fn is_large(self, bytes: usize) -> bool {
        bytes > self.bytes_max
    }
}

/// A node: never empty but while its list is edited.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Elements in a listpack.
    Packed(Listpack),
    /// One element that is too large for one.
    Large(Arc<Vec<u8>>),
}

impl Node {
    /// A node of one element.
    pub(super) fn of(element: NewElement<'_>, limit: NodeLimit) -> Node {
        if limit.is_large(element.bytes().len()) {
            return Node::Large(element.into_shared());
        }
        let mut packed = Listpack::new();
        packed.push_back(element.bytes());
        Node::Packed(packed)
    }

    pub(super) fn len(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.len(),
            Node::Large(_) => 1,
        }
    }

    /// The heap bytes it owns.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.memory_bytes(),
            Node::Large(bytes) => size_class(SHARED_BYTES) + size_class(bytes.capacity()),
        }
    }

    /// Its listpack, if it has room for an element of `bytes`.
    pub(super) fn with_room(&mut self, bytes: usize, limit: NodeLimit) -> Option<&mut Listpack> {
        match self {
            Node::Packed(packed)
                if !limit.is_large(bytes)
                    && !limit.is_exceeded_by(
                        packed.len_bytes() + bytes + ENTRY_OVERHEAD_BYTES,
                        packed.len() + 1,
                    ) =>
            {
                Some(packed)
            }
            _ => None,
        }
    }

    /// Removes `count` elements, which it has, from `index` on.
    pub(super) fn remove_range(&mut self, index: usize, count: usize) {
        match self {
            Node::Packed(packed) => {
                if let Some(offset) = packed.nth(index) {
                    packed.remove_range(offset, count);
                }
            }
            Node::Large(_) => *self = Node::Packed(Listpack::new()),
        }
    }

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first; how many there were.
    pub(super) fn remove_matching(&mut self, needle: &Needle<'_>, from: End, count: usize) -> usize {
        match self {
            Node::Packed(packed) => remove_in_listpack(packed, needle, from, count),
            Node::Large(bytes) if needle.bytes() == bytes.as_slice() => {
                *self = Node::Packed(Listpack::new());
                1
            }
            Node::Large(_) => 0,
        }
    }

    /// Calls `visit` for `count` elements, which it has, from `index` on.
    #[inline]
    pub(super) fn visit<'a>(&'a self, index: usize, count: usize, visit: &mut impl FnMut(Element<'a>)) {
        match self {
            Node::Packed(packed) => {
                if let Some(offset) = packed.nth(index) {
                    packed.iter_from(offset).take(count).for_each(|element| visit(element.into()));
                }
            }
            Node::Large(bytes) => visit(Element::Large(bytes)),
        }
    }

    /// The elements in order, from either end.
    #[inline]
    pub(super) fn iter(&self) -> NodeIter<'_> {
        match self {
            Node::Packed(packed) => NodeIter::Packed(packed.iter()),
            Node::Large(bytes) => NodeIter::Large(Some(bytes)),
        }
    }
}

/// Removes up to `count` elements equal to `needle` from a listpack, those nearest to `from` first; how many there were.
/// O(bytes), without a write if there are none.
pub(super) fn remove_in_listpack(
    packed: &mut Listpack,
    needle: &Needle<'_>,
    from: End,
    count: usize,
) -> usize {
    let matches = packed.iter().filter(|&element| needle.matches(element.into())).count();
    let removed = matches.min(count);
    if removed == 0 {
        return 0;
    }
    // Matches that stay before the first that goes.
    let spared = if from == End::Front { 0 } else { matches - removed };
    let mut seen = 0;
    packed.retain(|element| {
        if !needle.matches(element.into()) {
            return true;
        }
        seen += 1;
        seen <= spared || seen > spared + removed
    });
    removed
}

/// The elements of a node, from either end.
#[derive(Clone, Debug)]
pub(super) enum NodeIter<'a> {
    /// Those of a listpack.
    Packed(listpack::Iter<'a>),
    /// One or none.
    Large(Option<&'a Arc<Vec<u8>>>),
}

impl<'a> Iterator for NodeIter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        match self {
            NodeIter::Packed(elements) => elements.next().map(Element::from),
            NodeIter::Large(element) => element.take().map(Element::Large),
        }
    }
}

impl<'a> DoubleEndedIterator for NodeIter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Element<'a>> {
        match self {
            NodeIter::Packed(elements) => elements.next_back().map(Element::from),
            NodeIter::Large(element) => element.take().map(Element::Large),
        }
    }
}
