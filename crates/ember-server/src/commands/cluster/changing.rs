//! The subcommands of CLUSTER that change this node's view of the cluster.
//!
//! Changes of a cluster of several nodes need the agreement of its nodes, which is not available in this version. So only
//! a node that knows no other node changes its slots.

use ember_cluster::topology::{SlotError, Topology};
use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;

use super::{node_of, slot};
use crate::cluster::changing::{change, renamed};
use crate::executor::session::{Execution, Outcome, Session, SessionResult};
use crate::server::Server;

/// Returns the error of a command that changes a cluster of several nodes.
fn not_alone(command: &str, nodes: usize) -> CommandError {
    format!(
        "ERR {command} needs the agreement of the {nodes} nodes that this node knows, which is not available in this \
         version: change the file of each node while it is stopped"
    )
    .into()
}

/// Changes the topology of a node that knows no other node, and replies OK.
fn change_alone(
    execution: &mut Execution<'_>,
    edit: impl FnOnce(&Server, &mut Topology) -> Result<(), CommandError>,
) -> SessionResult {
    let name = execution.command.full_name.replace('|', " ").to_uppercase();
    change(execution.executor, execution.client.view.id, |server, topology| match topology.nodes().len() {
        1 => edit(server, topology),
        nodes => Err(not_alone(&name, nodes)),
    })?;
    execution.reply.ok();
    Ok(Outcome::Done)
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
        change_alone(execution, |_, topology| topology.assign(&slots).map_err(refused))
    }))
}

pub(super) fn add_ranges(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_ranges(execution.args, &execution.command.full_name)?;
        change_alone(execution, |_, topology| topology.assign(&slots).map_err(refused))
    }))
}

pub(super) fn delete_slots(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_slots(execution.args)?;
        change_alone(execution, |_, topology| topology.unassign(&slots).map_err(refused))
    }))
}

pub(super) fn delete_ranges(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        let slots = named_ranges(execution.args, &execution.command.full_name)?;
        change_alone(execution, |_, topology| topology.unassign(&slots).map_err(refused))
    }))
}

/// Returns whether no database has keys.
fn is_empty(server: &Server) -> bool {
    (0..server.keyspace.databases()).all(|database| server.keyspace.is_empty(database))
}

pub(super) fn flush_slots(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    Ok(Outcome::Continue(|execution| {
        change_alone(execution, |server, topology| {
            if !is_empty(server) {
                return Err("ERR DB must be empty to perform CLUSTER FLUSHSLOTS.".into());
            }
            topology.unassign_mine();
            Ok(())
        })
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
        change_alone(execution, |server, topology| {
            if !is_empty(server) {
                return Err("ERR CLUSTER RESET can't be called with master nodes containing keys".into());
            }
            topology.unassign_mine();
            if is_hard {
                *topology = renamed(topology)?;
            }
            Ok(())
        })
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
        change(execution.executor, execution.client.view.id, |_, _| Ok(()))?;
        execution.reply.ok();
        Ok(Outcome::Done)
    }))
}

/// Refuses a command for which the nodes of a cluster have to agree.
pub(super) fn needs_agreement(session: &mut Session<'_>) -> SessionResult {
    node_of(session.server)?;
    let name = session.command.full_name.replace('|', " ").to_uppercase();
    Err(format!(
        "ERR {name} needs messages between nodes, which are not available in this version: the topology is fixed by the file \
         of each node"
    )
    .into())
}
