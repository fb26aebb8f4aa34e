//! The order of a sorted set: a packed B+tree of scores and references to members, with order statistics.
//!
//! ```text
//! inner   first element, count and address of each of up to 31 children
//! leaf    up to 63 scores, and as many references
//! ```
//!
//! Elements are ordered by score, and elements with equal scores by the members that their references represent. The
//! tree does not know these members: searches take a function that compares an element with the searched one, and
//! nearly always the score alone decides. Rank, look-up by rank, insertion and removal take O(log n); a change moves
//! elements within two neighboring nodes at most.
//!
//! # Invariants
//!
//! * All leaves are at one depth. No node is empty; an empty tree has no root.
//! * An inner node stores the first element of each child and the number of elements below it, both always exact.
//! * A node that a removal leaves less than a quarter full is joined with a neighbor or filled from it.
//!
//! # Why a B+tree
//!
//! A skip list takes 32 bytes or more per element, and every step of a search is a cache miss. Here an element takes 16
//! bytes in leaves that are 80 % full (neighbors exchange elements before a leaf is split; leaves filled in order are
//! full), and a million elements are four nodes deep.

use std::cmp::Ordering;
use std::ops::Range;

use super::node::{Leaf, NODE_BYTES, Node};
use crate::memory::moving::Mover;
use crate::memory::size_class;

/// Elements, each a score and a reference `R`, in order.
pub(super) struct Tree<R> {
    root: Option<Box<Node<R>>>,
    len: usize,
    nodes: usize,
}

impl<R> Default for Tree<R> {
    fn default() -> Tree<R> {
        Tree { root: None, len: 0, nodes: 0 }
    }
}

impl<R: Copy + Default> Tree<R> {
    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that the nodes take.
    pub(super) fn memory_bytes(&self) -> usize {
        self.nodes * size_class(NODE_BYTES)
    }

    /// Adds an element. `order` compares an element of the tree with the new one and never returns `Equal`. O(log n).
    pub(super) fn insert(&mut self, score: f64, reference: R, order: impl Fn(f64, R) -> Ordering) {
        let is_before = |score, reference| order(score, reference) == Ordering::Less;
        self.len += 1;
        let Some(root) = self.root.take() else {
            self.root = Some(Box::new(Node::leaf_of(score, reference)));
            self.nodes = 1;
            return;
        };
        let root = if root.is_full() {
            self.nodes += 1;
            Box::new(Node::inner_of(root))
        } else {
            root
        };
        let mut node: &mut Node<R> = self.root.insert(root);
        // Every node on the path has space for another child, so a split never propagates upwards.
        loop {
            match node {
                Node::Leaf(leaf) => {
                    let index = leaf.partition(&is_before);
                    leaf.insert(index, score, reference);
                    return;
                }
                Node::Inner(inner) => {
                    let mut index = inner.child_for(&is_before);
                    if inner.child(index).is_full() {
                        self.nodes += inner.free_place(index, &is_before);
                        index = inner.child_for(&is_before);
                    }
                    inner.child(index).fetch();
                    *inner.count_mut(index) += 1;
                    let first = inner.first_of(index);
                    if !is_before(first.0, first.1) {
                        inner.set_first_of(index, score, reference);
                    }
                    node = inner.child_mut(index);
                }
            }
        }
    }

    /// Removes the element for which `order` returns `Equal`, and returns its reference. O(log n).
    pub(super) fn remove(&mut self, order: impl Fn(f64, R) -> Ordering) -> Option<R> {
        let mut removed = None;
        let root = self.root.as_mut()?;
        let find = |node: &Node<R>| match node {
            Node::Leaf(leaf) => {
                let index = leaf.partition(&|score, reference| order(score, reference) == Ordering::Less);
                let is_there = index < leaf.len() && {
                    let (score, reference) = leaf.at(index);
                    order(score, reference) == Ordering::Equal
                };
                (index, usize::from(is_there))
            }
            Node::Inner(inner) => {
                let is_not_after = |score, reference| order(score, reference) != Ordering::Greater;
                (inner.child_for(&is_not_after), 1)
            }
        };
        let (count, nodes) = remove_run(root, &find, &mut |_, reference| removed = Some(reference));
        self.len -= count;
        self.nodes -= nodes;
        self.lower_root();
        removed
    }

    /// Removes the elements with ranks in `range`, calling `visit` for each, in order. O(elements removed + log n) for
    /// each leaf that contains them.
    pub(super) fn remove_range(&mut self, range: Range<usize>, mut visit: impl FnMut(f64, R)) {
        let mut left = range.end.min(self.len).saturating_sub(range.start);
        while left > 0
            && let Some(root) = &mut self.root
        {
            let rank = std::cell::Cell::new(range.start);
            let find = |node: &Node<R>| match node {
                Node::Leaf(leaf) => (rank.get(), left.min(leaf.len() - rank.get())),
                Node::Inner(inner) => {
                    let (index, rest) = inner.child_at(rank.get());
                    rank.set(rest);
                    (index, 1)
                }
            };
            let (count, nodes) = remove_run(root, &find, &mut visit);
            left -= count;
            self.len -= count;
            self.nodes -= nodes;
            self.lower_root();
        }
    }

    /// Removes the root while it is empty or has a single child.
    fn lower_root(&mut self) {
        while let Some(root) = &mut self.root {
            match &mut **root {
                Node::Leaf(leaf) if leaf.len() > 0 => return,
                Node::Inner(inner) if inner.len() > 1 => return,
                Node::Inner(inner) if inner.len() == 1 => self.root = Some(inner.take_child(0)),
                _ => self.root = None,
            }
            self.nodes -= 1;
        }
    }

    /// Changes the score of the element for which `order` returns `Equal`, if the element stays in its leaf; otherwise
    /// changes nothing and returns false. `new_order` is `order` for the element with its new score. O(log n).
    pub(super) fn reposition(
        &mut self,
        order: impl Fn(f64, R) -> Ordering,
        score: f64,
        new_order: impl Fn(f64, R) -> Ordering,
    ) -> bool {
        let Some(root) = &mut self.root else { return false };
        let mut node: &mut Node<R> = root;
        let mut is_last = true;
        loop {
            match node {
                Node::Inner(inner) => {
                    let is_not_after = |score, reference| order(score, reference) != Ordering::Greater;
                    let index = inner.child_for(&is_not_after);
                    is_last &= index + 1 == inner.len();
                    node = inner.child_mut(index);
                    node.fetch();
                }
                Node::Leaf(leaf) => {
                    let from = leaf.partition(&|score, reference| order(score, reference) == Ordering::Less);
                    let last = leaf.len() - 1;
                    let stands = |index: usize, wanted| {
                        let (score, reference) = leaf.at(index);
                        new_order(score, reference) == wanted
                    };
                    // The first element of a leaf is repeated above it: it must not move, and no other element may come
                    // before it.
                    let stays = from > 0
                        && from <= last
                        && stands(0, Ordering::Less)
                        && (is_last || (from < last && stands(last, Ordering::Greater)));
                    if !stays {
                        return false;
                    }
                    let to =
                        leaf.partition(&|score, reference| new_order(score, reference) == Ordering::Less);
                    let to = if to > from { to - 1 } else { to };
                    leaf.reposition(from, to, score);
                    return true;
                }
            }
        }
    }

    /// Returns how many elements satisfy `is_before`; these must precede all others. O(log n).
    pub(super) fn rank(&self, is_before: impl Fn(f64, R) -> bool) -> usize {
        let Some(root) = &self.root else { return 0 };
        let mut node: &Node<R> = root;
        let mut rank = 0;
        loop {
            match node {
                Node::Leaf(leaf) => return rank + leaf.partition(&is_before),
                Node::Inner(inner) => {
                    let index = inner.child_for(&is_before);
                    node = inner.child(index);
                    node.fetch();
                    rank += inner.counts()[..index].iter().sum::<usize>();
                }
            }
        }
    }

    /// Returns the leaf with the element of `rank`, and that element's index in it. O(log n).
    ///
    /// # Panics
    /// Panics if there is no such element.
    fn locate(&self, mut rank: usize) -> (&Leaf<R>, usize) {
        let mut node: &Node<R> = self.root.as_ref().expect("ranks are below the number of elements");
        loop {
            match node {
                Node::Leaf(leaf) => return (leaf, rank),
                Node::Inner(inner) => {
                    let (index, rest) = inner.child_at(rank);
                    rank = rest;
                    node = inner.child(index);
                }
            }
        }
    }

    /// Returns the element of `rank`, if there is one. O(log n).
    #[cfg(test)]
    fn at(&self, rank: usize) -> Option<(f64, R)> {
        (rank < self.len).then(|| {
            let (leaf, index) = self.locate(rank);
            leaf.at(index)
        })
    }

    /// Returns the elements with ranks in `range`, iterable from both ends. O(log n) per leaf, O(1) per element.
    pub(super) fn iter(&self, range: Range<usize>) -> Iter<'_, R> {
        let end = range.end.min(self.len);
        Iter { tree: self, ranks: range.start.min(end)..end, front: None, back: None }
    }

    /// Calls `visit` for the elements with ranks in `range`, in order. The third argument is the references that follow
    /// in the same leaf. O(log n) per leaf, O(1) per element; faster than [`Tree::iter`].
    pub(super) fn visit(&self, range: Range<usize>, mut visit: impl FnMut(f64, R, &[R])) {
        let mut rank = range.start;
        let end = range.end.min(self.len);
        while rank < end {
            let (leaf, first) = self.locate(rank);
            let count = (leaf.len() - first).min(end - rank);
            let (scores, references) = (leaf.scores(), leaf.references());
            for index in first..first + count {
                visit(scores[index], references[index], &references[index + 1..]);
            }
            rank += count;
        }
    }

    /// Moves the nodes with the elements of ranks in `range`, which must not be empty, to other allocations where that
    /// is worth it, and replaces the reference of each of these elements by the result of `renew`. The new references
    /// must be equivalent, so that the order does not change. O(log n + elements).
    pub(super) fn move_inside(
        &mut self,
        range: Range<usize>,
        mover: &mut Mover<'_>,
        renew: &mut impl FnMut(R, &mut Mover<'_>) -> R,
    ) {
        self.root = self.root.take().map(|root| moved_node(root, range, mover, renew));
    }

    /// Panics unless the invariants hold; `is_before` returns whether one element belongs before another.
    pub(super) fn check_invariants(&self, is_before: impl Fn((f64, R), (f64, R)) -> bool)
    where
        R: PartialEq,
    {
        let mut nodes = 0;
        let mut depths = Vec::new();
        if let Some(root) = &self.root {
            let count = check_node(root, 0, &mut depths, &mut nodes);
            assert_eq!(count, self.len);
        }
        assert_eq!(nodes, self.nodes, "nodes are counted");
        assert!(depths.windows(2).all(|pair| pair[0] == pair[1]), "all leaves are at one depth: {depths:?}");
        let mut previous = None;
        let mut count = 0;
        for element in self.iter(0..self.len) {
            assert!(previous.is_none_or(|previous| is_before(previous, element)), "elements are in order");
            previous = Some(element);
            count += 1;
        }
        assert_eq!(count, self.len);
    }
}

/// Removes elements from the leaf to which `find` leads; `find` returns the index of a child, or the index of an
/// element and the number of elements to remove. Returns how many elements and how many nodes were removed.
fn remove_run<R: Copy + Default>(
    node: &mut Node<R>,
    find: &impl Fn(&Node<R>) -> (usize, usize),
    visit: &mut impl FnMut(f64, R),
) -> (usize, usize) {
    let (index, count) = find(node);
    match node {
        Node::Leaf(leaf) => {
            for index in index..index + count {
                let (score, reference) = leaf.at(index);
                visit(score, reference);
            }
            leaf.remove_run(index, count);
            (count, 0)
        }
        Node::Inner(inner) => {
            let child = inner.child_mut(index);
            child.fetch();
            let (count, nodes) = remove_run(child, find, visit);
            *inner.count_mut(index) -= count;
            if count == 0 { (0, 0) } else { (count, nodes + inner.mend(index)) }
        }
    }
}

/// Checks a node and its descendants; returns the number of elements.
fn check_node<R: Copy + Default + PartialEq>(
    node: &Node<R>,
    depth: usize,
    depths: &mut Vec<usize>,
    nodes: &mut usize,
) -> usize {
    *nodes += 1;
    match node {
        Node::Leaf(leaf) => {
            assert!(leaf.len() > 0, "no leaf is empty");
            depths.push(depth);
            leaf.len()
        }
        Node::Inner(inner) => {
            assert!(
                inner.len() > usize::from(depth == 0),
                "no inner node is empty, and a root has two children"
            );
            for index in 0..inner.len() {
                let count = check_node(inner.child(index), depth + 1, depths, nodes);
                assert_eq!(count, inner.counts()[index], "counts are exact");
                assert!(inner.child(index).first() == inner.first_of(index), "first elements are exact");
            }
            inner.counts().iter().sum()
        }
    }
}

/// Elements in order; see [`Tree::iter`].
pub(super) struct Iter<'a, R> {
    tree: &'a Tree<R>,
    ranks: Range<usize>,
    /// The leaf of the next element from the front, and its index there.
    front: Option<(&'a Leaf<R>, usize)>,
    /// The leaf of the next element from the back, and its index there.
    back: Option<(&'a Leaf<R>, usize)>,
}

impl<'a, R: Copy + Default> Iter<'a, R> {
    /// Returns the references of the next elements from the front that are in the same leaf.
    pub(super) fn near_front(&self) -> &'a [R] {
        self.front.map_or(&[], |(leaf, index)| &leaf.references()[index..])
    }

    /// Returns the references of the next elements from the back that are in the same leaf, the next one last.
    pub(super) fn near_back(&self) -> &'a [R] {
        self.back.map_or(&[], |(leaf, index)| &leaf.references()[..=index])
    }
}

impl<R: Copy + Default> Iterator for Iter<'_, R> {
    type Item = (f64, R);

    #[inline]
    fn next(&mut self) -> Option<(f64, R)> {
        if self.ranks.is_empty() {
            return None;
        }
        let (leaf, index) = match self.front {
            Some(place) => place,
            None => self.tree.locate(self.ranks.start),
        };
        self.ranks.start += 1;
        self.front = (index + 1 < leaf.len()).then_some((leaf, index + 1));
        Some(leaf.at(index))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.ranks.len(), Some(self.ranks.len()))
    }
}

impl<R: Copy + Default> DoubleEndedIterator for Iter<'_, R> {
    #[inline]
    fn next_back(&mut self) -> Option<(f64, R)> {
        if self.ranks.is_empty() {
            return None;
        }
        let (leaf, index) = match self.back {
            Some(place) => place,
            None => self.tree.locate(self.ranks.end - 1),
        };
        self.ranks.end -= 1;
        self.back = (index > 0).then(|| (leaf, index - 1));
        Some(leaf.at(index))
    }
}

impl<R: Copy + Default> ExactSizeIterator for Iter<'_, R> {}

/// Moves a node and its descendants; see [`Tree::move_inside`].
fn moved_node<R: Copy + Default>(
    node: Box<Node<R>>,
    range: Range<usize>,
    mover: &mut Mover<'_>,
    renew: &mut impl FnMut(R, &mut Mover<'_>) -> R,
) -> Box<Node<R>> {
    let mut node = mover.moved_box(node);
    match &mut *node {
        Node::Leaf(leaf) => leaf.renew(range, |reference| renew(reference, mover)),
        Node::Inner(inner) => {
            let mut first = 0;
            for index in 0..inner.len() {
                let next_first = first + inner.counts()[index];
                let (from, end) = (range.start.max(first), range.end.min(next_first));
                if from < end {
                    let child = moved_node(inner.take_child(index), from - first..end - first, mover, renew);
                    inner.put_child(index, child);
                }
                first = next_first;
            }
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::node::LEAF_CAPACITY;
    use super::*;
    use crate::algorithms::random::Random;

    /// A tree of (score, number), and the model of its contents.
    #[derive(Default)]
    struct Pair {
        tree: Tree<u64>,
        model: BTreeSet<(i64, u64)>,
    }

    fn order_to(score: f64, number: u64) -> impl Fn(f64, u64) -> Ordering {
        move |other, reference| other.total_cmp(&score).then(reference.cmp(&number))
    }

    impl Pair {
        fn insert(&mut self, score: i64, number: u64) {
            if self.model.insert((score, number)) {
                self.tree.insert(score as f64, number, order_to(score as f64, number));
            }
        }

        fn remove(&mut self, score: i64, number: u64) {
            let removed = self.tree.remove(order_to(score as f64, number));
            assert_eq!(removed.is_some(), self.model.remove(&(score, number)));
            assert!(removed.is_none_or(|removed| removed == number));
        }

        fn change(&mut self, from: (i64, u64), score: i64) {
            if !self.model.contains(&from) || self.model.contains(&(score, from.1)) {
                return;
            }
            self.model.remove(&from);
            self.model.insert((score, from.1));
            let old = order_to(from.0 as f64, from.1);
            let new = order_to(score as f64, from.1);
            if !self.tree.reposition(&old, score as f64, &new) {
                assert_eq!(self.tree.remove(&old), Some(from.1));
                self.tree.insert(score as f64, from.1, new);
            }
        }

        fn check(&self) {
            self.tree.check_invariants(|a, b| (a.0, a.1) < (b.0, b.1));
            assert_eq!(self.tree.len(), self.model.len());
            let model = || self.model.iter().map(|&(score, number)| (score as f64, number));
            assert!(self.tree.iter(0..usize::MAX).eq(model()));
            assert!(self.tree.iter(0..usize::MAX).rev().eq(model().rev()));
        }
    }

    #[test]
    fn a_tree_agrees_with_an_ordered_set_under_random_changes() {
        for seed in 0..12 {
            let mut random = Random::seeded(seed * 77 + 1);
            let mut pair = Pair::default();
            // The number of possible scores: from a single one to more than there are elements.
            let spread = [1, 2, 50, 100_000][seed as usize % 4];
            for step in 0..6000 {
                let score = random.below(spread) as i64 - 5;
                let number = random.below(3000) as u64;
                // Grow first, shrink later.
                let is_growing = step < 3500;
                match random.below(10) {
                    0..=2 => {
                        let existing = pair.model.range((score, number)..).next().copied();
                        if let Some((score, number)) = existing {
                            pair.remove(score, number);
                        }
                        pair.remove(score, number);
                    }
                    3 => {
                        let existing = pair.model.range((score, number)..).next().copied();
                        if let Some(from) = existing {
                            let near = from.0 + random.below(3) as i64 - 1;
                            pair.change(from, if random.below(2) == 0 { near } else { score });
                        }
                    }
                    _ if is_growing => pair.insert(score, number),
                    4 => {
                        let start = random.below(pair.model.len() + 1);
                        let count = random.below(40);
                        let mut removed = Vec::new();
                        pair.tree.remove_range(start..start + count, |score, number| {
                            removed.push((score as i64, number));
                        });
                        let expected: Vec<_> = pair.model.iter().skip(start).take(count).copied().collect();
                        assert_eq!(removed, expected);
                        expected.iter().for_each(|element| assert!(pair.model.remove(element)));
                    }
                    _ => {
                        let rank = random.below(pair.model.len().max(1));
                        assert_eq!(
                            pair.tree.at(rank),
                            pair.model.iter().nth(rank).map(|&(score, number)| (score as f64, number))
                        );
                        let before = |s: f64, n: u64| (s, n) < (score as f64, number);
                        assert_eq!(
                            pair.tree.rank(before),
                            pair.model.iter().filter(|&&(s, n)| (s, n) < (score, number)).count()
                        );
                    }
                }
                if step % 500 == 0 {
                    pair.check();
                }
            }
            pair.check();
            let len = pair.model.len();
            pair.tree.remove_range(0..len, |_, _| {});
            pair.model.clear();
            pair.check();
            assert_eq!(pair.tree.memory_bytes(), 0);
        }
    }

    #[test]
    fn elements_added_in_order_fill_the_leaves_in_either_direction() {
        for direction in [1, -1] {
            let mut pair = Pair::default();
            for number in 0..20_000 {
                pair.insert(direction * number, 0);
            }
            pair.check();
            let leaves = 20_000 / (LEAF_CAPACITY - 1);
            assert!(pair.tree.memory_bytes() < leaves * NODE_BYTES * 12 / 10, "{}", pair.tree.memory_bytes());
        }
    }

    #[test]
    fn elements_added_at_random_take_less_than_twenty_one_bytes_each() {
        let mut random = Random::seeded(9);
        let mut pair = Pair::default();
        for number in 0..50_000 {
            pair.insert(random.below(1 << 40) as i64, number);
        }
        pair.check();
        assert!(pair.tree.memory_bytes() < 50_000 * 21, "{}", pair.tree.memory_bytes() / 50_000);
    }

    #[test]
    fn a_part_of_the_elements_is_iterated_from_both_ends() {
        let mut pair = Pair::default();
        for number in 0..1000 {
            pair.insert(number, 0);
        }
        for (start, end) in
            [(0, 0), (0, 1), (5, 5), (7, 300), (62, 64), (500, 1000), (999, 2000), (2000, 3000)]
        {
            let scores: Vec<f64> = (start..end.min(1000)).map(|number| number as f64).collect();
            let found: Vec<f64> = pair.tree.iter(start..end).map(|(score, _)| score).collect();
            assert_eq!(found, scores);
            let mut both = pair.tree.iter(start..end);
            let mut count = 0;
            while let (Some(front), back) = (both.next(), both.next_back()) {
                assert_eq!(front.0, scores[count]);
                assert!(back.is_none_or(|back| back.0 == scores[scores.len() - 1 - count]));
                count += 1;
            }
            assert_eq!(count, scores.len().div_ceil(2));
        }
    }
}
