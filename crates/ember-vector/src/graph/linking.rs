//! Linking in three steps, so that searches and changes of the index do not wait for the search of neighbors.
//!
//! ```text
//! begin    takes a view of the index, and claims vectors to link                   short
//! plan     searches and chooses neighbors in the view, on any thread               long
//! commit   adds the links, as far as the index has not changed                     short
//! ```
//!
//! Relevant changes since the view are checked at commit: lists may have gained space, or lost the link that was to be
//! dropped. After a removal a slot may hold another vector: the node in that slot is linked only if it has the same
//! distance as the chosen one. A plan with outdated levels is repeated; after several outdated plans a vector is linked
//! in place.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::graph::Graph;
use crate::graph::hnsw::{Beam, choose};
use crate::graph::pending::{Claim, Waiting};
use crate::index::Index;
use crate::search::{Scratch, key};
use crate::space::Space;

/// Insertions after which a claim expires: its owner has probably lost access to the index.
const CLAIM_INSERTIONS: u64 = 1000;

/// Outdated plans of one vector after which it is linked in place.
const FAILURES_MAX: u8 = 3;

/// The number of claims so far. A plan is valid for indexes with its claim: the index it was computed in, and copies of
/// it, which have the same vectors in the same slots as long as none was moved. An index that has replaced it does not
/// have the claim.
static CLAIMS: AtomicU64 = AtomicU64::new(0);

/// Vectors to link, and a view of their index.
#[derive(Debug)]
pub struct Linking {
    view: Index,
    claim: Claim,
    claimed: Vec<Waiting>,
}

/// The planned links of a vector.
#[derive(Debug)]
pub struct Plan {
    /// The number of the vector's insertion, and the claim of the plan.
    number: u64,
    claim: Claim,
    /// The number of removals and replacements in the index when the plan was made.
    moves: u64,
    top: Option<usize>,
    /// For an index with lists: the generation of the lists, and the list chosen for the vector.
    list: Option<(u64, u32)>,
    /// The plan of each level, from the highest level that the vector shares with others down to the lowest.
    levels: Vec<LevelPlan>,
}

#[derive(Debug)]
struct LevelPlan {
    level: usize,
    targets: Vec<Target>,
    /// Distances and slots of the nearest nodes, nearest first.
    near: Vec<u64>,
    /// The nearest linked node.
    nearest: u32,
}

/// A node to link with.
#[derive(Debug)]
struct Target {
    /// The distance and slot of the node, as a key.
    key: u64,
    /// The link that the node drops if its list is full; `None` if the list is not full, or all of its links are needed
    /// more than the new one.
    dropped: Option<u32>,
    /// Whether the node's list was full.
    was_full: bool,
}

impl Index {
    /// Returns the number of vectors that are not linked yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether the vector of a slot is not linked yet.
    pub fn is_pending(&self, slot: u32) -> bool {
        self.graph.as_ref().is_some_and(|graph| graph.is_pending(slot))
            || self.lists.as_ref().is_some_and(|lists| lists.list_of(slot).is_none())
    }

    /// Claims up to `most` unclaimed vectors; returns `None` if there are none. O(groups of blocks).
    pub fn begin_linking(&mut self, most: usize) -> Option<Linking> {
        let mut claimed = Vec::new();
        let inserted = self.inserted;
        // Relaxed suffices: only uniqueness matters.
        let claim = Claim { token: CLAIMS.fetch_add(1, Ordering::Relaxed), inserted };
        let is_free = |waiting: &&mut Waiting| {
            waiting.claim.is_none_or(|claim| inserted.wrapping_sub(claim.inserted) >= CLAIM_INSERTIONS)
        };
        for waiting in self.pending.iter_mut().filter(is_free).take(most) {
            waiting.claim = Some(claim);
            claimed.push(*waiting);
        }
        let newest = claimed.last()?.number;
        // The view excludes vectors inserted after the claimed ones, however many are pending.
        let pending = std::mem::take(&mut self.pending);
        let mut view = self.clone();
        view.pending = pending.up_to(newest);
        self.pending = pending;
        Some(Linking { view, claim, claimed })
    }

    /// Adds planned links. Nearly always O(links²) comparisons of numbers.
    pub fn commit(&mut self, plan: &Plan, scratch: &mut Scratch) {
        let Some(at) = self.pending.position(plan.number, plan.claim) else { return };
        if let Some(lists) = &mut self.lists {
            match plan.list {
                Some((generation, list)) if generation == lists.generation => {
                    if let Some(Waiting { slot, .. }) = self.pending.take(at) {
                        lists.insert(slot, list);
                    }
                }
                _ => self.record_failure(at, scratch),
            }
            return;
        }
        let Index { graph: Some(graph), space, pending, moves, .. } = self else { return };
        if plan.top != graph.entry.map(|entry| graph.level(entry)) {
            self.record_failure(at, scratch);
            return;
        }
        let Some(Waiting { slot, .. }) = pending.take(at) else { return };
        graph.set_pending(slot, false);
        for level in &plan.levels {
            if plan.moves == *moves {
                graph.apply(space, slot, level);
            } else {
                let level = graph.still_there(space, slot, level);
                graph.apply(space, slot, &level);
            }
        }
        if plan.top.is_none_or(|top| graph.level(slot) > top) {
            graph.entry = Some(slot);
        }
    }

    /// Records an outdated plan.
    fn record_failure(&mut self, at: usize, scratch: &mut Scratch) {
        let waiting = self.pending.at_mut(at).expect("the element exists");
        waiting.claim = None;
        waiting.failures += 1;
        if waiting.failures >= FAILURES_MAX {
            let slot = waiting.slot;
            self.link_slot(slot, scratch);
        }
    }

    /// Links up to `most` vectors immediately, oldest first.
    pub fn link_pending(&mut self, most: usize, scratch: &mut Scratch) {
        for _ in 0..most {
            let Some(slot) = self.pending.slots().next() else { return };
            self.link_slot(slot, scratch);
        }
    }

    /// Links the vector of a slot immediately, if it is pending.
    pub(crate) fn link_slot(&mut self, slot: u32, scratch: &mut Scratch) {
        if let Some(lists) = &mut self.lists {
            if self.pending.remove(slot).is_some() {
                lists.insert(slot, lists.nearest(&self.space.floats(lists.row(slot))));
            }
            return;
        }
        let Index { graph: Some(graph), space, pending, .. } = self else { return };
        if let Some(Waiting { slot, width, .. }) = pending.remove(slot) {
            graph.set_pending(slot, false);
            graph.insert(space, slot, width as usize, scratch);
        }
    }
}

impl Linking {
    /// Returns the number of vectors to link.
    pub fn len(&self) -> usize {
        self.claimed.len()
    }

    /// Whether there are no vectors; always false.
    pub fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }

    /// Chooses the links of all vectors, oldest first. O(width · log n) distances each.
    pub fn plan(&self, scratch: &mut Scratch) -> Vec<Plan> {
        self.claimed.iter().map(|waiting| self.plan_one(waiting, scratch)).collect()
    }

    fn plan_one(&self, waiting: &Waiting, scratch: &mut Scratch) -> Plan {
        let Index { space, graph, lists, pending, moves, .. } = &self.view;
        let mut plan = Plan {
            number: waiting.number,
            claim: self.claim,
            moves: *moves,
            top: None,
            list: None,
            levels: Vec::new(),
        };
        if let Some(lists) = lists {
            plan.list = Some((lists.generation, lists.nearest(&space.floats(lists.row(waiting.slot)))));
            return plan;
        }
        let Some((graph, entry)) = graph.as_ref().and_then(|graph| Some((graph, graph.entry?))) else {
            return plan;
        };
        let (slot, width) = (waiting.slot, waiting.width as usize);
        let (level, top) = (graph.level(slot), graph.top());
        plan.top = Some(top);
        let row = space.row(slot);
        let mut from = graph.descend(space, row, level, entry);
        for level in (0..=level.min(top)).rev() {
            let beam = Beam::new(level, from, width);
            graph.find_alive(space, row, beam, scratch);
            scratch.finish(width);
            from = scratch.hits.first().map_or(from, |hit| hit.slot);
            let linked = scratch.hits.iter().map(|hit| key(hit.distance, hit.slot));
            // Vectors inserted before this one are nearly always linked before this plan is committed.
            let before = pending
                .iter()
                .filter(|other| other.number < waiting.number && graph.level(other.slot) >= level)
                .map(|other| key(space.between(slot, other.slot), other.slot));
            let mut near: Vec<u64> = linked.chain(before).collect();
            near.sort_unstable();
            near.truncate(width);
            plan.levels.push(graph.plan_level(space, level, near, from));
        }
        plan
    }
}

impl Graph {
    fn plan_level(&self, space: &Space, level: usize, near: Vec<u64>, nearest: u32) -> LevelPlan {
        let chosen = choose(space, &near, self.links);
        let target = |&key: &u64| {
            let node = key as u32;
            let was_full = !self.has_free_place(node, level);
            let dropped = if was_full { self.least_needed(space, node, level, key) } else { None };
            Target { key, dropped, was_full }
        };
        LevelPlan { level, targets: chosen.iter().map(target).collect(), near, nearest }
    }

    /// Returns the plan of a level without the nodes whose slots now hold other vectors.
    fn still_there(&self, space: &Space, slot: u32, plan: &LevelPlan) -> LevelPlan {
        let level = plan.level;
        let is_node = |node: u32| {
            (node as usize) < self.len()
                && self.level(node) >= level
                && !self.is_pending(node)
                && node != slot
        };
        // Any node at the same distance is equally suitable.
        let is_there = |&other: &u64| {
            let node = other as u32;
            is_node(node) && key(space.between(slot, node), node) == other
        };
        let targets = plan.targets.iter().filter(|target| is_there(&target.key));
        let nearest = Some(plan.nearest).filter(|&nearest| is_node(nearest)).or(self.entry);
        LevelPlan {
            level,
            // The targets are kept, but their links to drop are determined again.
            targets: targets
                .map(|target| Target { key: target.key, dropped: None, was_full: false })
                .collect(),
            near: plan.near.iter().copied().filter(is_there).collect(),
            nearest: nearest.expect("a plan with levels is for a graph with nodes"),
        }
    }

    /// Adds the links of a level.
    fn apply(&mut self, space: &Space, slot: u32, plan: &LevelPlan) {
        let level = plan.level;
        for target in &plan.targets {
            let node = target.key as u32;
            // The list may have received other links since the plan, also by an insertion of this node between two
            // linked nodes.
            let is_linkable =
                !self.is_pending(node) && !self.is_dead(node) && self.has_free_place(slot, level);
            if !is_linkable || self.are_linked(slot, node, level) {
                continue;
            }
            if self.has_free_place(node, level) {
                self.link(slot, node, level);
                continue;
            }
            let dropped = match target.dropped {
                Some(dropped) if self.can_spare(node, dropped, level) => Some(dropped),
                // The target refused the link, or the link to drop can no longer be removed.
                None if target.was_full => None,
                _ => self.least_needed(space, node, level, target.key),
            };
            if let Some(dropped) = dropped {
                self.unlink(node, dropped, level);
                self.link(slot, node, level);
            }
        }
        self.fill(slot, &plan.near, level);
        if self.neighbors(slot, level).is_empty() {
            self.put_between(space, slot, plan.nearest, level);
        }
    }

    /// Whether two nodes are linked and their link can be removed without disconnecting nodes.
    fn can_spare(&self, node: u32, dropped: u32, level: usize) -> bool {
        self.are_linked(node, dropped, level)
            && self.neighbors(dropped, level).len() > self.links / 2
            && self.share_a_neighbor(node, dropped, level)
    }
}
