//! The nodes of the tree: a leaf packs scores and references, an inner node knows each child's first element and size.
//!
//! Both kinds take one allocation of [`NODE_BYTES`], a size class of the allocator. A leaf of 63 elements and an inner node
//! of 31 children fill it. Scores stand apart from references, so that a search reads eight scores with each cache line.

use std::mem;

use crate::memory::prefetch;

/// Elements of a full leaf.
pub(super) const LEAF_CAPACITY: usize = 63;

/// Children of a full inner node.
pub(super) const INNER_CAPACITY: usize = 31;

/// Bytes of a node, whichever kind it is.
pub(super) const NODE_BYTES: usize = 1024;

/// A node with fewer elements or children than this share of its capacity is joined with a neighbour, or filled from it.
const SPARSE_DIVISOR: usize = 4;

/// A full leaf gives elements to a neighbour that has at least this much room; below it, moving costs more than the memory
/// of another leaf.
const ROOM_MIN: usize = 8;

const CACHE_LINE_BYTES: usize = 64;

/// The lines from the beginning of a node that have its scores.
const FETCHED_LINES: usize = 9;

const _: () = assert!(size_of::<Node<u64>>() == NODE_BYTES);

/// A node of the tree.
#[expect(clippy::large_enum_variant, reason = "both kinds fill one size class")]
pub(super) enum Node<R> {
    /// Elements.
    Leaf(Leaf<R>),
    /// Nodes, all of one height.
    Inner(Inner<R>),
}

/// Elements in their order.
pub(super) struct Leaf<R> {
    len: usize,
    scores: [f64; LEAF_CAPACITY],
    references: [R; LEAF_CAPACITY],
}

/// Children in their order. The first element of each child is repeated here, always exactly.
pub(super) struct Inner<R> {
    len: usize,
    scores: [f64; INNER_CAPACITY],
    references: [R; INNER_CAPACITY],
    counts: [usize; INNER_CAPACITY],
    children: [Option<Box<Node<R>>>; INNER_CAPACITY],
}

/// How many of the elements at the front `is_before` holds for; it must hold for none behind one it does not hold for.
fn partition<R: Copy>(scores: &[f64], references: &[R], is_before: &impl Fn(f64, R) -> bool) -> usize {
    let (mut low, mut high) = (0, scores.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        if is_before(scores[middle], references[middle]) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

/// Moves the last `count` of `source[..source_len]` in front of `target[..target_len]`.
fn move_to_front<T: Copy>(
    source: &[T],
    source_len: usize,
    target: &mut [T],
    target_len: usize,
    count: usize,
) {
    target.copy_within(..target_len, count);
    target[..count].copy_from_slice(&source[source_len - count..source_len]);
}

/// Moves the first `count` of `source[..source_len]` behind `target[..target_len]`.
fn move_to_back<T: Copy>(
    source: &mut [T],
    source_len: usize,
    target: &mut [T],
    target_len: usize,
    count: usize,
) {
    target[target_len..target_len + count].copy_from_slice(&source[..count]);
    source.copy_within(count..source_len, 0);
}

impl<R: Copy + Default> Leaf<R> {
    fn empty() -> Leaf<R> {
        Leaf { len: 0, scores: [0.0; LEAF_CAPACITY], references: [R::default(); LEAF_CAPACITY] }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn at(&self, index: usize) -> (f64, R) {
        (self.scores[..self.len][index], self.references[..self.len][index])
    }

    /// The scores, in order.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores[..self.len]
    }

    /// The references, in order.
    pub(super) fn references(&self) -> &[R] {
        &self.references[..self.len]
    }

    /// Gives the elements of `range` other references, which stand for the same.
    pub(super) fn renew(&mut self, range: std::ops::Range<usize>, mut renew: impl FnMut(R) -> R) {
        let references = &mut self.references[..self.len][range];
        references.iter_mut().for_each(|reference| *reference = renew(*reference));
    }

    /// How many elements at the front `is_before` holds for.
    pub(super) fn partition(&self, is_before: &impl Fn(f64, R) -> bool) -> usize {
        partition(&self.scores[..self.len], &self.references[..self.len], is_before)
    }

    /// Puts an element at `index`; the leaf has room.
    pub(super) fn insert(&mut self, index: usize, score: f64, reference: R) {
        self.scores.copy_within(index..self.len, index + 1);
        self.references.copy_within(index..self.len, index + 1);
        self.scores[index] = score;
        self.references[index] = reference;
        self.len += 1;
    }

    /// Removes `count` elements from `index` on.
    pub(super) fn remove_run(&mut self, index: usize, count: usize) {
        self.scores.copy_within(index + count..self.len, index);
        self.references.copy_within(index + count..self.len, index);
        self.len -= count;
    }

    /// Gives the element at `from` another score and the place `to`.
    pub(super) fn reposition(&mut self, from: usize, to: usize, score: f64) {
        if from < to {
            self.scores[from..=to].rotate_left(1);
            self.references[from..=to].rotate_left(1);
        } else {
            self.scores[to..=from].rotate_right(1);
            self.references[to..=from].rotate_right(1);
        }
        self.scores[to] = score;
    }

    fn give_to_right(&mut self, right: &mut Leaf<R>, count: usize) {
        move_to_front(&self.scores, self.len, &mut right.scores, right.len, count);
        move_to_front(&self.references, self.len, &mut right.references, right.len, count);
        self.len -= count;
        right.len += count;
    }

    fn give_to_left(&mut self, left: &mut Leaf<R>, count: usize) {
        move_to_back(&mut self.scores, self.len, &mut left.scores, left.len, count);
        move_to_back(&mut self.references, self.len, &mut left.references, left.len, count);
        self.len -= count;
        left.len += count;
    }
}

impl<R: Copy + Default> Inner<R> {
    fn empty() -> Inner<R> {
        Inner {
            len: 0,
            scores: [0.0; INNER_CAPACITY],
            references: [R::default(); INNER_CAPACITY],
            counts: [0; INNER_CAPACITY],
            children: [const { None }; INNER_CAPACITY],
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn child(&self, index: usize) -> &Node<R> {
        self.children[index].as_ref().expect("there are len children")
    }

    pub(super) fn child_mut(&mut self, index: usize) -> &mut Node<R> {
        self.children[index].as_mut().expect("there are len children")
    }

    /// Puts a child with as many elements back that was taken.
    pub(super) fn put_child(&mut self, index: usize, child: Box<Node<R>>) {
        (self.scores[index], self.references[index]) = child.first();
        self.children[index] = Some(child);
    }

    pub(super) fn take_child(&mut self, index: usize) -> Box<Node<R>> {
        self.children[index].take().expect("there are len children")
    }

    /// The first element of a child.
    pub(super) fn first_of(&self, index: usize) -> (f64, R) {
        (self.scores[index], self.references[index])
    }

    pub(super) fn set_first_of(&mut self, index: usize, score: f64, reference: R) {
        self.scores[index] = score;
        self.references[index] = reference;
    }

    /// The number of elements below each child.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts[..self.len]
    }

    pub(super) fn count_mut(&mut self, index: usize) -> &mut usize {
        &mut self.counts[index]
    }

    /// The child in which the first element that `is_before` does not hold for stands, or behind whose elements it would.
    pub(super) fn child_for(&self, is_before: &impl Fn(f64, R) -> bool) -> usize {
        partition(&self.scores[..self.len], &self.references[..self.len], is_before).saturating_sub(1)
    }

    /// The child that holds the element of `rank`, and that element's rank in it.
    pub(super) fn child_at(&self, mut rank: usize) -> (usize, usize) {
        for (index, &count) in self.counts().iter().enumerate() {
            if rank < count {
                return (index, rank);
            }
            rank -= count;
        }
        panic!("ranks are below the number of elements");
    }

    /// Puts a child at `index`; there is room.
    fn insert_child(&mut self, index: usize, child: Box<Node<R>>) {
        self.scores.copy_within(index..self.len, index + 1);
        self.references.copy_within(index..self.len, index + 1);
        self.counts.copy_within(index..self.len, index + 1);
        self.children[index..=self.len].rotate_right(1);
        self.counts[index] = child.count();
        (self.scores[index], self.references[index]) = child.first();
        self.children[index] = Some(child);
        self.len += 1;
    }

    fn remove_child(&mut self, index: usize) -> Box<Node<R>> {
        self.scores.copy_within(index + 1..self.len, index);
        self.references.copy_within(index + 1..self.len, index);
        self.counts.copy_within(index + 1..self.len, index);
        let removed = self.take_child(index);
        self.children[index..self.len].rotate_left(1);
        self.len -= 1;
        removed
    }

    fn give_to_right(&mut self, right: &mut Inner<R>, count: usize) {
        move_to_front(&self.scores, self.len, &mut right.scores, right.len, count);
        move_to_front(&self.references, self.len, &mut right.references, right.len, count);
        move_to_front(&self.counts, self.len, &mut right.counts, right.len, count);
        right.children[..right.len + count].rotate_right(count);
        for index in 0..count {
            mem::swap(&mut self.children[self.len - count + index], &mut right.children[index]);
        }
        self.len -= count;
        right.len += count;
    }

    fn give_to_left(&mut self, left: &mut Inner<R>, count: usize) {
        move_to_back(&mut self.scores, self.len, &mut left.scores, left.len, count);
        move_to_back(&mut self.references, self.len, &mut left.references, left.len, count);
        move_to_back(&mut self.counts, self.len, &mut left.counts, left.len, count);
        for index in 0..count {
            mem::swap(&mut self.children[index], &mut left.children[left.len + index]);
        }
        self.children[..self.len].rotate_left(count);
        self.len -= count;
        left.len += count;
    }

    /// Makes room in the full child at `index`, this node having room for another: a neighbouring leaf takes some of its
    /// elements, or it is split. `is_before` says where the element that needs the room will stand: one that goes behind or
    /// before all of a node at the edge leaves that node full, so that sets that grow in order are packed.
    /// Returns how many nodes there are more.
    pub(super) fn make_room(&mut self, index: usize, is_before: &impl Fn(f64, R) -> bool) -> usize {
        if let Node::Leaf(leaf) = self.child(index) {
            let (first, last) = (leaf.at(0), leaf.at(leaf.len() - 1));
            if index + 1 == self.len && is_before(last.0, last.1) {
                return self.split(index, LEAF_CAPACITY - 1);
            }
            if index == 0 && !is_before(first.0, first.1) {
                return self.split(index, 1);
            }
            let room = |index: usize| LEAF_CAPACITY - self.child(index).len();
            if index > 0 && room(index - 1) >= ROOM_MIN {
                self.even_out(index - 1);
                return 0;
            }
            if index + 1 < self.len && room(index + 1) >= ROOM_MIN {
                self.even_out(index);
                return 0;
            }
        }
        let half = self.child(index).len() / 2;
        self.split(index, half)
    }

    /// Splits the child at `index` in two, the left one keeping `kept` of what it has. Returns 1: a node more.
    fn split(&mut self, index: usize, kept: usize) -> usize {
        let child = self.child_mut(index);
        let mut right = Box::new(child.sibling());
        child.give_to_right(&mut right, child.len() - kept);
        self.counts[index] = self.child(index).count();
        self.insert_child(index + 1, right);
        1
    }

    /// Shares what the children at `left` and `left + 1` have evenly between them.
    fn even_out(&mut self, left: usize) {
        let (head, tail) = self.children.split_at_mut(left + 1);
        let (Some(left_child), Some(right_child)) = (&mut head[left], &mut tail[0]) else {
            panic!("there are len children");
        };
        let half = (left_child.len() + right_child.len()) / 2;
        if left_child.len() > half {
            let count = left_child.len() - half;
            left_child.give_to_right(right_child, count);
        } else {
            let count = half - left_child.len();
            right_child.give_to_left(left_child, count);
        }
        for index in [left, left + 1] {
            self.refresh(index);
        }
    }

    /// Reads first element and count of a child anew.
    fn refresh(&mut self, index: usize) {
        let (first, count) = (self.child(index).first(), self.child(index).count());
        self.set_first_of(index, first.0, first.1);
        self.counts[index] = count;
    }

    /// Puts things right after the child at `index` has lost elements: removes it when it is empty, joins it with a
    /// neighbour or fills it from there when it is sparse. Returns how many nodes there are fewer.
    pub(super) fn mend(&mut self, index: usize) -> usize {
        let child = self.child(index);
        if child.len() == 0 {
            self.remove_child(index);
            return 1;
        }
        let capacity = child.capacity();
        let is_sparse = child.len() < capacity / SPARSE_DIVISOR;
        let first = child.first();
        self.set_first_of(index, first.0, first.1);
        if !is_sparse || self.len == 1 {
            return 0;
        }
        let left = if index > 0 { index - 1 } else { 0 };
        // Three quarters, so that the joined node is not full at once again.
        if self.child(left).len() + self.child(left + 1).len() > capacity / 4 * 3 {
            self.even_out(left);
            return 0;
        }
        let mut right = self.remove_child(left + 1);
        let count = right.len();
        right.give_to_left(self.child_mut(left), count);
        self.refresh(left);
        1
    }
}

impl<R: Copy + Default> Node<R> {
    /// Asks the processor to fetch what a search in the node will read: a binary search would wait for each line in turn.
    #[inline]
    pub(super) fn fetch(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        for line in 0..FETCHED_LINES {
            prefetch(start.wrapping_add(line * CACHE_LINE_BYTES));
        }
    }

    /// A leaf with one element.
    pub(super) fn leaf_of(score: f64, reference: R) -> Node<R> {
        let mut leaf = Leaf::empty();
        leaf.insert(0, score, reference);
        Node::Leaf(leaf)
    }

    /// An inner node with one child.
    pub(super) fn inner_of(child: Box<Node<R>>) -> Node<R> {
        let mut inner = Inner::empty();
        inner.insert_child(0, child);
        Node::Inner(inner)
    }

    /// An empty node of the same kind.
    fn sibling(&self) -> Node<R> {
        match self {
            Node::Leaf(_) => Node::Leaf(Leaf::empty()),
            Node::Inner(_) => Node::Inner(Inner::empty()),
        }
    }

    /// Elements of a leaf, children of an inner node.
    fn len(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len,
            Node::Inner(inner) => inner.len,
        }
    }

    fn capacity(&self) -> usize {
        match self {
            Node::Leaf(_) => LEAF_CAPACITY,
            Node::Inner(_) => INNER_CAPACITY,
        }
    }

    pub(super) fn is_full(&self) -> bool {
        self.len() == self.capacity()
    }

    /// The number of elements below.
    pub(super) fn count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len,
            Node::Inner(inner) => inner.counts().iter().sum(),
        }
    }

    /// The first element; the node is not empty.
    pub(super) fn first(&self) -> (f64, R) {
        match self {
            Node::Leaf(leaf) => leaf.at(0),
            Node::Inner(inner) => inner.first_of(0),
        }
    }

    fn give_to_right(&mut self, right: &mut Node<R>, count: usize) {
        match (self, right) {
            (Node::Leaf(left), Node::Leaf(right)) => left.give_to_right(right, count),
            (Node::Inner(left), Node::Inner(right)) => left.give_to_right(right, count),
            _ => panic!("neighbours are of one height"),
        }
    }

    fn give_to_left(&mut self, left: &mut Node<R>, count: usize) {
        match (self, left) {
            (Node::Leaf(right), Node::Leaf(left)) => right.give_to_left(left, count),
            (Node::Inner(right), Node::Inner(left)) => right.give_to_left(left, count),
            _ => panic!("neighbours are of one height"),
        }
    }
}
