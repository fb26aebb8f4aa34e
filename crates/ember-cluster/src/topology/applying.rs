//! Applies agreed changes to the topology. The result depends only on the topology and the change, so all nodes have
//! the same topology after the same changes.

use std::ops::RangeInclusive;

use super::{Group, NODES_MAX, Topology, UNOWNED};
use crate::change::Change;
use crate::node::{Name, Node, Role};

/// The maximum number of removed nodes whose names are kept. A second removal of one of them succeeds, because
/// `redis-cli --cluster del-node` sends `CLUSTER FORGET` to each node.
pub const FORGOTTEN_MAX: usize = 100;

impl Topology {
    /// Applies the change with this index and term. A refused change changes nothing but the index.
    ///
    /// # Errors
    /// Returns why the change is refused, without an error code.
    ///
    /// # Panics
    /// Panics if the nodes do not agree on the topology, if the index is not the next one, or if the change removes this
    /// node.
    pub fn apply(&mut self, index: u64, term: u64, change: &Change) -> Result<(), String> {
        let group = self.group.as_mut().expect("the nodes agree on the topology");
        assert_eq!(index, group.index + 1, "changes are applied in order");
        (group.index, group.term) = (index, term);
        match change {
            Change::Nothing => Ok(()),
            Change::Voters(voters) => {
                group.voters.clone_from(voters);
                Ok(())
            }
            Change::Join { node, slots } => self.join(index, node, slots),
            Change::Address { name, address } => {
                let node = self.nodes.iter_mut().find(|node| node.name == *name);
                node.ok_or_else(|| unknown(*name))?.address = address.clone();
                Ok(())
            }
            Change::Forget(name) => self.forget(index, *name),
            Change::AddSlots { owner, slots } => self.add_slots(index, *owner, slots),
            Change::SetSlot { slot, owner } => match self.owner(*slot) {
                Some(node) if node.name == *owner => Ok(()),
                Some(node) => Err(format!(
                    "slot {slot} belongs to node {}: slots with an owner are moved by a migration, which is not available \
                     in this version",
                    node.name
                )),
                None => self.add_slots(index, *owner, &[*slot..=*slot]),
            },
            Change::DeleteSlots(slots) => {
                let is_unassigned = |slot: &u16| self.owners[usize::from(*slot)] == UNOWNED;
                if let Some(slot) = slots.iter().cloned().flatten().find(is_unassigned) {
                    return Err(format!("Slot {slot} is already unassigned"));
                }
                slots.iter().cloned().flatten().for_each(|slot| self.owners[usize::from(slot)] = UNOWNED);
                self.current_epoch = index;
                Ok(())
            }
            Change::FlushSlots(name) => {
                let owner = self.index_of(*name).ok_or_else(|| unknown(*name))?;
                self.owners.iter_mut().filter(|slot| **slot == owner).for_each(|slot| *slot = UNOWNED);
                self.current_epoch = index;
                Ok(())
            }
            Change::Replicate { replica, primary } => self.replicate(index, *replica, *primary),
        }
    }

    fn index_of(&self, name: Name) -> Option<u16> {
        let index = self.nodes.iter().position(|node| node.name == name)?;
        Some(u16::try_from(index).expect("there are fewer nodes"))
    }

    fn join(&mut self, index: u64, node: &Node, slots: &[RangeInclusive<u16>]) -> Result<(), String> {
        if self.node(node.name).is_some() {
            return Err(format!("node {} is a member of the cluster already", node.name));
        }
        if self.nodes.len() >= NODES_MAX {
            return Err(format!("the cluster has {NODES_MAX} nodes, which is the maximum"));
        }
        for slot in slots.iter().cloned().flatten() {
            if let Some(owner) = self.owner(slot) {
                return Err(format!(
                    "slot {slot} belongs to both node {} and node {}",
                    owner.name, node.name
                ));
            }
        }
        self.nodes.push(Node { role: Role::Primary, epoch: index, ..node.clone() });
        self.group_mut().forgotten.retain(|name| *name != node.name);
        self.add_slots(index, node.name, slots)
    }

    fn add_slots(&mut self, index: u64, owner: Name, slots: &[RangeInclusive<u16>]) -> Result<(), String> {
        let owner = self.index_of(owner).ok_or_else(|| unknown(owner))?;
        if self.nodes[usize::from(owner)].is_replica() {
            return Err("a replica owns no slots".to_owned());
        }
        let is_busy = |slot: &u16| self.owners[usize::from(*slot)] != UNOWNED;
        if let Some(slot) = slots.iter().cloned().flatten().find(is_busy) {
            return Err(format!("Slot {slot} is already busy"));
        }
        slots.iter().cloned().flatten().for_each(|slot| self.owners[usize::from(slot)] = owner);
        self.nodes[usize::from(owner)].epoch = index;
        self.current_epoch = index;
        Ok(())
    }

    fn forget(&mut self, index: u64, name: Name) -> Result<(), String> {
        let Some(at) = self.index_of(name) else {
            return if self.group_mut().forgotten.contains(&name) { Ok(()) } else { Err(unknown(name)) };
        };
        assert_ne!(usize::from(at), self.myself, "this node leaves the group instead");
        for owner in self.owners.iter_mut().filter(|owner| **owner != UNOWNED) {
            match (*owner).cmp(&at) {
                std::cmp::Ordering::Less => {}
                std::cmp::Ordering::Equal => *owner = UNOWNED,
                std::cmp::Ordering::Greater => *owner -= 1,
            }
        }
        self.nodes.remove(usize::from(at));
        self.myself -= usize::from(self.myself > usize::from(at));
        // A replica of the node keeps its data, but it has nothing to replicate and no slots.
        for node in self.nodes.iter_mut().filter(|node| node.primary() == Some(name)) {
            (node.role, node.epoch) = (Role::Primary, index);
        }
        self.current_epoch = index;
        let forgotten = &mut self.group_mut().forgotten;
        forgotten.push(name);
        let surplus = forgotten.len().saturating_sub(FORGOTTEN_MAX);
        forgotten.drain(..surplus);
        Ok(())
    }

    fn replicate(&mut self, index: u64, replica: Name, primary: Name) -> Result<(), String> {
        let at = self.index_of(replica).ok_or_else(|| unknown(replica))?;
        let found = self.node(primary).ok_or_else(|| unknown(primary))?;
        let shard = found.shard;
        if replica == primary {
            return Err("Can't replicate myself".to_owned());
        }
        if found.is_replica() {
            return Err("I can only replicate a master, not a replica.".to_owned());
        }
        if self.owners.contains(&at) {
            return Err("To set a master the node must be empty and without assigned slots.".to_owned());
        }
        // The replicas of a node follow it to its new primary: a replica has no replicas.
        let follows = |node: &&mut Node| node.name == replica || node.primary() == Some(replica);
        for node in self.nodes.iter_mut().filter(follows) {
            (node.role, node.shard, node.epoch) = (Role::Replica(primary), shard, 0);
        }
        self.current_epoch = index;
        Ok(())
    }

    fn group_mut(&mut self) -> &mut Group {
        self.group.as_mut().expect("the nodes agree on the topology")
    }
}

fn unknown(name: Name) -> String {
    format!("Unknown node {name}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::Address;

    fn name(digit: char) -> Name {
        Name::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn node(digit: char) -> Box<Node> {
        let address = Address { ip: "10.0.0.1".to_owned(), port: 1, bus_port: 2, ..Address::default() };
        Box::new(Node { name: name(digit), shard: name(digit), address, role: Role::Primary, epoch: 0 })
    }

    fn pair() -> Topology {
        let mut topology = Topology::lone(name('a'), name('a'));
        topology.assign(&[0, 1]).unwrap();
        topology.form_group(name('9'));
        topology.apply(2, 1, &Change::Join { node: node('b'), slots: vec![5..=6] }).unwrap();
        topology
    }

    #[test]
    fn a_node_joins_with_its_slots_unless_they_have_an_owner() {
        let mut topology = pair();
        assert_eq!(topology.owner(6).unwrap().name, name('b'));
        let refused = topology.apply(3, 1, &Change::Join { node: node('c'), slots: vec![1..=2] });
        assert!(refused.unwrap_err().contains("slot 1 belongs to both"));
        assert!(topology.apply(4, 1, &Change::Join { node: node('b'), slots: Vec::new() }).is_err());
        assert_eq!((topology.nodes().len(), topology.assigned(), topology.group().unwrap().index), (2, 4, 4));
    }

    #[test]
    fn the_slots_of_a_removed_node_have_no_owner() {
        let mut topology = pair();
        topology.apply(3, 1, &Change::Join { node: node('c'), slots: vec![9..=9] }).unwrap();
        topology.apply(4, 1, &Change::Forget(name('b'))).unwrap();
        assert_eq!((topology.owner(5), topology.owner(9).unwrap().name), (None, name('c')));
        assert_eq!(topology.apply(5, 1, &Change::Forget(name('b'))), Ok(()), "as it was removed before");
        assert_eq!(
            topology.apply(6, 1, &Change::Forget(name('d'))),
            Err(format!("Unknown node {}", name('d')))
        );
    }

    #[test]
    fn only_an_empty_node_becomes_a_replica_and_only_of_a_primary() {
        let mut topology = pair();
        for digit in ['c', 'd'] {
            let index = topology.group().unwrap().index + 1;
            topology.apply(index, 1, &Change::Join { node: node(digit), slots: Vec::new() }).unwrap();
        }
        let replicate =
            |replica, primary| Change::Replicate { replica: name(replica), primary: name(primary) };
        assert!(topology.apply(5, 1, &replicate('b', 'a')).is_err());
        topology.apply(6, 1, &replicate('d', 'c')).unwrap();
        assert!(topology.apply(7, 1, &replicate('c', 'd')).is_err());
        topology.apply(8, 1, &replicate('c', 'a')).unwrap();
        assert_eq!(topology.replicas_of(name('a')).count(), 2, "the replica of a new replica follows it");
        let mine = Change::AddSlots { owner: name('c'), slots: vec![20..=20] };
        assert_eq!(topology.apply(9, 1, &mine), Err("a replica owns no slots".to_owned()));
    }

    #[test]
    fn a_slot_with_an_owner_is_not_set_to_another_node() {
        let mut topology = pair();
        let set = |slot, owner| Change::SetSlot { slot, owner: name(owner) };
        assert_eq!(topology.apply(3, 1, &set(0, 'a')), Ok(()));
        assert!(topology.apply(4, 1, &set(0, 'b')).unwrap_err().contains("migration"));
        assert_eq!(topology.apply(5, 1, &set(100, 'b')), Ok(()));
        assert_eq!(topology.node(name('b')).unwrap().epoch, 5);
    }

    #[test]
    fn the_lines_for_other_nodes_name_no_node_as_the_own() {
        let topology = pair();
        let shared = super::super::shared_lines(&topology);
        assert!(!shared.iter().any(|line| line.contains("myself")));
        let other = super::super::parse_shared(shared.iter().map(String::as_str), name('b')).unwrap();
        assert_eq!(other.myself().name, name('b'));
        assert_eq!(super::super::shared_lines(&other), shared);
        assert_eq!(other.group(), topology.group());
        assert!(super::super::parse_shared(shared.iter().map(String::as_str), name('e')).is_err());
    }
}
