//! Messages between nodes, and their text.
//!
//! The first line of a message contains its kind, the name of the group of the sender or `-`, and its fields. The lines
//! after it contain the entries or the topology.

use std::fmt::Write;

use crate::change::Change;
use crate::consensus::Entry;
use crate::lease::{Grant, Renewal, Report};
use crate::node::Name;
use crate::topology::text::{name_of, names_of, number_of, words_of};

/// The answer to entries or a topology.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The term of the member that answers.
    pub term: u64,
    /// Whether the member has all entries up to the index; otherwise the index is that of an earlier entry to continue
    /// with.
    pub accepts: bool,
    /// The index.
    pub index: u64,
    /// The time at which the leader sent the answered message, by its own clock; 0 if the message has no time.
    pub sent_ms: u64,
}

/// The result of a proposed change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The change is in effect from this index on.
    Applied(u64),
    /// The change contradicts the topology.
    Refused(String),
    /// The change was not appended: it may be proposed again.
    NotNow,
}

/// The answer to a node that wants to meet this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Meeting {
    /// The nodes are members of one group.
    Same,
    /// The group of one node receives the other one as a new member soon.
    Soon,
    /// The nodes cannot be members of one group, for this reason.
    Never(String),
}

/// A message between nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// Asks whether a vote in this term could succeed. `last` is the index and the term of the last entry, and `commit` the
    /// index of the last committed entry.
    PreVote {
        /// The term.
        term: u64,
        /// The last entry.
        last: (u64, u64),
        /// The last committed entry.
        commit: u64,
    },
    /// The answer to [`Message::PreVote`].
    PreVoted {
        /// The term of the question, or the higher one of the member that refuses.
        term: u64,
        /// Whether the member would vote for the sender.
        agrees: bool,
    },
    /// Asks for a vote.
    Vote {
        /// The term.
        term: u64,
        /// The last entry.
        last: (u64, u64),
    },
    /// The answer to [`Message::Vote`].
    Voted {
        /// The term of the member.
        term: u64,
        /// Whether it votes for the sender.
        agrees: bool,
    },
    /// Entries of the leader, or a heartbeat without entries.
    Entries {
        /// The term of the leader.
        term: u64,
        /// The index and the term of the entry before the first one.
        previous: (u64, u64),
        /// The index of the last committed entry.
        commit: u64,
        /// The time at the leader, which the answer repeats.
        sent_ms: u64,
        /// The entries.
        entries: Vec<Entry>,
    },
    /// The topology, for a member that lacks entries that the leader no longer has.
    Topology {
        /// The term of the leader.
        term: u64,
        /// The index of the last change in the topology.
        index: u64,
        /// The lines of the topology.
        lines: Vec<String>,
    },
    /// The answer to entries or a topology.
    Answer(Answer),
    /// Asks a voter to become the leader at once, because the leader leaves.
    Stand {
        /// The term of the leader.
        term: u64,
    },
    /// Asks the leader to append a change.
    Propose {
        /// The number of the proposal at the sender.
        ticket: u64,
        /// The change.
        change: Change,
    },
    /// The answer to [`Message::Propose`].
    Proposed {
        /// The number of the proposal.
        ticket: u64,
        /// Its result.
        verdict: Verdict,
    },
    /// The receiver is no longer a member; `index` is that of the last change that the sender has applied.
    Removed {
        /// The index.
        index: u64,
    },
    /// The answer of a listed node that is not a member of the group.
    Elsewhere,
    /// Requests a lease from the leader.
    Renew(Renewal),
    /// The answer to [`Message::Renew`].
    Granted(Grant),
    /// Requests the primary of the sender to hand its slots over to the sender.
    Cede {
        /// The number of the sender's data.
        incarnation: u64,
    },
    /// The answer to [`Message::Cede`] if the primary refuses: the reason.
    Kept(String),
    /// Requests that the sender and the receiver become members of one group. `join` is the change that makes the
    /// sender a member, if it is in no group.
    Meet {
        /// The change.
        join: Option<Change>,
    },
    /// The answer to [`Message::Meet`].
    Met(Meeting),
}

/// A message with the group of its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parcel {
    /// The name of the sender's group.
    pub group: Option<Name>,
    /// The message.
    pub message: Message,
}

impl Parcel {
    /// Returns the text of the message.
    pub fn text(&self) -> String {
        let group = self.group.as_ref().map_or("-", Name::as_str);
        let mut text = String::new();
        let mut head = |kind: &str, fields: String| _ = write!(text, "{kind} {group}{fields}");
        match &self.message {
            Message::PreVote { term, last: (index, last_term), commit } => {
                head("pre-vote", format!(" {term} {index} {last_term} {commit}"));
            }
            Message::PreVoted { term, agrees } => head("pre-voted", format!(" {term} {}", word(*agrees))),
            Message::Vote { term, last: (index, last_term) } => {
                head("vote", format!(" {term} {index} {last_term}"));
            }
            Message::Voted { term, agrees } => head("voted", format!(" {term} {}", word(*agrees))),
            Message::Entries { term, previous: (index, previous_term), commit, sent_ms, entries } => {
                head("entries", format!(" {term} {index} {previous_term} {commit} {sent_ms}"));
                for entry in entries {
                    _ = write!(text, "\n{}", entry.text());
                }
            }
            Message::Topology { term, index, lines } => {
                head("topology", format!(" {term} {index}"));
                for line in lines {
                    _ = write!(text, "\n{line}");
                }
            }
            Message::Answer(Answer { term, accepts, index, sent_ms }) => {
                head("answer", format!(" {term} {} {index} {sent_ms}", word(*accepts)));
            }
            Message::Stand { term } => head("stand", format!(" {term}")),
            Message::Propose { ticket, change } => {
                head("propose", format!(" {ticket}\n{}", change.text()));
            }
            Message::Proposed { ticket, verdict } => {
                let verdict = match verdict {
                    Verdict::Applied(index) => format!("applied {index}"),
                    Verdict::Refused(why) => format!("refused\n{}", one_line(why)),
                    Verdict::NotNow => "not-now".to_owned(),
                };
                head("proposed", format!(" {ticket} {verdict}"));
            }
            Message::Removed { index } => head("removed", format!(" {index}")),
            Message::Elsewhere => head("elsewhere", String::new()),
            Message::Renew(Renewal { round, received, report }) => {
                let Report { incarnation, position, is_linked, may_lead } = report;
                let position = position.map_or_else(|| "-".to_owned(), |position| position.to_string());
                let (is_linked, may_lead) = (word(*is_linked), word(*may_lead));
                head("renew", format!(" {round} {received} {incarnation} {position} {is_linked} {may_lead}"));
            }
            Message::Granted(Grant { round, version, lease_ms, failed }) => {
                head("granted", format!(" {round} {version} {lease_ms}"));
                if !failed.is_empty() {
                    _ = write!(text, "\n{}", words_of(failed, ","));
                }
            }
            Message::Cede { incarnation } => head("cede", format!(" {incarnation}")),
            Message::Kept(why) => head("kept", format!("\n{}", one_line(why))),
            Message::Meet { join } => {
                head("meet", join.as_ref().map_or(String::new(), |join| format!("\n{}", join.text())));
            }
            Message::Met(Meeting::Same) => head("met", " same".to_owned()),
            Message::Met(Meeting::Soon) => head("met", " soon".to_owned()),
            Message::Met(Meeting::Never(why)) => head("met", format!(" never\n{}", one_line(why))),
        }
        text
    }

    /// Reads the text of a message.
    ///
    /// # Errors
    /// Returns a description of the first fault in the text.
    pub fn parse(text: &str) -> Result<Parcel, String> {
        let mut lines = text.split('\n');
        let words: Vec<&str> = lines.next().unwrap_or_default().split(' ').collect();
        let [kind, group, ref fields @ ..] = words[..] else {
            return Err("a message without a group".to_owned());
        };
        let group = if group == "-" { None } else { Some(name_of(group)?) };
        let number = |word: &str| number_of::<u64>(word, "a field of a message");
        let mut next =
            || lines.next().ok_or_else(|| format!("the message {} ends early", kind.escape_default()));
        let message = match (kind, fields) {
            ("pre-vote", [term, index, last_term, commit]) => Message::PreVote {
                term: number(term)?,
                last: (number(index)?, number(last_term)?),
                commit: number(commit)?,
            },
            ("pre-voted", [term, agrees]) => {
                Message::PreVoted { term: number(term)?, agrees: is_yes(agrees)? }
            }
            ("vote", [term, index, last_term]) => {
                Message::Vote { term: number(term)?, last: (number(index)?, number(last_term)?) }
            }
            ("voted", [term, agrees]) => Message::Voted { term: number(term)?, agrees: is_yes(agrees)? },
            ("entries", [term, index, previous_term, commit, sent_ms]) => Message::Entries {
                term: number(term)?,
                previous: (number(index)?, number(previous_term)?),
                commit: number(commit)?,
                sent_ms: number(sent_ms)?,
                entries: lines.by_ref().map(Entry::parse).collect::<Result<_, _>>()?,
            },
            ("topology", [term, index]) => Message::Topology {
                term: number(term)?,
                index: number(index)?,
                lines: lines.by_ref().map(str::to_owned).collect(),
            },
            ("answer", [term, accepts, index, sent_ms]) => Message::Answer(Answer {
                term: number(term)?,
                accepts: is_yes(accepts)?,
                index: number(index)?,
                sent_ms: number(sent_ms)?,
            }),
            ("stand", [term]) => Message::Stand { term: number(term)? },
            ("propose", [ticket]) => {
                Message::Propose { ticket: number(ticket)?, change: Change::parse(next()?)? }
            }
            ("proposed", [ticket, verdict @ ..]) => {
                let verdict = match verdict {
                    ["applied", index] => Verdict::Applied(number(index)?),
                    ["refused"] => Verdict::Refused(next()?.to_owned()),
                    ["not-now"] => Verdict::NotNow,
                    _ => return Err("an unknown result of a proposal".to_owned()),
                };
                Message::Proposed { ticket: number(ticket)?, verdict }
            }
            ("removed", [index]) => Message::Removed { index: number(index)? },
            ("elsewhere", []) => Message::Elsewhere,
            ("renew", [round, received, incarnation, position, is_linked, may_lead]) => {
                let position = if *position == "-" { None } else { Some(number(position)?) };
                let (is_linked, may_lead) = (is_yes(is_linked)?, is_yes(may_lead)?);
                let report = Report { incarnation: number(incarnation)?, position, is_linked, may_lead };
                Message::Renew(Renewal { round: number(round)?, received: number(received)?, report })
            }
            ("granted", [round, version, lease_ms]) => Message::Granted(Grant {
                round: number(round)?,
                version: number(version)?,
                lease_ms: number(lease_ms)?,
                failed: lines.next().map_or(Ok(Vec::new()), names_of)?,
            }),
            ("cede", [incarnation]) => Message::Cede { incarnation: number(incarnation)? },
            ("kept", []) => Message::Kept(next()?.to_owned()),
            ("meet", []) => Message::Meet { join: lines.next().map(Change::parse).transpose()? },
            ("met", ["same"]) => Message::Met(Meeting::Same),
            ("met", ["soon"]) => Message::Met(Meeting::Soon),
            ("met", ["never"]) => Message::Met(Meeting::Never(next()?.to_owned())),
            _ => return Err("an unknown message".to_owned()),
        };
        match lines.next() {
            None => Ok(Parcel { group, message }),
            Some(_) => Err("a message has more lines than fields".to_owned()),
        }
    }
}

impl Entry {
    /// Returns the line of the entry.
    pub fn text(&self) -> String {
        format!("{} {} {}", self.index, self.term, self.change.text())
    }

    /// Reads the line of an entry.
    ///
    /// # Errors
    /// Returns what is wrong with the line.
    pub fn parse(line: &str) -> Result<Entry, String> {
        let mut parts = line.splitn(3, ' ');
        let mut number = |what| number_of(parts.next().unwrap_or_default(), what);
        let (index, term) = (number("the index of an entry")?, number("the term of an entry")?);
        Ok(Entry { index, term, change: Change::parse(parts.next().unwrap_or_default())? })
    }
}

fn word(is_yes: bool) -> &'static str {
    if is_yes { "yes" } else { "no" }
}

fn is_yes(word: &str) -> Result<bool, String> {
    match word {
        "yes" => Ok(true),
        "no" => Ok(false),
        _ => Err("a field of a message is neither yes nor no".to_owned()),
    }
}

/// Returns a text that takes one line.
fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::node::{Address, DataSet, Node, Role, ShardState};

    fn name(digit: char) -> Name {
        Name::parse(&digit.to_string().repeat(40)).unwrap()
    }

    fn samples() -> Vec<Message> {
        let address =
            Address { ip: "10.0.0.1".to_owned(), port: 7000, bus_port: 17_000, ..Address::default() };
        let node = Box::new(Node {
            name: name('b'),
            shard: name('c'),
            address: address.clone(),
            role: Role::Primary,
            epoch: 0,
            state: ShardState::default(),
        });
        let data = |digit, incarnation| DataSet { node: name(digit), incarnation };
        let changes = [
            Change::Nothing,
            Change::Voters(vec![name('a'), name('b')]),
            Change::Join { node, slots: vec![0..=5, 7..=7] },
            Change::Address { name: name('b'), address },
            Change::Forget(name('a')),
            Change::AddSlots { owner: name('a'), slots: vec![1..=1] },
            Change::SetSlot { slot: 5, owner: name('a') },
            Change::DeleteSlots(vec![0..=16_383]),
            Change::FlushSlots(name('a')),
            Change::Replicate { replica: name('b'), primary: name('a') },
            Change::Serve { data: data('a', 5), version: 3 },
            Change::Promote { data: data('b', u64::MAX), primary: name('a'), version: 3 },
            Change::InSync { data: data('a', 5), version: 3, replicas: None },
            Change::InSync { data: data('a', 5), version: 3, replicas: Some(Vec::new()) },
            Change::InSync {
                data: data('a', 5),
                version: 3,
                replicas: Some(vec![data('b', 1), data('c', 2)]),
            },
        ];
        let report = Report { incarnation: 5, position: Some(70), is_linked: true, may_lead: true };
        let entries =
            (1..).zip(changes.clone()).map(|(index, change)| Entry { index, term: 3, change }).collect();
        let mut messages = vec![
            Message::PreVote { term: 4, last: (9, 3), commit: 8 },
            Message::PreVoted { term: 4, agrees: true },
            Message::Vote { term: 4, last: (9, 3) },
            Message::Voted { term: 4, agrees: false },
            Message::Entries { term: 4, previous: (0, 0), commit: 8, sent_ms: 70, entries },
            Message::Entries { term: 4, previous: (9, 3), commit: 8, sent_ms: 71, entries: Vec::new() },
            Message::Topology { term: 4, index: 7, lines: vec!["a b".to_owned(), "c".to_owned()] },
            Message::Answer(Answer { term: 4, accepts: true, index: 7, sent_ms: 70 }),
            Message::Stand { term: 4 },
            Message::Proposed { ticket: 1, verdict: Verdict::Applied(5) },
            Message::Proposed { ticket: 1, verdict: Verdict::Refused("a reason".to_owned()) },
            Message::Proposed { ticket: 1, verdict: Verdict::NotNow },
            Message::Removed { index: 5 },
            Message::Elsewhere,
            Message::Renew(Renewal { round: 3, received: 2, report: report.clone() }),
            Message::Renew(Renewal {
                round: 3,
                received: 2,
                report: Report { position: None, is_linked: false, ..report },
            }),
            Message::Granted(Grant { round: 3, version: 9, lease_ms: 2500, failed: Vec::new() }),
            Message::Granted(Grant { round: 3, version: 9, lease_ms: 0, failed: vec![name('a'), name('b')] }),
            Message::Cede { incarnation: 5 },
            Message::Kept("a reason".to_owned()),
            Message::Meet { join: None },
            Message::Meet { join: Some(changes[2].clone()) },
            Message::Met(Meeting::Same),
            Message::Met(Meeting::Soon),
            Message::Met(Meeting::Never("a reason".to_owned())),
        ];
        messages.extend(changes.into_iter().map(|change| Message::Propose { ticket: 2, change }));
        messages
    }

    #[test]
    fn every_message_is_read_back_from_its_text() {
        for message in samples() {
            for group in [None, Some(name('9'))] {
                let parcel = Parcel { group, message: message.clone() };
                assert_eq!(Parcel::parse(&parcel.text()), Ok(parcel));
            }
        }
    }

    #[test]
    fn a_changed_or_cut_text_is_refused_or_is_another_message() {
        for message in samples() {
            let text = Parcel { group: Some(name('9')), message }.text();
            for end in 0..text.len() {
                // No text panics.
                _ = Parcel::parse(&text[..end]);
                let mut changed = text.clone().into_bytes();
                for byte in [b' ', b'\n', b'0', b'z', b'-', b','] {
                    changed[end] = byte;
                    _ = Parcel::parse(std::str::from_utf8(&changed).unwrap());
                }
            }
            assert!(
                Parcel::parse(&format!("{text} x")).is_err()
                    || text.starts_with("topology")
                    || text.contains("a reason")
            );
        }
    }
}
