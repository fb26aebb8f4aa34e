//! The links of a graph of several levels, stored in both directions.
//!
//! ```text
//! lowest level   row of a slot     up | more | count, level, whether it is pending or dead | links, 7/4 M of them
//! more           row of a node     slot | links, 5/4 M of them, if it has more than fit on the lowest level
//! other levels   row of a node     slot | up | count | links, M of them
//! ```
//!
//! On the lowest level a node can have three times M links. Only nodes that are near to many others have more than
//! twice M. With a limit of twice M for all nodes, as is usual for one-way links, nodes reject many links, and searches
//! among word vectors have a much lower recall (GloVe, 340,000 of 100 dimensions, EF 100: recall 0.896 instead of 0.94,
//! at hardly more distances).
//!
//! `up` is the row of the same node one level higher. Rows have no gaps: the last row moves into the place of a removed
//! row. A pending node is not linked yet: it has no links, in either direction. A dead node belongs to a removed
//! vector: its links still exist, and searches pass through it, until it is removed
//! ([`Index::remove`](crate::Index::remove)).
//!
//! Invariants ([`Graph::check`]): each link has its counterpart in the other node's list; no list contains a node twice
//! or its own node; all nodes of a level that are not pending are connected. The last invariant holds because a link is
//! removed only if its two nodes share a neighbor, or when a new node is inserted between them; see `hnsw.rs`.

pub(crate) mod hnsw;
pub(crate) mod linking;
pub(crate) mod pending;

use crate::arena::{Account, Rows};
use crate::kernels;
use crate::random::LEVEL_MAX;

/// Marks a missing row or slot.
pub(crate) const NONE: u32 = u32::MAX;

const UP: usize = 0;
const MORE: usize = 1;
const HEAD: usize = 2;
const LOWEST_LINKS: usize = 3;
const MORE_LINKS: usize = 1;
const SLOT: usize = 0;
const UPPER_UP: usize = 1;
const COUNT: usize = 2;
const UPPER_LINKS: usize = 3;

const COUNT_BITS: u32 = 16;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;
const PENDING: u32 = 1 << 31;
const DEAD: u32 = 1 << 30;

/// The neighbors of a node on a level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Neighbors<'g> {
    first: &'g [u32],
    more: &'g [u32],
}

impl<'g> Neighbors<'g> {
    pub(crate) fn len(self) -> usize {
        self.first.len() + self.more.len()
    }

    pub(crate) fn is_empty(self) -> bool {
        self.first.is_empty()
    }

    #[inline]
    pub(crate) fn iter(self) -> impl Iterator<Item = u32> + use<'g> {
        self.first.iter().chain(self.more).copied()
    }

    pub(crate) fn contains(self, node: u32) -> bool {
        self.first.contains(&node) || self.more.contains(&node)
    }

    pub(crate) fn to_vec(self) -> Vec<u32> {
        [self.first, self.more].concat()
    }
}

/// The links of a graph.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// M: the maximum number of links of a node on each level except the lowest.
    pub(crate) links: usize,
    lowest: Rows<u32>,
    more: Rows<u32>,
    upper: Rows<u32>,
    /// The start node of searches: a node on the highest level.
    pub(crate) entry: Option<u32>,
    /// The number of dead nodes.
    pub(crate) dead: usize,
}

/// Returns the number of links that fit in a node's row on the lowest level.
fn first_capacity(links: usize) -> usize {
    links * 7 / 4
}

impl Graph {
    pub(crate) fn new(links: usize, account: Account) -> Graph {
        Graph {
            links,
            lowest: Rows::new(LOWEST_LINKS + first_capacity(links), account),
            more: Rows::new(MORE_LINKS + 3 * links - first_capacity(links), account),
            upper: Rows::new(UPPER_LINKS + links, account),
            entry: None,
            dead: 0,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.lowest.bytes() + self.more.bytes() + self.upper.bytes()
    }

    pub(crate) fn recounted_bytes(&self) -> usize {
        self.lowest.recounted_bytes() + self.more.recounted_bytes() + self.upper.recounted_bytes()
    }

    /// Returns the number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.lowest.len()
    }

    /// Returns the highest level that a node is on.
    #[inline]
    pub(crate) fn level(&self, slot: u32) -> usize {
        ((self.lowest.row(slot as usize)[HEAD] & !(PENDING | DEAD)) >> COUNT_BITS) as usize
    }

    /// Whether a node is not linked yet.
    pub(crate) fn is_pending(&self, slot: u32) -> bool {
        self.lowest.row(slot as usize)[HEAD] & PENDING != 0
    }

    pub(crate) fn set_pending(&mut self, slot: u32, is_pending: bool) {
        let head = &mut self.lowest.row_mut(slot as usize)[HEAD];
        *head = *head & !PENDING | if is_pending { PENDING } else { 0 };
    }

    /// Whether a node is dead.
    #[inline]
    pub(crate) fn is_dead(&self, slot: u32) -> bool {
        self.lowest.row(slot as usize)[HEAD] & DEAD != 0
    }

    /// Prefetches the links of a node on the lowest level.
    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        kernels::prefetch(self.lowest.row(slot as usize));
    }

    /// Marks a node as dead, because its vector was removed.
    pub(crate) fn set_dead(&mut self, slot: u32) {
        self.dead += usize::from(!self.is_dead(slot));
        self.lowest.row_mut(slot as usize)[HEAD] |= DEAD;
    }

    /// Returns the highest level of the graph.
    pub(crate) fn top(&self) -> usize {
        self.entry.map_or(0, |entry| self.level(entry))
    }

    /// Returns the maximum number of links of a node on a level.
    pub(crate) fn capacity(&self, level: usize) -> usize {
        if level == 0 { 3 * self.links } else { self.links }
    }

    /// Returns the row of a node on a level above the lowest. The node must be on that level.
    #[inline]
    fn upper_row(&self, slot: u32, level: usize) -> usize {
        let mut row = self.lowest.row(slot as usize)[UP] as usize;
        for _ in 1..level {
            row = self.upper.row(row)[UPPER_UP] as usize;
        }
        row
    }

    /// Returns the neighbors of a node on one of its levels.
    #[inline]
    pub(crate) fn neighbors(&self, slot: u32, level: usize) -> Neighbors<'_> {
        if level > 0 {
            let row = self.upper.row(self.upper_row(slot, level));
            return Neighbors { first: &row[UPPER_LINKS..][..row[COUNT] as usize], more: &[] };
        }
        let row = self.lowest.row(slot as usize);
        let (count, first) = ((row[HEAD] & COUNT_MASK) as usize, &row[LOWEST_LINKS..]);
        if count <= first.len() {
            return Neighbors { first: &first[..count], more: &[] };
        }
        Neighbors { first, more: &self.more.row(row[MORE] as usize)[MORE_LINKS..][..count - first.len()] }
    }

    pub(crate) fn has_free_place(&self, slot: u32, level: usize) -> bool {
        self.neighbors(slot, level).len() < self.capacity(level)
    }

    pub(crate) fn are_linked(&self, a: u32, b: u32, level: usize) -> bool {
        self.neighbors(a, level).contains(b)
    }

    /// Whether two nodes share a neighbor. O(M²) comparisons of numbers.
    pub(crate) fn share_a_neighbor(&self, a: u32, b: u32, level: usize) -> bool {
        let of_b = self.neighbors(b, level);
        self.neighbors(a, level).iter().any(|neighbor| of_b.contains(neighbor))
    }

    fn add(&mut self, from: u32, to: u32, level: usize) {
        let count = self.neighbors(from, level).len();
        self.set_count(from, level, count + 1);
        *self.link_mut(from, level, count) = to;
    }

    /// Returns a link of a node for writing.
    fn link_mut(&mut self, slot: u32, level: usize, at: usize) -> &mut u32 {
        if level > 0 {
            let row = self.upper_row(slot, level);
            return &mut self.upper.row_mut(row)[UPPER_LINKS + at];
        }
        let first = first_capacity(self.links);
        if at < first {
            return &mut self.lowest.row_mut(slot as usize)[LOWEST_LINKS + at];
        }
        let more = self.lowest.row(slot as usize)[MORE] as usize;
        &mut self.more.row_mut(more)[MORE_LINKS + at - first]
    }

    /// Sets the number of links and allocates or frees space for them; new links are not initialized.
    fn set_count(&mut self, slot: u32, level: usize, count: usize) {
        if level > 0 {
            let at = self.upper_row(slot, level);
            self.upper.row_mut(at)[COUNT] = count as u32;
            return;
        }
        let first = first_capacity(self.links);
        let more = self.lowest.row(slot as usize)[MORE];
        if count > first && more == NONE {
            let at = self.more.len();
            self.more.push();
            self.more.row_mut(at)[SLOT] = slot;
            self.lowest.row_mut(slot as usize)[MORE] = at as u32;
        } else if count <= first && more != NONE {
            self.lowest.row_mut(slot as usize)[MORE] = NONE;
            self.remove_more(more);
        }
        let head = &mut self.lowest.row_mut(slot as usize)[HEAD];
        *head = *head & !COUNT_MASK | count as u32;
    }

    /// Removes an unreferenced row of `more` and moves the last one into its place.
    fn remove_more(&mut self, row: u32) {
        let last = (self.more.len() - 1) as u32;
        if row != last {
            let owner = self.more.row(last as usize)[SLOT];
            self.lowest.row_mut(owner as usize)[MORE] = row;
            self.more.copy(last as usize, row as usize);
        }
        self.more.pop();
    }

    /// Replaces one link by another, in one direction.
    fn replace(&mut self, slot: u32, level: usize, from: u32, to: u32) {
        let at = self.neighbors(slot, level).iter().position(|link| link == from);
        let at = at.expect("links are in both directions");
        *self.link_mut(slot, level, at) = to;
    }

    fn drop_link(&mut self, from: u32, to: u32, level: usize) {
        let links = self.neighbors(from, level);
        let last = links.iter().last().expect("there is one");
        let count = links.len() - 1;
        self.replace(from, level, to, last);
        self.set_count(from, level, count);
    }

    /// Links two unlinked nodes, both of which have space.
    pub(crate) fn link(&mut self, a: u32, b: u32, level: usize) {
        debug_assert!(a != b && !self.are_linked(a, b, level));
        self.add(a, b, level);
        self.add(b, a, level);
    }

    /// Removes the link between two nodes.
    pub(crate) fn unlink(&mut self, a: u32, b: u32, level: usize) {
        self.drop_link(a, b, level);
        self.drop_link(b, a, level);
    }

    /// Sets the links of a node without their counterparts: for loaded graphs, whose links are checked afterwards.
    pub(crate) fn set_links(&mut self, slot: u32, level: usize, links: &[u32]) {
        self.set_count(slot, level, links.len());
        if level > 0 {
            let row = self.upper_row(slot, level);
            self.upper.row_mut(row)[UPPER_LINKS..][..links.len()].copy_from_slice(links);
            return;
        }
        let (first, more) = links.split_at(links.len().min(first_capacity(self.links)));
        self.lowest.row_mut(slot as usize)[LOWEST_LINKS..][..first.len()].copy_from_slice(first);
        if !more.is_empty() {
            let row = self.lowest.row(slot as usize)[MORE] as usize;
            self.more.row_mut(row)[MORE_LINKS..][..more.len()].copy_from_slice(more);
        }
    }

    /// Appends a node without links.
    pub(crate) fn push(&mut self, level: usize) {
        let slot = self.lowest.len();
        self.lowest.push();
        self.lowest.row_mut(slot)[..LOWEST_LINKS].copy_from_slice(&[NONE, NONE, 0]);
        self.raise(slot as u32, level);
    }

    /// Adds a node of the lowest level to the levels above it, up to `level`, without links there.
    pub(crate) fn raise(&mut self, slot: u32, level: usize) {
        assert!(level <= LEVEL_MAX, "levels have a limit");
        let mut below = None;
        for _ in 0..level {
            let row = self.upper.len();
            self.upper.push();
            self.upper.row_mut(row)[..UPPER_LINKS].copy_from_slice(&[slot, NONE, 0]);
            match below {
                None => self.lowest.row_mut(slot as usize)[UP] = row as u32,
                Some(below) => self.upper.row_mut(below)[UPPER_UP] = row as u32,
            }
            below = Some(row);
        }
        let head = &mut self.lowest.row_mut(slot as usize)[HEAD];
        *head = *head & COUNT_MASK | (level as u32) << COUNT_BITS;
    }

    /// Removes a node without links from all levels but the lowest, and clears its pending and dead marks.
    pub(crate) fn lower(&mut self, slot: u32) {
        for level in (1..=self.level(slot)).rev() {
            let row = self.upper_row(slot, level);
            self.remove_upper(row);
        }
        self.dead -= usize::from(self.is_dead(slot));
        let row = self.lowest.row_mut(slot as usize);
        row[UP] = NONE;
        row[HEAD] &= COUNT_MASK;
    }

    /// Removes an upper row without references from above, and moves the last one into its place.
    fn remove_upper(&mut self, row: usize) {
        let last = self.upper.len() - 1;
        if row != last {
            let owner = self.upper.row(last)[SLOT] as usize;
            if self.lowest.row(owner)[UP] as usize == last {
                self.lowest.row_mut(owner)[UP] = row as u32;
            } else {
                let mut below = self.lowest.row(owner)[UP] as usize;
                while self.upper.row(below)[UPPER_UP] as usize != last {
                    below = self.upper.row(below)[UPPER_UP] as usize;
                }
                self.upper.row_mut(below)[UPPER_UP] = row as u32;
            }
            self.upper.copy(last, row);
        }
        self.upper.pop();
    }

    /// Removes a node without links, which is on the lowest level only, and moves the last node into its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) {
        let last = (self.lowest.len() - 1) as u32;
        if slot != last {
            for level in 0..=self.level(last) {
                let neighbors = self.neighbors(last, level).to_vec();
                neighbors.iter().for_each(|&neighbor| self.replace(neighbor, level, last, slot));
                if level > 0 {
                    let row = self.upper_row(last, level);
                    self.upper.row_mut(row)[SLOT] = slot;
                }
            }
            let more = self.lowest.row(last as usize)[MORE];
            if more != NONE {
                self.more.row_mut(more as usize)[SLOT] = slot;
            }
            self.lowest.copy(last as usize, slot as usize);
            if self.entry == Some(last) {
                self.entry = Some(slot);
            }
        }
        self.lowest.pop();
    }

    /// Returns for each slot whether it can be reached from a node over the links of a level. O(nodes).
    pub(crate) fn reachable(&self, from: u32, level: usize) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        self.reach(from, level, &mut seen);
        seen
    }

    /// Marks the slots that can be reached in `seen`.
    pub(crate) fn reach(&self, from: u32, level: usize, seen: &mut [bool]) {
        let mut waiting = vec![from];
        seen[from as usize] = true;
        while let Some(slot) = waiting.pop() {
            for neighbor in self.neighbors(slot, level).iter() {
                if !std::mem::replace(&mut seen[neighbor as usize], true) {
                    waiting.push(neighbor);
                }
            }
        }
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        let nodes = 0..self.len() as u32;
        let uppers: usize = nodes.clone().map(|slot| self.level(slot)).sum();
        assert_eq!(uppers, self.upper.len(), "there is a row for each node and level");
        assert_eq!(
            nodes.clone().filter(|&slot| self.is_dead(slot)).count(),
            self.dead,
            "dead nodes are counted"
        );
        let first = first_capacity(self.links);
        let hubs: Vec<u32> = nodes.clone().filter(|&slot| self.neighbors(slot, 0).len() > first).collect();
        assert_eq!(hubs.len(), self.more.len(), "there is a row for each node with many links");
        for hub in hubs {
            assert_eq!(self.more.row(self.lowest.row(hub as usize)[MORE] as usize)[SLOT], hub);
        }
        for slot in nodes.clone().filter(|&slot| self.is_pending(slot)) {
            assert!((0..=self.level(slot)).all(|level| self.neighbors(slot, level).is_empty()));
        }
        let nodes = nodes.filter(|&slot| !self.is_pending(slot));
        let top = nodes.clone().map(|slot| self.level(slot)).max();
        assert_eq!(self.entry.map(|entry| self.level(entry)), top, "a search begins at the highest level");
        for level in 0..=top.unwrap_or(0) {
            let Some(entry) = self.entry else { break };
            let reachable = self.reachable(entry, level);
            for slot in nodes.clone().filter(|&slot| self.level(slot) >= level) {
                assert!(reachable[slot as usize], "{slot} cannot be reached on level {level}");
                if level > 0 {
                    assert_eq!(self.upper.row(self.upper_row(slot, level))[SLOT], slot);
                }
                let neighbors = self.neighbors(slot, level).to_vec();
                assert!(neighbors.len() <= self.capacity(level));
                for (at, &neighbor) in neighbors.iter().enumerate() {
                    assert!(neighbor != slot && !neighbors[..at].contains(&neighbor), "a list is a set");
                    assert!(self.level(neighbor) >= level, "a link is to a node of the level");
                    assert!(self.are_linked(neighbor, slot, level), "links are in both directions");
                }
            }
        }
    }
}
