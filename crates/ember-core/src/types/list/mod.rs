//! A list: one listpack while it is small, then a quicklist.
//!
//! The form follows Redis 7.2: before elements are added, the resulting size in bytes and number of elements are
//! compared with `list-max-listpack-size`, and a list that would exceed it becomes a quicklist. After a removal, a
//! quicklist of a single node of at most half that size becomes a listpack again.

mod compressed;
mod element;
mod node;
mod quicklist;

use std::borrow::Cow;
use std::ops::{ControlFlow, Range};

pub use element::{Element, Needle, NewElement, OwnedElement};
pub use node::{NodeLimit, set_large_element_bytes};

use node::{Node, find_in_listpack, remove_in_listpack, visit_listpack, visit_listpack_back};
use quicklist::Quicklist;

use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::listpack::{self, Listpack};
use crate::types::value::ValueType;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The end of the first element: `LEFT`.
    Front,
    /// The end of the last element: `RIGHT`.
    Back,
}

/// A side of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Towards the front.
    Before,
    /// Towards the back.
    After,
}

/// A node of a list, as it is saved.
#[derive(Clone, Debug)]
pub enum NodeView<'a> {
    /// Elements in a listpack: the list's own, or an unpacked copy of a compressed node.
    Packed(Cow<'a, Listpack>),
    /// One large element.
    Large(&'a [u8]),
}

/// A sequence of byte strings.
#[derive(Clone, Debug)]
pub struct List {
    form: Form,
}

#[derive(Clone, Debug)]
enum Form {
    Packed(Listpack),
    Nodes(Box<Quicklist>),
}

impl Default for List {
    fn default() -> List {
        List { form: Form::Packed(Listpack::new()) }
    }
}

impl Collection for List {
    const TYPE: ValueType = ValueType::List;

    fn encoding_name(&self) -> &'static str {
        match &self.form {
            Form::Packed(_) => "listpack",
            Form::Nodes(_) => "quicklist",
        }
    }

    fn memory_bytes(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.memory_bytes(),
            Form::Nodes(list) => size_class(size_of::<Quicklist>()) + list.memory_bytes(),
        }
    }

    fn len(&self) -> usize {
        match &self.form {
            Form::Packed(packed) => packed.len(),
            Form::Nodes(list) => list.len(),
        }
    }

    fn free_effort(&self) -> usize {
        match &self.form {
            Form::Packed(_) => 1,
            Form::Nodes(list) => list.node_count(),
        }
    }

    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        match &mut self.form {
            Form::Packed(packed) => {
                packed.move_to(mover);
                0
            }
            Form::Nodes(list) => {
                if from == 0 {
                    mover.move_box(list);
                }
                list.move_nodes(from, most, mover)
            }
        }
    }

    fn check_invariants(&self) {
        match &self.form {
            Form::Packed(packed) => packed.check_invariants(),
            Form::Nodes(list) => list.check_invariants(),
        }
    }
}

impl List {
    /// Adds elements at an end, one after the other. O(their bytes + bytes of a node for each).
    pub fn push_all<'a>(
        &mut self,
        end: End,
        elements: impl Iterator<Item = NewElement<'a>> + Clone,
        limit: NodeLimit,
    ) {
        let (mut bytes, mut count) = (0, 0);
        for element in elements.clone() {
            bytes += element.bytes().len();
            count += 1;
        }
        self.convert_if_full(bytes, count, limit);
        for element in elements {
            self.push_here(end, element, limit);
        }
    }

    /// Adds an element at an end.
    pub fn push(&mut self, end: End, element: NewElement<'_>, limit: NodeLimit) {
        self.push_all(end, std::iter::once(element), limit);
    }

    /// Moves the element at the end `from` to the end `to`, and returns a copy of it, if there is one.
    pub fn rotate(&mut self, from: End, to: End, limit: NodeLimit) -> Option<OwnedElement> {
        let element = self.end(from)?.to_owned();
        self.remove_here(if from == End::Front { 0 } else { self.len() - 1 }, 1, limit);
        self.push(to, element.as_new(), limit);
        self.shrink(limit);
        Some(element)
    }

    /// Returns the element at an end.
    #[inline]
    pub fn end(&self, end: End) -> Option<Element<'_>> {
        match (&self.form, end) {
            (Form::Packed(packed), End::Front) => packed.iter().next().map(Element::from),
            (Form::Packed(packed), End::Back) => packed.iter().next_back().map(Element::from),
            (Form::Nodes(list), end) => list.end(end),
        }
    }

    /// Calls `inspect` with the element at `index` and returns its result. O(nodes to the nearer end + elements of a
    /// node).
    pub fn with<R>(&self, index: usize, inspect: impl FnOnce(Option<Element<'_>>) -> R) -> R {
        let mut inspect = Some(inspect);
        let mut result = None;
        self.visit(index..index.saturating_add(1), |element| {
            result = inspect.take().map(|inspect| inspect(Some(element)));
        });
        // Without such an element `inspect` has not been called yet.
        result.unwrap_or_else(|| inspect.expect("it was not called")(None))
    }

    /// Returns the nodes in order, as they are saved.
    pub fn nodes(&self) -> impl DoubleEndedIterator<Item = NodeView<'_>> {
        let (packed, nodes) = match &self.form {
            Form::Packed(packed) => (Some(packed), None),
            Form::Nodes(list) => (None, Some(list.nodes())),
        };
        let nodes = nodes.into_iter().flatten().map(|node| match node {
            Node::Packed(packed) => NodeView::Packed(Cow::Borrowed(packed)),
            Node::Compressed(compressed) => NodeView::Packed(Cow::Owned(compressed.unpack())),
            Node::Large(bytes) => NodeView::Large(bytes),
        });
        packed.map(|packed| NodeView::Packed(Cow::Borrowed(packed))).into_iter().chain(nodes)
    }

    /// Returns copies of all elements in order, iterable from both ends; built node by node.
    pub fn copies(&self) -> impl DoubleEndedIterator<Item = Vec<u8>> {
        self.nodes().flat_map(|node| match node {
            NodeView::Packed(packed) => packed.iter().map(listpack::Element::to_vec).collect(),
            NodeView::Large(bytes) => vec![bytes.to_vec()],
        })
    }

    /// Calls `visit` for the existing elements with indexes in `range`, in order. O(nodes to the nearer end +
    /// elements).
    #[inline]
    pub fn visit(&self, range: Range<usize>, mut visit: impl FnMut(Element<'_>)) {
        match &self.form {
            Form::Packed(packed) => visit_listpack(packed, range.start, range.len(), &mut visit),
            Form::Nodes(list) => list.visit(range, visit),
        }
    }

    /// Calls `visit` for the last `count` elements, or all if there are fewer, from the last one on. O(elements).
    #[inline]
    pub fn visit_last(&self, count: usize, mut visit: impl FnMut(Element<'_>)) {
        match &self.form {
            Form::Packed(packed) => visit_listpack_back(packed, count, &mut visit),
            Form::Nodes(list) => list.visit_last(count, visit),
        }
    }

    /// Calls `found` with the distance of each element equal to `needle` from the end `from`, until it breaks. Compares
    /// at most `count` elements. O(elements compared).
    #[inline]
    pub fn find(
        &self,
        needle: &Needle<'_>,
        from: End,
        count: usize,
        mut found: impl FnMut(usize) -> ControlFlow<()>,
    ) {
        _ = match &self.form {
            Form::Packed(packed) => find_in_listpack(packed, needle, from, count, &mut found),
            Form::Nodes(list) => list.find(needle, from, count, found),
        };
    }

    /// Replaces the element at `index`. Returns whether there is one. As in Redis, the list may convert to a quicklist
    /// for the new element even if there is none to replace. O(nodes to the nearer end + bytes of a node).
    pub fn set(&mut self, index: usize, element: NewElement<'_>, limit: NodeLimit) -> bool {
        self.convert_if_full(element.bytes().len(), 1, limit);
        if index >= self.len() {
            return false;
        }
        match &mut self.form {
            Form::Packed(packed) => {
                if let Some(offset) = packed.nth(index) {
                    packed.replace(offset, element.bytes());
                }
            }
            Form::Nodes(list) => list.replace(index, element, limit),
        }
        self.shrink(limit);
        true
    }

    /// Inserts `element` next to the first one equal to `pivot`. Returns whether there is one. As in Redis, the list
    /// may convert to a quicklist for the new element even if there is no such pivot. O(N).
    pub fn insert_next_to(
        &mut self,
        pivot: &Needle<'_>,
        side: Side,
        element: NewElement<'_>,
        limit: NodeLimit,
    ) -> bool {
        self.convert_if_full(element.bytes().len(), 1, limit);
        match &mut self.form {
            Form::Packed(packed) => {
                let found = packed.first().and_then(|first| packed.find(first, pivot.bytes(), 0));
                match (found, side) {
                    (Some(offset), Side::Before) => _ = packed.insert_before(offset, element.bytes()),
                    (Some(offset), Side::After) => _ = packed.insert_after(offset, element.bytes()),
                    (None, _) => {}
                }
                found.is_some()
            }
            Form::Nodes(list) => list.insert_next_to(pivot, side, element, limit),
        }
    }

    /// Removes up to `count` elements from `start` on. O(nodes to the nearer end + removed elements).
    pub fn remove_range(&mut self, start: usize, count: usize, limit: NodeLimit) {
        self.remove_here(start, count, limit);
        self.shrink(limit);
    }

    /// Removes up to `count` elements at an end. O(removed elements).
    pub fn remove_end(&mut self, end: End, count: usize, limit: NodeLimit) {
        let count = count.min(self.len());
        let start = if end == End::Front { 0 } else { self.len() - count };
        self.remove_range(start, count, limit);
    }

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first. Returns how many were removed.
    /// O(N).
    pub fn remove_matching(
        &mut self,
        needle: &Needle<'_>,
        from: End,
        count: usize,
        limit: NodeLimit,
    ) -> usize {
        let removed = match &mut self.form {
            Form::Packed(packed) => remove_in_listpack(packed, needle, from, count),
            Form::Nodes(list) => list.remove_matching(needle, from, count, limit),
        };
        if removed > 0 {
            self.shrink(limit);
        }
        removed
    }

    /// Adds an element without converting the list.
    #[inline]
    fn push_here(&mut self, end: End, element: NewElement<'_>, limit: NodeLimit) {
        match (&mut self.form, end) {
            (Form::Packed(packed), End::Front) => packed.push_front(element.bytes()),
            (Form::Packed(packed), End::Back) => packed.push_back(element.bytes()),
            (Form::Nodes(list), end) => list.push(end, element, limit),
        }
    }

    /// Removes elements without converting the list.
    fn remove_here(&mut self, start: usize, count: usize, limit: NodeLimit) {
        match &mut self.form {
            Form::Packed(packed) => {
                if let Some(offset) = packed.nth(start) {
                    packed.remove_range(offset, count);
                }
            }
            Form::Nodes(list) => list.remove_range(start, count, limit),
        }
    }

    /// Converts to a quicklist if a listpack would be too large with `count` more elements of `bytes` bytes in total.
    fn convert_if_full(&mut self, bytes: usize, count: usize, limit: NodeLimit) {
        if let Form::Packed(packed) = &mut self.form
            && limit.is_exceeded_by(packed.len_bytes() + bytes, packed.len() + count)
        {
            self.form = Form::Nodes(Box::new(Quicklist::of(std::mem::take(packed))));
        }
    }

    /// Converts to a listpack if only one node is left and it is at most half full.
    fn shrink(&mut self, limit: NodeLimit) {
        if let Form::Nodes(list) = &mut self.form
            && let Some(packed) = list.take_single(|packed| limit.half_fits(packed.len_bytes(), packed.len()))
        {
            self.form = Form::Packed(packed);
        }
    }
}

#[cfg(test)]
mod tests;
