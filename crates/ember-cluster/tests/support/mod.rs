//! The parts that both simulations use: random choices, names of nodes, and the disk of a node.

use ember_cluster::consensus::{Log, LogWrite, Vote};
use ember_cluster::member::{Member, Recipient};
use ember_cluster::node::Name;
use ember_cluster::topology::Topology;

/// Random choices that follow from a seed.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // xorshift64 (Marsaglia, 2003).
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }

    /// Returns true once in `count` calls on average.
    pub(crate) fn is_one_of(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

/// Returns the name of the node with this number.
pub(crate) fn name_of(number: usize) -> Name {
    Name::parse(&format!("{:02x}", number + 1).repeat(20)).unwrap()
}

/// Returns the number of the node that receives a message.
pub(crate) fn receiver(to: Recipient, names: impl IntoIterator<Item = Name>) -> usize {
    match to {
        Recipient::Node(name) => names.into_iter().position(|it| it == name).unwrap(),
        Recipient::Link(link) => usize::try_from(link).unwrap(),
        Recipient::Address(address) => usize::from(address.port()),
    }
}

/// The durable state of a node.
pub(crate) struct Disk {
    pub(crate) topology: Topology,
    /// The group of the vote and of the log.
    group: Option<Name>,
    vote: Vote,
    pub(crate) log: Log,
}

impl Disk {
    pub(crate) fn new(topology: Topology) -> Disk {
        Disk { topology, group: None, vote: Vote::default(), log: Log::default() }
    }

    pub(crate) fn store_vote(&mut self, vote: Vote, group: Option<Name>) {
        (self.vote, self.group) = (vote, group);
    }

    pub(crate) fn store_log(&mut self, write: LogWrite) {
        match write {
            LogWrite::Append(entries) => entries.into_iter().for_each(|entry| self.log.push(entry)),
            LogWrite::Replace(log) => self.log = log,
        }
    }

    /// Returns the member that a start from this state creates.
    pub(crate) fn start(&self, node_timeout_ms: u64, seed: u64) -> Member {
        let mut topology = self.topology.clone();
        if self.group != topology.group().map(|group| group.name) && topology.nodes().len() == 1 {
            // The node has crashed while it joined another group.
            topology.dissolve_group();
        }
        match topology.group() {
            None => Member::outside(topology, node_timeout_ms, seed),
            Some(_) => Member::resume(topology, self.vote, self.log.clone(), node_timeout_ms, seed)
                .expect("the disk is intact"),
        }
    }
}
