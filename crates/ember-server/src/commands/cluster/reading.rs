//! The subcommands of CLUSTER that read this node's view of the cluster.

use std::fmt::Write;
use std::ops::RangeInclusive;
use std::sync::atomic::Ordering;

use ember_cluster::consensus::RaftRole;
use ember_cluster::node::{Name, Node};
use ember_cluster::slots::{SLOTS, slot_of};
use ember_cluster::topology::{self, Topology};
use ember_config::{Config, EndpointType};
use ember_protocol::{Args, Reply};
use emberkv_core::commands::arguments::integer;
use emberkv_core::error::CommandError;

use super::node_of;
use crate::cluster::bus::{Bus, LinkFacts};
use crate::executor::session::{Outcome, Session, SessionResult};
use crate::replication::link::Link;
use crate::replication::primary::Primary;
use crate::server::Server;
use crate::server::slots::endpoint;

pub(super) fn info(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let topology = &view.topology;
    let assigned = topology.assigned();
    let failed = Bus::of(session.server).failed.lock().clone();
    let lost = |name: &Name| topology.ranges_of(*name).into_iter().map(|range| range.len()).sum::<usize>();
    let failed_slots: usize = failed.iter().map(lost).sum();
    let slots = node_of(session.server)?;
    // A node that may not serve its slots now sees a cluster that is down.
    let is_ok = view.is_ok && (slots.has_lease() || !topology.is_owner(topology.myself().name));
    let mut text = String::new();
    let mut line = |name: &str, value: &dyn std::fmt::Display| _ = write!(text, "{name}:{value}\r\n");
    line("cluster_state", if is_ok { &"ok" } else { &"fail" });
    line("cluster_slots_assigned", &assigned);
    line("cluster_slots_ok", &assigned.saturating_sub(failed_slots));
    line("cluster_slots_pfail", &0);
    line("cluster_slots_fail", &failed_slots);
    line("cluster_known_nodes", &topology.nodes().len());
    line("cluster_size", &topology.size());
    line("cluster_current_epoch", &topology.current_epoch());
    line("cluster_my_epoch", &topology.epoch_of(topology.myself()));
    let bus = Bus::of(session.server);
    line("cluster_stats_messages_sent", &bus.sent.load(Ordering::Relaxed));
    line("cluster_stats_messages_received", &bus.received.load(Ordering::Relaxed));
    if let Some(status) = &*bus.status.lock() {
        let role = match status.role {
            RaftRole::Follower => "follower",
            RaftRole::Candidate => "candidate",
            RaftRole::Leader => "leader",
        };
        line("cluster_raft_role", &role);
        line("cluster_raft_term", &status.term);
        line("cluster_raft_leader", &status.leader.map_or(String::new(), |name| name.to_string()));
        line("cluster_raft_commit_index", &status.commit);
        line("cluster_raft_voters", &status.voters.len());
    }
    if let Some(lease_ms) = slots.lease_ms() {
        line("cluster_lease_ms", &lease_ms);
        if let Some(in_sync) = &topology.myself().state.in_sync {
            line("cluster_in_sync_replicas", &in_sync.len());
        }
    }
    line("total_cluster_links_buffer_limit_exceeded", &0);
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

pub(super) fn nodes(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let uses_tls = session.client.view.uses_tls;
    let failed = Bus::of(session.server).failed.lock().clone();
    let describe =
        |node: &Node| topology::describe(&view.topology, node, uses_tls, failed.contains(&node.name)) + "\n";
    let text: String = view.topology.nodes().iter().map(describe).collect();
    session.reply.verbatim(b"txt", text.as_bytes());
    Ok(Outcome::Done)
}

pub(super) fn my_id(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    session.reply.bulk(view.topology.myself().name.as_str().as_bytes());
    Ok(Outcome::Done)
}

pub(super) fn my_shard_id(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    session.reply.bulk(view.topology.myself().shard.as_str().as_bytes());
    Ok(Outcome::Done)
}

pub(super) fn links(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let links = Bus::of(session.server).links.lock().clone();
    let reply = &mut *session.reply;
    reply.array(links.len());
    for LinkFacts { is_dialed, peer, created_ms } in links {
        reply.map(6);
        for (name, value) in [("direction", if is_dialed { "to" } else { "from" }), ("node", &peer)] {
            reply.bulk(name.as_bytes());
            reply.bulk(value.as_bytes());
        }
        reply.bulk(b"create-time");
        reply.integer(created_ms);
        reply.bulk(b"events");
        reply.bulk(b"rw");
        for name in ["send-buffer-allocated", "send-buffer-used"] {
            reply.bulk(name.as_bytes());
            reply.integer(0);
        }
    }
    Ok(Outcome::Done)
}

pub(super) fn key_slot(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    session.reply.integer(slot_of(session.args.at(2)).into());
    Ok(Outcome::Done)
}

/// Handles COUNT-FAILURE-REPORTS: nodes exchange no reports of failures.
pub(super) fn count_failure_reports(session: &mut Session<'_>) -> SessionResult {
    known_node(&node_of(session.server)?.view().topology, session.args)?;
    session.reply.integer(0);
    Ok(Outcome::Done)
}

pub(super) fn replicas(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let node = known_node(&view.topology, session.args)?;
    if node.is_replica() {
        return Err("ERR The specified node is not a master".into());
    }
    let replicas: Vec<&Node> = view.topology.replicas_of(node.name).collect();
    session.reply.array(replicas.len());
    let failed = Bus::of(session.server).failed.lock().clone();
    for replica in replicas {
        let has_failed = failed.contains(&replica.name);
        let text = topology::describe(&view.topology, replica, session.client.view.uses_tls, has_failed);
        session.reply.bulk(text.as_bytes());
    }
    Ok(Outcome::Done)
}

/// Returns the node whose name is argument 2.
fn known_node<'t>(topology: &'t Topology, args: Args<'_>) -> Result<&'t Node, CommandError> {
    let name = std::str::from_utf8(args.at(2)).ok().and_then(Name::parse);
    let unknown = || CommandError::from([b"ERR Unknown node ", args.at(2)].concat());
    name.and_then(|name| topology.node(name)).ok_or_else(unknown)
}

pub(super) fn count_keys_in_slot(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let slot = slot_number(integer(session.args, 2)?).ok_or("ERR Invalid slot")?;
    let count = session.server.keyspace.count_in_slot(session.client.database, slot);
    session.reply.integer(count as i64);
    Ok(Outcome::Done)
}

pub(super) fn keys_in_slot(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let (slot, count) = (integer(session.args, 2)?, integer(session.args, 3)?);
    let (slot, count) = (slot_number(slot), usize::try_from(count).ok());
    let (slot, count) = slot.zip(count).ok_or("ERR Invalid slot or number of keys")?;
    let keys = session.server.keyspace.keys_in_slot(session.client.database, slot, count);
    session.reply.array(keys.len());
    keys.iter().for_each(|key| session.reply.bulk(key));
    Ok(Outcome::Done)
}

fn slot_number(number: i64) -> Option<u16> {
    u16::try_from(number).ok().filter(|&slot| usize::from(slot) < SLOTS)
}

pub(super) fn slots(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let config = session.server.config.snapshot();
    let uses_tls = session.client.view.uses_tls;
    let ranges = view.topology.ranges();
    let failed = Bus::of(session.server).failed.lock().clone();
    session.reply.array(ranges.len());
    for (range, owner) in ranges {
        let replicas = view.topology.replicas_of(owner.name);
        let replicas: Vec<&Node> = replicas.filter(|node| !failed.contains(&node.name)).collect();
        session.reply.array(3 + replicas.len());
        write_bounds(&range, session.reply);
        for node in [owner].into_iter().chain(replicas) {
            write_address(&config, node, uses_tls, session.reply);
        }
    }
    Ok(Outcome::Done)
}

fn write_bounds(range: &RangeInclusive<u16>, reply: &mut Reply) {
    reply.integer((*range.start()).into());
    reply.integer((*range.end()).into());
}

/// Writes the address of a node for CLUSTER SLOTS: the preferred endpoint, the port, the name, and the other known
/// endpoints.
fn write_address(config: &Config, node: &Node, uses_tls: bool, reply: &mut Reply) {
    let preferred = config.cluster_preferred_endpoint_type;
    reply.array(4);
    match preferred {
        EndpointType::Unknown => reply.null(),
        EndpointType::Ip | EndpointType::Hostname => reply.bulk(endpoint(config, node).as_bytes()),
    }
    reply.integer(node.address.client_port(uses_tls).into());
    reply.bulk(node.name.as_str().as_bytes());
    let ip = (preferred != EndpointType::Ip).then_some(("ip", &node.address.ip));
    let has_hostname = preferred != EndpointType::Hostname && !node.address.hostname.is_empty();
    let hostname = has_hostname.then_some(("hostname", &node.address.hostname));
    let others: Vec<_> = [ip, hostname].into_iter().flatten().collect();
    reply.map(others.len());
    for (name, value) in others {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

pub(super) fn shards(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    let config = session.server.config.snapshot();
    let primaries: Vec<&Node> = view.topology.primaries().collect();
    let failed = Bus::of(session.server).failed.lock().clone();
    session.reply.array(primaries.len());
    for primary in primaries {
        let ranges = view.topology.ranges_of(primary.name);
        let replicas: Vec<&Node> = view.topology.replicas_of(primary.name).collect();
        session.reply.map(2);
        session.reply.bulk(b"slots");
        session.reply.array(2 * ranges.len());
        ranges.iter().for_each(|range| write_bounds(range, session.reply));
        session.reply.bulk(b"nodes");
        session.reply.array(1 + replicas.len());
        for node in [primary].into_iter().chain(replicas) {
            let offset = if view.topology.is_myself(node) { own_offset(session.server) } else { 0 };
            let health = if failed.contains(&node.name) { "fail" } else { "online" };
            write_details(&config, node, (offset, health), session.reply);
        }
    }
    Ok(Outcome::Done)
}

/// Returns the replication offset of this node.
fn own_offset(server: &Server) -> u64 {
    match Link::report(server) {
        Some(link) => link.offsets.map_or(0, |(_, applied)| applied),
        None => Primary::of(server).end(),
    }
}

/// Writes a node for CLUSTER SHARDS. The offsets of other nodes are 0, because they are not exchanged.
fn write_details(config: &Config, node: &Node, (offset, health): (u64, &str), reply: &mut Reply) {
    let address = &node.address;
    let ports = [("port", address.port), ("tls-port", address.tls_port)];
    let ports: Vec<_> = ports.into_iter().filter(|&(_, port)| port != 0).collect();
    let has_hostname = !address.hostname.is_empty();
    reply.map(6 + ports.len() + usize::from(has_hostname));
    let text = |reply: &mut Reply, name: &str, value: &str| {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    };
    text(reply, "id", node.name.as_str());
    for (name, port) in ports {
        reply.bulk(name.as_bytes());
        reply.integer(port.into());
    }
    text(reply, "ip", &address.ip);
    text(reply, "endpoint", endpoint(config, node));
    if has_hostname {
        text(reply, "hostname", &address.hostname);
    }
    text(reply, "role", if node.is_replica() { "replica" } else { "master" });
    reply.bulk(b"replication-offset");
    reply.integer(offset as i64);
    text(reply, "health", health);
}
