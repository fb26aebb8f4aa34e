//! Hierarchical navigable small worlds (Malkov and Yashunin, 2016) with links in both directions and removal.
//!
//! A node's neighbors are chosen by the heuristic of the paper (algorithm 4). If a list is full, the heuristic
//! determines the least needed link, which is removed with its counterpart. So a removal knows all nodes that refer to
//! the removed node, links the nodes that lose a neighbor with each other, and leaves no dangling links. A new node
//! refused by a full list is linked with the next nearest nodes that have space: otherwise searches would find it less
//! reliably, since each refused link is missing in both directions.
//!
//! No change disconnects the nodes of a level:
//! * a link is removed only if its two nodes share a neighbor;
//! * a new node that would have no link is inserted between two linked nodes;
//! * the neighbors of a removed node are linked until they are connected; if all of them are full, space is freed at
//!   the next possible node.

use crate::graph::Graph;
use crate::search::{Scratch, farthest, hit, key, offer};
use crate::space::{Gather, Space};
use std::cmp::Reverse;

/// The parameters of a search on one level.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Beam {
    /// The level.
    pub(crate) level: usize,
    /// The start node, which is on that level.
    pub(crate) from: u32,
    /// The number of nearest nodes in the beam.
    pub(crate) width: usize,
    /// The maximum number of distances to compute.
    pub(crate) distances_max: usize,
}

impl Beam {
    pub(crate) fn new(level: usize, from: u32, width: usize) -> Beam {
        Beam { level, from, width, distances_max: usize::MAX }
    }
}

impl Graph {
    /// Finds the nodes of a level near `row` that are not dead, and writes them to `scratch.nearest`.
    pub(crate) fn find_alive(&self, space: &Space, row: &[u8], beam: Beam, scratch: &mut Scratch) {
        if self.dead > 0 {
            self.find_near(space, row, beam, &mut |slot| !self.is_dead(slot), scratch);
            return;
        }
        self.walk(space, row, beam, |_| {}, scratch);
        scratch.drain_pool();
    }

    /// Walks from node to node of a level towards `row`, collects the nearest nodes in the pool, and passes each
    /// distance to the callback. Returns whether the walk completed.
    #[inline]
    fn walk(
        &self,
        space: &Space,
        row: &[u8],
        beam: Beam,
        mut visit: impl FnMut(u64),
        scratch: &mut Scratch,
    ) -> bool {
        scratch.begin(self.len());
        scratch.pool.clear();
        let mut batch = std::mem::take(&mut scratch.batch);
        let mut gather = Gather::new(space, self.capacity(beam.level));
        let mut distances = 0;
        scratch.see(beam.from);
        batch.clear();
        batch.push(beam.from);
        let is_whole = loop {
            gather.measure(row, &batch, |slot, distance| {
                let key = key(distance, slot);
                if key < scratch.pool.limit(beam.width) && scratch.pool.take(key, beam.width) {
                    self.prefetch(slot);
                }
                visit(key);
            });
            distances += batch.len();
            let Some((nearest, next)) = scratch.pool.visit_nearest() else { break true };
            if distances >= beam.distances_max {
                break false;
            }
            next.into_iter().for_each(|next| self.prefetch(next));
            scratch.see_all(self.neighbors(nearest as u32, beam.level).iter(), &mut batch);
        };
        scratch.batch = batch;
        is_whole
    }

    /// Finds the nodes of a level near `row` that `keep` accepts, and writes them to `scratch.nearest`. Returns whether
    /// the walk completed.
    pub(crate) fn find_near(
        &self,
        space: &Space,
        row: &[u8],
        beam: Beam,
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) -> bool {
        scratch.begin(self.len());
        let mut distances = 0;
        scratch.see(beam.from);
        let first = key(space.distance(row, space.row(beam.from)), beam.from);
        scratch.candidates.push(Reverse(first));
        if keep(beam.from) {
            scratch.offer(first, beam.width);
        }
        let mut gather = Gather::new(space, self.capacity(beam.level));
        while let Some(Reverse(nearest)) = scratch.candidates.pop() {
            let farthest = scratch.nearest.peek().copied().unwrap_or(u64::MAX);
            if scratch.nearest.len() >= beam.width && nearest > farthest {
                break;
            }
            if distances >= beam.distances_max {
                return false;
            }
            let mut batch = std::mem::take(&mut scratch.batch);
            scratch.see_all(self.neighbors(nearest as u32, beam.level).iter(), &mut batch);
            distances += batch.len();
            gather.measure(row, &batch, |slot, distance| {
                let key = key(distance, slot);
                if scratch.nearest.len() < beam.width
                    || key < scratch.nearest.peek().copied().unwrap_or(u64::MAX)
                {
                    scratch.candidates.push(Reverse(key));
                    if keep(slot) {
                        scratch.offer(key, beam.width);
                    }
                }
            });
            scratch.batch = batch;
        }
        true
    }

    /// Finds the `most` nodes of a level nearest to `row` that `keep` accepts, and writes them to `scratch.nearest`.
    /// The beam holds nodes whether they are accepted or not. `keep` is called only for nodes near enough to be in the
    /// result, because a call may take longer than computing a distance. Returns whether all nodes nearer than the last
    /// result were visited: if false, or if there are fewer results, a wider beam may find others.
    pub(crate) fn find_taken(
        &self,
        space: &Space,
        row: &[u8],
        (beam, most): (Beam, usize),
        keep: &mut impl FnMut(u32) -> bool,
        scratch: &mut Scratch,
    ) -> bool {
        let mut taken = std::mem::take(&mut scratch.nearest);
        taken.clear();
        let offer_taken = |key: u64| {
            if key < farthest(&taken, most) && keep(key as u32) {
                offer(&mut taken, key, most);
            }
        };
        let reached_end = self.walk(space, row, beam, offer_taken, scratch);
        let is_whole = reached_end && farthest(&taken, most) <= scratch.pool.limit(beam.width);
        scratch.nearest = taken;
        is_whole
    }

    /// Returns the start node for a search on `level`: the nearest node found on the levels above.
    pub(crate) fn descend(&self, space: &Space, row: &[u8], level: usize, entry: u32) -> u32 {
        let mut nearest = key(space.distance(row, space.row(entry)), entry);
        for level in (level + 1..=self.level(entry)).rev() {
            loop {
                let from = nearest as u32;
                for neighbor in self.neighbors(from, level).iter() {
                    nearest = nearest.min(key(space.distance(row, space.row(neighbor)), neighbor));
                }
                if nearest as u32 == from {
                    break;
                }
            }
        }
        nearest as u32
    }

    /// Links a node without links on all its levels, choosing from `width` near nodes. O(log nodes).
    pub(crate) fn insert(&mut self, space: &Space, slot: u32, width: usize, scratch: &mut Scratch) {
        let level = self.level(slot);
        let Some(entry) = self.entry else {
            self.entry = Some(slot);
            return;
        };
        let top = self.top();
        let mut from = self.descend(space, space.row(slot), level, entry);
        for level in (0..=level.min(top)).rev() {
            let beam = Beam::new(level, from, width);
            let row = space.row(slot);
            self.find_alive(space, row, beam, scratch);
            if scratch.nearest.is_empty() {
                // If all nodes are dead, the node is linked with dead ones.
                self.find_near(space, row, beam, &mut |other| other != slot, scratch);
            }
            scratch.finish(width);
            let near: Vec<u64> = scratch.hits.iter().map(|hit| key(hit.distance, hit.slot)).collect();
            from = near.first().map_or(from, |&nearest| nearest as u32);
            self.connect(space, slot, level, &near);
        }
        if level > top {
            self.entry = Some(slot);
        }
    }

    /// Links a node on a level with the nodes of `near` (nearest first, at least one) that the heuristic chooses.
    fn connect(&mut self, space: &Space, slot: u32, level: usize, near: &[u64]) {
        let free_places = self.capacity(level) - self.neighbors(slot, level).len();
        let chosen = choose(space, near, self.links.min(free_places));
        for &other in &chosen {
            let node = other as u32;
            if node == slot || self.are_linked(slot, node, level) {
                continue;
            }
            if self.has_free_place(node, level) {
                self.link(slot, node, level);
            } else if let Some(least) = self.least_needed(space, node, level, other) {
                self.unlink(node, least, level);
                self.link(slot, node, level);
            }
        }
        self.fill(slot, near, level);
        if self.neighbors(slot, level).is_empty()
            && let Some(&nearest) = near.iter().find(|&&other| other as u32 != slot)
        {
            self.put_between(space, slot, nearest as u32, level);
        }
    }

    /// Links a node with the nearest nodes that have space, up to the number of links of a new node. Called because
    /// some of the chosen nodes may have refused a link.
    pub(crate) fn fill(&mut self, slot: u32, near: &[u64], level: usize) {
        let mut links = self.neighbors(slot, level).len();
        for &other in near {
            if links >= self.links {
                return;
            }
            let node = other as u32;
            if node != slot
                && !self.is_pending(node)
                && !self.is_dead(node)
                && self.has_free_place(node, level)
                && !self.are_linked(slot, node, level)
            {
                self.link(slot, node, level);
                links += 1;
            }
        }
    }

    /// Inserts a node without links on a level between `node`, whose list may be full, and one of that node's
    /// neighbors: links it with both and removes the link between them.
    pub(crate) fn put_between(&mut self, space: &Space, slot: u32, node: u32, level: usize) {
        if !self.has_free_place(node, level) {
            let neighbors = self.neighbors(node, level).iter();
            let farthest = neighbors.map(|other| key(space.between(node, other), other)).max();
            let farthest = farthest.expect("a full list has an element") as u32;
            self.unlink(node, farthest, level);
            self.link(farthest, slot, level);
        }
        self.link(node, slot, level);
    }

    /// Returns the neighbor that a node with a full list needs least if `other` (a key of distance and slot) is added;
    /// `None` if `other` itself is needed least, or no neighbor can be removed.
    pub(crate) fn least_needed(&self, space: &Space, node: u32, level: usize, other: u64) -> Option<u32> {
        let neighbors = self.neighbors(node, level).to_vec();
        let mut keys: Vec<u64> = Vec::with_capacity(neighbors.len() + 1);
        Gather::new(space, neighbors.len())
            .measure(space.row(node), &neighbors, |slot, distance| keys.push(key(distance, slot)));
        let new = key(hit(other).distance, other as u32);
        keys.push(new);
        keys.sort_unstable();
        let chosen = choose(space, &keys, keys.len() - 1);
        // Unchosen neighbors first, and in each group the farthest first.
        let spare = keys.iter().rev().filter(|key| !chosen.contains(key)).chain(chosen.iter().rev());
        for &key in spare {
            if key == new {
                return None;
            }
            let slot = key as u32;
            let is_poor = self.neighbors(slot, level).len() <= self.links / 2;
            if !is_poor && self.share_a_neighbor(node, slot, level) {
                return Some(slot);
            }
        }
        None
    }

    /// Removes all links of a node and repairs the graph around it. The node remains on its levels. If it was the
    /// entry, another node becomes the entry.
    pub(crate) fn detach(&mut self, space: &Space, slot: u32, scratch: &mut Scratch) {
        if self.entry == Some(slot) {
            let other = |level: usize| self.neighbors(slot, level).iter().next();
            self.entry = (0..=self.level(slot)).rev().find_map(other);
        }
        for level in (0..=self.level(slot)).rev() {
            let neighbors = self.neighbors(slot, level).to_vec();
            neighbors.iter().for_each(|&neighbor| self.unlink(slot, neighbor, level));
            self.mend(space, level, &neighbors, scratch);
        }
    }

    /// Connects nodes that have lost a neighbor with each other, directly or through one other node.
    fn mend(&mut self, space: &Space, level: usize, nodes: &[u32], scratch: &mut Scratch) {
        let mut sets = Sets::of(nodes.len());
        let mut via: Vec<(u32, usize)> = Vec::new();
        for (at, &node) in nodes.iter().enumerate() {
            via.push((node, at));
            via.extend(self.neighbors(node, level).iter().map(|neighbor| (neighbor, at)));
        }
        via.sort_unstable();
        for pair in via.windows(2) {
            if pair[0].0 == pair[1].0 {
                sets.join(pair[0].1, pair[1].1);
            }
        }
        let mut pairs: Vec<(u64, usize, usize)> = Vec::new();
        for (at, &a) in nodes.iter().enumerate() {
            for (other, &b) in nodes.iter().enumerate().skip(at + 1) {
                pairs.push((key(space.between(a, b), 0), at, other));
            }
        }
        pairs.sort_unstable();
        let mut has_gained = vec![false; nodes.len()];
        for is_bridge in [true, false] {
            for &(distance, a, b) in &pairs {
                let is_wanted =
                    if is_bridge { !sets.are_one(a, b) } else { !has_gained[a] && !has_gained[b] };
                let (from, to) = (nodes[a], nodes[b]);
                if !is_wanted || !self.has_free_place(from, level) || !self.has_free_place(to, level) {
                    continue;
                }
                if self.are_linked(from, to, level)
                    || !is_bridge && !self.is_direct(space, from, to, level, distance)
                {
                    continue;
                }
                self.link(from, to, level);
                (has_gained[a], has_gained[b]) = (true, true);
                sets.join(a, b);
            }
        }
        for at in 1..nodes.len() {
            if !sets.are_one(0, at) {
                self.bridge(nodes[0], nodes[at], level);
                sets.join(0, at);
            }
        }
        for &node in nodes {
            if self.neighbors(node, level).len() < self.links / 4 {
                self.enrich(space, node, level, scratch);
            }
        }
    }

    /// Whether no neighbor of `from` is nearer to `to` than `from`, whose distance from `to` is `distance`.
    fn is_direct(&self, space: &Space, from: u32, to: u32, level: usize, distance: u64) -> bool {
        let nearer = |neighbor: u32| key(space.between(neighbor, to), 0) < distance;
        !self.neighbors(from, level).iter().any(nearer)
    }

    /// Adds links to a node that has few links.
    fn enrich(&mut self, space: &Space, node: u32, level: usize, scratch: &mut Scratch) {
        let width = self.capacity(level);
        let mut others = |other| other != node && !self.is_dead(other);
        let beam = Beam::new(level, node, width);
        self.find_near(space, space.row(node), beam, &mut others, scratch);
        scratch.finish(width);
        let near: Vec<u64> = scratch.hits.iter().map(|hit| key(hit.distance, hit.slot)).collect();
        self.connect(space, node, level, &near);
    }

    /// Connects a node of a level with the nodes connected to `entry`, which are marked in `seen`.
    pub(crate) fn join(
        &mut self,
        space: &Space,
        (slot, level): (u32, usize),
        (entry, seen): (u32, &[bool]),
        width: usize,
        scratch: &mut Scratch,
    ) {
        let from = self.descend(space, space.row(slot), level, entry);
        let from = if seen[from as usize] { from } else { entry };
        let beam = Beam::new(level, from, width);
        self.find_near(space, space.row(slot), beam, &mut |_| true, scratch);
        scratch.finish(width);
        let near: Vec<u64> = scratch.hits.iter().map(|hit| key(hit.distance, hit.slot)).collect();
        // If the node has links, its list and the lists of all near nodes may be full.
        if self.neighbors(slot, level).is_empty() {
            self.connect(space, slot, level, &near);
        } else {
            self.bridge(slot, near[0] as u32, level);
        }
    }

    /// Connects `a` and `b` by a link between two nodes with space, one connected to `a` and one to `b`.
    pub(crate) fn bridge(&mut self, a: u32, b: u32, level: usize) {
        let from = self.node_with_free_place(a, level);
        let to = self.node_with_free_place(b, level);
        if from != to && !self.are_linked(from, to, level) {
            self.link(from, to, level);
        }
    }

    /// Returns a node with space for a link that is connected with `start` by as few links as possible. If a link can
    /// be removed on the way, that creates the space. O(1) nearly always.
    fn node_with_free_place(&mut self, start: u32, level: usize) -> u32 {
        let mut seen = std::collections::HashSet::from([start]);
        let mut queue = std::collections::VecDeque::from([start]);
        let mut all = Vec::new();
        while let Some(node) = queue.pop_front() {
            if self.has_free_place(node, level) {
                return node;
            }
            let shares = |&other: &u32| self.share_a_neighbor(node, other, level);
            let spare = self.neighbors(node, level).iter().find(shares);
            if let Some(spare) = spare {
                self.unlink(node, spare, level);
                return node;
            }
            queue.extend(self.neighbors(node, level).iter().filter(|&neighbor| seen.insert(neighbor)));
            all.push(node);
        }
        // Every list is full, so there are cycles, all longer than three. A link of a cycle can be removed.
        for &node in &all {
            for other in self.neighbors(node, level).to_vec() {
                self.unlink(node, other, level);
                if self.reachable(node, level)[other as usize] {
                    return node;
                }
                self.link(node, other, level);
            }
        }
        unreachable!("nodes with two links or more each have a circle")
    }
}

/// Returns the nodes of `near` (nearest first) that the heuristic chooses, at most `most`: each is nearer to the node
/// to be linked than to any node chosen before. Fewer than `most` may be chosen.
pub(crate) fn choose(space: &Space, near: &[u64], most: usize) -> Vec<u64> {
    let mut chosen: Vec<u64> = Vec::with_capacity(most);
    let mut rows: Vec<&[u8]> = Vec::with_capacity(most);
    for &candidate in near {
        if chosen.len() == most {
            break;
        }
        let row = space.row(candidate as u32);
        let is_apart = |other: &&[u8]| key(space.distance(row, other), 0) >= candidate & !0xFFFF_FFFF;
        if rows.iter().all(is_apart) {
            chosen.push(candidate);
            rows.push(row);
        }
    }
    chosen
}

/// Disjoint sets of numbers (union-find).
struct Sets(Vec<usize>);

impl Sets {
    fn of(count: usize) -> Sets {
        Sets((0..count).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while self.0[at] != at {
            self.0[at] = self.0[self.0[at]];
            at = self.0[at];
        }
        at
    }

    fn are_one(&mut self, a: usize, b: usize) -> bool {
        self.root(a) == self.root(b)
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        self.0[a] = b;
    }
}
