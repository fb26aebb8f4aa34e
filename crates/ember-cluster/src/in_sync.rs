//! The in-sync replicas of a primary: those of which each has every acknowledged write, so that each can replace it.
//!
//! The members of the group agree on the set (`ShardState::in_sync`). A primary with `sync-replicas` waits for the
//! acknowledgements of all of them. It stops waiting for one only after the group has agreed that this one is not in sync
//! and enough others are, and it waits for a further one from the moment at which it proposes it, at the latest. So
//! whichever set is agreed on, each of its replicas has every write that was acknowledged to a client.

use crate::change::Change;
use crate::node::{DataSet, ShardState};
use crate::topology::Topology;

/// A replica that receives the stream of this primary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Follower {
    /// Its data.
    pub data: DataSet,
    /// The last record that it has acknowledged.
    pub record: u64,
    /// Whether a message from it arrived recently.
    pub is_alive: bool,
}

/// A replica for which a primary waits although it is not agreed to be in sync.
#[derive(Clone, Copy, Debug)]
struct Joining {
    data: DataSet,
    /// The record that it must acknowledge before it is proposed: all earlier replies were sent without it.
    record: u64,
    is_proposed: bool,
}

/// A primary's side of the agreement on its in-sync replicas.
#[derive(Debug, Default)]
pub struct InSync {
    /// The version of the shard to which `joining` belongs.
    version: u64,
    joining: Vec<Joining>,
    /// The last record at the previous review.
    earlier_record: u64,
}

/// Returns the state of the shard of this node, if the node is a primary that serves its data `own`.
fn state_of(topology: &Topology, own: u64) -> Option<&ShardState> {
    let myself = topology.myself();
    let serves = topology.group().is_some() && !myself.is_replica() && myself.state.incarnation == own;
    serves.then_some(&myself.state)
}

impl InSync {
    /// Returns the change to propose now. `own` is the number of this node's data, `wanted` the number of replicas that
    /// must acknowledge each write, and `last_record` the last record of this node.
    pub fn review(
        &mut self,
        topology: &Topology,
        own: u64,
        wanted: usize,
        followers: &[Follower],
        last_record: u64,
    ) -> Option<Change> {
        let earlier_record = std::mem::replace(&mut self.earlier_record, last_record);
        let Some(state) = state_of(topology, own) else {
            self.joining.clear();
            return None;
        };
        if self.version != state.version {
            // Proposals for the earlier version are in effect or never will be.
            (self.version, self.joining) = (state.version, Vec::new());
        }
        let data = DataSet { node: topology.myself().name, incarnation: own };
        let propose = |replicas| Some(Change::InSync { data, version: state.version, replicas });
        let Some(agreed) = &state.in_sync else {
            return if wanted == 0 { None } else { propose(Some(Vec::new())) };
        };
        if wanted == 0 {
            return propose(None);
        }
        let find = |data: DataSet| followers.iter().find(|it| it.data == data && it.is_alive);
        self.joining.retain(|joining| joining.is_proposed || find(joining.data).is_some());
        for follower in followers.iter().filter(|it| it.is_alive && it.record >= earlier_record) {
            let data = follower.data;
            let is_known = agreed.contains(&data) || self.joining.iter().any(|it| it.data == data);
            let is_replica =
                topology.node(data.node).is_some_and(|node| node.primary() == Some(topology.myself().name));
            if !is_known && is_replica {
                self.joining.push(Joining { data, record: last_record, is_proposed: false });
            }
        }
        let (mut next, silent): (Vec<DataSet>, Vec<DataSet>) =
            agreed.iter().copied().partition(|data| find(*data).is_some());
        for joining in &mut self.joining {
            if find(joining.data).is_some_and(|it| it.record >= joining.record) {
                joining.is_proposed = true;
                next.push(joining.data);
            }
        }
        if next.len() < wanted {
            // No write is acknowledged without them, so they can still replace this node.
            next.extend(silent);
        }
        // A replica that was proposed and is silent now is waited for until another change is in effect.
        let is_open = self.joining.iter().any(|it| it.is_proposed && !next.contains(&it.data));
        if next == *agreed && !is_open { None } else { propose(Some(next)) }
    }

    /// Returns the record up to which replies may be sent: all required replicas have acknowledged it. 0 if fewer than
    /// `wanted` replicas are in sync.
    pub fn released(&self, topology: &Topology, own: u64, wanted: usize, followers: &[Follower]) -> u64 {
        let agreed = state_of(topology, own).and_then(|state| state.in_sync.as_ref());
        let Some(agreed) = agreed.filter(|agreed| agreed.len() >= wanted.max(1)) else { return 0 };
        let record_of = |data: DataSet| {
            followers.iter().filter(|it| it.data == data).map(|it| it.record).max().unwrap_or(0)
        };
        let joining = self.joining.iter().map(|joining| joining.data);
        agreed.iter().copied().chain(joining).map(record_of).min().unwrap_or(0)
    }

    /// Returns the number of replicas that are in sync, if the node is a primary that serves its data `own`.
    pub fn count(topology: &Topology, own: u64) -> usize {
        state_of(topology, own).and_then(|state| state.in_sync.as_ref()).map_or(0, Vec::len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Address, Name, Node, Role};

    fn name(digit: char) -> Name {
        Name::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn data(digit: char) -> DataSet {
        DataSet { node: name(digit), incarnation: 1 }
    }

    fn follower(digit: char, record: u64, is_alive: bool) -> Follower {
        Follower { data: data(digit), record, is_alive }
    }

    /// A primary `a` with the replicas `b` and `c`.
    struct Shard {
        topology: Topology,
        in_sync: InSync,
    }

    impl Shard {
        fn new() -> Shard {
            let mut topology = Topology::lone(name('a'), name('a'));
            topology.form_group(name('9'));
            let mut shard = Shard { topology, in_sync: InSync::default() };
            for digit in ['b', 'c'] {
                let (role, state) = (Role::Primary, ShardState::default());
                let address = Address::default();
                let node = Node { name: name(digit), shard: name(digit), address, role, epoch: 0, state };
                shard.apply(&Change::Join { node: Box::new(node), slots: Vec::new() });
                shard.apply(&Change::Replicate { replica: name(digit), primary: name('a') });
            }
            shard.apply(&Change::Serve { data: data('a'), version: 0 });
            shard
        }

        fn apply(&mut self, change: &Change) {
            let index = self.topology.group().unwrap().index + 1;
            self.topology.apply(index, 1, change).unwrap();
        }

        fn review(&mut self, followers: &[Follower], last_record: u64) -> Option<Vec<DataSet>> {
            match self.in_sync.review(&self.topology, 1, 1, followers, last_record)? {
                Change::InSync { replicas, .. } => replicas,
                change => panic!("{change:?}"),
            }
        }

        fn agree(&mut self, replicas: &[DataSet]) {
            let version = self.topology.myself().state.version;
            self.apply(&Change::InSync { data: data('a'), version, replicas: Some(replicas.to_vec()) });
        }

        fn released(&self, followers: &[Follower]) -> u64 {
            self.in_sync.released(&self.topology, 1, 1, followers)
        }
    }

    #[test]
    fn a_replica_is_proposed_after_it_has_what_was_acknowledged_without_it() {
        let mut shard = Shard::new();
        assert_eq!(shard.review(&[], 5), Some(Vec::new()), "writes wait from now on");
        shard.agree(&[]);
        assert_eq!(shard.review(&[follower('b', 5, true)], 7), None, "it lacks records 6 and 7");
        assert_eq!(shard.review(&[follower('b', 7, true)], 9), Some(vec![data('b')]));
        assert_eq!(shard.released(&[follower('b', 7, true)]), 0, "no replica is agreed to be in sync");
        shard.agree(&[data('b')]);
        assert_eq!(shard.review(&[follower('b', 8, true)], 9), None);
        assert_eq!(shard.released(&[follower('b', 8, true)]), 8);
        // A second one is waited for before it is agreed on.
        let both = [follower('b', 12, true), follower('c', 9, true)];
        assert_eq!(shard.review(&both, 12), None);
        assert_eq!(shard.released(&both), 9);
    }

    #[test]
    fn a_proposed_replica_that_falls_silent_is_waited_for_until_another_change_is_in_effect() {
        let mut shard = Shard::new();
        shard.agree(&[data('b')]);
        assert_eq!(shard.review(&[follower('b', 5, true)], 5), None);
        let both = [follower('b', 5, true), follower('c', 5, true)];
        assert_eq!(shard.review(&both, 5), Some(vec![data('b'), data('c')]));
        // The proposal may still take effect.
        let silent = [follower('b', 7, true), follower('c', 5, false)];
        assert_eq!(shard.review(&silent, 7), Some(vec![data('b')]));
        assert_eq!(shard.released(&silent), 5);
        shard.agree(&[data('b')]);
        assert_eq!(shard.review(&silent, 7), None);
        assert_eq!(shard.released(&silent), 7);
    }

    #[test]
    fn a_silent_replica_is_waited_for_until_it_is_agreed_not_to_be_in_sync() {
        let mut shard = Shard::new();
        shard.agree(&[data('b'), data('c')]);
        let followers = [follower('b', 9, true), follower('c', 4, false)];
        assert_eq!(shard.review(&followers, 9), Some(vec![data('b')]));
        assert_eq!(shard.released(&followers), 4);
        shard.agree(&[data('b')]);
        assert_eq!(shard.review(&followers, 9), None);
        assert_eq!(shard.released(&followers), 9);
        // The last one stays: without it, nothing is acknowledged.
        assert_eq!(shard.review(&[], 9), None);
        // A replica with other data is another one.
        let other = Follower { data: DataSet { incarnation: 2, ..data('b') }, record: 9, is_alive: true };
        assert_eq!(shard.review(&[other], 9), Some(vec![other.data]));
        assert_eq!(shard.released(&[other]), 0);
    }
}
