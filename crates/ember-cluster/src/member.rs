//! A node's part in its group: the topology that all members have, the changes that this node proposes, and meeting other
//! nodes.
//!
//! ```text
//! no group ── MEET, and the other node is in no group either ──▶ that node forms a group of one, this node joins it
//!          ── MEET, and one of the nodes is in a group ────────▶ the node without a group joins that group
//! member   ── a proposal ─▶ leader ─▶ entry of the log ─▶ applied by every member
//!          ── removed, or reset ───────────────────────────────▶ no group, no slots
//! ```
//!
//! A [`Member`] has no clock and no I/O. After each call the caller takes the [`Outputs`] and carries them out in the order
//! of the fields: stored data is durable before a message is sent.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::change::Change;
use crate::consensus::{Log, LogWrite, Raft, RaftRole, Vote};
use crate::failover::Watch;
use crate::lease::{Leases, Renewal, Report, Timing};
use crate::message::{Answer, Meeting, Message, Parcel, Verdict};
use crate::node::{Address, DataSet, Name, Node};
use crate::topology::{Topology, parse_shared, shared_lines};

/// The number of election timeouts after which a change without a result fails. An election takes up to two, and the
/// leader may fail just after it.
const PROPOSAL_TIMEOUTS: u64 = 3;

/// The minimum time in ms for the result of a change, because a slow disk may need more than a short election timeout.
const PROPOSAL_MIN_MS: u64 = 5_000;

/// The interval in ms at which a node repeats a request without an answer.
const RETRY_MS: u64 = 200;

/// The maximum number of nodes that this node is about to meet, and of changes without a result.
const WAITING_MAX: usize = 1_000;

/// The receiver of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recipient {
    /// The node with this name, by any link.
    Node(Name),
    /// The node at the other end of this link.
    Link(u64),
    /// The node at this address, whose name is not known.
    Address(SocketAddr),
}

/// The sender of a message.
#[derive(Clone, Debug)]
pub struct Sender {
    /// The name of the node.
    pub name: Name,
    /// The link by which the message came.
    pub link: u64,
    /// The IP address of the sender, as this node sees it.
    pub remote_ip: String,
    /// The IP address of this node, as the sender sees it.
    pub local_ip: String,
}

/// The actions that the caller takes after a call.
#[derive(Debug, Default)]
pub struct Outputs {
    /// The group to which the vote and the log belong; `None` in no group.
    pub group: Option<Name>,
    /// The vote to store.
    pub vote: Option<Vote>,
    /// Whether the topology is stored before the log instead of after it.
    pub topology_first: bool,
    /// The change of the stored log.
    pub log: Option<LogWrite>,
    /// The new topology, to store and to use.
    pub topology: Option<Topology>,
    /// The messages to send.
    pub messages: Vec<(Recipient, Parcel)>,
    /// The results of proposals, by their tickets. They are valid as soon as the topology of these outputs is in use.
    pub results: Vec<(u64, Result<(), String>)>,
    /// The replica of this node, with the number of its data, that requests the slots of this node.
    pub cede_to: Option<DataSet>,
    /// Lines for the log of the server.
    pub notes: Vec<String>,
}

/// The state of the agreement on this member, for INFO and metrics.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The role.
    pub role: RaftRole,
    /// The term.
    pub term: u64,
    /// The leader, if it is known.
    pub leader: Option<Name>,
    /// The voters.
    pub voters: Vec<Name>,
    /// The commit index of this node.
    pub commit: u64,
}

/// The origin of a proposal.
#[derive(Debug)]
enum Origin {
    /// A command.
    Command(u64),
    /// A command that makes this node leave the group; with the topology of the node after it has left.
    Leaving(u64, Box<Topology>),
    /// A node that wants to join, at the other end of this link.
    Joining(Name, u64),
    /// This node, whose addresses have changed.
    Address,
    /// A listed node that is a member of another group.
    Stray(Name),
    /// This node, about its shard. Its outcome follows from the topology.
    Shard,
}

/// A wait of this node until its primary hands its slots over.
#[derive(Debug)]
struct Takeover {
    ticket: u64,
    primary: Name,
    incarnation: u64,
    next_ms: u64,
    deadline_ms: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// To be proposed at this time or later.
    Waiting(u64),
    /// Sent to the leader.
    Sent,
    /// Appended here, with this index and term.
    Appended(u64, u64),
    /// Applied by the leader at this index.
    Applied(u64),
}

#[derive(Debug)]
struct Proposal {
    number: u64,
    origin: Origin,
    change: Change,
    stage: Stage,
    deadline_ms: u64,
}

/// A change that another member has proposed and this leader has appended.
#[derive(Debug)]
struct Taken {
    from: Name,
    ticket: u64,
    index: u64,
    term: u64,
}

/// Another node that this node is about to meet.
#[derive(Debug)]
struct Encounter {
    ticket: Option<u64>,
    other: Recipient,
    /// The name of the other node, once it has answered.
    name: Option<Name>,
    next_ms: u64,
    deadline_ms: u64,
}

/// A node as a member of a group, or in no group.
#[derive(Debug)]
pub struct Member {
    topology: Topology,
    raft: Option<Raft>,
    timeout_ms: u64,
    random: u64,
    /// The addresses that this node has now.
    address: Option<Address>,
    proposals: Vec<Proposal>,
    next_number: u64,
    taken: Vec<Taken>,
    encounters: VecDeque<Encounter>,
    last_seen: Option<(Option<Name>, Vec<Name>)>,
    /// The state of the data of this node.
    report: Report,
    leases: Leases,
    /// The record of the other members, while this member is the leader.
    watch: Option<Watch>,
    takeover: Option<Takeover>,
    out: Outputs,
}

impl Member {
    /// Returns a node in no group, with the topology of its file.
    ///
    /// # Panics
    /// Panics if the topology is that of a group.
    pub fn outside(topology: Topology, timeout_ms: u64, seed: u64) -> Member {
        assert!(topology.group().is_none(), "a member continues with its vote and its log");
        Member {
            topology,
            raft: None,
            timeout_ms,
            random: seed,
            address: None,
            proposals: Vec::new(),
            next_number: 0,
            taken: Vec::new(),
            encounters: VecDeque::new(),
            last_seen: None,
            report: Report::default(),
            leases: Leases::default(),
            watch: None,
            takeover: None,
            out: Outputs::default(),
        }
    }

    /// Returns a member that continues with its stored topology, vote and log.
    ///
    /// # Errors
    /// Returns why the three do not belong together.
    pub fn resume(
        topology: Topology,
        vote: Vote,
        log: Log,
        timeout_ms: u64,
        seed: u64,
    ) -> Result<Member, String> {
        let group = topology.group().ok_or("the topology has no group")?.clone();
        if log.base().0 > group.index {
            return Err(format!(
                "the log begins after entry {}, but the topology contains the changes up to {} only",
                log.base().0,
                group.index
            ));
        }
        if log.term_at(group.index).is_some_and(|term| term != group.term) && log.last().1 >= group.term {
            return Err(format!("entry {} of the log is not the one that is in the topology", group.index));
        }
        if vote.term < group.term || vote.term < log.last().1 {
            return Err(format!("the vote is of term {}, which is older than the log", vote.term));
        }
        let me = topology.myself().name;
        let raft = Raft::new(me, vote, log, &group, Timing::of(timeout_ms).election_ms, seed);
        let bare = Topology::lone(me, topology.myself().shard);
        let mut member = Member { raft: Some(raft), ..Member::outside(bare, timeout_ms, seed) };
        member.topology = topology;
        member.refresh_members();
        Ok(member)
    }

    /// Returns the topology.
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Returns whether this node is in a group.
    pub fn is_in_group(&self) -> bool {
        self.raft.is_some()
    }

    /// Returns whether this node is about to meet another one.
    pub fn is_meeting(&self) -> bool {
        !self.encounters.is_empty()
    }

    /// Returns the state of the agreement; `None` in no group.
    pub fn status(&self) -> Option<Status> {
        let raft = self.raft.as_ref()?;
        Some(Status {
            role: raft.role(),
            term: raft.term(),
            leader: raft.leader(),
            voters: raft.voters().to_vec(),
            commit: raft.commit(),
        })
    }

    /// Returns and removes the outputs.
    pub fn take_outputs(&mut self) -> Outputs {
        std::mem::take(&mut self.out)
    }

    /// Sets the topology of a node in no group, which changes it by itself.
    ///
    /// # Panics
    /// Panics if the node is in a group.
    pub fn set_own_topology(&mut self, topology: Topology) {
        assert!(self.raft.is_none(), "the topology of a group changes by agreement");
        self.topology = topology;
    }

    /// Sets the addresses that this node has now; other members receive them.
    pub fn set_address(&mut self, address: Address) {
        self.address = Some(address);
    }

    /// Sets the node timeout, from which [`Timing`] follows.
    pub fn set_timeout(&mut self, timeout_ms: u64) {
        self.timeout_ms = timeout_ms;
        let election_ms = self.timing().election_ms;
        if let Some(raft) = &mut self.raft {
            raft.set_timeout(election_ms);
        }
    }

    fn timing(&self) -> Timing {
        Timing::of(self.timeout_ms)
    }

    /// Sets the state of the data of this node.
    pub fn set_report(&mut self, report: Report) {
        if report.incarnation != self.report.incarnation {
            self.leases.hurry();
        }
        self.report = report;
    }

    /// Returns the time up to which this node may serve its slots. `used` is the topology that its workers use now.
    /// Outside a group, there is no limit.
    pub fn serves_until_ms(&self, used: &Topology) -> u64 {
        match used.group() {
            None => u64::MAX,
            Some(group) if Some(group.name) != self.group_name() => 0,
            Some(group) => {
                let myself = used.myself();
                let is_agreed = myself.state.incarnation == self.report.incarnation;
                if myself.is_replica() || !is_agreed { 0 } else { self.leases.until_ms(group.index) }
            }
        }
    }

    /// Returns the members from which the leader receives no messages, as of its last answer to this node.
    pub fn failed(&self, now_ms: u64) -> &[Name] {
        self.leases.failed(&self.timing(), now_ms)
    }

    /// Proposes a change of the shard of this node, unless an earlier one has no outcome yet; returns whether it does. The
    /// outcome follows from the topology.
    pub fn propose_for_shard(&mut self, change: Change, now_ms: u64) -> bool {
        let is_open = self.proposals.iter().any(|it| matches!(it.origin, Origin::Shard));
        if is_open || self.raft.is_none() {
            return false;
        }
        self.enter(Origin::Shard, change, now_ms);
        self.finish(now_ms);
        true
    }

    /// Takes over the slots of the primary of this node, with its help. The result is among the outputs later.
    pub fn take_over(&mut self, ticket: u64, now_ms: u64) {
        let Some(primary) = self.topology.myself().primary().filter(|_| self.raft.is_some()) else {
            self.out.results.push((ticket, Err("this node is not a replica in a cluster".to_owned())));
            return;
        };
        if let Some(earlier) = self.takeover.take() {
            self.out.results.push((earlier.ticket, Err("another failover has begun".to_owned())));
        }
        let (incarnation, deadline_ms) = (self.report.incarnation, self.proposal_deadline(now_ms));
        self.takeover = Some(Takeover { ticket, primary, incarnation, next_ms: now_ms, deadline_ms });
        self.finish(now_ms);
    }

    /// Informs a replica that this node does not hand over its slots to it.
    pub fn keep_slots(&mut self, replica: Name, why: String) {
        self.send(replica, Message::Kept(why));
    }

    fn me(&self) -> Name {
        self.topology.myself().name
    }

    fn group_name(&self) -> Option<Name> {
        self.topology.group().map(|group| group.name)
    }

    /// Returns whether this node is the only one in its topology. It may then join a group, even as the only member of
    /// another.
    fn is_lone(&self) -> bool {
        self.topology.nodes().len() == 1
    }

    /// Returns the group of this node if it has other members: a node that meets this one must join that group.
    fn group_of_several(&self) -> Option<Name> {
        self.group_name().filter(|_| !self.is_lone())
    }

    fn applied(&self) -> u64 {
        self.topology.group().map_or(0, |group| group.index)
    }

    fn proposal_deadline(&self, now_ms: u64) -> u64 {
        now_ms + (PROPOSAL_TIMEOUTS * self.timeout_ms).max(PROPOSAL_MIN_MS)
    }

    /// Runs the timers that are due.
    pub fn tick(&mut self, now_ms: u64) {
        if let Some(raft) = &mut self.raft {
            raft.tick(now_ms);
            let members: Vec<Name> = self.topology.nodes().iter().map(|node| node.name).collect();
            raft.adjust_voters(&members, now_ms);
        }
        self.continue_takeover(now_ms);
        self.correct_address(now_ms);
        self.meet_next(now_ms);
        self.finish(now_ms);
    }

    /// Makes this node the first member of a group, which has the node's topology.
    ///
    /// # Panics
    /// Panics if the node is in a group.
    pub fn form_group(&mut self, now_ms: u64) {
        assert!(self.raft.is_none(), "the node is in no group");
        let me = self.me();
        let random = self.next_random();
        // The name of this node is unique, and the random part makes the name of each of its groups unique.
        let name = Name::parse(&format!("{}{random:016x}", &me.as_str()[..24]));
        self.topology.form_group(name.expect("these are 40 digits"));
        let group = self.topology.group().expect("it was formed");
        let election_ms = Timing::of(self.timeout_ms).election_ms;
        let mut raft = Raft::begin(me, group.term, group, election_ms, random);
        raft.tick(now_ms);
        self.raft = Some(raft);
        self.out.topology = Some(self.topology.clone());
        self.finish(now_ms);
    }

    fn next_random(&mut self) -> u64 {
        // SplitMix64 (Steele, Lea and Flood, 2014).
        self.random = self.random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.random ^ (self.random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Proposes a change; its result is among the outputs later.
    pub fn propose(&mut self, ticket: u64, change: Change, now_ms: u64) {
        if self.raft.is_none() {
            let error = "this node is not a member of a cluster".to_owned();
            self.out.results.push((ticket, Err(error)));
            return;
        }
        self.enter(Origin::Command(ticket), change, now_ms);
        self.finish(now_ms);
    }

    /// Leaves the group; the node then has the topology `lone`. If that topology gives the node a new name, the node
    /// also leaves when no leader is reachable, because the members cannot confuse the new name with the old one.
    pub fn leave(&mut self, ticket: u64, lone: Topology, now_ms: u64) {
        let me = self.me();
        if self.raft.is_none() || self.topology.nodes().len() == 1 {
            self.become_lone(lone);
            self.out.results.push((ticket, Ok(())));
        } else {
            self.enter(Origin::Leaving(ticket, Box::new(lone)), Change::Forget(me), now_ms);
        }
        self.finish(now_ms);
    }

    fn enter(&mut self, origin: Origin, change: Change, now_ms: u64) {
        if self.proposals.len() >= WAITING_MAX {
            self.settle(origin, Err("too many changes wait for agreement".to_owned()));
            return;
        }
        self.next_number += 1;
        let deadline_ms = self.proposal_deadline(now_ms);
        let stage = Stage::Waiting(now_ms);
        self.proposals.push(Proposal { number: self.next_number, origin, change, stage, deadline_ms });
    }

    /// Meets the node at an address: the two are then members of one group. The result is among the outputs later.
    pub fn meet(&mut self, ticket: u64, address: SocketAddr, now_ms: u64) {
        if self.raft.is_none() && self.topology.nodes().len() > 1 {
            let error = "the topology of this node is fixed by its file".to_owned();
            self.out.results.push((ticket, Err(error)));
            return;
        }
        self.plan_encounter(Some(ticket), Recipient::Address(address), None, now_ms);
        self.meet_next(now_ms);
        self.finish(now_ms);
    }

    fn plan_encounter(&mut self, ticket: Option<u64>, other: Recipient, name: Option<Name>, now_ms: u64) {
        if self.encounters.len() >= WAITING_MAX {
            let error = "this node is already meeting too many other nodes".to_owned();
            self.out.results.extend(ticket.map(|ticket| (ticket, Err(error))));
            return;
        }
        let deadline_ms = self.proposal_deadline(now_ms);
        self.encounters.push_back(Encounter { ticket, other, name, next_ms: now_ms, deadline_ms });
    }

    /// Sends the request to meet to the next node. The requests are sent one at a time, so that a lone node joins one
    /// group only.
    fn meet_next(&mut self, now_ms: u64) {
        if self.encounters.is_empty() {
            return;
        }
        let group = self.group_of_several();
        let is_due = self.encounters.front().is_some_and(|it| now_ms >= it.next_ms);
        let join = (is_due && group.is_none()).then(|| self.join_change());
        while let Some(encounter) = self.encounters.front_mut() {
            if now_ms < encounter.deadline_ms {
                if is_due {
                    encounter.next_ms = now_ms + RETRY_MS;
                    let message = Message::Meet { join };
                    self.out.messages.push((encounter.other.clone(), Parcel { group, message }));
                }
                return;
            }
            let error = match (&encounter.other, encounter.name) {
                (Recipient::Address(address), None) => format!("no answer from the node at {address}"),
                _ => "the cluster has not accepted the node in time".to_owned(),
            };
            self.end_encounter(Err(error), now_ms);
        }
    }

    fn end_encounter(&mut self, result: Result<(), String>, now_ms: u64) {
        let Some(encounter) = self.encounters.pop_front() else { return };
        match (encounter.ticket, result) {
            (Some(ticket), result) => self.out.results.push((ticket, result)),
            (None, Err(error)) => {
                self.out.notes.push(format!("meeting another node has failed: {error}"));
            }
            (None, Ok(())) => {}
        }
        // The deadline of the next one does not include the time in which it waited for this one.
        let deadline_ms = self.proposal_deadline(now_ms);
        if let Some(next) = self.encounters.front_mut() {
            next.deadline_ms = deadline_ms;
        }
    }

    /// Returns the change that makes this node a member of another group.
    fn join_change(&self) -> Change {
        let node = Box::new(self.topology.myself().clone());
        Change::Join { slots: self.topology.ranges_of(node.name), node }
    }

    /// Proposes the addresses of this node if other members have older ones.
    fn correct_address(&mut self, now_ms: u64) {
        let (Some(address), true) = (&self.address, self.raft.is_some()) else { return };
        let mut address = address.clone();
        let known = &self.topology.myself().address;
        if address.ip.is_empty() {
            address.ip.clone_from(&known.ip);
        }
        let is_proposed = self.proposals.iter().any(|proposal| matches!(proposal.origin, Origin::Address));
        if address != *known && !is_proposed {
            self.enter(Origin::Address, Change::Address { name: self.me(), address }, now_ms);
        }
    }

    /// Handles a message of another node.
    pub fn receive(&mut self, from: &Sender, parcel: Parcel, now_ms: u64) {
        let Parcel { group, message } = parcel;
        match message {
            Message::Meet { join } => self.answer_meeting(from, group, join, now_ms),
            Message::Met(meeting) => self.continue_meeting(from, meeting, now_ms),
            message if self.raft.is_some() && group == self.group_name() => {
                self.receive_inside(from.name, message, now_ms);
            }
            message => self.receive_outside(from, group, message, now_ms),
        }
        self.finish(now_ms);
    }

    fn reply(&mut self, from: &Sender, meeting: Meeting) {
        let parcel = Parcel { group: self.group_name(), message: Message::Met(meeting) };
        self.out.messages.push((Recipient::Link(from.link), parcel));
    }

    fn answer_meeting(&mut self, from: &Sender, group: Option<Name>, join: Option<Change>, now_ms: u64) {
        let meeting = self.meeting(from, group, join, now_ms).unwrap_or_else(Meeting::Never);
        self.reply(from, meeting);
    }

    fn meeting(
        &mut self,
        from: &Sender,
        group: Option<Name>,
        join: Option<Change>,
        now_ms: u64,
    ) -> Result<Meeting, String> {
        if from.name == self.me() {
            return Err("it is this node itself".to_owned());
        }
        let is_fixed = self.raft.is_none() && self.topology.nodes().len() > 1;
        if is_fixed {
            return Err("the topology of the other node is fixed by its file".to_owned());
        }
        let mut join = match (self.group_of_several(), group) {
            (Some(own), Some(other)) if own == other => return Ok(Meeting::Same),
            (Some(_), Some(_)) => return Err("both nodes are members of clusters already".to_owned()),
            (None, Some(_)) => {
                let other = Recipient::Link(from.link);
                if !self.encounters.iter().any(|it| it.name == Some(from.name)) {
                    self.plan_encounter(None, other, Some(from.name), now_ms);
                    self.meet_next(now_ms);
                }
                return Ok(Meeting::Soon);
            }
            (_, None) => join.ok_or("the request of the other node does not contain its change")?,
        };
        let Change::Join { node, .. } = &mut join else {
            return Err("the change does not add a node".to_owned());
        };
        if node.name != from.name {
            return Err("the change names another node".to_owned());
        }
        if node.address.ip.is_empty() {
            node.address.ip.clone_from(&from.remote_ip);
        }
        if self.is_lone() {
            // Of two lone nodes that meet each other, the one with the greater name forms the group.
            let is_mutual = self.encounters.front().is_some_and(|it| it.name == Some(from.name));
            if self.is_meeting() && !(is_mutual && self.me() > from.name) {
                return Ok(Meeting::Soon);
            }
            if self.raft.is_none() {
                let mut address = self.topology.myself().address.clone();
                if address.ip.is_empty() {
                    address.ip.clone_from(&from.local_ip);
                    self.topology.set_my_address(address);
                }
                self.form_group(now_ms);
            }
        }
        let is_proposed = |it: &Proposal| matches!(it.origin, Origin::Joining(name, _) if name == from.name);
        if self.topology.node(from.name).is_none() && !self.proposals.iter().any(is_proposed) {
            self.enter(Origin::Joining(from.name, from.link), join, now_ms);
        }
        Ok(Meeting::Soon)
    }

    fn continue_meeting(&mut self, from: &Sender, meeting: Meeting, now_ms: u64) {
        let is_expected = |encounter: &Encounter| match (&encounter.other, encounter.name) {
            (_, Some(name)) => name == from.name,
            (Recipient::Address(address), None) => address.ip().to_string() == from.remote_ip,
            (Recipient::Link(link), None) => *link == from.link,
            (Recipient::Node(name), None) => *name == from.name,
        };
        let Some(encounter) = self.encounters.front_mut().filter(|it| is_expected(it)) else { return };
        encounter.name = Some(from.name);
        match meeting {
            Meeting::Same => self.end_encounter(Ok(()), now_ms),
            Meeting::Soon => {}
            Meeting::Never(why) => self.end_encounter(Err(why), now_ms),
        }
    }

    /// Handles a message of another group: its leader sends the topology in which this node is listed, because the node
    /// joins that group, or has joined it and has not received that change yet.
    fn receive_outside(&mut self, from: &Sender, group: Option<Name>, message: Message, now_ms: u64) {
        let answer = |message| (Recipient::Link(from.link), Parcel { group, message });
        if matches!(message, Message::PreVote { .. }) {
            self.out.messages.push(answer(Message::Elsewhere));
            return;
        }
        // Nodes with the same file join the group that one of them forms.
        let is_in_file = self.raft.is_none() && self.topology.node(from.name).is_some();
        if !self.is_lone() && !is_in_file {
            if matches!(message, Message::Entries { .. } | Message::Topology { .. }) {
                self.out.messages.push(answer(Message::Elsewhere));
            }
            return;
        }
        match message {
            Message::Entries { term, .. } => {
                let refusal = Answer { term, accepts: false, index: 0, sent_ms: 0 };
                self.out.messages.push(answer(Message::Answer(refusal)));
            }
            Message::Topology { term, lines, index } => {
                let parsed = parse_shared(lines.iter().map(String::as_str), self.me());
                let Some(topology) = parsed.ok().filter(|topology| topology.group().is_some()) else {
                    return;
                };
                let me = self.me();
                let is_mine = |slot| topology.owner(slot).is_some_and(|owner| owner.name == me);
                let mut slots = self.topology.ranges_of(me).into_iter().flatten();
                if self.is_lone() && !slots.all(is_mine) {
                    // Slots that were assigned to it after its request to join may have another owner there.
                    self.out.messages.push(answer(Message::Elsewhere));
                    return;
                }
                let group = topology.group().expect("it was checked").clone();
                let seed = self.next_random();
                self.become_lone(topology);
                let mut raft = Raft::begin(me, term, &group, self.timing().election_ms, seed);
                raft.receive(from.name, Message::Topology { term, index, lines }, Some(&group), now_ms);
                self.raft = Some(raft);
                self.out.notes.push(format!("this node is a member of the cluster {} now", group.name));
                if let Some(encounter) = self.encounters.front_mut() {
                    encounter.next_ms = now_ms;
                }
                self.meet_next(now_ms);
            }
            _ => {}
        }
    }

    fn receive_inside(&mut self, from: Name, message: Message, now_ms: u64) {
        let is_member = self.topology.node(from).is_some();
        match message {
            Message::PreVote { commit, .. } if !is_member && self.applied() >= commit => {
                // The last change that this node has received is older than its removal.
                let message = Message::Removed { index: self.applied() };
                self.send(from, message);
            }
            Message::Removed { index } if index >= self.applied() => {
                self.record_removal();
            }
            Message::Propose { ticket, change } => {
                let raft = self.raft.as_mut().expect("it is in a group");
                let timing = Timing::of(self.timeout_ms);
                let watch = self.watch.as_mut().filter(|watch| raft.is_leader() && watch.term == raft.term());
                let is_allowed = watch.is_some_and(|watch| watch.allows(from, &change, &timing, now_ms));
                match is_allowed.then(|| raft.propose(change, now_ms)).flatten() {
                    Some((index, term)) => self.taken.push(Taken { from, ticket, index, term }),
                    None => self.send(from, Message::Proposed { ticket, verdict: Verdict::NotNow }),
                }
            }
            Message::Renew(renewal) if is_member => {
                if let Some(grant) = self.grant(from, renewal, now_ms) {
                    self.send(from, Message::Granted(grant));
                }
            }
            Message::Granted(grant) => self.leases.record(grant, now_ms),
            Message::Cede { incarnation } => {
                let is_replica = |node: &Node| node.primary() == Some(self.me());
                if self.topology.node(from).is_some_and(is_replica) {
                    self.out.cede_to = Some(DataSet { node: from, incarnation });
                } else {
                    self.send(from, Message::Kept("this node is not its primary".to_owned()));
                }
            }
            Message::Kept(why) => {
                if let Some(takeover) = self.takeover.take_if(|takeover| takeover.primary == from) {
                    self.out.results.push((takeover.ticket, Err(why)));
                }
            }
            Message::Elsewhere => {
                let is_known = |it: &Proposal| matches!(it.origin, Origin::Stray(name) if name == from);
                let raft = self.raft.as_ref().expect("it is in a group");
                let (leads, is_only_voter) = (raft.is_leader(), raft.voters() == [from]);
                if is_only_voter {
                    // The only voter leaves a group when it is its only member.
                    self.record_removal();
                } else if leads && is_member && !self.proposals.iter().any(is_known) {
                    self.out
                        .notes
                        .push(format!("node {from} is in another cluster: it is removed from this one"));
                    self.enter(Origin::Stray(from), Change::Forget(from), now_ms);
                }
            }
            Message::Proposed { ticket, verdict } => self.record_verdict(ticket, verdict, now_ms),
            Message::Topology { term, index, lines } => {
                let parsed = parse_shared(lines.iter().map(String::as_str), self.me());
                let Some(topology) = parsed.ok().filter(|topology| topology.group().is_some()) else {
                    return;
                };
                let group = topology.group().expect("it was checked").clone();
                let raft = self.raft.as_mut().expect("it is in a group");
                let message = Message::Topology { term, index, lines };
                if raft.receive(from, message, Some(&group), now_ms) {
                    self.topology = topology;
                    self.out.topology = Some(self.topology.clone());
                    self.out.topology_first = true;
                }
            }
            message => {
                let raft = self.raft.as_mut().expect("it is in a group");
                raft.receive(from, message, None, now_ms);
            }
        }
    }

    fn record_removal(&mut self) {
        self.out.notes.push("the cluster has removed this node: it owns no slots now".to_owned());
        self.become_lone(self.as_lone());
    }

    fn send(&mut self, to: Name, message: Message) {
        let parcel = Parcel { group: self.group_name(), message };
        self.out.messages.push((Recipient::Node(to), parcel));
    }

    fn record_verdict(&mut self, ticket: u64, verdict: Verdict, now_ms: u64) {
        let found = self.proposals.iter().position(|it| it.number == ticket && it.stage == Stage::Sent);
        let Some(at) = found else { return };
        match verdict {
            Verdict::NotNow => self.proposals[at].stage = Stage::Waiting(now_ms + RETRY_MS),
            Verdict::Refused(why) => {
                let proposal = self.proposals.remove(at);
                self.settle(proposal.origin, Err(why));
            }
            Verdict::Applied(index) => {
                self.proposals[at].stage = Stage::Applied(index);
                if matches!(self.proposals[at].origin, Origin::Leaving(..)) {
                    let proposal = self.proposals.remove(at);
                    self.settle(proposal.origin, Ok(()));
                }
            }
        }
    }

    fn settle(&mut self, origin: Origin, result: Result<(), String>) {
        match origin {
            Origin::Command(ticket) => self.out.results.push((ticket, result)),
            Origin::Leaving(ticket, lone) => {
                if result.is_ok() {
                    self.become_lone(*lone);
                }
                self.out.results.push((ticket, result));
            }
            Origin::Joining(name, link) => {
                if let Err(why) = result {
                    self.out.notes.push(format!("node {name} cannot join: {why}"));
                    let parcel =
                        Parcel { group: self.group_name(), message: Message::Met(Meeting::Never(why)) };
                    self.out.messages.push((Recipient::Link(link), parcel));
                }
            }
            Origin::Stray(_) | Origin::Shard => {}
            Origin::Address => {
                if let Err(why) = result {
                    self.out
                        .notes
                        .push(format!("not all members have the new addresses of this node yet: {why}"));
                }
            }
        }
    }

    /// Returns the topology that this node has outside the group, with the same name.
    fn as_lone(&self) -> Topology {
        let myself: &Node = self.topology.myself();
        let mut lone = Topology::lone(myself.name, myself.name);
        lone.set_my_address(myself.address.clone());
        lone
    }

    fn become_lone(&mut self, lone: Topology) {
        self.raft = None;
        self.watch = None;
        self.leases.clear();
        self.taken.clear();
        self.last_seen = None;
        if let Some(takeover) = self.takeover.take() {
            let error = "this node has left the cluster".to_owned();
            self.out.results.push((takeover.ticket, Err(error)));
        }
        self.out.topology = Some(lone.clone());
        self.topology = lone;
        for proposal in std::mem::take(&mut self.proposals) {
            match proposal.origin {
                Origin::Command(ticket) => {
                    let error = "this node has left the cluster".to_owned();
                    self.out.results.push((ticket, Err(error)));
                }
                Origin::Leaving(ticket, lone) => {
                    self.topology = *lone;
                    self.out.topology = Some(self.topology.clone());
                    self.out.results.push((ticket, Ok(())));
                }
                Origin::Joining(..) | Origin::Address | Origin::Stray(_) | Origin::Shard => {}
            }
        }
    }

    /// Repeats the request to the primary to hand over its slots, until this node is a primary itself.
    fn continue_takeover(&mut self, now_ms: u64) {
        let Some(takeover) = &mut self.takeover else { return };
        let (ticket, primary) = (takeover.ticket, takeover.primary);
        let result = match self.topology.myself().primary() {
            None => Ok(()),
            Some(now) if now != primary => Err("this node has another primary now".to_owned()),
            Some(_) if now_ms >= takeover.deadline_ms => {
                Err("the primary has not handed over its slots in time".to_owned())
            }
            Some(_) => {
                if now_ms >= takeover.next_ms {
                    takeover.next_ms = now_ms + RETRY_MS;
                    let message = Message::Cede { incarnation: takeover.incarnation };
                    self.send(primary, message);
                }
                return;
            }
        };
        self.takeover = None;
        self.out.results.push((ticket, result));
    }

    /// Requests a lease if its time has come.
    fn keep_lease(&mut self, now_ms: u64) {
        let Some(leader) = self.raft.as_ref().and_then(Raft::leader) else { return };
        let Some(renewal) = self.leases.renew(&self.report, &self.timing(), now_ms) else { return };
        if leader != self.me() {
            self.send(leader, Message::Renew(renewal));
        } else if let Some(grant) = self.grant(leader, renewal, now_ms) {
            self.leases.record(grant, now_ms);
        }
    }

    /// Answers a renewal if this member is the leader.
    fn grant(&mut self, from: Name, renewal: Renewal, now_ms: u64) -> Option<crate::lease::Grant> {
        let raft = self.raft.as_ref()?;
        let confirmed_ms = raft.confirmed_ms(now_ms)?;
        let watch = self.watch.as_mut().filter(|watch| watch.term == raft.term())?;
        let timing = Timing::of(self.timeout_ms);
        let known = (confirmed_ms, raft.last_index());
        Some(watch.renew(from, renewal, (&self.topology, &timing), known, now_ms))
    }

    /// Proposes the changes that failures of nodes require, if this member is the leader.
    fn watch_members(&mut self, now_ms: u64) {
        let timing = self.timing();
        let applied = self.applied();
        let Some(raft) = self.raft.as_mut().filter(|raft| raft.is_leader()) else {
            self.watch = None;
            return;
        };
        let term = raft.term();
        let watch = match &mut self.watch {
            Some(watch) if watch.term == term => watch,
            watch => watch.insert(Watch::new(term, now_ms)),
        };
        if raft.knows_all() && raft.commit() == applied {
            for change in watch.decide(&self.topology, &timing, now_ms) {
                if let Change::Promote { data, primary, .. } = &change {
                    let note = format!("node {primary} has failed: node {} replaces it", data.node);
                    self.out.notes.push(note);
                }
                raft.propose(change, now_ms);
            }
        }
    }

    /// Proposes the waiting changes, applies the committed entries, and collects the data to store and the messages to
    /// send.
    fn finish(&mut self, now_ms: u64) {
        let stored = self.applied();
        loop {
            self.watch_members(now_ms);
            self.keep_lease(now_ms);
            self.propose_waiting(now_ms);
            let (state, before) = (self.topology.myself().state.clone(), self.applied());
            self.apply_committed(now_ms);
            if self.applied() == before {
                break;
            }
            if self.topology.myself().state != state {
                // A lease may be valid on this node now.
                self.leases.hurry();
            }
        }
        self.continue_takeover(now_ms);
        self.expire(now_ms);
        self.refresh_members();
        self.note_changes();
        let lines = || shared_lines(&self.topology);
        let (group, applied) = (self.group_name(), self.applied());
        self.out.group = group;
        let Some(raft) = &mut self.raft else { return };
        raft.compact(stored);
        let effects = raft.take_effects();
        self.out.vote = effects.vote.or(self.out.vote.take());
        self.out.log = match (self.out.log.take(), effects.log) {
            (None, log) | (log, None) => log,
            (_, Some(LogWrite::Replace(log))) => Some(LogWrite::Replace(log)),
            (Some(LogWrite::Append(mut entries)), Some(LogWrite::Append(more))) => {
                entries.extend(more);
                Some(LogWrite::Append(entries))
            }
            (Some(LogWrite::Replace(mut log)), Some(LogWrite::Append(more))) => {
                more.into_iter().for_each(|entry| log.push(entry));
                Some(LogWrite::Replace(log))
            }
        };
        for (to, mut message) in effects.messages {
            if let Message::Topology { index, lines: empty, .. } = &mut message {
                (*index, *empty) = (applied, lines());
            }
            self.out.messages.push((Recipient::Node(to), Parcel { group, message }));
        }
    }

    fn propose_waiting(&mut self, now_ms: u64) {
        let Some(raft) = &mut self.raft else { return };
        let me = self.topology.myself().name;
        let timing = Timing::of(self.timeout_ms);
        let Some(leader) = raft.leader() else { return };
        for proposal in &mut self.proposals {
            let is_due = matches!(proposal.stage, Stage::Waiting(at_ms) if at_ms <= now_ms);
            if !is_due {
                continue;
            }
            if leader != me {
                proposal.stage = Stage::Sent;
                let message = Message::Propose { ticket: proposal.number, change: proposal.change.clone() };
                let parcel = Parcel { group: self.topology.group().map(|group| group.name), message };
                self.out.messages.push((Recipient::Node(leader), parcel));
            } else if self
                .watch
                .as_mut()
                .is_some_and(|watch| watch.allows(me, &proposal.change, &timing, now_ms))
                && let Some((index, term)) = raft.propose(proposal.change.clone(), now_ms)
            {
                proposal.stage = Stage::Appended(index, term);
            } else {
                proposal.stage = Stage::Waiting(now_ms + RETRY_MS);
            }
        }
    }

    fn apply_committed(&mut self, now_ms: u64) {
        loop {
            let next = self.applied() + 1;
            let Some(raft) = self.raft.as_ref().filter(|raft| raft.commit() >= next) else { break };
            let entry = raft.entry(next).expect("committed entries are in the log").clone();
            let result = if entry.change == Change::Forget(self.me()) {
                self.record_removal();
                return;
            } else {
                self.topology.apply(entry.index, entry.term, &entry.change)
            };
            self.out.topology = Some(self.topology.clone());
            self.report(entry.index, entry.term, &result, now_ms);
        }
        let applied = self.applied();
        let is_done = |it: &Proposal| matches!(it.stage, Stage::Applied(index) if index <= applied);
        while let Some(at) = self.proposals.iter().position(is_done) {
            let proposal = self.proposals.remove(at);
            self.settle(proposal.origin, Ok(()));
        }
    }

    /// Reports the result of an entry to its proposer. A proposal whose index has an entry of another term was never
    /// committed, and is proposed again.
    fn report(&mut self, index: u64, term: u64, result: &Result<(), String>, now_ms: u64) {
        let is_here = |it: &Proposal| matches!(it.stage, Stage::Appended(at, _) if at == index);
        while let Some(at) = self.proposals.iter().position(is_here) {
            if self.proposals[at].stage == Stage::Appended(index, term) {
                let proposal = self.proposals.remove(at);
                self.settle(proposal.origin, result.clone());
            } else {
                self.proposals[at].stage = Stage::Waiting(now_ms);
            }
        }
        for taken in self.taken.extract_if(.., |taken| taken.index == index).collect::<Vec<_>>() {
            let verdict = match result {
                _ if taken.term != term => Verdict::NotNow,
                Ok(()) => Verdict::Applied(index),
                Err(why) => Verdict::Refused(why.clone()),
            };
            self.send(taken.from, Message::Proposed { ticket: taken.ticket, verdict });
        }
    }

    /// Ends proposals without a result in time.
    fn expire(&mut self, now_ms: u64) {
        while let Some(at) = self.proposals.iter().position(|it| it.deadline_ms <= now_ms) {
            let Proposal { origin, stage, .. } = self.proposals.remove(at);
            let error = match stage {
                Stage::Waiting(_) => "no majority of the voters of the cluster is reachable".to_owned(),
                Stage::Sent | Stage::Appended(..) | Stage::Applied(_) => {
                    "the cluster has not confirmed the change in time: it may still take effect".to_owned()
                }
            };
            match origin {
                Origin::Leaving(_, ref lone) if lone.myself().name != self.me() => {
                    self.out
                        .notes
                        .push(format!("{error}: other nodes still list this node under its old name"));
                    self.settle(origin, Ok(()));
                }
                origin => self.settle(origin, Err(error)),
            }
        }
    }

    fn refresh_members(&mut self) {
        let (Some(raft), Some(group)) = (&mut self.raft, self.topology.group()) else { return };
        raft.set_members(self.topology.nodes().iter().map(|node| node.name), &group.voters);
    }

    fn note_changes(&mut self) {
        let Some(raft) = &self.raft else { return };
        let (leader, voters) = (raft.leader(), raft.voters());
        let (old_leader, old_voters) = self.last_seen.clone().unwrap_or_default();
        if leader != old_leader
            && let Some(leader) = leader
        {
            let shown = if leader == self.me() { "this node" } else { "another node" };
            self.out.notes.push(format!("leader of term {}: {shown}, {leader}", raft.term()));
        }
        if voters != old_voters {
            self.out.notes.push(format!("{} nodes vote on changes of the topology", voters.len()));
        }
        self.last_seen = Some((leader.or(old_leader), voters.to_vec()));
    }
}
