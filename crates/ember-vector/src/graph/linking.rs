//! Links made in three steps, so that nobody who changes or searches the index waits for the search of neighbours.
//!
//! ```text
//! begin    a view of the index, and vectors of it that nobody links yet          short
//! plan     neighbours are searched and chosen in the view, by any thread         long
//! commit   the links are made, as far as the index is still what it was          short
//! ```
//!
//! What has changed since the view was taken is looked at where it matters: lists that have got room or lost what was to be
//! dropped. After a removal slots may be others: a node is linked with then only if it is as far as the one that was chosen.
//! A plan that has its levels wrong is made anew; one that comes too late several times is linked in place.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::graph::Graph;
use crate::graph::hnsw::{Beam, choose};
use crate::graph::pending::{Claim, Waiting};
use crate::index::Index;
use crate::search::{Scratch, key};
use crate::space::Space;

/// Insertions after which nobody waits for a plan any more: who began it has lost the index out of sight.
const CLAIM_INSERTIONS: u64 = 1000;

/// Plans of one vector that may come too late before it is linked in place.
const FAILURES_MAX: u8 = 3;

/// Claims so far. A plan is for those who have its claim: the index it was made in, and copies of it, which have the same
/// vectors in the same slots as long as none was moved. Another index in its place does not have it.
static CLAIMS: AtomicU64 = AtomicU64::new(0);

/// Vectors to be linked, and a view of the index they are in.
#[derive(Debug)]
pub struct Linking {
    view: Index,
    claim: Claim,
    claimed: Vec<Waiting>,
}

/// The links that a vector is to have.
#[derive(Debug)]
pub struct Plan {
    /// The number of its insertion, and who has planned it.
    number: u64,
    claim: Claim,
    /// What the index was then.
    moves: u64,
    top: Option<usize>,
    /// Of an index with lists: which ones, and which of them the vector belongs to.
    list: Option<(u64, u32)>,
    /// From the highest level that it shares with others down to the lowest.
    levels: Vec<LevelPlan>,
}

#[derive(Debug)]
struct LevelPlan {
    level: usize,
    targets: Vec<Target>,
    /// Distances and slots of the nearest, the nearest first.
    near: Vec<u64>,
    /// The nearest of all that are linked.
    nearest: u32,
}

/// A node to be linked with.
#[derive(Debug)]
struct Target {
    /// Its distance and slot.
    key: u64,
    /// Which link it gives up if its list is full; `None` if it is not, or it needs all others more.
    dropped: Option<u32>,
    /// Whether its list was full.
    was_full: bool,
}

impl Index {
    /// How many vectors are not linked yet.
    pub fn pending(&self) -> usize {
        self.pending.len()
    }

    /// Whether the vector of a slot is not linked yet.
    pub fn is_pending(&self, slot: u32) -> bool {
        self.graph.as_ref().is_some_and(|graph| graph.is_pending(slot))
            || self.lists.as_ref().is_some_and(|lists| lists.list_of(slot).is_none())
    }

    /// Takes up to `most` vectors that nobody links yet; nothing if there are none. O(groups of blocks).
    pub fn begin_linking(&mut self, most: usize) -> Option<Linking> {
        let mut claimed = Vec::new();
        let inserted = self.inserted;
        // Nothing but that it is another number hangs on it.
        let claim = Claim { token: CLAIMS.fetch_add(1, Ordering::Relaxed), inserted };
        let is_free = |waiting: &&mut Waiting| {
            waiting.claim.is_none_or(|claim| inserted.wrapping_sub(claim.inserted) >= CLAIM_INSERTIONS)
        };
        for waiting in self.pending.iter_mut().filter(is_free).take(most) {
            waiting.claim = Some(claim);
            claimed.push(*waiting);
        }
        let newest = claimed.last()?.number;
        // However many wait, only those that came before are looked at.
        let pending = std::mem::take(&mut self.pending);
        let mut view = self.clone();
        view.pending = pending.up_to(newest);
        self.pending = pending;
        Some(Linking { view, claim, claimed })
    }

    /// Makes planned links. O(links²) comparisons of numbers nearly always.
    pub fn commit(&mut self, plan: &Plan, scratch: &mut Scratch) {
        let Some(at) = self.pending.position(plan.number, plan.claim) else { return };
        if let Some(lists) = &mut self.lists {
            match plan.list {
                Some((generation, list)) if generation == lists.generation => {
                    if let Some(Waiting { slot, .. }) = self.pending.take(at) {
                        lists.insert(slot, list);
                    }
                }
                _ => self.note_failure(at, scratch),
            }
            return;
        }
        let Index { graph: Some(graph), space, pending, moves, .. } = self else { return };
        if plan.top != graph.entry.map(|entry| graph.level(entry)) {
            self.note_failure(at, scratch);
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

    /// A plan came too late.
    fn note_failure(&mut self, at: usize, scratch: &mut Scratch) {
        let waiting = self.pending.at_mut(at).expect("it is there");
        waiting.claim = None;
        waiting.failures += 1;
        if waiting.failures >= FAILURES_MAX {
            let slot = waiting.slot;
            self.link_slot(slot, scratch);
        }
    }

    /// Links up to `most` vectors here and now, the oldest first.
    pub fn link_pending(&mut self, most: usize, scratch: &mut Scratch) {
        for _ in 0..most {
            let Some(slot) = self.pending.slots().next() else { return };
            self.link_slot(slot, scratch);
        }
    }

    /// Links the vector of a slot here and now, if it is pending.
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
    /// How many vectors are to be linked.
    pub fn len(&self) -> usize {
        self.claimed.len()
    }

    /// Whether there are none, which there are not.
    pub fn is_empty(&self) -> bool {
        self.claimed.is_empty()
    }

    /// Chooses the links of all of them, the oldest first. O(width · log n) distances each.
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
            // Those that came before are linked by then, nearly always.
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
            let was_full = !self.has_room(node, level);
            let dropped = if was_full { self.least_needed(space, node, level, key) } else { None };
            Target { key, dropped, was_full }
        };
        LevelPlan { level, targets: chosen.iter().map(target).collect(), near, nearest }
    }

    /// What a plan says of a level, without the nodes whose slots have got other vectors.
    fn still_there(&self, space: &Space, slot: u32, plan: &LevelPlan) -> LevelPlan {
        let level = plan.level;
        let is_node = |node: u32| {
            (node as usize) < self.len()
                && self.level(node) >= level
                && !self.is_pending(node)
                && node != slot
        };
        // One that is as far is as good, whichever it is.
        let is_there = |&other: &u64| {
            let node = other as u32;
            is_node(node) && key(space.between(slot, node), node) == other
        };
        let targets = plan.targets.iter().filter(|target| is_there(&target.key));
        let nearest = Some(plan.nearest).filter(|&nearest| is_node(nearest)).or(self.entry);
        LevelPlan {
            level,
            // What a list is to give up is looked for again.
            targets: targets
                .map(|target| Target { key: target.key, dropped: None, was_full: false })
                .collect(),
            near: plan.near.iter().copied().filter(is_there).collect(),
            nearest: nearest.expect("a plan with levels is for a graph with nodes"),
        }
    }

    /// Makes the links of a level.
    fn apply(&mut self, space: &Space, slot: u32, plan: &LevelPlan) {
        let level = plan.level;
        for target in &plan.targets {
            let node = target.key as u32;
            // The list may have got other links since, some of them from nodes that this one was put between.
            let is_linkable = !self.is_pending(node) && !self.is_dead(node) && self.has_room(slot, level);
            if !is_linkable || self.are_linked(slot, node, level) {
                continue;
            }
            if self.has_room(node, level) {
                self.link(slot, node, level);
                continue;
            }
            let dropped = match target.dropped {
                Some(dropped) if self.can_spare(node, dropped, level) => Some(dropped),
                // It was refused; or who is to be dropped cannot be any more.
                None if target.was_full => None,
                _ => self.least_needed(space, node, level, target.key),
            };
            if let Some(dropped) = dropped {
                self.unlink(node, dropped, level);
                self.link(slot, node, level);
            }
        }
        self.fill(slot, &plan.near, level);
        if self.neighbours(slot, level).is_empty() {
            self.put_between(space, slot, plan.nearest, level);
        }
    }

    /// Whether two nodes are linked, and that link can be ended.
    fn can_spare(&self, node: u32, dropped: u32, level: usize) -> bool {
        self.are_linked(node, dropped, level)
            && self.neighbours(dropped, level).len() > self.links / 2
            && self.share_a_neighbour(node, dropped, level)
    }
}
