//! The links of a graph of several levels, kept in both directions.
//!
//! ```text
//! lowest level   row of a slot     up | count, level, whether it is pending | links, twice M of them
//! other levels   row of a node     slot | up | count | links, M of them
//! ```
//!
//! `up` is the row of the same node one level higher. Rows are without gaps: a removed one is filled by the last. A pending
//! node is not linked yet: it has no links, and no node has one to it.
//!
//! Invariants ([`Graph::check`]): a link has its counterpart in the other node's list; no list names a node twice or its
//! own; all nodes of a level that are not pending are connected with each other. The last one holds because a link is
//! removed only where its ends share a neighbour, or by putting a new node between them; see `hnsw.rs`.

pub(crate) mod hnsw;
pub(crate) mod linking;
pub(crate) mod pending;

use crate::arena::{Account, Rows};
use crate::random::LEVEL_MAX;

/// No row, no slot.
pub(crate) const NONE: u32 = u32::MAX;

const UP: usize = 0;
const HEAD: usize = 1;
const LOWEST_LINKS: usize = 2;
const SLOT: usize = 0;
const UPPER_UP: usize = 1;
const COUNT: usize = 2;
const UPPER_LINKS: usize = 3;

const COUNT_BITS: u32 = 16;
const COUNT_MASK: u32 = (1 << COUNT_BITS) - 1;
const PENDING: u32 = 1 << 31;

/// The links.
#[derive(Clone, Debug)]
pub(crate) struct Graph {
    /// M.
    pub(crate) links: usize,
    lowest: Rows<u32>,
    upper: Rows<u32>,
    /// Where a search begins: a node of the highest level that has one.
    pub(crate) entry: Option<u32>,
}

impl Graph {
    pub(crate) fn new(links: usize, account: Account) -> Graph {
        Graph {
            links,
            lowest: Rows::new(LOWEST_LINKS + 2 * links, account),
            upper: Rows::new(UPPER_LINKS + links, account),
            entry: None,
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.lowest.bytes() + self.upper.bytes()
    }

    pub(crate) fn recounted_bytes(&self) -> usize {
        self.lowest.recounted_bytes() + self.upper.recounted_bytes()
    }

    /// How many nodes there are.
    pub(crate) fn len(&self) -> usize {
        self.lowest.len()
    }

    /// The highest level that a node is on.
    #[inline]
    pub(crate) fn level(&self, slot: u32) -> usize {
        ((self.lowest.row(slot as usize)[HEAD] & !PENDING) >> COUNT_BITS) as usize
    }

    /// Whether a node is not linked yet.
    pub(crate) fn is_pending(&self, slot: u32) -> bool {
        self.lowest.row(slot as usize)[HEAD] & PENDING != 0
    }

    pub(crate) fn set_pending(&mut self, slot: u32, is_pending: bool) {
        let head = &mut self.lowest.row_mut(slot as usize)[HEAD];
        *head = *head & !PENDING | if is_pending { PENDING } else { 0 };
    }

    /// The highest level of all.
    pub(crate) fn top(&self) -> usize {
        self.entry.map_or(0, |entry| self.level(entry))
    }

    /// How many links a node can have.
    pub(crate) fn capacity(&self, level: usize) -> usize {
        if level == 0 { 2 * self.links } else { self.links }
    }

    /// The row of a node on a level above the lowest, which it is on.
    #[inline]
    fn upper_row(&self, slot: u32, level: usize) -> usize {
        let mut row = self.lowest.row(slot as usize)[UP] as usize;
        for _ in 1..level {
            row = self.upper.row(row)[UPPER_UP] as usize;
        }
        row
    }

    /// The neighbours of a node on a level that it is on.
    #[inline]
    pub(crate) fn neighbours(&self, slot: u32, level: usize) -> &[u32] {
        if level == 0 {
            let row = self.lowest.row(slot as usize);
            &row[LOWEST_LINKS..][..(row[HEAD] & COUNT_MASK) as usize]
        } else {
            let row = self.upper.row(self.upper_row(slot, level));
            &row[UPPER_LINKS..][..row[COUNT] as usize]
        }
    }

    pub(crate) fn has_room(&self, slot: u32, level: usize) -> bool {
        self.neighbours(slot, level).len() < self.capacity(level)
    }

    pub(crate) fn are_linked(&self, a: u32, b: u32, level: usize) -> bool {
        self.neighbours(a, level).contains(&b)
    }

    /// Whether two nodes have a neighbour in common. O(M²) comparisons of numbers.
    pub(crate) fn share_a_neighbour(&self, a: u32, b: u32, level: usize) -> bool {
        let of_b = self.neighbours(b, level);
        self.neighbours(a, level).iter().any(|neighbour| of_b.contains(neighbour))
    }

    fn add(&mut self, from: u32, to: u32, level: usize) {
        if level == 0 {
            let row = self.lowest.row_mut(from as usize);
            row[LOWEST_LINKS + (row[HEAD] & COUNT_MASK) as usize] = to;
            row[HEAD] += 1;
        } else {
            let at = self.upper_row(from, level);
            let row = self.upper.row_mut(at);
            row[UPPER_LINKS + row[COUNT] as usize] = to;
            row[COUNT] += 1;
        }
    }

    /// The links of a node, to be changed, their number unchanged.
    fn links_mut(&mut self, slot: u32, level: usize) -> &mut [u32] {
        if level == 0 {
            let row = self.lowest.row_mut(slot as usize);
            let count = (row[HEAD] & COUNT_MASK) as usize;
            &mut row[LOWEST_LINKS..][..count]
        } else {
            let at = self.upper_row(slot, level);
            let row = self.upper.row_mut(at);
            let count = row[COUNT] as usize;
            &mut row[UPPER_LINKS..][..count]
        }
    }

    fn set_count(&mut self, slot: u32, level: usize, count: usize) {
        if level == 0 {
            let head = &mut self.lowest.row_mut(slot as usize)[HEAD];
            *head = *head & !COUNT_MASK | count as u32;
        } else {
            let at = self.upper_row(slot, level);
            self.upper.row_mut(at)[COUNT] = count as u32;
        }
    }

    /// Puts one link in the place of another one, in one direction.
    fn replace(&mut self, slot: u32, level: usize, from: u32, to: u32) {
        let links = self.links_mut(slot, level);
        let at = links.iter().position(|&link| link == from).expect("links are in both directions");
        links[at] = to;
    }

    fn drop_link(&mut self, from: u32, to: u32, level: usize) {
        let links = self.links_mut(from, level);
        let at = links.iter().position(|&link| link == to).expect("links are in both directions");
        let last = links.len() - 1;
        links.swap(at, last);
        self.set_count(from, level, last);
    }

    /// Links two nodes that are not linked; both have room.
    pub(crate) fn link(&mut self, a: u32, b: u32, level: usize) {
        debug_assert!(a != b && !self.are_linked(a, b, level));
        self.add(a, b, level);
        self.add(b, a, level);
    }

    /// Ends the link of two nodes.
    pub(crate) fn unlink(&mut self, a: u32, b: u32, level: usize) {
        self.drop_link(a, b, level);
        self.drop_link(b, a, level);
    }

    /// Replaces the links of a node by those that it says, without their counterparts: for graphs that are read, whose links
    /// are looked at afterwards.
    pub(crate) fn set_links(&mut self, slot: u32, level: usize, links: &[u32]) {
        self.set_count(slot, level, links.len());
        self.links_mut(slot, level).copy_from_slice(links);
    }

    /// Appends a node without links.
    pub(crate) fn push(&mut self, level: usize) {
        let slot = self.lowest.len();
        self.lowest.push();
        self.lowest.row_mut(slot)[..LOWEST_LINKS].copy_from_slice(&[NONE, 0]);
        self.raise(slot as u32, level);
    }

    /// Puts a node of the lowest level on the levels above it, up to `level`, without links there.
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

    /// Takes a node without links off all levels but the lowest. It is not pending any more.
    pub(crate) fn lower(&mut self, slot: u32) {
        for level in (1..=self.level(slot)).rev() {
            let row = self.upper_row(slot, level);
            self.remove_upper(row);
        }
        let row = self.lowest.row_mut(slot as usize);
        row[UP] = NONE;
        row[HEAD] &= COUNT_MASK;
    }

    /// Removes an upper row that nothing above refers to; the last one takes its place.
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

    /// Removes a node without links, which is on no level but the lowest; the last node takes its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) {
        let last = (self.lowest.len() - 1) as u32;
        if slot != last {
            for level in 0..=self.level(last) {
                let neighbours = self.neighbours(last, level).to_vec();
                neighbours.iter().for_each(|&neighbour| self.replace(neighbour, level, last, slot));
                if level > 0 {
                    let row = self.upper_row(last, level);
                    self.upper.row_mut(row)[SLOT] = slot;
                }
            }
            self.lowest.copy(last as usize, slot as usize);
            if self.entry == Some(last) {
                self.entry = Some(slot);
            }
        }
        self.lowest.pop();
    }

    /// The nodes of a level that can be reached from one of its nodes, by a bit for each slot. O(nodes).
    pub(crate) fn reachable(&self, from: u32, level: usize) -> Vec<bool> {
        let mut seen = vec![false; self.len()];
        self.reach(from, level, &mut seen);
        seen
    }

    /// Adds those that can be reached to those that are.
    pub(crate) fn reach(&self, from: u32, level: usize, seen: &mut [bool]) {
        let mut waiting = vec![from];
        seen[from as usize] = true;
        while let Some(slot) = waiting.pop() {
            for &neighbour in self.neighbours(slot, level) {
                if !std::mem::replace(&mut seen[neighbour as usize], true) {
                    waiting.push(neighbour);
                }
            }
        }
    }

    /// Checks what must always hold; for tests.
    ///
    /// # Panics
    /// If something does not.
    pub(crate) fn check(&self) {
        let nodes = 0..self.len() as u32;
        let uppers: usize = nodes.clone().map(|slot| self.level(slot)).sum();
        assert_eq!(uppers, self.upper.len(), "there is a row for each node and level");
        for slot in nodes.clone().filter(|&slot| self.is_pending(slot)) {
            assert!((0..=self.level(slot)).all(|level| self.neighbours(slot, level).is_empty()));
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
                let neighbours = self.neighbours(slot, level);
                assert!(neighbours.len() <= self.capacity(level));
                for (at, &neighbour) in neighbours.iter().enumerate() {
                    assert!(neighbour != slot && !neighbours[..at].contains(&neighbour), "a list is a set");
                    assert!(self.level(neighbour) >= level, "a link is to a node of the level");
                    assert!(self.are_linked(neighbour, slot, level), "links are in both directions");
                }
            }
        }
    }
}
