//! A node of a large list: a listpack of a few kilobytes, compressed or not, or one large element.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::End;
use super::compressed::Compressed;
use super::element::{Element, Needle, NewElement};
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::limits::EncodingLimits;
use crate::types::listpack::Listpack;

/// The bytes that Redis adds to the length of an element when it checks whether a node has space for it.
const ENTRY_OVERHEAD_BYTES: usize = 8;

/// The maximum size in bytes of a node whose limit is a number of elements, as in Redis.
const COUNTED_BYTES_MAX: usize = 8192;

/// The size in bytes that `list-max-listpack-size` -1 stands for; each lower value doubles it.
const SIZED_BYTES_MIN: usize = 4096;

/// The lowest effective `list-max-listpack-size`; lower values have the same effect.
const LEVEL_LOWEST: i64 = -5;

/// The size in bytes of the two counters and the vector of an `Arc<Vec<u8>>`, excluding the vector's buffer.
const SHARED_BYTES: usize = 2 * size_of::<usize>() + size_of::<Vec<u8>>();

/// The size in bytes above which elements are stored outside of listpacks, whatever the configuration. One limit per
/// process: tests lower it, so that they do not need large elements.
static LARGE_ELEMENT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Makes lists store elements of more than `bytes` bytes outside of listpacks from now on.
pub fn set_large_element_bytes(bytes: usize) {
    LARGE_ELEMENT_BYTES.store(bytes, Ordering::Relaxed);
}

/// The size limit of nodes, and which nodes are compressed: `list-max-listpack-size`, `list-compress-depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimit {
    bytes_max: usize,
    /// The size in bytes above which an element gets a node of its own.
    element_bytes_max: usize,
    /// The maximum number of elements of a node; `usize::MAX` if the limit is a number of bytes.
    count_max: usize,
    /// The number of nodes at each end that are not compressed; 0 disables compression.
    pub(super) compress_depth: usize,
}

impl NodeLimit {
    /// Returns the limit that the configuration sets.
    pub fn of(limits: &EncodingLimits) -> NodeLimit {
        NodeLimit {
            compress_depth: limits.list_compress_depth,
            element_bytes_max: LARGE_ELEMENT_BYTES.load(Ordering::Relaxed),
            ..NodeLimit::new(limits.list_max_listpack_size)
        }
    }

    /// Returns the limit for a `list-max-listpack-size`: -1 to -5 are 4, 8, 16, 32 and 64 KiB, a positive number counts
    /// elements. No node is compressed.
    pub fn new(list_max_listpack_size: i64) -> NodeLimit {
        let (bytes_max, count_max) = match usize::try_from(list_max_listpack_size) {
            Ok(count) => (COUNTED_BYTES_MAX, count.max(1)),
            Err(_) => {
                let level = -1 - list_max_listpack_size.max(LEVEL_LOWEST);
                (SIZED_BYTES_MIN << level, usize::MAX)
            }
        };
        NodeLimit { bytes_max, element_bytes_max: usize::MAX, count_max, compress_depth: 0 }
    }

    /// Returns a limit in bytes that is too small for the parameter, so that tests need not fill kilobytes.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes_max: usize) -> NodeLimit {
        NodeLimit { bytes_max, element_bytes_max: usize::MAX, count_max: usize::MAX, compress_depth: 0 }
    }

    /// Returns the same limit with another depth.
    #[cfg(test)]
    pub(super) fn with_depth(self, compress_depth: usize) -> NodeLimit {
        NodeLimit { compress_depth, ..self }
    }

    /// Returns whether this size exceeds the limit of a node.
    pub(super) fn is_exceeded_by(self, bytes: usize, count: usize) -> bool {
        bytes > self.bytes_max || count > self.count_max
    }

    /// Returns whether this size permits a change from nodes to a listpack after a removal: at most half a node, so
    /// that the form does not change with every removal and addition.
    pub(super) fn half_fits(self, bytes: usize, count: usize) -> bool {
        if self.count_max == usize::MAX { bytes <= self.bytes_max / 2 } else { count <= self.count_max / 2 }
    }

    /// Returns whether an element of `bytes` bytes is stored outside of listpacks.
    pub(super) fn is_large(self, bytes: usize) -> bool {
        bytes > self.bytes_max.min(self.element_bytes_max)
    }
}

/// A node: never empty except while its list is edited.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Elements in a listpack.
    Packed(Listpack),
    /// Elements in a compressed listpack.
    Compressed(Compressed),
    /// One element that is too large for a listpack.
    Large(Arc<Vec<u8>>),
}

impl Node {
    /// Returns a node of one element.
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
            Node::Compressed(compressed) => compressed.len(),
            Node::Large(_) => 1,
        }
    }

    /// Returns the heap bytes that the node owns.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.memory_bytes(),
            Node::Compressed(compressed) => compressed.memory_bytes(),
            Node::Large(bytes) => size_class(SHARED_BYTES) + size_class(bytes.capacity()),
        }
    }

    /// Moves the node's memory to another allocation, if that is worth it, except a large element, which may be shared.
    pub(super) fn move_to(&mut self, mover: &mut Mover<'_>) {
        match self {
            Node::Packed(packed) => packed.move_to(mover),
            Node::Compressed(compressed) => compressed.move_to(mover),
            Node::Large(_) => {}
        }
    }

    /// Returns bytes and elements of the node's listpack, compressed or not, if it has one.
    pub(super) fn packed_size(&self) -> Option<(usize, usize)> {
        match self {
            Node::Packed(packed) => Some((packed.len_bytes(), packed.len())),
            Node::Compressed(compressed) => Some((compressed.len_bytes(), compressed.len())),
            Node::Large(_) => None,
        }
    }

    /// Returns the node's listpack, if it is not compressed and has space for an element of `bytes` bytes.
    pub(super) fn packed_with_space(&mut self, bytes: usize, limit: NodeLimit) -> Option<&mut Listpack> {
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

    /// Removes `count` existing elements from `index` on. The node must not be compressed.
    pub(super) fn remove_range(&mut self, index: usize, count: usize) {
        match self {
            Node::Packed(packed) => {
                if let Some(offset) = packed.nth(index) {
                    packed.remove_range(offset, count);
                }
            }
            Node::Compressed(_) => unreachable!("{EDITED_UNPACKED}"),
            Node::Large(_) => *self = Node::Packed(Listpack::new()),
        }
    }

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first. Returns how many were removed.
    /// The node must not be compressed.
    pub(super) fn remove_matching(&mut self, needle: &Needle<'_>, from: End, count: usize) -> usize {
        match self {
            Node::Packed(packed) => remove_in_listpack(packed, needle, from, count),
            Node::Compressed(_) => unreachable!("{EDITED_UNPACKED}"),
            Node::Large(bytes) if needle.bytes() == bytes.as_slice() => {
                *self = Node::Packed(Listpack::new());
                1
            }
            Node::Large(_) => 0,
        }
    }

    /// Calls `visit` for `count` existing elements from `index` on. A compressed node is unpacked temporarily.
    #[inline]
    pub(super) fn visit(&self, index: usize, count: usize, visit: &mut impl FnMut(Element<'_>)) {
        match self {
            Node::Packed(packed) => visit_listpack(packed, index, count, visit),
            Node::Compressed(compressed) => visit_listpack(&compressed.unpack(), index, count, visit),
            Node::Large(bytes) => visit(Element::Large(bytes)),
        }
    }

    /// Calls `visit` for the last `count` elements, which must exist, from the last one on.
    #[inline]
    pub(super) fn visit_last(&self, count: usize, visit: &mut impl FnMut(Element<'_>)) {
        match self {
            Node::Packed(packed) => visit_listpack_back(packed, count, visit),
            Node::Compressed(compressed) => visit_listpack_back(&compressed.unpack(), count, visit),
            Node::Large(bytes) => visit(Element::Large(bytes)),
        }
    }

    /// Returns the index of the first element equal to `needle`.
    pub(super) fn position(&self, needle: &Needle<'_>) -> Option<usize> {
        let mut found = None;
        _ = self.find(needle, End::Front, usize::MAX, &mut |index| {
            found = Some(index);
            ControlFlow::Break(())
        });
        found
    }

    /// Calls `found` with the distance of each element equal to `needle` from the end `from`, until it breaks. Compares
    /// at most `count` elements.
    #[inline]
    pub(super) fn find(
        &self,
        needle: &Needle<'_>,
        from: End,
        count: usize,
        found: &mut impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        match self {
            Node::Packed(packed) => find_in_listpack(packed, needle, from, count, found),
            Node::Compressed(compressed) => {
                find_in_listpack(&compressed.unpack(), needle, from, count, found)
            }
            Node::Large(bytes) if count > 0 && needle.bytes() == bytes.as_slice() => found(0),
            Node::Large(_) => ControlFlow::Continue(()),
        }
    }
}

/// The reason why an edited node is never compressed.
const EDITED_UNPACKED: &str = "a node is unpacked before it is edited";

/// Calls `visit` for up to `count` elements of a listpack from `index` on.
#[inline]
pub(super) fn visit_listpack(
    packed: &Listpack,
    index: usize,
    count: usize,
    visit: &mut impl FnMut(Element<'_>),
) {
    if let Some(offset) = packed.nth(index) {
        packed.iter_from(offset).take(count).for_each(|element| visit(element.into()));
    }
}

/// Calls `visit` for up to `count` elements of a listpack, from the last one on.
#[inline]
pub(super) fn visit_listpack_back(packed: &Listpack, count: usize, visit: &mut impl FnMut(Element<'_>)) {
    packed.iter_back().take(count).for_each(|element| visit(element.into()));
}

/// Like [`Node::find`], in a listpack.
#[inline]
pub(super) fn find_in_listpack(
    packed: &Listpack,
    needle: &Needle<'_>,
    from: End,
    count: usize,
    found: &mut impl FnMut(usize) -> ControlFlow<()>,
) -> ControlFlow<()> {
    match from {
        End::Front => {
            for (index, element) in packed.iter().take(count).enumerate() {
                if needle.matches_packed(element) {
                    found(index)?;
                }
            }
        }
        End::Back => {
            for (index, element) in packed.iter_back().take(count).enumerate() {
                if needle.matches_packed(element) {
                    found(index)?;
                }
            }
        }
    }
    ControlFlow::Continue(())
}

/// Removes up to `count` elements equal to `needle` from a listpack, those nearest to `from` first. Returns how many
/// were removed. O(bytes), without a write if there are none.
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
    // The number of matches before the first one to be removed.
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
