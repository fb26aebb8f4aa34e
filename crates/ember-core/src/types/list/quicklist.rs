//! A quicklist: the form of a large list, a double-ended queue of nodes of bounded size.
//!
//! An element at an end is found at once, one inside by the lengths of the nodes before it or behind it. A change
//! rewrites one node; where one is full it is split, and small neighbours are merged, by the rules of Redis's quicklist,
//! so that the same commands leave lists in the same encoding. The nodes stand in a ring of 24 bytes for each, instead
//! of being linked: the ring is walked at the speed of memory, and a node added inside moves at most half of it.
//!
//! # Invariants
//!
//! * No node is empty.
//! * `count` is the sum of the nodes' lengths, `nodes_bytes` that of the memory behind them.

use std::collections::{VecDeque, vec_deque};
use std::ops::Range;

use super::element::{Element, Needle, NewElement};
use super::node::{Node, NodeIter, NodeLimit};
use super::{End, Side};
use crate::keyspace::entry::size_class;
use crate::types::listpack::Listpack;

const _: () = assert!(size_of::<Node>() == 24);

/// Where an element is.
#[derive(Clone, Copy, Debug)]
struct Place {
    /// The node's index.
    node: usize,
    /// The element's index in the node.
    index: usize,
}

/// Which nodes a removal has left without elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Emptied {
    None,
    /// The one at this index.
    One(usize),
    Several,
}

/// A deque of nodes.
#[derive(Debug, Default)]
pub(super) struct Quicklist {
    nodes: VecDeque<Node>,
    count: usize,
    nodes_bytes: usize,
}

impl Clone for Quicklist {
    /// The copy of a node has no room to spare, so it may take less memory.
    fn clone(&self) -> Quicklist {
        let nodes = self.nodes.clone();
        let nodes_bytes = nodes.iter().map(Node::memory_bytes).sum();
        Quicklist { nodes, count: self.count, nodes_bytes }
    }
}

impl Quicklist {
    /// A list of one node; of none if `packed` is empty.
    pub(super) fn of(packed: Listpack) -> Quicklist {
        let mut list = Quicklist::default();
        if !packed.is_empty() {
            list.insert_node(0, Node::Packed(packed));
        }
        list
    }

    /// The listpack that is all there is, if the list is no more than that and `fits` finds it small enough. The list is
    /// empty then.
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

    /// The heap bytes it owns. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes_bytes + size_class(self.nodes.capacity() * size_of::<Node>())
    }

    /// The number of nodes.
    pub(super) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    /// The nodes in order.
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
            if let Some(packed) = node.with_room(bytes.len(), limit) {
                match end {
                    End::Front => packed.push_front(bytes),
                    End::Back => packed.push_back(bytes),
                }
                self.nodes_bytes = self.nodes_bytes + node.memory_bytes() - memory_before;
                self.count += 1;
                return;
            }
        }
        let at = if end == End::Front { 0 } else { self.nodes.len() };
        self.insert_node(at, Node::of(element, limit));
    }

    /// The elements from the one at `index` on, which may be the length. O(nodes to the nearer end).
    pub(super) fn iter_from(&self, index: usize) -> Iter<'_> {
        let Some(place) = self.place(index) else { return Iter::default() };
        let mut front = self.nodes[place.node].iter();
        if let (NodeIter::Packed(elements), Node::Packed(packed)) = (&mut front, &self.nodes[place.node])
            && let Some(offset) = packed.nth(place.index)
        {
            *elements = packed.iter_from(offset);
        }
        Iter { front, between: self.nodes.range(place.node + 1..), back: NodeIter::Large(None) }
    }

    /// Calls `visit` for the elements with indexes in `range`, in order. O(nodes to the nearer end + elements), faster than
    /// [`Quicklist::iter_from`].
    pub(super) fn visit<'a>(&'a self, range: Range<usize>, mut visit: impl FnMut(Element<'a>)) {
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

    /// The elements up to the one at `index`, that one included, to be read from the back. O(nodes to the nearer end).
    pub(super) fn iter_to(&self, index: usize) -> Iter<'_> {
        let Some(place) = self.place(index) else { return Iter::default() };
        let mut back = self.nodes[place.node].iter();
        if let (NodeIter::Packed(elements), Node::Packed(packed)) = (&mut back, &self.nodes[place.node])
            && let Some(offset) = packed.nth(place.index)
        {
            *elements = packed.iter_to(offset);
        }
        Iter { front: NodeIter::Large(None), between: self.nodes.range(..place.node), back }
    }

    /// Puts `element` in the place of the one at `index`, which is inside. O(nodes to the nearer end + bytes of a node).
    pub(super) fn replace(&mut self, index: usize, element: NewElement<'_>, limit: NodeLimit) {
        let place = self.place(index).expect("the caller has looked at the length");
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
            self.remove_range(index + 1, 1);
        } else if was_large && !is_large {
            self.merge_around(place.node, limit);
        }
    }

    /// Adds `element` beside the first one equal to `pivot`; whether there is one. O(N).
    pub(super) fn insert_beside(
        &mut self,
        pivot: &Needle<'_>,
        side: Side,
        element: NewElement<'_>,
        limit: NodeLimit,
    ) -> bool {
        let found = self.nodes.iter().enumerate().find_map(|(node, elements)| {
            let index = elements.iter().position(|element| pivot.matches(element))?;
            Some(Place { node, index })
        });
        if let Some(place) = found {
            self.insert(place, side, element, limit);
        }
        found.is_some()
    }

    /// Removes up to `count` elements from the one at `start` on. O(nodes to the nearer end + what is removed).
    pub(super) fn remove_range(&mut self, start: usize, count: usize) {
        let Some(Place { mut node, index }) = self.place(start) else { return };
        let mut left = count.min(self.count - start);
        // What is wanted of the first node if that begins before `start`, then whole nodes, then the rest.
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
    }

    /// Removes up to `count` elements equal to `needle`, those nearest to `from` first; how many there were. O(N).
    pub(super) fn remove_matching(&mut self, needle: &Needle<'_>, from: End, count: usize) -> usize {
        let mut removed = 0;
        let mut emptied = Emptied::None;
        for step in 0..self.nodes.len() {
            if removed == count {
                break;
            }
            let index = if from == End::Front { step } else { self.nodes.len() - 1 - step };
            let (found, is_empty) = self.edit_node(index, |node| {
                let found = node.remove_matching(needle, from, count - removed);
                (found, node.len() == 0)
            });
            removed += found;
            if is_empty {
                emptied = if emptied == Emptied::None { Emptied::One(index) } else { Emptied::Several };
            }
        }
        self.count -= removed;
        self.drop_emptied(emptied);
        removed
    }

    /// Panics if an invariant does not hold. For tests.
    pub(super) fn check_invariants(&self) {
        let (mut count, mut bytes) = (0, 0);
        for node in &self.nodes {
            assert!(node.len() > 0, "no node is empty");
            if let Node::Packed(packed) = node {
                packed.check_invariants();
            }
            count += node.len();
            bytes += node.memory_bytes();
        }
        assert_eq!((count, bytes), (self.count, self.nodes_bytes));
    }

    /// The place of the element at `index`, if it is inside. O(nodes to the nearer end).
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

    /// Adds `element` beside the one at `place`.
    fn insert(&mut self, place: Place, side: Side, element: NewElement<'_>, limit: NodeLimit) {
        let Place { node, index } = place;
        let bytes = element.bytes();
        let is_after = side == Side::After;
        let at_edge = if is_after { index + 1 == self.nodes[node].len() } else { index == 0 };
        let split_at = index + usize::from(is_after);
        if !limit.is_large(bytes.len()) {
            if self.insert_where_room(node, split_at, bytes, limit) {
                return;
            }
            let neighbour = if is_after { node.checked_add(1) } else { node.checked_sub(1) };
            if at_edge
                && let Some(neighbour) = neighbour.filter(|&neighbour| neighbour < self.nodes.len())
                && let position = if is_after { 0 } else { self.nodes[neighbour].len() }
                && self.insert_where_room(neighbour, position, bytes, limit)
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
        // The new element goes to the part that does not hold its neighbour; both are merged with what is beside them.
        let (part, kept) = if is_after { (node + 1, node) } else { (node, node + 1) };
        self.edit_node(part, |part| match part {
            Node::Packed(packed) if is_after => packed.push_front(bytes),
            Node::Packed(packed) => packed.push_back(bytes),
            Node::Large(_) => unreachable!("a node of one element is not split"),
        });
        self.count += 1;
        self.merge_around(kept, limit);
    }

    /// Adds an element so that it becomes the one at `position` of `node`, if that has room for it.
    fn insert_where_room(&mut self, node: usize, position: usize, bytes: &[u8], limit: NodeLimit) -> bool {
        let is_added = self.edit_node(node, |node| {
            let Some(packed) = node.with_room(bytes.len(), limit) else { return false };
            match packed.nth(position) {
                Some(offset) => _ = packed.insert_before(offset, bytes),
                None => packed.push_back(bytes),
            }
            true
        });
        self.count += usize::from(is_added);
        is_added
    }

    /// Makes two nodes of one: the second begins with the element at `index`, which is neither the first nor beyond the
    /// last.
    fn split(&mut self, node: usize, index: usize) {
        let tail = self.edit_node(node, |node| match node {
            Node::Packed(packed) => {
                let offset = packed.nth(index).expect("the place is in the node");
                packed.split_off(offset)
            }
            Node::Large(_) => unreachable!("a node of one element is not split"),
        });
        self.count -= tail.len();
        self.insert_node(node + 1, Node::Packed(tail));
    }

    /// Merges the nodes around `centre` pair by pair where one node has room for both: the two before it, the two behind
    /// it, it with the one before, and that with the one behind.
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
        let (Some(Node::Packed(left)), Some(Node::Packed(right))) =
            (self.nodes.get(node), self.nodes.get(node + 1))
        else {
            return false;
        };
        let bytes = left.len_bytes() + right.len_bytes() - Listpack::new().len_bytes();
        if limit.is_exceeded_by(bytes, left.len() + right.len()) {
            return false;
        }
        let Some(Node::Packed(right)) = self.take_node(node + 1) else { return false };
        self.count += right.len();
        self.edit_node(node, |node| {
            if let Node::Packed(left) = node {
                left.append(&right);
            }
        });
        true
    }

    /// Removes `count` elements of `node` from `index` on, which it has.
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

    /// Lets `edit` change a node and keeps the account of memory.
    fn edit_node<R>(&mut self, node: usize, edit: impl FnOnce(&mut Node) -> R) -> R {
        let node = &mut self.nodes[node];
        let memory_before = node.memory_bytes();
        let result = edit(node);
        self.nodes_bytes = self.nodes_bytes + node.memory_bytes() - memory_before;
        result
    }

    /// Adds a node with elements that are not counted yet, as the one at `at`.
    fn insert_node(&mut self, at: usize, node: Node) {
        self.count += node.len();
        self.nodes_bytes += node.memory_bytes();
        if self.nodes.len() == self.nodes.capacity() {
            let wanted = size_class((self.nodes.len() + 1) * size_of::<Node>()) / size_of::<Node>();
            self.nodes.reserve_exact(wanted - self.nodes.len());
        }
        self.nodes.insert(at, node);
    }

    /// Takes a node out with its elements.
    fn take_node(&mut self, at: usize) -> Option<Node> {
        let node = self.nodes.remove(at)?;
        self.count -= node.len();
        self.nodes_bytes -= node.memory_bytes();
        Some(node)
    }

    /// Gives memory of the ring back when three quarters of it are not used.
    fn give_back_ring(&mut self) {
        if self.nodes.len() < self.nodes.capacity() / 4 {
            self.nodes.shrink_to(self.nodes.len() * 2);
        }
    }
}

/// The elements of a list, from either end.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    /// What is left of the node that is read from the front.
    pub(super) front: NodeIter<'a>,
    /// Nodes not begun.
    pub(super) between: vec_deque::Iter<'a, Node>,
    /// What is left of the node that is read from the back.
    pub(super) back: NodeIter<'a>,
}

impl Default for Iter<'_> {
    fn default() -> Self {
        Iter {
            front: NodeIter::Large(None),
            between: vec_deque::Iter::default(),
            back: NodeIter::Large(None),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        loop {
            if let Some(element) = self.front.next() {
                return Some(element);
            }
            match self.between.next() {
                Some(node) => self.front = node.iter(),
                None => return self.back.next(),
            }
        }
    }
}

impl<'a> DoubleEndedIterator for Iter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Element<'a>> {
        loop {
            if let Some(element) = self.back.next_back() {
                return Some(element);
            }
            match self.between.next_back() {
                Some(node) => self.back = node.iter(),
                None => return self.front.next_back(),
            }
        }
    }
}
