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

/// Elements of more bytes are kept outside of listpacks, whatever the configuration says. One for the process: tests make it
/// small, so that they need not make large elements.
static LARGE_ELEMENT_BYTES: AtomicUsize = AtomicUsize::new(usize::MAX);

/// From now on lists keep elements of more than `bytes` bytes outside of listpacks.
pub fn set_large_element_bytes(bytes: usize) {
    LARGE_ELEMENT_BYTES.store(bytes, Ordering::Relaxed);
}

/// How much a node may hold, and which nodes are compressed: `list-max-listpack-size`, `list-compress-depth`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimit {
    bytes_max: usize,
    /// Elements of more bytes get nodes of their own.
    element_bytes_max: usize,
    /// `usize::MAX` where the limit is one of bytes.
    count_max: usize,
    /// Nodes at each end that are not compressed; 0 if none is.
    pub(super) compress_depth: usize,
}

impl NodeLimit {
    /// The limit that the configuration sets.
    pub fn of(limits: &EncodingLimits) -> NodeLimit {
        NodeLimit {
            compress_depth: limits.list_compress_depth,
            element_bytes_max: LARGE_ELEMENT_BYTES.load(Ordering::Relaxed),
            ..NodeLimit::new(limits.list_max_listpack_size)
        }
    }

    /// The limit that `list-max-listpack-size` means: -1 to -5 are 4, 8, 16, 32 and 64 KiB, a positive number counts
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

    /// A limit of bytes too small for the parameter, so that tests need not fill kilobytes.
    #[cfg(test)]
    pub(super) fn of_bytes(bytes_max: usize) -> NodeLimit {
        NodeLimit { bytes_max, element_bytes_max: usize::MAX, count_max: usize::MAX, compress_depth: 0 }
    }

    /// The same with another depth.
    #[cfg(test)]
    pub(super) fn with_depth(self, compress_depth: usize) -> NodeLimit {
        NodeLimit { compress_depth, ..self }
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
        bytes > self.bytes_max.min(self.element_bytes_max)
    }
}

/// A node: never empty but while its list is edited.
#[derive(Clone, Debug)]
pub(super) enum Node {
    /// Elements in a listpack.
    Packed(Listpack),
    /// The same, compressed.
    Compressed(Compressed),
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
            Node::Compressed(compressed) => compressed.len(),
            Node::Large(_) => 1,
        }
    }

    /// The heap bytes it owns.
    pub(super) fn memory_bytes(&self) -> usize {
        match self {
            Node::Packed(packed) => packed.memory_bytes(),
            Node::Compressed(compressed) => compressed.memory_bytes(),
            Node::Large(bytes) => size_class(SHARED_BYTES) + size_class(bytes.capacity()),
        }
    }

    /// Moves what it owns to another allocation, if that is worth it; not a large element, which may be shared.
    pub(super) fn move_to(&mut self, mover: &mut Mover<'_>) {
        match self {
            Node::Packed(packed) => packed.move_to(mover),
            Node::Compressed(compressed) => compressed.move_to(mover),
            Node::Large(_) => {}
        }
    }

    /// Bytes and elements of its listpack, compressed or not, if it has one.
    pub(super) fn packed_size(&self) -> Option<(usize, usize)> {
        match self {
            Node::Packed(packed) => Some((packed.len_bytes(), packed.len())),
            Node::Compressed(compressed) => Some((compressed.len_bytes(), compressed.len())),
            Node::Large(_) => None,
        }
    }

    /// Its listpack, if that is not compressed and has room for an element of `bytes`.
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

    /// Removes `count` elements, which it has, from `index` on. It is not compressed.
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

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first; how many there were. It is not
    /// compressed.
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

    /// Calls `visit` for `count` elements, which it has, from `index` on. A compressed node is unpacked meanwhile.
    #[inline]
    pub(super) fn visit(&self, index: usize, count: usize, visit: &mut impl FnMut(Element<'_>)) {
        match self {
            Node::Packed(packed) => visit_listpack(packed, index, count, visit),
            Node::Compressed(compressed) => visit_listpack(&compressed.unpack(), index, count, visit),
            Node::Large(bytes) => visit(Element::Large(bytes)),
        }
    }

    /// Calls `visit` for the last `count` elements, which it has, from the last one on.
    #[inline]
    pub(super) fn visit_last(&self, count: usize, visit: &mut impl FnMut(Element<'_>)) {
        match self {
            Node::Packed(packed) => visit_listpack_back(packed, count, visit),
            Node::Compressed(compressed) => visit_listpack_back(&compressed.unpack(), count, visit),
            Node::Large(bytes) => visit(Element::Large(bytes)),
        }
    }

    /// Where the first element equal to `needle` is.
    pub(super) fn position(&self, needle: &Needle<'_>) -> Option<usize> {
        let mut found = None;
        _ = self.find(needle, End::Front, usize::MAX, &mut |index| {
            found = Some(index);
            ControlFlow::Break(())
        });
        found
    }

    /// Tells `found` how far from the end `from` the elements equal to `needle` are, until it says to stop. Looks at no more
    /// than `count` elements.
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

/// Why a node that is edited is not compressed.
const EDITED_UNPACKED: &str = "a node is unpacked before it is edited";

/// Calls `visit` for `count` elements of a listpack from `index` on, as far as there are any.
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

/// Calls `visit` for the last `count` elements of a listpack, from the last one on.
#[inline]
pub(super) fn visit_listpack_back(packed: &Listpack, count: usize, visit: &mut impl FnMut(Element<'_>)) {
    packed.iter_back().take(count).for_each(|element| visit(element.into()));
}

/// As [`Node::find`] in a listpack.
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
