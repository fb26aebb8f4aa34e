//! Changes of the topology: they are on disk before they take effect.

use ember_cluster::topology::Topology;
use ember_config::Config;
use emberkv_core::error::CommandError;

use super::bus::{Bus, OwnChanges};
use super::{starting, store};
use crate::clients::mailbox::Message;
use crate::executor::Executor;
use crate::server::Server;

/// The error of commands that need a cluster.
pub(crate) const DISABLED: &str = "ERR This instance has cluster support disabled";

/// Changes the topology of a node in no group with `edit`, with exclusive access to the keyspace. The executor's worker is
/// inside the gate and holds no lock; `client_id` is the client that requests the change.
///
/// # Errors
/// Returns the error of `edit`, or that of the file; the topology is then unchanged. Returns an error while the node joins
/// a group. Returns `BUSY` if a script has had exclusive access for long.
pub(crate) fn change(
    executor: &mut Executor,
    client_id: u64,
    edit: impl FnOnce(&Server, &mut Topology) -> Result<(), CommandError>,
) -> Result<(), CommandError> {
    executor.with_exclusive_access_for(client_id, |executor, _| {
        let server = executor.server;
        let slots = server.slots.as_ref().ok_or(DISABLED)?;
        let own_changes = Bus::of(server).own_changes.lock();
        if *own_changes == OwnChanges::Refused || slots.view().topology.group().is_some() {
            return Err("ERR The node is joining a cluster: try again".into());
        }
        let config = server.config.snapshot();
        let mut topology = slots.view().topology.clone();
        edit(server, &mut topology)?;
        store::save(starting::path_of(&config), &topology).map_err(|error| {
            CommandError::from(format!("ERR error saving the cluster node config: {error}"))
        })?;
        let has_lost = slots.publish(topology, &config);
        if has_lost {
            notify_workers(server);
        }
        Ok(())
    })?
}

/// Returns the topology of a node in no cluster, with a new random name.
///
/// # Errors
/// Returns an error if the system provides no random numbers.
pub(crate) fn renamed(topology: &Topology) -> Result<Topology, CommandError> {
    let mut new = starting::new_node().map_err(|error| CommandError::from(format!("ERR {error}")))?;
    new.set_my_address(topology.myself().address.clone());
    Ok(new)
}

/// Puts changed parameters into effect: the announced addresses, and whether all slots must have an owner.
///
/// # Errors
/// Returns a line with the reason; nothing is changed then.
pub(crate) fn apply_config(server: &Server, before: &Config, after: &Config) -> Result<(), String> {
    let Some(slots) = &server.slots else { return Ok(()) };
    let view = slots.view();
    // Without an announced address, the address is unknown until a file names it.
    let forgets = !before.cluster_announce_ip.is_empty() && after.cluster_announce_ip.is_empty();
    let ip = if forgets { "" } else { &*view.topology.myself().address.ip };
    let address = starting::address_of(after, ip)?;
    let own_changes = Bus::of(server).own_changes.lock();
    let agrees = view.topology.group().is_some() || *own_changes == OwnChanges::Refused;
    // The bus proposes changed addresses of a member.
    if !agrees && address != view.topology.myself().address {
        let mut topology = view.topology.clone();
        topology.set_my_address(address);
        store::save(starting::path_of(after), &topology).map_err(|error| error.to_string())?;
        slots.publish(topology, after);
    }
    if before.cluster_require_full_coverage != after.cluster_require_full_coverage
        && slots.publish(slots.view().topology.clone(), after)
    {
        notify_workers(server);
    }
    Ok(())
}

/// Notifies the workers, which end blocked calls, subscriptions and watches in slots that this node no longer serves.
pub(super) fn notify_workers(server: &Server) {
    for worker in &server.workers {
        worker.mailbox.send(Message::SlotsLost);
    }
}
