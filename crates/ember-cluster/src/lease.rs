//! Leases: a primary serves its slots only while it has a lease of the leader. When the lease has ended, another node can
//! take over, even if no message about that has reached the old primary.
//!
//! ```text
//! holder   sends Renew at its time s ─────────▶ leader: grants the time L since it was last confirmed as the leader (q)
//! holder   uses the lease until s + (q + L − now of the leader), less the drift of clocks ◀── Granted
//! leader   promotes another node after its now + (q + L − now), plus the drift of clocks
//! a new leader promotes nothing in the first L, plus the drift: leases of its predecessor end by then
//! ```
//!
//! A majority answered the old leader's messages of time q before it elected the new one, so every lease of the old leader
//! ends within L after the election. A grant names the last entry of the leader's log. It is valid only on a node that
//! has applied this entry: so a node whose slots were given to another one never serves them with a later lease. All times
//! are those of monotonic clocks, whose rates differ by at most 2 %.

use std::collections::VecDeque;

use crate::node::Name;

/// The rates of two clocks differ by less than one of this many parts.
const DRIFT_PARTS: u64 = 50;

/// The maximum number of recorded renewals without an answer, far more than are sent during a lease.
const ROUNDS_MAX: usize = 64;

/// The intervals that follow from `cluster-node-timeout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// The minimum time without messages of the leader after which a member asks for votes, in ms. An election takes up to
    /// two of them, and leases last longer, so that primaries keep serving while a new leader is elected.
    pub election_ms: u64,
    /// The maximum duration of a lease in ms.
    pub lease_ms: u64,
    /// The interval of renewals in ms.
    pub renewal_ms: u64,
}

impl Timing {
    /// Returns the intervals for a node timeout in ms.
    pub fn of(node_timeout_ms: u64) -> Timing {
        let part = |parts: u64| (node_timeout_ms / parts).max(1);
        Timing { election_ms: part(6), lease_ms: part(2), renewal_ms: part(10) }
    }
}

/// Returns a time that is certainly over at the holder of a lease when `ms` are over at the leader.
fn shortened(ms: u64) -> u64 {
    // One ms more, because times are truncated.
    ms.saturating_sub(ms / DRIFT_PARTS + 1)
}

/// Returns a time after which `ms` are certainly over at other nodes.
pub(crate) fn lengthened(ms: u64) -> u64 {
    ms + ms / DRIFT_PARTS + 1
}

/// The state of the data of a member, which the leader needs for failovers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The number of the data; 0 while they are not known.
    pub incarnation: u64,
    /// The position in the replication history up to which the member has the data, if they belong to one.
    pub position: Option<u64>,
    /// Whether these data have followed the primary of the member since the member started.
    pub is_linked: bool,
    /// Whether the member may become a primary without a command.
    pub may_lead: bool,
}

/// A request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The number of the request at the member.
    pub round: u64,
    /// The number of the latest request that was answered; 0 if there is none.
    pub received: u64,
    /// The state of the member.
    pub report: Report,
}

/// The answer to a request for a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// The number of the request.
    pub round: u64,
    /// The index of the entry that the member must have applied.
    pub version: u64,
    /// The duration in ms; 0 if there is no lease.
    pub lease_ms: u64,
    /// The members from which the leader has received no message for the time of a lease.
    pub failed: Vec<Name>,
}

/// A lease that can be used after an entry was applied.
#[derive(Clone, Copy, Debug)]
struct Lease {
    version: u64,
    until_ms: u64,
}

/// The leases of a member.
#[derive(Debug, Default)]
pub(crate) struct Leases {
    round: u64,
    received: u64,
    /// The numbers and times of renewals that are not answered.
    sent: VecDeque<(u64, u64)>,
    /// The latest lease for each version.
    granted: Vec<Lease>,
    next_ms: u64,
    /// The failed members as of the last answer, and its time.
    failed: (Vec<Name>, u64),
}

impl Leases {
    /// Requests a lease at the next opportunity.
    pub(crate) fn hurry(&mut self) {
        self.next_ms = 0;
    }

    /// Removes all leases, because this node is no longer a member.
    pub(crate) fn clear(&mut self) {
        self.granted.clear();
        self.sent.clear();
        self.failed.0.clear();
        self.next_ms = 0;
    }

    /// Returns the next request for a lease, if its time has come.
    pub(crate) fn renew(&mut self, report: &Report, timing: &Timing, now_ms: u64) -> Option<Renewal> {
        if now_ms < self.next_ms || report.incarnation == 0 {
            return None;
        }
        self.next_ms = now_ms + timing.renewal_ms;
        self.round += 1;
        if self.sent.len() == ROUNDS_MAX {
            self.sent.pop_front();
        }
        self.sent.push_back((self.round, now_ms));
        Some(Renewal { round: self.round, received: self.received, report: report.clone() })
    }

    /// Records an answer.
    pub(crate) fn record(&mut self, grant: Grant, now_ms: u64) {
        let Some(&(_, sent_ms)) = self.sent.iter().find(|(round, _)| *round == grant.round) else { return };
        self.sent.retain(|(round, _)| *round > grant.round);
        self.received = self.received.max(grant.round);
        self.failed = (grant.failed, now_ms);
        let until_ms = sent_ms + shortened(grant.lease_ms);
        self.granted.retain(|lease| {
            lease.until_ms > now_ms && (lease.version < grant.version || lease.until_ms > until_ms)
        });
        if until_ms > now_ms {
            self.granted.push(Lease { version: grant.version, until_ms });
        }
    }

    /// Returns the time until which a node that has applied this entry has a lease; 0 if it has none.
    pub(crate) fn until_ms(&self, applied: u64) -> u64 {
        let usable = self.granted.iter().filter(|lease| lease.version <= applied);
        usable.map(|lease| lease.until_ms).max().unwrap_or(0)
    }

    /// Returns the members from which the leader receives no messages, or none if there is no recent answer.
    pub(crate) fn failed(&self, timing: &Timing, now_ms: u64) -> &[Name] {
        let (failed, heard_ms) = &self.failed;
        if now_ms < heard_ms + 2 * timing.lease_ms { failed } else { &[] }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMING: Timing = Timing { election_ms: 800, lease_ms: 2_500, renewal_ms: 500 };

    fn leases() -> (Leases, Report) {
        (Leases::default(), Report { incarnation: 1, ..Report::default() })
    }

    fn grant(round: u64, version: u64, lease_ms: u64) -> Grant {
        Grant { round, version, lease_ms, failed: Vec::new() }
    }

    #[test]
    fn a_lease_counts_from_the_request_and_ends_before_that_of_the_leader() {
        let (mut leases, report) = leases();
        let renewal = leases.renew(&report, &TIMING, 1_000).unwrap();
        assert!(leases.renew(&report, &TIMING, 1_499).is_none());
        leases.record(grant(renewal.round, 5, 2_500), 1_400);
        assert_eq!(leases.until_ms(5), 1_000 + 2_500 - 51);
        assert!(lengthened(2_500) > 2_500);
    }

    #[test]
    fn a_lease_is_of_use_only_after_its_entry_was_applied() {
        let (mut leases, report) = leases();
        let first = leases.renew(&report, &TIMING, 1_000).unwrap();
        leases.record(grant(first.round, 5, 2_500), 1_001);
        let second = leases.renew(&report, &TIMING, 1_500).unwrap();
        assert_eq!(second.received, first.round);
        leases.record(grant(second.round, 6, 2_500), 1_501);
        assert_eq!((leases.until_ms(4), leases.until_ms(5)), (0, 3_449));
        assert_eq!(leases.until_ms(6), 3_949);
    }

    #[test]
    fn an_answer_counts_once_and_a_refusal_keeps_the_earlier_lease() {
        let (mut leases, report) = leases();
        let first = leases.renew(&report, &TIMING, 1_000).unwrap();
        leases.record(grant(first.round, 5, 2_500), 1_001);
        leases.record(grant(first.round, 5, 9_000), 1_002);
        let second = leases.renew(&report, &TIMING, 1_500).unwrap();
        leases.record(grant(second.round, 6, 0), 1_501);
        assert_eq!(leases.until_ms(6), 3_449);
    }
}
