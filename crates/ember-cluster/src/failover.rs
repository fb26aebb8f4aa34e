//! The leader's record of the other members, from which it grants leases and decides on failovers.
//!
//! A primary has failed when its leases are over. Then one of its replicas is promoted by an entry of the log. The primary
//! of a shard serves its slots only with the data on which the members have agreed ([`ShardState`]): after a restart it has
//! other data, perhaps none, so it is treated as failed unless no replica has followed it.

use std::collections::BTreeMap;

use crate::change::Change;
use crate::lease::{Grant, Renewal, Report, Timing, lengthened};
use crate::node::{DataSet, Name, Node, ShardState};
use crate::topology::Topology;

/// The number of renewals after which a silent member is not promoted.
const SILENT_RENEWALS: u64 = 4;

/// The number of reviews of the members in the interval of renewals.
const REVIEWS: u64 = 10;

/// A leader's record of one member.
#[derive(Debug, Default)]
struct Seen {
    report: Report,
    heard_ms: u64,
    /// When the leases that this leader has granted are over; 0 if it has granted none.
    leases_end_ms: u64,
    /// The first lease since the last one of which the member has confirmed that it received it: the number of the request,
    /// and the time.
    unconfirmed: Option<(u64, u64)>,
}

/// A leader's record of the members. It begins empty with each term.
#[derive(Debug)]
pub(crate) struct Watch {
    pub(crate) term: u64,
    begun_ms: u64,
    seen: BTreeMap<Name, Seen>,
    /// Primaries that a replica is to replace by command, which receive no lease until this time.
    demanded: BTreeMap<Name, u64>,
    /// When a change of a shard may be proposed again, by its primary.
    proposed: BTreeMap<Name, u64>,
    /// The members from which no messages arrive, as of the last review.
    failed: Vec<Name>,
    /// When the next review is due.
    next_ms: u64,
}

impl Watch {
    /// Returns the record of a new leader.
    pub(crate) fn new(term: u64, now_ms: u64) -> Watch {
        let (seen, demanded, proposed) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Watch { term, begun_ms: now_ms, seen, demanded, proposed, failed: Vec::new(), next_ms: 0 }
    }

    /// Returns whether every lease of a member is over.
    fn has_no_lease(&self, name: Name, timing: &Timing, now_ms: u64) -> bool {
        let granted_ms = self.seen.get(&name).map_or(0, |seen| seen.leases_end_ms);
        // Leases of earlier leaders.
        let earlier_ms = self.begun_ms + lengthened(timing.lease_ms);
        now_ms > granted_ms.max(earlier_ms)
    }

    fn is_heard(&self, name: Name, within_ms: u64, now_ms: u64) -> bool {
        self.seen.get(&name).is_some_and(|seen| seen.heard_ms + within_ms > now_ms)
    }

    /// Records a renewal and answers it. `confirmed_ms` is when this member was last known to be the leader, and
    /// `last_index` is that of the last entry of its log.
    pub(crate) fn renew(
        &mut self,
        from: Name,
        renewal: Renewal,
        (topology, timing): (&Topology, &Timing),
        (confirmed_ms, last_index): (u64, u64),
        now_ms: u64,
    ) -> Grant {
        let lease_ms = (confirmed_ms + timing.lease_ms).saturating_sub(now_ms);
        let is_demanded = self.demanded.get(&from).is_some_and(|until_ms| now_ms < *until_ms);
        let seen = self.seen.entry(from).or_default();
        (seen.report, seen.heard_ms) = (renewal.report, now_ms);
        if seen.unconfirmed.is_some_and(|(round, _)| renewal.received >= round) {
            seen.unconfirmed = None;
        }
        // A member that receives nothing does not serve: its leases end, so that it is replaced. Later it receives a lease
        // from time to time, in case messages reach it again.
        let receives_none = seen.unconfirmed.is_some_and(|(_, since_ms)| now_ms > since_ms + timing.lease_ms)
            && now_ms < seen.leases_end_ms + timing.lease_ms;
        let may_serve = topology
            .node(from)
            .is_some_and(|node| node.is_replica() || node.state.incarnation == seen.report.incarnation);
        let lease_ms = if is_demanded || receives_none || !may_serve { 0 } else { lease_ms };
        if lease_ms > 0 {
            seen.leases_end_ms = seen.leases_end_ms.max(now_ms + lengthened(lease_ms));
            seen.unconfirmed.get_or_insert((renewal.round, now_ms));
        }
        Grant { round: renewal.round, version: last_index, lease_ms, failed: self.failed.clone() }
    }

    /// Returns whether a promotion that `from` proposes may be appended: the primary proposes it itself, so that it does
    /// not serve its slots, or its leases are over. Otherwise it receives no further ones for some time.
    pub(crate) fn allows(&mut self, from: Name, change: &Change, timing: &Timing, now_ms: u64) -> bool {
        let Change::Promote { primary, .. } = change else { return true };
        if from == *primary || self.has_no_lease(*primary, timing, now_ms) {
            return true;
        }
        self.demanded.insert(*primary, now_ms + 2 * timing.lease_ms);
        false
    }

    /// Returns the changes that the failures of nodes require now. `topology` contains all committed changes.
    pub(crate) fn decide(&mut self, topology: &Topology, timing: &Timing, now_ms: u64) -> Vec<Change> {
        if now_ms < self.next_ms {
            return Vec::new();
        }
        self.next_ms = now_ms + timing.renewal_ms / REVIEWS;
        let is_failed = |node: &&Node| {
            !self.is_heard(node.name, timing.lease_ms, now_ms) && now_ms > self.begun_ms + timing.lease_ms
        };
        self.failed = topology.nodes().iter().filter(is_failed).map(|node| node.name).collect();
        let mut replicas: BTreeMap<Name, Vec<&Node>> = BTreeMap::new();
        for node in topology.nodes() {
            if let Some(primary) = node.primary() {
                replicas.entry(primary).or_default().push(node);
            }
        }
        self.demanded.retain(|_, until_ms| now_ms < *until_ms);
        self.proposed.retain(|_, again_ms| now_ms < *again_ms);
        let is_due = |node: &&Node| !self.proposed.contains_key(&node.name);
        let changes: Vec<(Name, Change)> = topology
            .primaries()
            .filter(is_due)
            .filter_map(|node| {
                let replicas = replicas.get(&node.name).map_or(&[][..], Vec::as_slice);
                Some((node.name, self.change_for((node, replicas), topology, timing, now_ms)?))
            })
            .collect();
        let again_ms = now_ms + timing.renewal_ms;
        self.proposed.extend(changes.iter().map(|(name, _)| (*name, again_ms)));
        changes.into_iter().map(|(_, change)| change).collect()
    }

    fn change_for(
        &self,
        (primary, replicas): (&Node, &[&Node]),
        topology: &Topology,
        timing: &Timing,
        now_ms: u64,
    ) -> Option<Change> {
        let ShardState { version, incarnation, .. } = primary.state;
        let is_heard = self.is_heard(primary.name, timing.lease_ms, now_ms);
        let report = self.seen.get(&primary.name).map(|seen| &seen.report).filter(|_| is_heard);
        let restarted = report.filter(|report| report.incarnation != incarnation);
        // Without replicas, no other node serves the slots, and before the first agreement none has.
        let is_alone = replicas.is_empty() || incarnation == 0;
        if !is_alone && !self.has_no_lease(primary.name, timing, now_ms) {
            return None;
        }
        let serve = |report: &Report| {
            let data = DataSet { node: primary.name, incarnation: report.incarnation };
            Change::Serve { data, version }
        };
        if is_alone || !topology.is_owner(primary.name) {
            return restarted.map(serve);
        }
        if self.demanded.contains_key(&primary.name) {
            return None;
        }
        if let Some(data) = self.successor((primary, replicas), restarted.is_some(), timing, now_ms) {
            return Some(Change::Promote { data, primary: primary.name, version });
        }
        restarted.filter(|_| !self.may_have_writes(&primary.state)).map(serve)
    }

    /// Returns the data of the replica that is to replace a primary. With acknowledging replicas, it is one of them.
    /// Otherwise, if the primary runs with other data, it is one that has followed it before.
    fn successor(
        &self,
        (primary, replicas): (&Node, &[&Node]),
        is_there: bool,
        timing: &Timing,
        now_ms: u64,
    ) -> Option<DataSet> {
        let within_ms = SILENT_RENEWALS * timing.renewal_ms;
        let candidates = replicas.iter().filter_map(|node| {
            let Report { incarnation, position, is_linked, may_lead } =
                self.seen.get(&node.name).filter(|seen| seen.heard_ms + within_ms > now_ms)?.report;
            let data = DataSet { node: node.name, incarnation };
            let has_all = match &primary.state.in_sync {
                Some(in_sync) => in_sync.contains(&data),
                None => is_linked || !is_there,
            };
            (may_lead && has_all).then_some((is_linked, position?, data))
        });
        candidates.max_by_key(|(is_linked, position, _)| (*is_linked, *position)).map(|(.., data)| data)
    }

    /// Returns whether a replica may still have the acknowledged writes of a shard: one that has acknowledged them, and has
    /// not reported other data.
    fn may_have_writes(&self, state: &ShardState) -> bool {
        let is_gone = |data: &DataSet| {
            self.seen.get(&data.node).is_some_and(|seen| seen.report.incarnation != data.incarnation)
        };
        state.in_sync.as_ref().is_some_and(|in_sync| !in_sync.iter().all(is_gone))
    }
}
