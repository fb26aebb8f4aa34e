//! The subcommands of CLUSTER that change the cluster.
//!
//! A node in no group changes its slots at once. The members of a group agree on changes; meanwhile the connection is
//! parked, and the reply follows once the change is in effect on this node.

use std::net::{IpAddr, SocketAddr};

use ember_cluster::change::{Change, ranges_of};
use ember_cluster::node::{DataSet, Name};
use ember_cluster::topology::{SlotError, Topology};
use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;

use super::{node_of, slot};
use crate::cluster::bus::{Order, check_reach};
use crate::cluster::calls::park;
use crate::cluster::changing::{change, renamed};
use crate::cluster::shard;
use crate::executor::session::{Execution, Outcome, Session, SessionResult};
use crate::server::Server;

/// The distance of the port for other nodes from the port for clients, if CLUSTER MEET does not name it.
const BUS_PORT_OFFSET: u16 = 10_000;

/// Returns the error of a command that would change a topology that was read from a written file.
fn fixed(command: &str, nodes: usize) -> CommandError {
    format!(
        "ERR {command} needs the agreement of the {nodes} nodes in the file of this node, and they are not in a group: start \
         one of them with cluster-bootstrap"
    )
    .into()
}

/// Changes the topology. A node in no group applies `edit` and replies OK; a member of a group proposes the change that
/// `agree` returns.
fn change_topology(
    execution: &mut Execution<'_>,
    edit: impl FnOnce(&Server, &mut Topology) -> Result<(), CommandError>,
    agree: impl FnOnce(&Server, &Topology) -> Result<Change, CommandError>,
) -> SessionResult {
    let view = node_of(execution.executor.server)?.view();
    if view.topology.group().is_some() {
        let change = agree(execution.executor.server, &view.topology)?;
        return park(execution, |call| Order::Change(change, call));
    }
    let name = shown_name(execution);
    change(execution.executor, execution.client.view.id, |server, topology| match topology.nodes().len() {
        1 => edit(server, topology),
        nodes => Err(fixed(&name, nodes)),
    })?;
    execution.reply.ok();
    Ok(Outcome::Done)
}

/// Returns the name of a command as users write it.
fn shown_name(execution: &Execution<'_>) -> String {
    execution.command.full_name.replace('|', " ").to_uppercase()
}

/// Checks that no slot is named twice, as Redis does.
fn named_once(slots: &[u16]) -> Result<(), CommandError> {
    let mut sorted = slots.to_vec();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(refused(SlotError::Repeated(pair[0]))),
        None => Ok(()),
    }
}

/// Assigns slots to this node.
fn assign(execution: &mut Execution<'_>, slots: &[u16]) -> SessionResult {
    change_topology(
        execution,
        |_, topology| topology.assign(slots).map_err(refused),
        |_, topology| {
            named_once(slots)?;
            Ok(Change::AddSlots { owner: topology.myself().name, slots: ranges_of(slots) })
        },
    )
}

/// Removes the owners of slots.
fn unassign(execution: &mut Execution<'_>, slots: &[u16]) -> SessionResult {
    change_topology(
        execution,
        |_, topology| topology.unassign(slots).map_err(refused),
        |_, _| {
            named_once(slots)?;
            Ok(Change::DeleteSlots(ranges_of(slots)))
        },
    )
}

fn refused(error: SlotError) -> CommandError {
    format!("ERR {error}").into()
}

/// Returns the slots that the arguments name, each by its number.
fn named_slots(args: Args<'_>) -> Result<Vec<u16>, CommandError> {
    (2..args.len()).map(|arg| slot(args, arg)).collect()
}

/// Returns the slots of the ranges in the arguments, each given by its first and its last slot.
fn named_ranges(args: Args<'_>, command: &str) -> Result<Vec<u16>, CommandError> {
    if args.len() % 2 == 1 {
        return Err(CommandError::WrongArity(command.to_owned().into()));
    }
    let mut slots = Vec::new();
    for arg in (2..args.len()).step_by(2) {
        let (first, last) = (slot(args, arg)?, slot(args, arg + 1)?);
        if first > last {
            let error = format!("ERR start slot number {first} is greater than end slot number {last}");
            return Err(error.into());
        }
        slots.extend(first..=last);
    }
    Ok(slots)
}

pub(super) fn add_slots(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_slots(execution.args)?;
        assign(execution, &slots)
    }))
}

pub(super) fn add_ranges(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_ranges(execution.args, &execution.command.full_name)?;
        assign(execution, &slots)
    }))
}

pub(super) fn delete_slots(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_slots(execution.args)?;
        unassign(execution, &slots)
    }))
}

pub(super) fn delete_ranges(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_ranges(execution.args, &execution.command.full_name)?;
        unassign(execution, &slots)
    }))
}

/// Returns whether no database has keys.
fn is_empty(server: &Server) -> bool {
    (0..server.keyspace.databases()).all(|database| server.keyspace.is_empty(database))
}

pub(super) fn flush_slots(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let check = |server: &Server| match is_empty(server) {
            true => Ok(()),
            false => Err(CommandError::from("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.")),
        };
        change_topology(
            execution,
            |server, topology| {
                check(server)?;
                topology.unassign_mine();
                Ok(())
            },
            |server, topology| {
                check(server)?;
                Ok(Change::FlushSlots(topology.myself().name))
            },
        )
    }))
}

pub(super) fn reset(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let args = session.args;
    if args.len() > 3 || (args.len() == 3 && !is_word(args, 2, "HARD") && !is_word(args, 2, "SOFT")) {
        return Err(CommandError::Syntax);
    }
    Ok(Outcome::Continue(|execution| {
        let is_hard = execution.args.len() == 3 && is_word(execution.args, 2, "HARD");
        let view = node_of(execution.executor.server)?.view();
        let myself = view.topology.myself();
        if !myself.is_replica() && !is_empty(execution.executor.server) {
            return Err("ERR CLUSTER RESET can't be called with master nodes containing keys".into());
        }
        let mut lone = Topology::lone(myself.name, myself.name);
        lone.set_my_address(myself.address.clone());
        if is_hard {
            lone = renamed(&lone)?;
        }
        if view.topology.group().is_some() {
            return park(execution, |call| Order::Leave(Box::new(lone), call));
        }
        let name = shown_name(execution);
        change(execution.executor, execution.client.view.id, |server, topology| {
            if topology.nodes().len() > 1 {
                return Err(fixed(&name, topology.nodes().len()));
            }
            if !is_empty(server) {
                return Err("ERR CLUSTER RESET can't be called with master nodes containing keys".into());
            }
            topology.unassign_mine();
            if is_hard {
                *topology = lone;
            }
            Ok(())
        })?;
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

pub(super) fn set_config_epoch(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let epoch = integer(execution.args, 2)?;
        let wrong = |_| CommandError::from(format!("ERR Invalid config epoch specified: {epoch}"));
        let epoch = u64::try_from(epoch).map_err(wrong)?;
        change(execution.executor, execution.client.view.id, |_, topology| {
            if topology.nodes().len() > 1 {
                return Err(
                    "ERR The user can assign a config epoch only when the node does not know any other node."
                        .into(),
                );
            }
            if topology.myself().epoch != 0 {
                return Err("ERR Node config epoch is already non-zero".into());
            }
            topology.set_my_epoch(epoch);
            Ok(())
        })?;
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

/// Handles BUMPEPOCH: the epoch stays the same, because no node can have a newer view of the slots.
pub(super) fn bump_epoch(session: &mut Session<'_>) -> SessionResult {
    let view = node_of(session.server)?.view();
    session.reply.simple(&format!("STILL {}", view.topology.epoch_of(view.topology.myself())));
    Ok(Outcome::Done)
}

pub(super) fn save_config(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        // The file of a member contains every change that is in effect.
        if node_of(execution.executor.server)?.view().topology.group().is_none() {
            change(execution.executor, execution.client.view.id, |_, _| Ok(()))?;
        }
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

/// Returns the name of a node in argument `arg`.
fn node_name(args: Args<'_>, arg: usize) -> Result<Name, CommandError> {
    let name = std::str::from_utf8(args.at(arg)).ok().and_then(Name::parse);
    name.ok_or_else(|| CommandError::from([b"ERR Unknown node ", args.at(arg)].concat()))
}

pub(super) fn meet(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    if session.args.len() > 5 {
        return Err(CommandError::WrongArity("cluster|meet".into()));
    }
    Ok(Outcome::Continue(|execution| {
        let args = execution.args;
        let shown = |arg| String::from_utf8_lossy(args.at(arg)).into_owned();
        let invalid =
            || CommandError::from(format!("ERR Invalid node address specified: {}:{}", shown(2), shown(3)));
        let ip: IpAddr = shown(2).parse().map_err(|_| invalid())?;
        let port = u16::try_from(integer(args, 3)?).ok().filter(|&port| port != 0).ok_or_else(invalid)?;
        let bus_port = match args.len() {
            5 => u16::try_from(integer(args, 4)?).ok().filter(|&port| port != 0),
            _ => port.checked_add(BUS_PORT_OFFSET),
        };
        let address = SocketAddr::new(ip, bus_port.ok_or_else(invalid)?);
        let config = execution.executor.server.config.snapshot();
        check_reach(&config, ip).map_err(|reason| CommandError::from(format!("ERR {reason}")))?;
        park(execution, |call| Order::Meet(address, call))
    }))
}

pub(super) fn forget(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let name = node_name(execution.args, 2)?;
        let unknown = |_: &Server, _: &mut Topology| Err(format!("ERR Unknown node {name}").into());
        let view = node_of(execution.executor.server)?.view();
        if name == view.topology.myself().name {
            return Err("ERR I tried hard but I can't forget myself...".into());
        }
        if view.topology.myself().primary() == Some(name) {
            return Err("ERR Can't forget my master!".into());
        }
        change_topology(execution, unknown, |_, _| Ok(Change::Forget(name)))
    }))
}

pub(super) fn replicate(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let primary = node_name(execution.args, 2)?;
        let view = node_of(execution.executor.server)?.view();
        let myself = view.topology.myself();
        if view.topology.node(primary).is_none() {
            return Err(format!("ERR Unknown node {primary}").into());
        }
        if primary == myself.name {
            return Err("ERR Can't replicate myself".into());
        }
        if !myself.is_replica() && !is_empty(execution.executor.server) {
            return Err("ERR To set a master the node must be empty and without assigned slots.".into());
        }
        let alone = |_: &Server, _: &mut Topology| Err("ERR Can't replicate myself".into());
        change_topology(execution, alone, |_, topology| {
            Ok(Change::Replicate { replica: topology.myself().name, primary })
        })
    }))
}

/// Handles SETSLOT. No slot is moved in this version, so a slot with an owner keeps it.
pub(super) fn set_slot(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let args = session.args;
    slot(args, 2)?;
    if args.len() == 4 && is_word(args, 3, "STABLE") {
        session.reply.ok();
        return Ok(Outcome::Done);
    }
    if args.len() == 5 && is_word(args, 3, "NODE") {
        return Ok(Outcome::Continue(|execution| {
            let (slot, owner) = (slot(execution.args, 2)?, node_name(execution.args, 4)?);
            let edit = |_: &Server, topology: &mut Topology| match topology.owns(slot) {
                _ if topology.myself().name != owner => Err(format!("ERR Unknown node {owner}").into()),
                true => Ok(()),
                false => topology.assign(&[slot]).map_err(refused),
            };
            change_topology(execution, edit, |_, _| Ok(Change::SetSlot { slot, owner }))
        }));
    }
    if args.len() == 5 && (is_word(args, 3, "IMPORTING") || is_word(args, 3, "MIGRATING")) {
        return Err(
            "ERR CLUSTER SETSLOT: slots are moved by a migration, which is not available in this version"
                .into(),
        );
    }
    Err("ERR Invalid CLUSTER SETSLOT action or number of arguments. Try CLUSTER HELP".into())
}

/// Handles FAILOVER. With FORCE, the primary need not help: it is replaced when its leases are over.
pub(super) fn failover(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let args = session.args;
    let is_forced = args.len() == 3 && is_word(args, 2, "FORCE");
    if args.len() == 3 && is_word(args, 2, "TAKEOVER") {
        return Err("ERR CLUSTER FAILOVER TAKEOVER is not available: a majority of the voters must agree on each failover, \
                    see CLUSTER FAILOVER FORCE"
            .into());
    }
    if args.len() > 3 || (args.len() == 3 && !is_forced) {
        return Err(CommandError::Syntax);
    }
    Ok(Outcome::Continue(|execution| {
        let is_forced = execution.args.len() == 3;
        let slots = node_of(execution.executor.server)?;
        let view = slots.view();
        let Some(primary) = view.topology.myself().primary() else {
            return Err("ERR You should send CLUSTER FAILOVER to a replica".into());
        };
        if view.topology.group().is_none() {
            return Err(fixed(&shown_name(execution), view.topology.nodes().len()));
        }
        if !is_forced {
            return park(execution, Order::TakeOver);
        }
        if shard::report(execution.executor.server).position.is_none() {
            return Err("ERR This node has not received the data of its primary".into());
        }
        let data = DataSet { node: view.topology.myself().name, incarnation: slots.incarnation() };
        let version = view.topology.node(primary).map_or(0, |primary| primary.state.version);
        park(execution, |call| Order::Change(Change::Promote { data, primary, version }, call))
    }))
}
