//! The nodes of the tree: a leaf packs scores and references, an inner node stores each child's first element and size.
//!
//! Both kinds take one allocation of [`NODE_BYTES`], a size class of the allocator. A leaf of 63 elements and an inner
//! node of 31 children fill it. Scores and references are separate arrays, so a search reads eight scores per cache
//! line.

use std::mem;

use crate::memory::prefetch;

/// The number of elements of a full leaf.
pub(super) const LEAF_CAPACITY: usize = 63;

/// The number of children of a full inner node.
pub(super) const INNER_CAPACITY: usize = 31;

/// The size of a node of either kind, in bytes.
pub(super) const NODE_BYTES: usize = 1024;

/// A node with fewer items than its capacity divided by this number is joined with a neighbor or filled from it.
const SPARSE_DIVISOR: usize = 4;

/// The minimum free capacity of a neighbor to which a full leaf moves elements; with less, moving costs more than the
/// memory of another leaf.
const FREE_MIN: usize = 8;

const CACHE_LINE_BYTES: usize = 64;

/// The number of cache lines at the beginning of a node that contain its scores.
const FETCHED_LINES: usize = 9;

const _: () = assert!(size_of::<Node<u64>>() == NODE_BYTES);

/// A node of the tree.
#[expect(clippy::large_enum_variant, reason = "both kinds fill one size class")]
pub(super) enum Node<R> {
    /// Elements.
    Leaf(Leaf<R>),
    /// Child nodes, all of one height.
    Inner(Inner<R>),
}

/// Elements in order.
pub(super) struct Leaf<R> {
    len: usize,
    scores: [f64; LEAF_CAPACITY],
    references: [R; LEAF_CAPACITY],
}

/// Children in order, with an exact copy of each child's first element.
pub(super) struct Inner<R> {
    len: usize,
    scores: [f64; INNER_CAPACITY],
    references: [R; INNER_CAPACITY],
    counts: [usize; INNER_CAPACITY],
    children: [Option<Box<Node<R>>>; INNER_CAPACITY],
}

/// Returns how many elements satisfy `is_before`; these must precede all others.
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

/// Moves the last `count` elements of `source[..source_len]` to the front of `target[..target_len]`.
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

/// Moves the first `count` elements of `source[..source_len]` to the end of `target[..target_len]`.
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

    /// Returns the scores, in order.
    pub(super) fn scores(&self) -> &[f64] {
        &self.scores[..self.len]
    }

    /// Returns the references, in order.
    pub(super) fn references(&self) -> &[R] {
        &self.references[..self.len]
    }

    /// Replaces the references of the elements in `range` by equivalent ones.
    pub(super) fn renew(&mut self, range: std::ops::Range<usize>, mut renew: impl FnMut(R) -> R) {
        let references = &mut self.references[..self.len][range];
        references.iter_mut().for_each(|reference| *reference = renew(*reference));
    }

    /// Returns how many elements satisfy `is_before`; these must precede all others.
    pub(super) fn partition(&self, is_before: &impl Fn(f64, R) -> bool) -> usize {
        partition(&self.scores[..self.len], &self.references[..self.len], is_before)
    }

    /// Inserts an element at `index`. The leaf must not be full.
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

    /// Moves the element at `from` to `to` and sets its score.
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

    /// Puts a child back that was taken from this index; its number of elements must not have changed.
    pub(super) fn put_child(&mut self, index: usize, child: Box<Node<R>>) {
        (self.scores[index], self.references[index]) = child.first();
        self.children[index] = Some(child);
    }

    pub(super) fn take_child(&mut self, index: usize) -> Box<Node<R>> {
        self.children[index].take().expect("there are len children")
    }

    /// Returns the first element of a child.
    pub(super) fn first_of(&self, index: usize) -> (f64, R) {
        (self.scores[index], self.references[index])
    }

    pub(super) fn set_first_of(&mut self, index: usize, score: f64, reference: R) {
        self.scores[index] = score;
        self.references[index] = reference;
    }

    /// Returns the number of elements in each child.
    pub(super) fn counts(&self) -> &[usize] {
        &self.counts[..self.len]
    }

    pub(super) fn count_mut(&mut self, index: usize) -> &mut usize {
        &mut self.counts[index]
    }

    /// Returns the index of the last child whose first element satisfies `is_before`, or 0: the first element that does
    /// not satisfy it is in this child or directly after it.
    pub(super) fn child_for(&self, is_before: &impl Fn(f64, R) -> bool) -> usize {
        partition(&self.scores[..self.len], &self.references[..self.len], is_before).saturating_sub(1)
    }

    /// Returns the index of the child with the element of `rank`, and that element's rank in the child.
    pub(super) fn child_at(&self, mut rank: usize) -> (usize, usize) {
        for (index, &count) in self.counts().iter().enumerate() {
            if rank < count {
                return (index, rank);
            }
            rank -= count;
        }
        panic!("ranks are below the number of elements");
    }

    /// Inserts a child at `index`. The node must not be full.
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

    /// Makes space in the full child at `index`; this node must have space for another child. A neighboring leaf takes
    /// some of its elements, or the child is split. `is_before` determines the place of the new element: if that is
    /// after all elements of this node's last leaf, or before all elements of its first leaf, that leaf is left full,
    /// so that sets that grow in order are packed. Returns the number of added nodes.
    pub(super) fn free_place(&mut self, index: usize, is_before: &impl Fn(f64, R) -> bool) -> usize {
        if let Node::Leaf(leaf) = self.child(index) {
            let (first, last) = (leaf.at(0), leaf.at(leaf.len() - 1));
            if index + 1 == self.len && is_before(last.0, last.1) {
                return self.split(index, LEAF_CAPACITY - 1);
            }
            if index == 0 && !is_before(first.0, first.1) {
                return self.split(index, 1);
            }
            let free = |index: usize| LEAF_CAPACITY - self.child(index).len();
            if index > 0 && free(index - 1) >= FREE_MIN {
                self.even_out(index - 1);
                return 0;
            }
            if index + 1 < self.len && free(index + 1) >= FREE_MIN {
                self.even_out(index);
                return 0;
            }
        }
        let half = self.child(index).len() / 2;
        self.split(index, half)
    }

    /// Splits the child at `index` in two; the left one keeps `kept` items. Returns 1, the number of added nodes.
    fn split(&mut self, index: usize, kept: usize) -> usize {
        let child = self.child_mut(index);
        let mut right = Box::new(child.sibling());
        child.give_to_right(&mut right, child.len() - kept);
        self.counts[index] = self.child(index).count();
        self.insert_child(index + 1, right);
        1
    }

    /// Distributes the items of the children at `left` and `left + 1` evenly between them.
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

    /// Updates the copied first element and the count of a child.
    fn refresh(&mut self, index: usize) {
        let (first, count) = (self.child(index).first(), self.child(index).count());
        self.set_first_of(index, first.0, first.1);
        self.counts[index] = count;
    }

    /// Restores the invariants after the child at `index` has lost elements: removes it when it is empty; joins it with
    /// a neighbor or fills it from there when it is sparse. Returns the number of removed nodes.
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
        // The two children are joined only up to three quarters of a node, so that the joined node does not fill up
        // again at once.
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
    /// Prefetches the scores that a search in the node will read: a binary search would wait for one cache line after
    /// the other.
    #[inline]
    pub(super) fn fetch(&self) {
        let start = std::ptr::from_ref(self).cast::<u8>();
        for line in 0..FETCHED_LINES {
            prefetch(start.wrapping_add(line * CACHE_LINE_BYTES));
        }
    }

    /// Returns a leaf with one element.
    pub(super) fn leaf_of(score: f64, reference: R) -> Node<R> {
        let mut leaf = Leaf::empty();
        leaf.insert(0, score, reference);
        Node::Leaf(leaf)
    }

    /// Returns an inner node with one child.
    pub(super) fn inner_of(child: Box<Node<R>>) -> Node<R> {
        let mut inner = Inner::empty();
        inner.insert_child(0, child);
        Node::Inner(inner)
    }

    /// Returns an empty node of the same kind.
    fn sibling(&self) -> Node<R> {
        match self {
            Node::Leaf(_) => Node::Leaf(Leaf::empty()),
            Node::Inner(_) => Node::Inner(Inner::empty()),
        }
    }

    /// Returns the number of elements of a leaf or children of an inner node.
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

    /// Returns the number of elements in this node and below it.
    pub(super) fn count(&self) -> usize {
        match self {
            Node::Leaf(leaf) => leaf.len,
            Node::Inner(inner) => inner.counts().iter().sum(),
        }
    }

    /// Returns the first element. The node must not be empty.
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
