//! The topology as one node knows it: all nodes, and the owner of each slot.

mod applying;
pub(crate) mod text;

pub use applying::FORGOTTEN_MAX;
pub use text::{LineError, describe, lines, parse, parse_shared, shared_lines};

use std::fmt;
use std::ops::RangeInclusive;

use crate::node::{Address, Name, Node, Role, ShardState};
use crate::slots::SLOTS;

/// The entry of a slot without an owner.
const UNOWNED: u16 = u16::MAX;

/// The number of slots whose owners are compared at once.
const RUN_BLOCK: usize = 64;

/// The maximum number of nodes, far above the intended size of a cluster. It limits the length of replies that list the
/// nodes.
pub const NODES_MAX: usize = 10_000;

/// The nodes of a cluster and the owners of its slots.
///
/// The topology always contains this node. The owner of a slot is a primary, and a replica replicates a primary.
#[derive(Clone, PartialEq, Eq)]
pub struct Topology {
    nodes: Vec<Node>,
    /// The index of this node.
    myself: usize,
    /// The index of the owner of each slot, or [`UNOWNED`].
    owners: Box<[u16]>,
    current_epoch: u64,
    /// The agreement of the nodes, if they agree on the topology.
    group: Option<Group>,
}

/// The agreement of several nodes on the topology: they apply the same changes in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The random name of the group.
    pub name: Name,
    /// The number of the last change in the topology.
    pub index: u64,
    /// The term of the leader that appended that change.
    pub term: u64,
    /// The nodes that vote, as of that change.
    pub voters: Vec<Name>,
    /// The names of the nodes that were removed last, oldest first.
    pub forgotten: Vec<Name>,
}

/// The reason why a change of slots is refused, in Redis's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotError {
    /// The slot to assign has an owner.
    Busy(u16),
    /// The slot to remove has no owner.
    Unassigned(u16),
    /// The slot was named twice.
    Repeated(u16),
}

impl fmt::Display for SlotError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SlotError::Busy(slot) => write!(f, "Slot {slot} is already busy"),
            SlotError::Unassigned(slot) => write!(f, "Slot {slot} is already unassigned"),
            SlotError::Repeated(slot) => write!(f, "Slot {slot} specified multiple times"),
        }
    }
}

impl fmt::Debug for Topology {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(lines(self)).finish()
    }
}

impl Topology {
    /// Returns the topology of a node that knows no other node and owns no slot.
    pub fn lone(name: Name, shard: Name) -> Topology {
        let (role, state) = (Role::Primary, ShardState::default());
        let node = Node { name, shard, address: Address::default(), role, epoch: 0, state };
        let owners = vec![UNOWNED; SLOTS].into_boxed_slice();
        Topology { nodes: vec![node], myself: 0, owners, current_epoch: 0, group: None }
    }

    /// Returns all nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Returns the agreement of the nodes; `None` for a node that knows no other node, or knows others from its file only.
    pub fn group(&self) -> Option<&Group> {
        self.group.as_ref()
    }

    /// Returns this node.
    pub fn myself(&self) -> &Node {
        &self.nodes[self.myself]
    }

    /// Returns whether `node` is this node.
    pub fn is_myself(&self, node: &Node) -> bool {
        node.name == self.myself().name
    }

    /// Returns the node with this name.
    pub fn node(&self, name: Name) -> Option<&Node> {
        self.nodes.iter().find(|node| node.name == name)
    }

    /// Returns the highest configuration epoch that this node has seen.
    pub fn current_epoch(&self) -> u64 {
        self.current_epoch
    }

    /// Returns the configuration epoch of a node's shard.
    pub fn epoch_of(&self, node: &Node) -> u64 {
        node.primary().and_then(|primary| self.node(primary)).unwrap_or(node).epoch
    }

    /// Returns the owner of a slot.
    pub fn owner(&self, slot: u16) -> Option<&Node> {
        self.nodes.get(usize::from(self.owners[usize::from(slot)]))
    }

    /// Returns whether this node owns a slot.
    pub fn owns(&self, slot: u16) -> bool {
        usize::from(self.owners[usize::from(slot)]) == self.myself
    }

    /// Returns the replicas of a node.
    pub fn replicas_of(&self, name: Name) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(move |node| node.primary() == Some(name))
    }

    /// Returns the primaries, one for each shard.
    pub fn primaries(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| !node.is_replica())
    }

    /// Returns the ranges of slots that a node owns, in ascending order.
    pub fn ranges_of(&self, name: Name) -> Vec<RangeInclusive<u16>> {
        let Some(index) = self.nodes.iter().position(|node| node.name == name) else { return Vec::new() };
        let runs = self.runs().into_iter().filter(|(_, owner)| usize::from(*owner) == index);
        runs.map(|(range, _)| range).collect()
    }

    /// Returns the ranges of slots of each node, in the order of the nodes.
    fn ranges_by_node(&self) -> Vec<Vec<RangeInclusive<u16>>> {
        let mut found = vec![Vec::new(); self.nodes.len()];
        for (range, owner) in self.runs() {
            if let Some(ranges) = found.get_mut(usize::from(owner)) {
                ranges.push(range);
            }
        }
        found
    }

    /// Returns the ranges of all assigned slots with their owners, in ascending order.
    pub fn ranges(&self) -> Vec<(RangeInclusive<u16>, &Node)> {
        let runs = self.runs().into_iter().filter(|(_, owner)| *owner != UNOWNED);
        runs.map(|(range, owner)| (range, &self.nodes[usize::from(owner)])).collect()
    }

    /// Returns the ranges of consecutive slots with the same entry. Blocks are compared at once, because ranges are long.
    fn runs(&self) -> Vec<(RangeInclusive<u16>, u16)> {
        let (owners, mut runs, mut start) = (&*self.owners, Vec::new(), 0);
        while start < owners.len() {
            let mut end = start + 1;
            while end + RUN_BLOCK <= owners.len()
                && owners[end - 1..end - 1 + RUN_BLOCK] == owners[end..end + RUN_BLOCK]
            {
                end += RUN_BLOCK;
            }
            while end < owners.len() && owners[end] == owners[start] {
                end += 1;
            }
            runs.push((start as u16..=(end - 1) as u16, owners[start]));
            start = end;
        }
        runs
    }

    /// Returns the number of slots that have an owner.
    pub fn assigned(&self) -> usize {
        self.owners.iter().filter(|&&owner| owner != UNOWNED).count()
    }

    /// Returns whether a node owns a slot.
    pub fn is_owner(&self, name: Name) -> bool {
        let index = self.nodes.iter().position(|node| node.name == name);
        index.is_some_and(|index| self.owners.iter().any(|&owner| usize::from(owner) == index))
    }

    /// Returns the number of nodes that own a slot.
    pub fn size(&self) -> usize {
        let mut owners: Vec<u16> = self.owners.iter().copied().filter(|&owner| owner != UNOWNED).collect();
        owners.sort_unstable();
        owners.dedup();
        owners.len()
    }

    /// Makes this node the owner of slots.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if a slot has an owner or is named twice.
    pub fn assign(&mut self, slots: &[u16]) -> Result<(), SlotError> {
        let myself = u16::try_from(self.myself).expect("there are fewer nodes");
        self.change(slots, SlotError::Busy, |owner| owner == UNOWNED, myself)
    }

    /// Removes the owners of slots.
    ///
    /// # Errors
    /// Returns an error, and changes nothing, if a slot has no owner or is named twice.
    pub fn unassign(&mut self, slots: &[u16]) -> Result<(), SlotError> {
        self.change(slots, SlotError::Unassigned, |owner| owner != UNOWNED, UNOWNED)
    }

    fn change(
        &mut self,
        slots: &[u16],
        refusal: fn(u16) -> SlotError,
        is_fit: fn(u16) -> bool,
        owner: u16,
    ) -> Result<(), SlotError> {
        let mut named = vec![false; SLOTS];
        for &slot in slots {
            if !is_fit(self.owners[usize::from(slot)]) {
                return Err(refusal(slot));
            }
            if std::mem::replace(&mut named[usize::from(slot)], true) {
                return Err(SlotError::Repeated(slot));
            }
        }
        slots.iter().for_each(|&slot| self.owners[usize::from(slot)] = owner);
        Ok(())
    }

    /// Removes the owners of all slots of this node.
    pub fn unassign_mine(&mut self) {
        let myself = self.myself;
        self.owners
            .iter_mut()
            .filter(|owner| usize::from(**owner) == myself)
            .for_each(|owner| *owner = UNOWNED);
    }

    /// Makes this node the first voter of a new group, which agrees on this topology.
    pub fn form_group(&mut self, name: Name) {
        let voters = vec![self.myself().name];
        self.group = Some(Group { name, index: 1, term: 1, voters, forgotten: Vec::new() });
    }

    /// Removes the group, of which this node is the only member.
    ///
    /// # Panics
    /// Panics if there are other members.
    pub fn dissolve_group(&mut self) {
        assert_eq!(self.nodes.len(), 1, "other members still agree");
        self.group = None;
    }

    /// Sets the addresses of this node.
    pub fn set_my_address(&mut self, address: Address) {
        self.nodes[self.myself].address = address;
    }

    /// Sets the configuration epoch of this node.
    pub fn set_my_epoch(&mut self, epoch: u64) {
        self.nodes[self.myself].epoch = epoch;
        self.current_epoch = self.current_epoch.max(epoch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(digit: char) -> Name {
        Name::parse(&digit.to_string().repeat(40)).unwrap()
    }

    #[test]
    fn a_lone_node_owns_nothing_until_slots_are_assigned_to_it() {
        let mut topology = Topology::lone(name('a'), name('b'));
        assert_eq!((topology.assigned(), topology.size()), (0, 0));
        assert_eq!(topology.owner(5), None);
        topology.assign(&[5, 6, 16_383]).unwrap();
        assert_eq!((topology.assigned(), topology.size()), (3, 1));
        assert!(topology.owns(6) && !topology.owns(7));
        assert_eq!(topology.ranges_of(name('a')), [5..=6, 16_383..=16_383]);
        topology.unassign_mine();
        assert_eq!(topology.assigned(), 0);
    }

    #[test]
    fn a_refused_change_of_slots_changes_nothing() {
        let mut topology = Topology::lone(name('a'), name('b'));
        topology.assign(&[1]).unwrap();
        let before = topology.clone();
        assert_eq!(topology.assign(&[0, 1]), Err(SlotError::Busy(1)));
        assert_eq!(topology.assign(&[2, 2]), Err(SlotError::Repeated(2)));
        assert_eq!(topology.unassign(&[1, 2]), Err(SlotError::Unassigned(2)));
        assert_eq!(topology.unassign(&[1, 1]), Err(SlotError::Repeated(1)));
        assert_eq!(topology, before);
    }
}
