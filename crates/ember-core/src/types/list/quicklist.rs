//! A quicklist: the form of a large list, a double-ended queue of nodes of bounded size.
//!
//! An element at an end is found in O(1), an inner element by the lengths of the nodes before or after it. A change
//! rewrites one node; a full node is split, and small adjacent nodes are merged, by the rules of Redis's quicklist, so
//! that the same commands leave lists in the same encoding. The nodes are in a ring of 24 bytes per node instead of
//! being linked: the ring is traversed at the speed of memory, and inserting a node moves at most half of it.
//!
//! Nodes farther from both ends than `list-compress-depth` are compressed when they are built or edited, as in Redis.
//! Readers of such a node unpack a copy; an edit unpacks the node itself, and [`Quicklist::settle`] compresses it
//! again.
//!
//! # Invariants
//!
//! * No node is empty.
//! * The first node and the last are not compressed; `compressed` is the number of compressed nodes.
//! * `count` is the sum of the nodes' lengths, `nodes_bytes` that of their memory.

use std::collections::{VecDeque, vec_deque};
use std::ops::{ControlFlow, Range};

use super::compressed::Compressed;
use super::element::{Element, Needle, NewElement};
use super::node::{Node, NodeLimit};
use super::{End, Side};
use crate::memory::moving::Mover;
use crate::memory::{capacity_class, size_class};
use crate::types::listpack::Listpack;

const _: () = assert!(size_of::<Node>() == 24);

/// The place of an element.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The node's index.
    node: usize,
    /// The element's index in the node.
    index: usize,
}

/// The nodes that a removal has left without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptied {
    None,
    /// The node at this index.
    One(usize),
    Several,
}

/// A deque of nodes.
#[derive(Debug, Default)]
pub(super) struct Quicklist {
    nodes: VecDeque<Node>,
    count: usize,
    nodes_bytes: usize,
    compressed: usize,
}

impl Clone for Quicklist {
    /// Copies all nodes without spare capacity, so the copy may take less memory.
    fn clone(&self) -> Quicklist {
        let nodes = self.nodes.clone();
        let nodes_bytes = nodes.iter().map(Node::memory_bytes).sum();
        Quicklist { nodes, count: self.count, nodes_bytes, compressed: self.compressed }
    }
}

impl Quicklist {
    /// Returns a list of one node, or of none if `packed` is empty.
    pub(super) fn of(packed: Listpack) -> Quicklist {
        let mut list = Quicklist::default();
        if !packed.is_empty() {
            list.insert_node(0, Node::Packed(packed));
        }
        list
    }

    /// Returns the listpack of the only node, if there is just one and `fits` accepts it. The list is then empty.
    pub(super) fn take_single(&mut self, fits: impl FnOnce(&Listpack) -> bool) -> Option<Listpack> {
        if self.nodes.len() != 1 {
            return None;
        }
        match self.nodes.front_mut() {
            Some(Node::Packed(packed)) if fits(packed) => Some(std::mem::take(packed)),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.count
    }

    /// Returns the heap bytes that the list owns. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes_bytes + size_class(self.nodes.capacity() * size_of::<Node>())
    }

    /// Returns the number of nodes.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// Moves the memory of nodes to other allocations: of nodes with about `most` elements, from index `from` on.
    /// Returns the index to continue from; 0 at the end.
    pub(super) fn move_nodes(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        let mut next = usize::try_from(from).unwrap_or(usize::MAX);
        let mut left = most;
        while let Some(node) = self.nodes.get_mut(next) {
            node.move_to(mover);
            next += 1;
            left = left.saturating_sub(node.len());
            if left == 0 {
                return if next < self.nodes.len() { next as u64 } else { 0 };
            }
        }
        0
    }

    /// Returns the nodes in order.
    pub(super) fn nodes(&self) -> vec_deque::Iter<'_, Node> {
        self.nodes.iter()
    }

    /// Adds an element at an end. O(bytes of a node) at the front, O(1) at the back.
    pub(super) fn push(&mut self, end: End, element: NewElement<'_>, limit: NodeLimit) {
        let bytes = element.bytes();
        let node = match end {
            End::Front => self.nodes.front_mut(),
            End::Back => self.nodes.back_mut(),
        };
        if let Some(node) = node {
            let memory_before = node.memory_bytes();
            if let Some(packed) = node.packed_with_space(bytes.len(), limit) {
                match end {
                    End::Front => packed.push_front(bytes),
                    End::Back => packed.push_back(bytes),
                }
                self.nodes_bytes = self.nodes_bytes + node.memory_bytes() - memory_before;
                self.count += 1;
                return;
            }
        }
        let nodes_before = self.nodes.len();
        let at = if end == End::Front { 0 } else { nodes_before };
        self.insert_node(at, Node::of(element, limit));
        self.settle(at, nodes_before, limit);
    }

    /// Returns the element at an end.
    #[inline]
    pub(super) fn end(&self, end: End) -> Option<Element<'_>> {
        let node = if end == End::Front { self.nodes.front() } else { self.nodes.back() };
        match (node?, end) {
            (Node::Packed(packed), End::Front) => packed.iter().next().map(Element::from),
            (Node::Packed(packed), End::Back) => packed.iter().next_back().map(Element::from),
            (Node::Large(bytes), _) => Some(Element::Large(bytes)),
            (Node::Compressed(_), _) => unreachable!("the nodes at the ends are not compressed"),
        }
    }

    /// Calls `visit` for the elements with indexes in `range`, in order. O(nodes to the nearer end + elements).
    pub(super) fn visit(&self, range: Range<usize>, mut visit: impl FnMut(Element<'_>)) {
        let Some(place) = self.place(range.start) else { return };
        let mut left = range.len();
        let mut skipped = place.index;
        for node in self.nodes.range(place.node..) {
            if left == 0 {
                return;
            }
            let visited = left.min(node.len() - skipped);
            node.visit(skipped, visited, &mut visit);
            left -= visited;
            skipped = 0;
        }
    }

    /// Calls `visit` for the last `count` elements, or all if there are fewer, from the last one on. O(elements).
    pub(super) fn visit_last(&self, count: usize, mut visit: impl FnMut(Element<'_>)) {
        let mut left = count;
        for node in self.nodes.iter().rev() {
            if left == 0 {
                return;
            }
            let visited = left.min(node.len());
            node.visit_last(visited, &mut visit);
            left -= visited;
        }
    }

    /// Calls `found` with the distance of each element equal to `needle` from the end `from`, until it breaks. Compares
    /// at most `count` elements. O(elements compared).
    pub(super) fn find(
        &self,
        needle: &Needle<'_>,
        from: End,
        count: usize,
        mut found: impl FnMut(usize) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut passed = 0;
        let mut inspect = |node: &Node| {
            if passed >= count {
                return ControlFlow::Break(());
            }
            let in_node = node.find(needle, from, count - passed, &mut |index| found(passed + index));
            passed += node.len();
            in_node
        };
        match from {
            End::Front => self.nodes.iter().try_for_each(&mut inspect),
            End::Back => self.nodes.iter().rev().try_for_each(&mut inspect),
        }
    }

    /// Replaces the element at `index`, which must be in range. O(nodes to the nearer end + bytes of a node).
    pub(super) fn replace(&mut self, index: usize, element: NewElement<'_>, limit: NodeLimit) {
        let place = self.place(index).expect("the caller has checked the length");
        let nodes_before = self.nodes.len();
        let bytes = element.bytes();
        let is_large = limit.is_large(bytes.len());
        let (in_place, was_large) = self.edit_node(place.node, |node| match node {
            Node::Packed(packed) if packed.len() > 1 => {
                let offset = packed.nth(place.index).expect("the place is in the node");
                let old_bytes = packed.next(offset).unwrap_or(packed.len_bytes() - 1) - offset;
                let new_bytes = packed.len_bytes() - old_bytes + bytes.len();
                let fits = !is_large && !limit.is_exceeded_by(new_bytes, packed.len());
                if fits {
                    packed.replace(offset, bytes);
                }
                (fits, false)
            }
            single => {
                let was_large = matches!(single, Node::Large(_));
                *single = Node::of(element, limit);
                (true, was_large)
            }
        });
        if !in_place {
            self.insert(place, Side::Before, element, limit);
            self.remove(index + 1, 1);
        } else if was_large && !is_large {
            self.merge_around(place.node, limit);
        }
        self.settle(place.node, nodes_before, limit);
    }

    /// Inserts `element` next to the first one equal to `pivot`. Returns whether there is one. O(N).
    pub(super) fn insert_next_to(
        &mut self,
        pivot: &Needle<'_>,
        side: Side,
        element: NewElement<'_>,
        limit: NodeLimit,
    ) -> bool {
        let found = self.nodes.iter().enumerate().find_map(|(node, elements)| {
            let index = elements.position(pivot)?;
            Some(Place { node, index })
        });
        if let Some(place) = found {
            let nodes_before = self.nodes.len();
            self.insert(place, side, element, limit);
            self.settle(place.node, nodes_before, limit);
        }
        found.is_some()
    }

    /// Removes up to `count` elements from `start` on. O(nodes to the nearer end + removed elements).
    pub(super) fn remove_range(&mut self, start: usize, count: usize, limit: NodeLimit) {
        let nodes_before = self.nodes.len();
        let changed = self.remove(start, count);
        self.settle(changed, nodes_before, limit);
    }

    /// Like [`Quicklist::remove_range`], without [`Quicklist::settle`]; returns the index of the node that was changed.
    fn remove(&mut self, start: usize, count: usize) -> usize {
        let Some(Place { mut node, index }) = self.place(start) else { return 0 };
        let mut left = count.min(self.count - start);
        // Removes elements of the first node, if it begins before `start`, then whole nodes, then the rest.
        if index > 0 {
            let removed = left.min(self.nodes[node].len() - index);
            self.remove_in_node(node, index, removed);
            left -= removed;
            node += 1;
        }
        let mut whole = node;
        while left > 0 && self.nodes[whole].len() <= left {
            left -= self.nodes[whole].len();
            whole += 1;
        }
        self.remove_nodes(node, whole);
        if left > 0 {
            self.remove_in_node(node, 0, left);
        }
        node
    }

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first. Returns how many were removed.
    /// O(N).
    pub(super) fn remove_matching(
        &mut self,
        needle: &Needle<'_>,
        from: End,
        count: usize,
        limit: NodeLimit,
    ) -> usize {
        let nodes_before = self.nodes.len();
        let mut removed = 0;
        let mut emptied = Emptied::None;
        for step in 0..nodes_before {
            if removed == count {
                break;
            }
            let index = if from == End::Front { step } else { nodes_before - 1 - step };
            let was_compressed = matches!(self.nodes[index], Node::Compressed(_));
            if was_compressed && self.nodes[index].position(needle).is_none() {
                continue;
            }
            let (found, is_empty) = self.edit_node(index, |node| {
                let found = node.remove_matching(needle, from, count - removed);
                (found, node.len() == 0)
            });
            removed += found;
            if is_empty {
                emptied = if emptied == Emptied::None { Emptied::One(index) } else { Emptied::Several };
            } else if was_compressed {
                self.compress(index);
            }
        }
        self.count -= removed;
        self.drop_emptied(emptied);
        self.settle(0, nodes_before, limit);
        removed
    }

    /// Panics if an invariant does not hold. For tests.
    pub(super) fn check_invariants(&self) {
        let (mut count, mut bytes, mut compressed) = (0, 0, 0);
        for node in &self.nodes {
            assert!(node.len() > 0, "no node is empty");
            if let Node::Packed(packed) = node {
                packed.check_invariants();
            }
            if let Node::Compressed(node) = node {
                node.unpack().check_invariants();
                assert_eq!((node.unpack().len(), node.unpack().len_bytes()), (node.len(), node.len_bytes()));
                compressed += 1;
            }
            count += node.len();
            bytes += node.memory_bytes();
        }
        assert_eq!((count, bytes, compressed), (self.count, self.nodes_bytes, self.compressed));
        let ends = [self.nodes.front(), self.nodes.back()];
        assert!(
            !ends.iter().any(|node| matches!(node, Some(Node::Compressed(_)))),
            "ends are not compressed"
        );
    }

    /// Returns the place of the element at `index`, if it is in range. O(nodes to the nearer end).
    fn place(&self, index: usize) -> Option<Place> {
        if index >= self.count {
            return None;
        }
        if index <= self.count / 2 {
            let mut before = 0;
            for (node, elements) in self.nodes.iter().enumerate() {
                let len = elements.len();
                if index < before + len {
                    return Some(Place { node, index: index - before });
                }
                before += len;
            }
        } else {
            let mut start = self.count;
            for (node, elements) in self.nodes.iter().enumerate().rev() {
                start -= elements.len();
                if index >= start {
                    return Some(Place { node, index: index - start });
                }
            }
        }
        None
    }

    /// Inserts `element` next to the one at `place`.
    fn insert(&mut self, place: Place, side: Side, element: NewElement<'_>, limit: NodeLimit) {
        let Place { node, index } = place;
        let bytes = element.bytes();
        let is_after = side == Side::After;
        let at_edge = if is_after { index + 1 == self.nodes[node].len() } else { index == 0 };
        let split_at = index + usize::from(is_after);
        if !limit.is_large(bytes.len()) {
            if self.insert_if_fits(node, split_at, bytes, limit) {
                return;
            }
            let neighbor = if is_after { node.checked_add(1) } else { node.checked_sub(1) };
            if at_edge
                && let Some(neighbor) = neighbor.filter(|&neighbor| neighbor < self.nodes.len())
                && let position = if is_after { 0 } else { self.nodes[neighbor].len() }
                && self.insert_if_fits(neighbor, position, bytes, limit)
            {
                return;
            }
        }
        if at_edge {
            self.insert_node(node + usize::from(is_after), Node::of(element, limit));
            return;
        }
        self.split(node, split_at);
        if limit.is_large(bytes.len()) {
            self.insert_node(node + 1, Node::of(element, limit));
            return;
        }
        // The new element is inserted into the part without the element at `place`; both parts are merged with adjacent
        // nodes.
        let (part, kept) = if is_after { (node + 1, node) } else { (node, node + 1) };
        self.edit_node(part, |part| match part {
            Node::Packed(packed) if is_after => packed.push_front(bytes),
            Node::Packed(packed) => packed.push_back(bytes),
            _ => unreachable!("a node of one element is not split"),
        });
        self.count += 1;
        self.merge_around(kept, limit);
    }

    /// Inserts an element at `position` of `node`, if it fits there. Returns whether it does.
    fn insert_if_fits(&mut self, node: usize, position: usize, bytes: &[u8], limit: NodeLimit) -> bool {
        let is_added = self.edit_node(node, |node| {
            let Some(packed) = node.packed_with_space(bytes.len(), limit) else { return false };
            match packed.nth(position) {
                Some(offset) => _ = packed.insert_before(offset, bytes),
                None => packed.push_back(bytes),
            }
            true
        });
        self.count += usize::from(is_added);
        is_added
    }

    /// Splits a node in two: the second begins with the element at `index`, which must be neither the first nor beyond
    /// the last.
    fn split(&mut self, node: usize, index: usize) {
        let tail = self.edit_node(node, |node| match node {
            Node::Packed(packed) => {
                let offset = packed.nth(index).expect("the place is in the node");
                packed.split_off(offset)
            }
            _ => unreachable!("a node of one element is not split"),
        });
        self.count -= tail.len();
        self.insert_node(node + 1, Node::Packed(tail));
    }

    /// Merges nodes around `centre` in pairs where one node can hold both: the two nodes before it, the two nodes after
    /// it, `centre` with the node before it, and the result with the node after it.
    fn merge_around(&mut self, mut centre: usize, limit: NodeLimit) {
        if centre >= 2 && self.merge_with_next(centre - 2, limit) {
            centre -= 1;
        }
        self.merge_with_next(centre + 1, limit);
        if centre >= 1 && self.merge_with_next(centre - 1, limit) {
            centre -= 1;
        }
        self.merge_with_next(centre, limit);
    }

    fn merge_with_next(&mut self, node: usize, limit: NodeLimit) -> bool {
        let size = |at: usize| self.nodes.get(at).and_then(Node::packed_size);
        let (Some((left_bytes, left_len)), Some((right_bytes, right_len))) = (size(node), size(node + 1))
        else {
            return false;
        };
        let bytes = left_bytes + right_bytes - Listpack::new().len_bytes();
        if limit.is_exceeded_by(bytes, left_len + right_len) {
            return false;
        }
        self.unpack(node + 1);
        let Some(Node::Packed(right)) = self.take_node(node + 1) else { return false };
        self.count += right.len();
        self.edit_node(node, |node| {
            if let Node::Packed(left) = node {
                left.append(&right);
            }
        });
        true
    }

    /// Removes `count` existing elements of `node` from `index` on.
    fn remove_in_node(&mut self, node: usize, index: usize, count: usize) {
        let is_empty = self.edit_node(node, |node| {
            node.remove_range(index, count);
            node.len() == 0
        });
        self.count -= count;
        if is_empty {
            self.drop_emptied(Emptied::One(node));
        }
    }

    /// Removes the nodes from `start` up to `end` with their elements.
    fn remove_nodes(&mut self, start: usize, end: usize) {
        for node in self.nodes.drain(start..end) {
            self.count -= node.len();
            self.nodes_bytes -= node.memory_bytes();
            self.compressed -= usize::from(matches!(node, Node::Compressed(_)));
        }
        self.give_back_ring();
    }

    /// Removes the nodes without elements. O(nodes).
    fn drop_emptied(&mut self, emptied: Emptied) {
        match emptied {
            Emptied::None => return,
            Emptied::One(node) => _ = self.take_node(node),
            Emptied::Several => {
                let freed = &mut self.nodes_bytes;
                self.nodes.retain(|node| {
                    let stays = node.len() > 0;
                    *freed -= if stays { 0 } else { node.memory_bytes() };
                    stays
                });
            }
        }
        self.give_back_ring();
    }

    /// Adjusts compression after a change near node `changed`, when there were `nodes_before` nodes: unpacks nodes that
    /// are now at the ends, and compresses inner nodes that the change has touched or moved inwards.
    /// O(`list-compress-depth`) if the number of nodes has changed, else O(1), plus the compression of nodes.
    #[inline]
    fn settle(&mut self, changed: usize, nodes_before: usize, limit: NodeLimit) {
        if limit.compress_depth != 0 || self.compressed != 0 {
            self.settle_some(changed, nodes_before, limit.compress_depth);
        }
    }

    #[cold]
    fn settle_some(&mut self, changed: usize, nodes_before: usize, depth: usize) {
        /// The maximum distance of a changed node from the first node of a change: two pairs of nodes are merged on
        /// either side.
        const REACH: usize = 3;
        /// The maximum number of nodes that one change adds.
        const ADDED_MAX: usize = 2;
        let len = self.nodes.len();
        if len != nodes_before {
            for at in 0..depth.max(1).min(len) {
                self.unpack(at);
                self.unpack(len - 1 - at);
            }
        }
        if depth == 0 || len <= depth.saturating_mul(2) {
            return;
        }
        let inner = depth..len - depth;
        let near = changed.saturating_sub(REACH)..changed.saturating_add(REACH + 1);
        let borders = [inner.start..inner.start + ADDED_MAX, inner.end.saturating_sub(ADDED_MAX)..inner.end];
        for at in borders.into_iter().flatten().chain(near).filter(|at| inner.contains(at)) {
            self.compress(at);
        }
    }

    /// Compresses a node if that is worth it. O(its bytes).
    fn compress(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let Node::Packed(packed) = node
            && let Some(compressed) = Compressed::of(packed)
        {
            self.nodes_bytes -= node.memory_bytes();
            *node = Node::Compressed(compressed);
            self.nodes_bytes += node.memory_bytes();
            self.compressed += 1;
        }
    }

    /// Unpacks a node if it is compressed. O(its bytes).
    fn unpack(&mut self, at: usize) {
        let node = &mut self.nodes[at];
        if let Node::Compressed(compressed) = node {
            let packed = compressed.unpack();
            self.nodes_bytes -= node.memory_bytes();
            *node = Node::Packed(packed);
            self.nodes_bytes += node.memory_bytes();
            self.compressed -= 1;
        }
    }

    /// Unpacks a node, lets `edit` change it, and updates the count of memory.
    fn edit_node<R>(&mut self, node: usize, edit: impl FnOnce(&mut Node) -> R) -> R {
        self.unpack(node);
        let node = &mut self.nodes[node];
        let memory_before = node.memory_bytes();
        let result = edit(node);
        self.nodes_bytes = self.nodes_bytes + node.memory_bytes() - memory_before;
        result
    }

    /// Inserts a node at index `at`, whose elements are not counted yet.
    fn insert_node(&mut self, at: usize, node: Node) {
        self.count += node.len();
        self.nodes_bytes += node.memory_bytes();
        if self.nodes.len() == self.nodes.capacity() {
            let wanted = capacity_class((self.nodes.len() + 1) * size_of::<Node>()) / size_of::<Node>();
            self.nodes.reserve_exact(wanted - self.nodes.len());
        }
        self.nodes.insert(at, node);
    }

    /// Removes a node with its elements and returns it.
    fn take_node(&mut self, at: usize) -> Option<Node> {
        let node = self.nodes.remove(at)?;
        self.count -= node.len();
        self.nodes_bytes -= node.memory_bytes();
        self.compressed -= usize::from(matches!(node, Node::Compressed(_)));
        Some(node)
    }

    /// Shrinks the ring when three quarters of it are unused.
    fn give_back_ring(&mut self) {
        if self.nodes.len() < self.nodes.capacity() / 4 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }
}
