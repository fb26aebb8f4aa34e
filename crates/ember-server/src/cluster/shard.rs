//! This node in its shard: the state of its data, its in-sync replicas, and the hand-over of its slots to a replica.
//!
//! ```text
//! a replica   CLUSTER FAILOVER ─ Cede ───▶ its primary: writes are paused
//! primary     the replica has the whole stream: proposes its promotion
//! all         apply the promotion; the old primary ends the pause, and redirects the paused clients
//! ```

use ember_cluster::change::Change;
use ember_cluster::lease::Report;
use ember_cluster::node::{DataSet, Node, ShardState};

use super::bus::{Bus, Order};
use crate::executor::Executor;
use crate::replication::link::Link;
use crate::replication::primary::Primary;
use crate::replication::primary::replica::Stage;
use crate::server::Server;
use crate::server::conditions::Condition;

/// The time in ms after which a hand-over for which the replica has not received all writes ends.
const HAND_OVER_MS: i64 = 5_000;

/// The time in ms after its proposal without an outcome, after which a hand-over is revoked: proposals end before.
const REVOKE_MS: i64 = 6_000;

/// A running hand-over.
pub(crate) struct HandingOver {
    replica: DataSet,
    /// The version of the shard when it began: another one means that it has an outcome.
    version: u64,
    begun_ms: i64,
    proposed_ms: Option<i64>,
}

/// Returns the state of the data of this node.
pub(crate) fn report(server: &Server) -> Report {
    let slots = server.slots.as_ref().expect("the server is a node of a cluster");
    let position = match Link::report(server) {
        Some(link) => link.offsets.map(|(_, applied)| applied),
        None => Primary::of(server).held().map(|(_, position)| position),
    };
    let is_loading = server.conditions.get().contains(Condition::LOADING);
    Report {
        incarnation: slots.incarnation(),
        position: position.filter(|_| !is_loading),
        is_linked: slots.is_linked() && !is_loading,
        may_lead: !server.config.snapshot().cluster_replica_no_failover,
    }
}

/// Reviews the in-sync replicas, and continues a hand-over. Worker 0 calls this periodically; it is inside the gate and
/// holds no lock.
pub(crate) fn work(executor: &mut Executor) {
    let server = executor.server;
    let Some(slots) = &server.slots else { return };
    let view = slots.view();
    if view.topology.group().is_none() {
        return;
    }
    continue_hand_over(executor);
    let wanted = executor.config.sync_replicas as usize;
    let own = slots.incarnation();
    let followers = Primary::of(server).followers();
    let change = {
        let mut in_sync = Primary::of(server).in_sync.lock();
        // Read under the lock: a reply that was sent without a joining replica belongs to an earlier record.
        let last_record = server.journal.last_number();
        in_sync.review(&view.topology, own, wanted, &followers, last_record)
    };
    if let Some(change) = change {
        Bus::of(server).order(Order::Shard(change));
    }
    // Fewer replicas may be waited for now.
    Primary::of(server).release_replies(server);
}

fn state_of(executor: &Executor) -> Option<(Node, bool)> {
    let slots = executor.server.slots.as_ref()?;
    let view = slots.view();
    let myself = view.topology.myself().clone();
    let serves = view.topology.group().is_some() && myself.state.incarnation == slots.incarnation();
    Some((myself, serves))
}

/// Begins to hand over the slots to a replica: writes are paused. The worker is inside the gate and holds no lock.
pub(super) fn begin_hand_over(executor: &mut Executor, replica: DataSet) {
    let server = executor.server;
    let bus = Bus::of(server);
    if bus.handing_over.lock().as_ref().is_some_and(|running| running.replica == replica) {
        return;
    }
    if let Err(why) = try_begin(executor, replica) {
        bus.order(Order::Keep(replica.node, why.to_owned()));
    }
}

fn try_begin(executor: &mut Executor, replica: DataSet) -> Result<(), &'static str> {
    let server = executor.server;
    let bus = Bus::of(server);
    let (myself, serves) = state_of(executor).ok_or("this node is not in a cluster")?;
    if myself.is_replica() || !serves {
        return Err("the primary does not serve its data now");
    }
    if bus.handing_over.lock().is_some() {
        return Err("the primary hands over its slots to another replica");
    }
    let ShardState { version, in_sync, .. } = &myself.state;
    if in_sync.as_ref().is_some_and(|in_sync| !in_sync.contains(&replica)) {
        return Err("the node is not one of the in-sync replicas of the primary");
    }
    let primary = Primary::of(server);
    let is_online = primary
        .replicas()
        .iter()
        .any(|view| view.stage() == Stage::Online && view.node_data() == Some(replica));
    if !is_online {
        return Err("the node does not receive the stream of the primary");
    }
    let begun_ms = executor.turn.now_ms;
    tracing::info!("the slots are handed over to node {}: writes wait", replica.node);
    *bus.handing_over.lock() = Some(HandingOver { replica, version: *version, begun_ms, proposed_ms: None });
    server.pause.wait_for_hand_over(true);
    primary.request_acks(server);
    Ok(())
}

/// Proposes the promotion when the replica has all writes, and ends the pause when the outcome is known.
pub(crate) fn continue_hand_over(executor: &mut Executor) {
    let server = executor.server;
    let bus = Bus::of(server);
    let now_ms = executor.turn.now_ms;
    let Some((replica, version, begun_ms, proposed_ms)) =
        bus.handing_over.lock().as_ref().map(|it| (it.replica, it.version, it.begun_ms, it.proposed_ms))
    else {
        return;
    };
    let Some((myself, _)) = state_of(executor) else { return };
    if myself.is_replica() {
        return end_hand_over(server, "the replica has taken over");
    }
    if myself.state.version != version {
        return end_hand_over(server, "the shard has changed meanwhile");
    }
    let Some(proposed_ms) = proposed_ms else {
        if now_ms > begun_ms + HAND_OVER_MS {
            let why = "the node has not received all writes in time";
            bus.order(Order::Keep(replica.node, why.to_owned()));
            return end_hand_over(server, why);
        }
        if has_all(server, replica) {
            // A command that was running when writes were paused may have written since the check above.
            let is_whole = executor.with_exclusive_access(|executor, _| {
                executor.publish();
                Primary::of(server).has_all_records(server) && has_all(server, replica)
            });
            if is_whole {
                if let Some(running) = &mut *bus.handing_over.lock() {
                    running.proposed_ms = Some(now_ms);
                }
                let change = Change::Promote { data: replica, primary: myself.name, version };
                bus.order(Order::Shard(change));
                return;
            }
        }
        Primary::of(server).request_acks(server);
        return;
    };
    // An order has no effect while an earlier one has no outcome.
    if now_ms <= proposed_ms + REVOKE_MS {
        let change = Change::Promote { data: replica, primary: myself.name, version };
        bus.order(Order::Shard(change));
    } else {
        // The promotion is without effect once this change is in effect.
        let data = DataSet { node: myself.name, incarnation: myself.state.incarnation };
        bus.order(Order::Shard(Change::Serve { data, version }));
    }
}

/// Returns whether a replica has the whole stream.
fn has_all(server: &Server, replica: DataSet) -> bool {
    let primary = Primary::of(server);
    let is_it = |data: Option<DataSet>| data == Some(replica);
    primary.replicas().iter().any(|view| {
        view.stage() == Stage::Online && is_it(view.node_data()) && primary.is_all(view.acknowledged())
    })
}

fn end_hand_over(server: &Server, why: &str) {
    let bus = Bus::of(server);
    tracing::info!("the hand-over of the slots has ended: {why}");
    *bus.handing_over.lock() = None;
    server.pause.wait_for_hand_over(false);
    server.check_paused();
}
