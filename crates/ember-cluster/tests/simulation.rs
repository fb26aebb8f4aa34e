//! Groups of members in a simulated network, with simulated disks: everything follows from a seed.
//!
//! Messages are lost, delayed and reordered, links are cut in one or both directions, and nodes crash at any step and
//! start again with what they have stored. Meanwhile nodes join, slots are assigned, and a node is removed.
//!
//! `EMBER_SEEDS=first..end` runs other seeds.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use ember_cluster::change::Change;
use ember_cluster::consensus::{Log, RaftRole};
use ember_cluster::member::{Member, Outputs, Sender};
use ember_cluster::message::{Answer, Message, Parcel};
use ember_cluster::node::{Address, Name};
use ember_cluster::topology::{Topology, shared_lines};

mod support;

use support::{Disk, Random, name_of, receiver};

/// The node timeout of the members in ms.
const NODE_TIMEOUT_MS: u64 = 3_000;

/// The election timeout that follows from it.
const TIMEOUT_MS: u64 = NODE_TIMEOUT_MS / 6;

/// The duration of faults, and the time after it within which all members must agree, in ms.
const FAULTS_MS: u64 = 10_000;
const CALM_MS: u64 = 80_000;

/// The time after which all changes that were proposed during the faults have a result, in ms.
const SETTLING_MS: u64 = 9_500;

/// The time of one step in ms.
const STEP_MS: u64 = 20;

/// The number of seeds of each of the three tests of `make test`, which run at the same time.
const SEEDS: u64 = 100;

/// A fault that the agreement does not survive. The checks must find it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Flaw {
    None,
    /// A crash loses the last entries: they were not durable before they were confirmed.
    ForgottenEntries,
    /// An answer is counted for a second voter, too.
    ForgedAnswers,
}

struct Node {
    name: Name,
    disk: Disk,
    member: Option<Member>,
    /// When a crashed node starts again.
    starts_ms: u64,
    /// The group and the index of the last checked version of the topology.
    checked: Option<(Name, u64)>,
}

struct Flight {
    at_ms: u64,
    from: usize,
    to: usize,
    parcel: Parcel,
}

struct World {
    random: Random,
    now_ms: u64,
    flaw: Flaw,
    has_faults: bool,
    nodes: Vec<Node>,
    flights: Vec<Flight>,
    cut: Vec<Vec<bool>>,
    /// The text of each version of the topology of each group.
    versions: BTreeMap<(Name, u64), Vec<String>>,
    /// The text of each applied entry of each group.
    entries: BTreeMap<(Name, u64), String>,
    leaders: BTreeMap<(Name, u64), Name>,
    /// The owner of the slot of each ticket.
    asked: BTreeMap<u64, (u16, Name)>,
    confirmed: Vec<(u16, Name)>,
    next_ticket: u64,
    next_slot: u16,
}

impl World {
    fn new(seed: u64, flaw: Flaw) -> World {
        let mut world = World {
            random: Random::new(seed),
            now_ms: 1,
            flaw,
            has_faults: true,
            nodes: Vec::new(),
            flights: Vec::new(),
            cut: Vec::new(),
            versions: BTreeMap::new(),
            entries: BTreeMap::new(),
            leaders: BTreeMap::new(),
            asked: BTreeMap::new(),
            confirmed: Vec::new(),
            next_ticket: 0,
            next_slot: 100,
        };
        let count = 3 + world.below(5) as usize;
        world.cut = vec![vec![false; count]; count];
        for number in 0..count {
            let name = name_of(number);
            let mut topology = Topology::lone(name, name);
            topology.assign(&[number as u16]).unwrap();
            topology.set_my_address(Address {
                ip: "10.0.0.1".to_owned(),
                port: number as u16,
                ..Address::default()
            });
            let disk = Disk::new(topology);
            world.nodes.push(Node { name, disk, member: None, starts_ms: 0, checked: None });
        }
        world
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    fn is_one_of(&mut self, count: u64) -> bool {
        self.random.is_one_of(count)
    }

    /// Returns whether a fault of this rarity happens now.
    fn fails(&mut self, one_of: u64) -> bool {
        self.has_faults && self.is_one_of(one_of)
    }

    fn start(&mut self, number: usize) {
        let seed = self.below(u64::MAX);
        let member = self.nodes[number].disk.start(NODE_TIMEOUT_MS, seed);
        self.nodes[number].member = Some(member);
    }

    fn crash(&mut self, number: usize) {
        let downtime = self.below(4 * TIMEOUT_MS);
        let node = &mut self.nodes[number];
        node.member = None;
        node.starts_ms = self.now_ms + downtime;
        let disk = &mut node.disk;
        match self.flaw {
            Flaw::ForgottenEntries => {
                let applied = disk.topology.group().map_or(0, |group| group.index);
                let mut log = Log::new(disk.log.base());
                let kept = disk.log.entries().iter().filter(|entry| entry.index <= applied);
                kept.for_each(|entry| log.push(entry.clone()));
                disk.log = log;
            }
            Flaw::None | Flaw::ForgedAnswers => {}
        }
    }

    /// Stores and sends the outputs of a member. The node may crash between any two steps.
    fn carry_out(&mut self, number: usize) {
        let Some(member) = &mut self.nodes[number].member else { return };
        let Outputs { group, vote, topology_first, log, topology, messages, results, notes: _, cede_to: _ } =
            member.take_outputs();
        let steps = [topology_first, false, !topology_first];
        if let Some(vote) = vote {
            self.nodes[number].disk.store_vote(vote, group);
            if self.fails(300) {
                return self.crash(number);
            }
        }
        let mut log = log;
        for (at, stores_topology) in steps.into_iter().enumerate() {
            if at == 1 {
                let Some(write) = log.take() else { continue };
                self.nodes[number].disk.store_log(write);
            } else if stores_topology && let Some(topology) = &topology {
                self.nodes[number].disk.topology = topology.clone();
            } else {
                continue;
            }
            if self.fails(300) {
                return self.crash(number);
            }
        }
        for (to, parcel) in messages {
            let to = receiver(to, self.nodes.iter().map(|node| node.name));
            self.send(number, to, parcel);
            if self.fails(2_000) {
                return self.crash(number);
            }
        }
        for (ticket, result) in results {
            if let (Ok(()), Some(asked)) = (result, self.asked.get(&ticket)) {
                self.confirmed.push(*asked);
            }
        }
        self.check(number);
    }

    fn send(&mut self, from: usize, to: usize, parcel: Parcel) {
        let text = parcel.text();
        let parcel = Parcel::parse(&text).unwrap();
        if self.cut[from][to] || self.fails(20) {
            return;
        }
        let delay = if self.fails(10) { self.below(2 * TIMEOUT_MS) } else { self.below(10) };
        if self.flaw == Flaw::ForgedAnswers
            && let Message::Answer(Answer { accepts: true, .. }) = parcel.message
        {
            let forged = self.below(self.nodes.len() as u64) as usize;
            self.flights.push(Flight { at_ms: self.now_ms, from: forged, to, parcel: parcel.clone() });
        }
        self.flights.push(Flight { at_ms: self.now_ms + delay, from, to, parcel });
    }

    /// Checks the invariants of every state.
    fn check(&mut self, number: usize) {
        let node = &self.nodes[number];
        let Some(member) = &node.member else { return };
        let Some(group) = member.topology().group() else { return };
        if let Some(status) = member.status().filter(|status| status.role == RaftRole::Leader) {
            let leader = self.leaders.entry((group.name, status.term)).or_insert(node.name);
            assert_eq!(*leader, node.name, "term {} has two leaders", status.term);
        }
        if node.checked == Some((group.name, group.index)) {
            return;
        }
        let lines = shared_lines(member.topology());
        let version = self.versions.entry((group.name, group.index)).or_insert_with(|| lines.clone());
        assert_eq!(*version, lines, "two topologies have the index {}", group.index);
        let before = node.checked.filter(|(name, _)| *name == group.name).map_or(0, |(_, index)| index);
        let is_new = |index: u64| before < index && index <= group.index;
        for entry in node.disk.log.entries().iter().filter(|entry| is_new(entry.index)) {
            let text = entry.text();
            let first = self.entries.entry((group.name, entry.index)).or_insert_with(|| text.clone());
            assert_eq!(*first, text, "two entries were applied");
        }
        self.nodes[number].checked = Some((group.name, group.index));
    }

    fn step(&mut self) {
        self.now_ms += STEP_MS;
        for number in 0..self.nodes.len() {
            if self.nodes[number].member.is_none() && self.nodes[number].starts_ms <= self.now_ms {
                self.start(number);
            }
            // A node may run late.
            if !self.fails(50)
                && let Some(member) = &mut self.nodes[number].member
            {
                member.tick(self.now_ms);
                self.carry_out(number);
            }
        }
        let now_ms = self.now_ms;
        let mut due: Vec<Flight> = self.flights.extract_if(.., |flight| flight.at_ms <= now_ms).collect();
        while let Some(flight) = due.pop() {
            let Some(member) = &mut self.nodes[flight.to].member else { continue };
            let from = Sender {
                name: name_of(flight.from),
                link: flight.from as u64,
                remote_ip: "10.0.0.1".to_owned(),
                local_ip: "10.0.0.1".to_owned(),
            };
            member.receive(&from, flight.parcel, now_ms);
            self.carry_out(flight.to);
        }
    }

    fn disturb(&mut self) {
        let count = self.nodes.len() as u64;
        if self.is_one_of(80) {
            let number = self.below(count) as usize;
            self.crash(number);
        }
        if self.is_one_of(80) {
            let (from, to) = (self.below(count) as usize, self.below(count) as usize);
            self.cut[from][to] = !self.cut[from][to];
        }
        if self.is_one_of(100) {
            let number = self.below(count) as usize;
            let is_cut = self.is_one_of(2);
            for other in 0..count as usize {
                (self.cut[number][other], self.cut[other][number]) = (is_cut, is_cut);
            }
        }
    }

    fn ticket(&mut self) -> u64 {
        self.next_ticket += 1;
        self.next_ticket
    }

    /// Runs a random command of an operator.
    fn operate(&mut self) {
        let (ticket, now_ms) = (self.ticket(), self.now_ms);
        let number = self.below(self.nodes.len() as u64) as usize;
        let last = self.nodes.len() - 1;
        // The last node owns no slots of tickets, because it is removed.
        let (slot, owner) = (self.next_slot, self.nodes[number].name);
        let what = self.below(10);
        let last_name = self.nodes[last].name;
        let Some(member) = &mut self.nodes[number].member else { return };
        match what {
            _ if member.topology().nodes().len() == 1 || what == 0 => {
                // Either of the two nodes may send the request to meet.
                let (asking, asked) = if what < 5 { (number, 0) } else { (0, number) };
                let address = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), asked as u16);
                if asking != asked
                    && let Some(member) = &mut self.nodes[asking].member
                {
                    member.meet(ticket, address, now_ms);
                    self.carry_out(asking);
                }
                return;
            }
            1 if self.flaw == Flaw::None => member.propose(ticket, Change::Forget(last_name), now_ms),
            // While there are two groups, both could assign the slot.
            2 | 3 if member.topology().nodes().len() <= last => return,
            2 => member.propose(ticket, Change::DeleteSlots(vec![50..=50]), now_ms),
            3 => member.propose(ticket, Change::SetSlot { slot: 50, owner }, now_ms),
            _ if number == last => return,
            _ => {
                self.next_slot += 1;
                self.asked.insert(ticket, (slot, owner));
                let change = Change::AddSlots { owner, slots: vec![slot..=slot] };
                member.propose(ticket, change, now_ms);
            }
        }
        self.carry_out(number);
    }

    fn run(&mut self) {
        while self.now_ms < FAULTS_MS {
            self.step();
            self.disturb();
            if self.is_one_of(12) {
                self.operate();
            }
        }
        self.has_faults = false;
        self.cut.iter_mut().flatten().for_each(|cut| *cut = false);
        self.nodes.iter_mut().for_each(|node| node.starts_ms = 0);
        // All nodes that are not members yet join.
        let (mut steps, end_ms) = (0, self.now_ms + CALM_MS);
        let settles_ms = self.now_ms + SETTLING_MS;
        while self.now_ms < settles_ms || (self.now_ms < end_ms && !self.is_settled()) {
            self.step();
            steps += 1;
            if steps % 250 == 0 {
                (1..self.nodes.len()).for_each(|number| self.join_if_lone(number));
            }
        }
        let (ticket, slot) = (self.ticket(), 16_000);
        let owner = self.nodes[0].name;
        self.asked.insert(ticket, (slot, owner));
        let now_ms = self.now_ms;
        let change = Change::AddSlots { owner, slots: vec![slot..=slot] };
        self.nodes[1].member.as_mut().unwrap().propose(ticket, change, now_ms);
        self.carry_out(1);
        for _ in 0..100 {
            self.step();
        }
        self.check_end();
    }

    fn join_if_lone(&mut self, number: usize) {
        let (ticket, now_ms) = (self.ticket(), self.now_ms);
        let Some(member) = &mut self.nodes[number].member else { return };
        if member.topology().nodes().len() == 1 && !member.is_meeting() {
            member.meet(ticket, SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0), now_ms);
            self.carry_out(number);
        }
    }

    /// Returns whether all changes are applied everywhere.
    fn is_settled(&self) -> bool {
        let first = self.nodes[0].member.as_ref().and_then(|member| member.topology().group());
        let is_done = |node: &Node| {
            node.member.as_ref().is_some_and(|member| {
                member.topology().nodes().len() == self.nodes.len()
                    && member.topology().group() == first
                    && member.status().is_some_and(|status| status.leader.is_some())
                    && !member.is_meeting()
            })
        };
        self.nodes.iter().all(is_done) && first.is_some_and(|group| group.voters.len() == self.voters())
    }

    fn voters(&self) -> usize {
        if self.nodes.len() < 5 { 3 } else { 5 }
    }

    /// Checks that all nodes agree in the end, and that no confirmed change is lost.
    fn check_end(&self) {
        let topology = |node: &Node| node.member.as_ref().unwrap().topology().clone();
        let first = topology(&self.nodes[0]);
        for node in &self.nodes {
            let own = topology(node);
            assert_eq!(shared_lines(&own), shared_lines(&first), "node {} differs", node.name);
        }
        assert_eq!(first.nodes().len(), self.nodes.len());
        for (slot, owner) in &self.confirmed {
            assert_eq!(first.owner(*slot).map(|node| node.name), Some(*owner), "slot {slot} is lost");
        }
        assert_eq!(self.confirmed.last().unwrap().0, 16_000, "the last change is confirmed");
        let voters = first.group().unwrap().voters.len();
        assert_eq!(voters, self.voters(), "the number of voters of {} nodes", self.nodes.len());
    }
}

/// Runs the seeds of one of three tests, or a third of the seeds in `EMBER_SEEDS`.
fn run_part(part: u64) {
    let (first, end) = match std::env::var("EMBER_SEEDS") {
        Ok(text) => {
            let (first, end) = text.split_once("..").unwrap();
            (first.parse().unwrap(), end.parse().unwrap())
        }
        Err(_) => (0, 3 * SEEDS),
    };
    for seed in (first..end).filter(|seed| seed % 3 == part) {
        let run = std::panic::catch_unwind(|| World::new(seed, Flaw::None).run());
        assert!(run.is_ok(), "seed {seed} fails: EMBER_SEEDS={seed}..{}", seed + 1);
    }
}

#[test]
fn members_agree_on_every_change_whatever_fails() {
    run_part(0);
}

#[test]
fn members_agree_on_every_change_with_other_seeds() {
    run_part(1);
}

#[test]
fn members_agree_on_every_change_with_further_seeds() {
    run_part(2);
}

/// Returns the first of the seeds with which the checks find a flaw.
fn finds(flaw: Flaw, seeds: u64) -> Option<u64> {
    (0..seeds).find(|seed| std::panic::catch_unwind(|| World::new(*seed, flaw).run()).is_err())
}

#[test]
fn entries_that_were_not_durable_are_found() {
    assert!(finds(Flaw::ForgottenEntries, 300).is_some());
}

#[test]
fn answers_of_other_voters_are_found() {
    assert!(finds(Flaw::ForgedAnswers, 300).is_some());
}
