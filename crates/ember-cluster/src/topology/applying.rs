//! Applies agreed changes to the topology. The result depends only on the topology and the change, so all nodes have
//! the same topology after the same changes.

use std::ops::RangeInclusive;

use super::{Group, NODES_MAX, Topology, UNOWNED};
use crate::change::Change;
use crate::node::{DataSet, Name, Node, Role, ShardState};

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
            Change::Serve { data, version } => self.serve(index, *data, *version),
            Change::Promote { data, primary, version } => self.promote(index, *data, *primary, *version),
            Change::InSync { data, version, replicas } => {
                self.set_in_sync(index, *data, *version, replicas.as_deref())
            }
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
        let state = ShardState::default();
        self.nodes.push(Node { role: Role::Primary, epoch: index, state, ..node.clone() });
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
        self.end_acknowledgements(index, name);
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
            node.state = ShardState::default();
        }
        self.end_acknowledgements(index, replica);
        self.current_epoch = index;
        Ok(())
    }

    /// Removes a node that is no longer a replica of its former primary from the replicas that have every acknowledged
    /// write of it.
    fn end_acknowledgements(&mut self, index: u64, name: Name) {
        for node in &mut self.nodes {
            let Some(in_sync) = &mut node.state.in_sync else { continue };
            let before = in_sync.len();
            in_sync.retain(|data| data.node != name);
            if in_sync.len() != before {
                node.state.version = index;
            }
        }
    }

    /// Returns the primary with this name, whose shard has the expected version.
    fn primary_at(&mut self, name: Name, version: u64) -> Result<&mut Node, String> {
        let node = self.nodes.iter_mut().find(|node| node.name == name).ok_or_else(|| unknown(name))?;
        match node.is_replica() {
            true => Err(format!("node {name} is not a primary")),
            false if node.state.version != version => {
                Err(format!("the replicas of node {name} have changed meanwhile: try again"))
            }
            false => Ok(node),
        }
    }

    fn serve(&mut self, index: u64, data: DataSet, version: u64) -> Result<(), String> {
        let node = self.primary_at(data.node, version)?;
        let state = &mut node.state;
        if state.incarnation != data.incarnation {
            // The replicas acknowledged writes of other data.
            state.in_sync = state.in_sync.take().map(|_| Vec::new());
        }
        (state.incarnation, state.version) = (data.incarnation, index);
        Ok(())
    }

    fn promote(&mut self, index: u64, data: DataSet, primary: Name, version: u64) -> Result<(), String> {
        let at = self.index_of(data.node).ok_or_else(|| unknown(data.node))?;
        if self.nodes[usize::from(at)].primary() != Some(primary) {
            return Err(format!("node {} is not a replica of node {primary}", data.node));
        }
        let in_sync = &self.primary_at(primary, version)?.state.in_sync;
        if in_sync.as_ref().is_some_and(|in_sync| !in_sync.contains(&data)) {
            return Err(format!("node {} may lack acknowledged writes of node {primary}", data.node));
        }
        // The others have every acknowledged write, too.
        let others =
            |in_sync: &Vec<DataSet>| in_sync.iter().copied().filter(|other| *other != data).collect();
        let in_sync = in_sync.as_ref().map(others);
        let before = self.index_of(primary).expect("it was found");
        self.owners.iter_mut().filter(|owner| **owner == before).for_each(|owner| *owner = at);
        for node in &mut self.nodes {
            if node.name == data.node {
                (node.role, node.epoch) = (Role::Primary, index);
                let in_sync = in_sync.clone();
                node.state = ShardState { version: index, incarnation: data.incarnation, in_sync };
            } else if node.name == primary || node.primary() == Some(primary) {
                (node.role, node.epoch) = (Role::Replica(data.node), 0);
                node.state = ShardState::default();
            }
        }
        self.current_epoch = index;
        Ok(())
    }

    fn set_in_sync(
        &mut self,
        index: u64,
        data: DataSet,
        version: u64,
        replicas: Option<&[DataSet]>,
    ) -> Result<(), String> {
        let is_replica =
            |replica: &DataSet| self.node(replica.node).is_some_and(|node| node.primary() == Some(data.node));
        if !replicas.unwrap_or_default().iter().all(is_replica) {
            return Err(format!("a node is not a replica of node {}", data.node));
        }
        let state = &mut self.primary_at(data.node, version)?.state;
        if state.incarnation != data.incarnation {
            return Err(format!("node {} serves other data", data.node));
        }
        (state.in_sync, state.version) = (replicas.map(<[DataSet]>::to_vec), index);
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
        let (role, state) = (Role::Primary, ShardState::default());
        Box::new(Node { name: name(digit), shard: name(digit), address, role, epoch: 0, state })
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

    /// A primary `b` with the replicas `c` and `d`; its data have the number 7. Returns the index of the last change.
    fn shard() -> (Topology, u64) {
        let mut topology = pair();
        for digit in ['c', 'd'] {
            let index = topology.group().unwrap().index + 1;
            topology.apply(index, 1, &Change::Join { node: node(digit), slots: Vec::new() }).unwrap();
            let replicate = Change::Replicate { replica: name(digit), primary: name('b') };
            topology.apply(index + 1, 1, &replicate).unwrap();
        }
        topology.apply(7, 1, &Change::Serve { data: data('b', 7), version: 0 }).unwrap();
        (topology, 7)
    }

    fn data(digit: char, incarnation: u64) -> DataSet {
        DataSet { node: name(digit), incarnation }
    }

    #[test]
    fn a_promoted_replica_owns_the_slots_and_the_old_primary_replicates_it() {
        let (mut topology, version) = shard();
        let promote = |version| Change::Promote { data: data('c', 3), primary: name('b'), version };
        assert!(topology.apply(8, 1, &promote(version - 1)).unwrap_err().contains("try again"));
        topology.apply(9, 1, &promote(version)).unwrap();
        assert_eq!(topology.owner(5).unwrap().name, name('c'));
        let replicas: Vec<Name> = topology.replicas_of(name('c')).map(|node| node.name).collect();
        assert_eq!(replicas, [name('b'), name('d')]);
        let promoted = topology.node(name('c')).unwrap();
        assert_eq!((promoted.epoch, promoted.state.version, promoted.state.incarnation), (9, 9, 3));
        assert!(topology.apply(10, 1, &promote(9)).is_err(), "it is a primary already");
    }

    #[test]
    fn with_acknowledging_replicas_only_one_of_them_is_promoted_and_only_with_the_same_data() {
        let (mut topology, version) = shard();
        let in_sync = |version, replicas| Change::InSync { data: data('b', 7), version, replicas };
        let both = Some(vec![data('c', 3), data('d', 4)]);
        topology.apply(8, 1, &in_sync(version, both.clone())).unwrap();
        assert!(topology.apply(9, 1, &in_sync(version, both)).is_err(), "the version is another one");
        let promote = |digit, incarnation, version| Change::Promote {
            data: data(digit, incarnation),
            primary: name('b'),
            version,
        };
        let refused = topology.apply(10, 1, &promote('c', 4, 8)).unwrap_err();
        assert!(refused.contains("may lack acknowledged writes"), "{refused}");
        topology.apply(11, 1, &promote('d', 4, 8)).unwrap();
        let state = &topology.node(name('d')).unwrap().state;
        assert_eq!(state.in_sync, Some(vec![data('c', 3)]), "the other one has all acknowledged writes, too");
        // A replica that leaves the shard acknowledges nothing more.
        let move_away = Change::Replicate { replica: name('c'), primary: name('a') };
        topology.apply(12, 1, &move_away).unwrap();
        let state = &topology.node(name('d')).unwrap().state;
        assert_eq!((state.version, state.in_sync.clone()), (12, Some(Vec::new())));
        // A primary that serves other data has no replica with its acknowledged writes.
        topology.apply(13, 1, &Change::Serve { data: data('d', 5), version: 12 }).unwrap();
        let again = Change::InSync { data: data('d', 4), version: 13, replicas: None };
        assert!(topology.apply(14, 1, &again).unwrap_err().contains("other data"));
        let shared = super::super::shared_lines(&topology);
        let other = super::super::parse_shared(shared.iter().map(String::as_str), name('a')).unwrap();
        assert_eq!(super::super::shared_lines(&other), shared);
        assert_eq!(other.node(name('d')).unwrap().state, topology.node(name('d')).unwrap().state);
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
