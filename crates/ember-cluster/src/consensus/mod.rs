//! The agreement of the members of a group on the order of changes: Raft.
//!
//! Diego Ongaro, "Consensus: Bridging Theory and Practice" (2014): leader election with a pre-vote (9.6), log replication
//! (3.5), changes of one voter at a time (4.1, with the correction that a leader first commits an entry of its own term),
//! and leaders that step down without a majority (6.2). Members that do not vote receive all entries, too.
//!
//! [`Raft`] has no clock, no I/O and no threads: its methods take messages and the time, and return nothing. The caller
//! then takes the [`Effects`]: it makes the vote and the log durable first, and sends the messages afterwards.

mod log;

pub use log::{Entry, Log};

use std::collections::BTreeMap;

use crate::change::Change;
use crate::message::{Answer, Message};
use crate::node::Name;
use crate::topology::Group;

/// The maximum number of entries in one message, so that a message with the longest changes stays far below the limit of
/// the bus.
const BATCH_MAX: usize = 64;

/// The number of heartbeats in an election timeout.
const HEARTBEATS: u64 = 4;

/// The number of applied entries that stay in the log for members that lag; members that lag more receive the topology.
const KEPT_ENTRIES: u64 = 512;

/// The term of a member and its vote in this term. Both are durable before a message that depends on them is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vote {
    /// The highest term that the member has seen.
    pub term: u64,
    /// The candidate that the member has voted for in this term.
    pub candidate: Option<Name>,
}

/// A change of the stored log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogWrite {
    /// These entries follow the stored ones.
    Append(Vec<Entry>),
    /// The log is replaced by this one.
    Replace(Log),
}

/// The actions that the caller takes after a call, in this order.
#[derive(Debug, Default)]
pub(crate) struct Effects {
    pub(crate) vote: Option<Vote>,
    pub(crate) log: Option<LogWrite>,
    pub(crate) messages: Vec<(Name, Message)>,
}

/// A leader's record of another member.
#[derive(Clone, Copy, Debug)]
struct Progress {
    /// The index of the next entry to send.
    next: u64,
    /// The index of the last entry that the member has confirmed.
    matched: u64,
    /// When the member last answered, or when the leader was elected.
    heard_ms: u64,
    /// When the leader last sent an entry or a topology that is not answered yet; 0 if there is none.
    sent_ms: u64,
    /// When the leader sent the latest message that the member has answered; 0 if there is none.
    answered_ms: u64,
}

#[derive(Debug)]
enum Role {
    Follower,
    /// Asks whether an election could succeed; contains the nodes that agree.
    PreCandidate(Vec<Name>),
    /// Contains the nodes that have voted for it.
    Candidate(Vec<Name>),
    Leader(BTreeMap<Name, Progress>),
}

/// The role of a member, for observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RaftRole {
    /// Follows a leader, or waits for one.
    Follower,
    /// Asks for votes.
    Candidate,
    /// Decides the order of changes.
    Leader,
}

/// A member's part of the agreement.
#[derive(Debug)]
pub struct Raft {
    me: Name,
    vote: Vote,
    log: Log,
    commit: u64,
    role: Role,
    leader: Option<Name>,
    /// When a message of the leader last arrived.
    heard_ms: u64,
    /// The time at which a member without messages from a leader requests votes, or a leader sends the next heartbeat.
    deadline_ms: u64,
    timeout_ms: u64,
    random: u64,
    /// The other members and voters.
    peers: Vec<Name>,
    /// The present voters: those of the last entry that changes them.
    voters: Vec<Name>,
    /// The voters of the applied topology.
    applied_voters: Vec<Name>,
    /// A voter that is leaving; removed when it no longer votes.
    leaving: Option<Name>,
    stored_vote: Vote,
    /// The first index that is not stored, or none if the stored log must be replaced.
    unstored: Option<u64>,
    messages: Vec<(Name, Message)>,
}

impl Raft {
    /// Continues with a stored vote and a stored log. `group` is that of the stored topology.
    pub(crate) fn new(me: Name, vote: Vote, log: Log, group: &Group, timeout_ms: u64, seed: u64) -> Raft {
        let unstored = Some(log.last().0 + 1);
        let mut raft = Raft {
            me,
            vote,
            log,
            commit: group.index,
            role: Role::Follower,
            leader: None,
            heard_ms: 0,
            deadline_ms: 0,
            timeout_ms,
            random: seed | 1,
            peers: Vec::new(),
            voters: Vec::new(),
            applied_voters: Vec::new(),
            leaving: None,
            stored_vote: vote,
            unstored,
            messages: Vec::new(),
        };
        if raft.log.term_at(group.index) != Some(group.term) {
            // The topology was stored before the log was replaced.
            raft.log = Log::new((group.index, group.term));
            raft.unstored = None;
        }
        raft.refresh_voters(&group.voters);
        raft
    }

    /// Begins as a new member or as the first voter of a group: nothing is stored yet.
    pub(crate) fn begin(me: Name, term: u64, group: &Group, timeout_ms: u64, seed: u64) -> Raft {
        let log = Log::new((group.index, group.term));
        let mut raft = Raft::new(me, Vote { term, candidate: None }, log, group, timeout_ms, seed);
        raft.stored_vote = Vote::default();
        raft.unstored = None;
        raft
    }

    pub(crate) fn commit(&self) -> u64 {
        self.commit
    }

    pub(crate) fn term(&self) -> u64 {
        self.vote.term
    }

    pub(crate) fn leader(&self) -> Option<Name> {
        if self.is_leader() { Some(self.me) } else { self.leader }
    }

    pub(crate) fn voters(&self) -> &[Name] {
        &self.voters
    }

    pub(crate) fn entry(&self, index: u64) -> Option<&Entry> {
        self.log.entry(index)
    }

    pub(crate) fn role(&self) -> RaftRole {
        match self.role {
            Role::Follower => RaftRole::Follower,
            Role::PreCandidate(_) | Role::Candidate(_) => RaftRole::Candidate,
            Role::Leader(_) => RaftRole::Leader,
        }
    }

    pub(crate) fn is_leader(&self) -> bool {
        matches!(self.role, Role::Leader(_))
    }

    fn is_voter(&self) -> bool {
        self.voters.contains(&self.me)
    }

    /// Sets the time after which a member without messages of the leader asks for votes.
    pub(crate) fn set_timeout(&mut self, timeout_ms: u64) {
        self.timeout_ms = timeout_ms;
    }

    /// Sets the other members, which receive entries. `applied` are the voters of the applied topology.
    pub(crate) fn set_members(&mut self, members: impl Iterator<Item = Name>, applied: &[Name]) {
        self.refresh_voters(applied);
        let me = self.me;
        self.peers = members.chain(self.voters.iter().copied()).filter(|name| *name != me).collect();
        self.peers.sort_unstable();
        self.peers.dedup();
        let next = self.log.last().0 + 1;
        if let Role::Leader(progress) = &mut self.role {
            progress.retain(|name, _| self.peers.contains(name));
            for name in &self.peers {
                progress.entry(*name).or_insert(Progress {
                    next,
                    matched: 0,
                    heard_ms: 0,
                    sent_ms: 0,
                    answered_ms: 0,
                });
            }
        }
    }

    fn refresh_voters(&mut self, applied: &[Name]) {
        let in_log = self.log.entries().iter().rev().find_map(|entry| match &entry.change {
            Change::Voters(voters) => Some(voters.as_slice()),
            _ => None,
        });
        self.voters = in_log.unwrap_or(applied).to_vec();
        self.applied_voters = applied.to_vec();
    }

    /// Returns what the caller must store and send.
    pub(crate) fn take_effects(&mut self) -> Effects {
        let mut effects = Effects::default();
        if self.vote != self.stored_vote {
            effects.vote = Some(self.vote);
            self.stored_vote = self.vote;
        }
        let end = self.log.last().0 + 1;
        match self.unstored {
            None => effects.log = Some(LogWrite::Replace(self.log.clone())),
            Some(first) if first < end => {
                effects.log = Some(LogWrite::Append(self.log.from(first).to_vec()));
            }
            Some(_) => {}
        }
        self.unstored = Some(end);
        effects.messages = std::mem::take(&mut self.messages);
        effects
    }

    /// Removes entries that are part of the stored topology with this index, if there are many.
    pub(crate) fn compact(&mut self, stored: u64) {
        if stored - self.log.base().0 > 2 * KEPT_ENTRIES {
            self.log.compact(stored - KEPT_ENTRIES);
            self.unstored = None;
        }
    }

    /// Returns a random time between one and two election timeouts. Each attempt draws a new time, so that candidates
    /// do not split the votes again and again.
    fn next_timeout(&mut self) -> u64 {
        // xorshift64 (Marsaglia, 2003).
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.timeout_ms + self.random % self.timeout_ms.max(1)
    }

    fn heartbeat_ms(&self) -> u64 {
        (self.timeout_ms / HEARTBEATS).max(1)
    }

    /// Starts an election or sends heartbeats if their time has come.
    pub(crate) fn tick(&mut self, now_ms: u64) {
        if let Role::Leader(progress) = &self.role {
            let is_heard = |name: &&Name| {
                let heard_ms = progress.get(*name).map_or(0, |progress| progress.heard_ms);
                **name == self.me || heard_ms + self.timeout_ms > now_ms
            };
            let heard = self.voters.iter().filter(is_heard).count();
            if heard < self.majority() && self.voters.iter().any(|name| *name != self.me) {
                self.follow(self.vote.term, None, now_ms);
                return;
            }
            if now_ms >= self.deadline_ms {
                self.deadline_ms = now_ms + self.heartbeat_ms();
                self.broadcast(now_ms);
            }
            return;
        }
        if self.deadline_ms == 0 && self.voters != [self.me] {
            // After the start, the present leader has time to send a heartbeat.
            self.deadline_ms = now_ms + self.next_timeout();
        }
        if now_ms >= self.deadline_ms {
            self.campaign(now_ms);
        }
    }

    /// Returns the time at which this leader sent the latest messages that a majority of the voters has answered: up to
    /// then, no other member was the leader of a later term. 0 if there is none; `None` if this member is not the leader.
    pub(crate) fn confirmed_ms(&self, now_ms: u64) -> Option<u64> {
        let Role::Leader(progress) = &self.role else { return None };
        let answered_by = |name: &Name| match *name == self.me {
            true => now_ms,
            false => progress.get(name).map_or(0, |progress| progress.answered_ms),
        };
        let mut answered: Vec<u64> = self.voters.iter().map(answered_by).collect();
        answered.sort_unstable_by(|one, other| other.cmp(one));
        Some(answered[self.majority() - 1])
    }

    /// Returns the index of the last entry, whether or not it is committed.
    pub(crate) fn last_index(&self) -> u64 {
        self.log.last().0
    }

    /// Returns whether this leader has committed an entry of its term, so that its commit index covers every committed
    /// entry of earlier terms.
    pub(crate) fn knows_all(&self) -> bool {
        self.is_leader() && self.log.term_at(self.commit) == Some(self.vote.term)
    }

    fn majority(&self) -> usize {
        self.voters.len() / 2 + 1
    }

    /// Requests pre-votes: whether an election could succeed. A member that does not vote does so, too, because the answer
    /// shows whether it was removed.
    fn campaign(&mut self, now_ms: u64) {
        self.deadline_ms = now_ms + self.next_timeout();
        self.leader = None;
        if self.voters == [self.me] {
            self.stand(now_ms);
            return;
        }
        self.role = match self.may_stand() {
            true => Role::PreCandidate(self.own_vote()),
            false => Role::Follower,
        };
        let (index, last_term) = self.log.last();
        let message =
            Message::PreVote { term: self.vote.term + 1, last: (index, last_term), commit: self.commit };
        self.send_to_voters(&message);
    }

    /// Returns whether this member may become the leader. A member that an uncommitted entry removes from the voters
    /// may become the leader, because it may be the only one with that entry; its own vote then does not count.
    fn may_stand(&self) -> bool {
        self.is_voter() || self.applied_voters.contains(&self.me)
    }

    fn own_vote(&self) -> Vec<Name> {
        if self.is_voter() { vec![self.me] } else { Vec::new() }
    }

    fn send_to_voters(&mut self, message: &Message) {
        for name in self.voters.iter().filter(|name| **name != self.me) {
            self.messages.push((*name, message.clone()));
        }
    }

    fn stand(&mut self, now_ms: u64) {
        self.vote = Vote { term: self.vote.term + 1, candidate: Some(self.me) };
        let votes = self.own_vote();
        let is_elected = votes.len() >= self.majority();
        self.role = Role::Candidate(votes);
        if is_elected {
            self.lead(now_ms);
            return;
        }
        let message = Message::Vote { term: self.vote.term, last: self.log.last() };
        self.send_to_voters(&message);
    }

    fn lead(&mut self, now_ms: u64) {
        let next = self.log.last().0 + 1;
        let fresh = Progress { next, matched: 0, heard_ms: now_ms, sent_ms: 0, answered_ms: 0 };
        self.role = Role::Leader(self.peers.iter().map(|name| (*name, fresh)).collect());
        (self.leader, self.leaving) = (None, None);
        self.append(Change::Nothing);
        self.deadline_ms = now_ms + self.heartbeat_ms();
        self.broadcast(now_ms);
        self.advance_commit(now_ms);
    }

    fn follow(&mut self, term: u64, leader: Option<Name>, now_ms: u64) {
        if term > self.vote.term {
            self.vote = Vote { term, candidate: None };
        }
        if !matches!(self.role, Role::Follower) || leader.is_some() {
            self.deadline_ms = now_ms + self.next_timeout();
        }
        self.role = Role::Follower;
        self.leader = leader;
    }

    fn append(&mut self, change: Change) -> u64 {
        let index = self.log.last().0 + 1;
        let voters = if let Change::Voters(voters) = &change { Some(voters.clone()) } else { None };
        self.log.push(Entry { index, term: self.vote.term, change });
        if let Some(voters) = voters {
            self.voters = voters;
        }
        index
    }

    /// Appends a change if this member is the leader. Returns its index and its term, or `None` if the change must be
    /// proposed again later: a voter is removed only after it has stopped voting.
    pub(crate) fn propose(&mut self, change: Change, now_ms: u64) -> Option<(u64, u64)> {
        if !self.is_leader() {
            return None;
        }
        if let Change::Forget(name) = change
            && self.voters.contains(&name)
        {
            self.leaving = Some(name);
            return None;
        }
        let index = self.append(change);
        self.broadcast(now_ms);
        self.advance_commit(now_ms);
        Some((index, self.vote.term))
    }

    /// Adds or removes one voter if the number of voters is not the intended one: one for one or two members, three for
    /// three or four members, five for more. `members` are in the order in which they joined.
    pub(crate) fn adjust_voters(&mut self, members: &[Name], now_ms: u64) {
        let Role::Leader(progress) = &self.role else { return };
        let uncommitted = if self.commit < self.log.last().0 { self.log.from(self.commit + 1) } else { &[] };
        let is_changing = uncommitted.iter().any(|entry| matches!(entry.change, Change::Voters(_)));
        if is_changing || self.log.term_at(self.commit) != Some(self.vote.term) {
            return;
        }
        let is_eligible = |name: &&Name| members.contains(name) && Some(**name) != self.leaving;
        let is_alive = |name: &&Name| {
            **name == self.me
                || progress
                    .get(*name)
                    .is_some_and(|it| it.heard_ms + self.timeout_ms > now_ms && it.matched >= self.commit)
        };
        let wanted = match members.iter().filter(is_eligible).count() {
            0 => return,
            1 | 2 => 1,
            3 | 4 => 3,
            _ => 5,
        };
        let is_surplus = |name: &Name| !members.contains(name) || Some(*name) == self.leaving;
        let mut voters = self.voters.clone();
        let eligible = voters.iter().filter(is_eligible).count();
        if eligible < wanted {
            let is_new = |name: &&Name| !voters.contains(name);
            let candidate = members.iter().filter(is_eligible).filter(is_new).find(is_alive);
            match (candidate, voters.iter().position(is_surplus)) {
                (Some(candidate), _) => voters.push(*candidate),
                (None, Some(at)) if voters.len() > 1 => _ = voters.remove(at),
                (None, _) => return,
            }
        } else if voters.len() > wanted {
            // Of voters that may all stay, an unreachable one is removed first, and the leader last.
            let at = voters.iter().position(is_surplus);
            let at = at.or_else(|| voters.iter().rposition(|name| !is_alive(&name)));
            let at = at.or_else(|| voters.iter().rposition(|name| *name != self.me));
            let Some(at) = at else { return };
            voters.remove(at);
        } else {
            return;
        }
        self.append(Change::Voters(voters));
        self.broadcast(now_ms);
        self.advance_commit(now_ms);
    }

    /// Sends entries, or a heartbeat, to all other members.
    fn broadcast(&mut self, now_ms: u64) {
        for at in 0..self.peers.len() {
            self.send_entries(self.peers[at], now_ms);
        }
    }

    fn send_entries(&mut self, to: Name, now_ms: u64) {
        let heartbeat_ms = self.heartbeat_ms();
        let (term, base, last, commit) = (self.vote.term, self.log.base().0, self.log.last().0, self.commit);
        let Role::Leader(progress) = &mut self.role else { return };
        let Some(progress) = progress.get_mut(&to) else { return };
        // While an answer is outstanding, only heartbeats are sent, so that entries are not sent many times to a slow
        // member.
        let awaits_answer = progress.sent_ms != 0 && now_ms < progress.sent_ms + heartbeat_ms;
        if progress.next <= base {
            if !awaits_answer {
                progress.sent_ms = now_ms.max(1);
                // The caller adds the topology.
                self.messages.push((to, Message::Topology { term, index: 0, lines: Vec::new() }));
            }
            return;
        }
        let previous = progress.next - 1;
        let previous = (previous, self.log.term_at(previous).expect("it is not before the base"));
        let has_news = progress.next <= last && !awaits_answer;
        let entries = if has_news {
            progress.sent_ms = now_ms.max(1);
            self.log.from(progress.next).iter().take(BATCH_MAX).cloned().collect()
        } else {
            Vec::new()
        };
        self.messages.push((to, Message::Entries { term, previous, commit, sent_ms: now_ms, entries }));
    }

    /// Commits entries of this term that a majority of the voters has.
    fn advance_commit(&mut self, now_ms: u64) {
        let Role::Leader(progress) = &self.role else { return };
        let last = self.log.last().0;
        let matched_by = |name: &Name| match *name == self.me {
            true => last,
            false => progress.get(name).map_or(0, |progress| progress.matched),
        };
        let mut matched: Vec<u64> = self.voters.iter().map(matched_by).collect();
        matched.sort_unstable_by(|one, other| other.cmp(one));
        let index = matched[self.majority() - 1];
        if index <= self.commit || self.log.term_at(index) != Some(self.vote.term) {
            return;
        }
        self.commit = index;
        self.broadcast(now_ms);
        let is_removal = |entry: &Entry| matches!(entry.change, Change::Voters(_));
        let has_open = self.log.from(index + 1).iter().any(is_removal);
        if self.leaving.is_some_and(|name| !self.voters.contains(&name)) && !has_open {
            self.leaving = None;
        }
        if !self.is_voter() && !has_open {
            // The voter with the most entries becomes the leader at once.
            let Role::Leader(progress) = &self.role else { return };
            let matched = |name: &&Name| progress.get(*name).map_or(0, |progress| progress.matched);
            let next = self.voters.iter().max_by_key(matched).copied();
            let term = self.vote.term;
            self.messages.extend(next.map(|name| (name, Message::Stand { term })));
            self.follow(term, None, now_ms);
        }
    }

    /// Handles a message of another member. `topology` is the group of the topology that a [`Message::Topology`]
    /// contains. Returns whether the member replaces its topology by that one.
    pub(crate) fn receive(
        &mut self,
        from: Name,
        message: Message,
        topology: Option<&Group>,
        now_ms: u64,
    ) -> bool {
        match message {
            Message::PreVote { term, last, .. } => self.answer_pre_vote(from, term, last, now_ms),
            Message::PreVoted { term, agrees } => self.count_pre_vote(from, term, agrees, now_ms),
            Message::Vote { term, last } => self.answer_vote(from, term, last, now_ms),
            Message::Voted { term, agrees } => self.count_vote(from, term, agrees, now_ms),
            Message::Entries { term, previous, commit, sent_ms, entries } => {
                if self.accepts_leader(from, term, now_ms) {
                    let answer = Answer { sent_ms, ..self.store(previous, commit, entries) };
                    self.messages.push((from, Message::Answer(answer)));
                }
            }
            Message::Topology { term, .. } => {
                if self.accepts_leader(from, term, now_ms)
                    && let Some(group) = topology
                {
                    let replaces = group.index > self.commit;
                    if replaces {
                        self.install(group);
                    }
                    let (term, index) = (self.vote.term, self.commit);
                    let answer = Answer { term, accepts: true, index, sent_ms: 0 };
                    self.messages.push((from, Message::Answer(answer)));
                    return replaces;
                }
            }
            Message::Answer(answer) => self.record_answer(from, answer, now_ms),
            Message::Stand { term } => {
                let is_asked = term == self.vote.term && self.leader == Some(from);
                if is_asked && self.is_voter() {
                    self.leader = None;
                    self.deadline_ms = now_ms + self.next_timeout();
                    self.stand(now_ms);
                }
            }
            Message::Propose { .. }
            | Message::Proposed { .. }
            | Message::Removed { .. }
            | Message::Elsewhere
            | Message::Renew(_)
            | Message::Granted(_)
            | Message::Cede { .. }
            | Message::Kept(_)
            | Message::Meet { .. }
            | Message::Met { .. } => {}
        }
        false
    }

    fn is_up_to_date(&self, (index, term): (u64, u64)) -> bool {
        let (own_index, own_term) = self.log.last();
        (term, index) >= (own_term, own_index)
    }

    fn answer_pre_vote(&mut self, from: Name, term: u64, last: (u64, u64), now_ms: u64) {
        let has_leader =
            self.is_leader() || (self.leader.is_some() && now_ms < self.heard_ms + self.timeout_ms);
        let agrees = term > self.vote.term && self.is_up_to_date(last) && !has_leader;
        let term = if agrees { term } else { self.vote.term };
        self.messages.push((from, Message::PreVoted { term, agrees }));
    }

    fn count_pre_vote(&mut self, from: Name, term: u64, agrees: bool, now_ms: u64) {
        if !agrees {
            if term > self.vote.term {
                self.follow(term, None, now_ms);
            }
            return;
        }
        let (next, majority) = (self.vote.term + 1, self.majority());
        let Role::PreCandidate(agreeing) = &mut self.role else { return };
        if term != next || !self.voters.contains(&from) || agreeing.contains(&from) {
            return;
        }
        agreeing.push(from);
        if agreeing.len() >= majority {
            self.stand(now_ms);
        }
    }

    fn answer_vote(&mut self, from: Name, term: u64, last: (u64, u64), now_ms: u64) {
        if term > self.vote.term {
            self.follow(term, None, now_ms);
        }
        let is_free = self.vote.candidate.is_none_or(|candidate| candidate == from);
        let agrees = term == self.vote.term
            && is_free
            && self.is_up_to_date(last)
            && matches!(self.role, Role::Follower)
            && self.leader.is_none();
        if agrees {
            self.vote.candidate = Some(from);
            self.deadline_ms = now_ms + self.next_timeout();
        }
        self.messages.push((from, Message::Voted { term: self.vote.term, agrees }));
    }

    fn count_vote(&mut self, from: Name, term: u64, agrees: bool, now_ms: u64) {
        if term > self.vote.term {
            self.follow(term, None, now_ms);
            return;
        }
        let majority = self.majority();
        let Role::Candidate(votes) = &mut self.role else { return };
        if !agrees || term != self.vote.term || !self.voters.contains(&from) || votes.contains(&from) {
            return;
        }
        votes.push(from);
        if votes.len() >= majority {
            self.lead(now_ms);
        }
    }

    /// Returns whether `from` is the leader of the present term. Otherwise it receives the present term.
    fn accepts_leader(&mut self, from: Name, term: u64, now_ms: u64) -> bool {
        if term < self.vote.term || (term == self.vote.term && self.is_leader()) {
            let (term, index) = (self.vote.term, self.log.last().0);
            let answer = Answer { term, accepts: false, index, sent_ms: 0 };
            self.messages.push((from, Message::Answer(answer)));
            return false;
        }
        self.follow(term, Some(from), now_ms);
        self.heard_ms = now_ms;
        true
    }

    /// Stores entries that follow the entry `previous` with its index and term.
    fn store(&mut self, previous: (u64, u64), commit: u64, entries: Vec<Entry>) -> Answer {
        let term = self.vote.term;
        let refused = |index: u64| Answer { term, accepts: false, index, sent_ms: 0 };
        let base = self.log.base().0;
        if previous.0 >= base && self.log.term_at(previous.0) != Some(previous.1) {
            return refused(self.log.last().0.min(previous.0.saturating_sub(1)));
        }
        let mut end = previous.0;
        for entry in entries {
            if entry.index != end + 1 {
                return refused(end);
            }
            end = entry.index;
            if entry.index <= base || self.log.term_at(entry.index) == Some(entry.term) {
                continue;
            }
            if entry.index <= self.log.last().0 {
                assert!(entry.index > self.commit, "a committed entry is never replaced");
                self.log.truncate_after(entry.index - 1);
                self.unstored = None;
            }
            if let Change::Voters(voters) = &entry.change {
                self.voters.clone_from(voters);
            }
            self.log.push(entry);
        }
        self.commit = self.commit.max(commit.min(end));
        Answer { term, accepts: true, index: end, sent_ms: 0 }
    }

    /// Replaces the log by the base of a newer topology. Entries after it are kept, because the member may have
    /// confirmed them.
    fn install(&mut self, group: &Group) {
        if self.log.term_at(group.index) == Some(group.term) {
            self.log.compact(group.index);
        } else {
            self.log = Log::new((group.index, group.term));
        }
        self.unstored = None;
        self.commit = group.index;
        self.refresh_voters(&group.voters);
    }

    fn record_answer(&mut self, from: Name, answer: Answer, now_ms: u64) {
        if answer.term > self.vote.term {
            self.follow(answer.term, None, now_ms);
            return;
        }
        let last = self.log.last().0;
        let Role::Leader(progress) = &mut self.role else { return };
        let Some(progress) = progress.get_mut(&from) else { return };
        if answer.term != self.vote.term || answer.index > last {
            return;
        }
        (progress.heard_ms, progress.sent_ms) = (now_ms, 0);
        progress.answered_ms = progress.answered_ms.max(answer.sent_ms);
        if answer.accepts {
            progress.matched = progress.matched.max(answer.index);
            progress.next = progress.next.max(progress.matched + 1);
        } else {
            // A member that has left the group and joined it again lacks the entries that it confirmed before. An answer
            // from that time may even arrive after the member has joined.
            progress.matched = progress.matched.min(answer.index);
            progress.next = progress.next.min(answer.index + 1);
        }
        let must_send = progress.next <= last;
        self.advance_commit(now_ms);
        if must_send {
            self.send_entries(from, now_ms);
        }
    }
}
