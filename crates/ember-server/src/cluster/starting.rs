//! Startup of a node: reads its topology, or creates that of a new node.

use std::path::Path;

use ember_cluster::node::{Address, Name, Role};
use ember_cluster::slots::SLOTS;
use ember_cluster::topology::Topology;
use ember_config::{Config, ConfigHandle, PrimaryAddress};

use super::bus::{Bus, OwnChanges};
use super::files::{self, Stored};
use super::store;
use crate::server::Server;
use crate::server::slots::Slots;
use crate::system::random_name::random_name;

/// The distance of the port for other nodes from the port for clients, unless it is configured.
const BUS_PORT_OFFSET: u16 = 10_000;

/// A node with its stored part of the agreement, if it is in a group.
pub(crate) struct Opened {
    pub(crate) slots: Slots,
    pub(crate) stored: Option<Stored>,
}

/// Reads the topology of a node, or creates that of a new one. Returns `None` if the server is not to be a node. A node
/// that is a replica is configured to replicate its primary. Writes nothing.
///
/// # Errors
/// Returns a line with the reason why the server cannot start as a node.
pub(crate) fn open(handle: &ConfigHandle) -> Result<Option<Opened>, String> {
    let config = handle.snapshot();
    if !config.cluster_enabled {
        return Ok(None);
    }
    if config.replicaof.get().is_some() {
        return Err("replicaof directive not allowed in cluster mode".to_owned());
    }
    let mut topology = match store::load(path_of(&config))? {
        Some(topology) => topology,
        None => new_node()?,
    };
    let stored = stored_agreement(&config, &mut topology)?;
    if topology.group().is_none() {
        topology.set_my_address(address_of(&config, &topology.myself().address.ip)?);
    }
    if let Role::Replica(primary) = topology.myself().role {
        let node = topology.node(primary).ok_or("the primary of this node is not a known node")?;
        let port = node.address.client_port(config.tls_replication);
        if node.address.ip.is_empty() || port == 0 {
            return Err(format!(
                "{}: this node is a replica of {primary}, but the line of that node has no address",
                config.cluster_config_file
            ));
        }
        handle.set_primary(PrimaryAddress::new(node.address.ip.clone(), port));
    }
    let incarnation =
        getrandom::u64().map_err(|error| format!("the system provides no random numbers: {error}"))?;
    // 0 stands for data on which the members have not agreed, and the number grows with each full sync.
    let incarnation = incarnation / 2 + 1;
    Ok(Some(Opened { slots: Slots::new(topology, &config, incarnation), stored }))
}

/// Reads the vote and the log of a member.
fn stored_agreement(config: &Config, topology: &mut Topology) -> Result<Option<Stored>, String> {
    let Some(group) = topology.group().map(|group| group.name) else { return Ok(None) };
    let path = path_of(config);
    let stored = files::load(path, topology.myself().name)?;
    if stored.as_ref().is_some_and(|stored| stored.group == group) {
        return Ok(stored);
    }
    if stored.is_some() && topology.nodes().len() == 1 {
        // The only member of a group has crashed while it joined another group: it sends its request again.
        topology.dissolve_group();
        return Ok(None);
    }
    let what = if stored.is_some() { "is that of another cluster" } else { "is missing or incomplete" };
    Err(format!(
        "{}: the node is a member of a cluster, but the directory raft next to the file {what}. Restore the whole \
         directory of this node from a copy that is not older than its last run, or start it with an empty directory as a \
         new node, and remove the old one with CLUSTER FORGET",
        path.display()
    ))
}

/// Returns a new node, with random names.
pub(super) fn new_node() -> Result<Topology, String> {
    let name = || {
        let text =
            random_name().map_err(|error| format!("the system provides no random numbers: {error}"))?;
        Name::parse(&text).ok_or_else(|| "the generated name is not valid".to_owned())
    };
    Ok(Topology::lone(name()?, name()?))
}

/// Returns the path of the file of the topology.
pub(super) fn path_of(config: &Config) -> &Path {
    Path::new(&config.cluster_config_file)
}

/// Returns the addresses that this node announces; `ip` is the known IP address.
///
/// # Errors
/// Returns an error if there is no port for other nodes.
pub(super) fn address_of(config: &Config, ip: &str) -> Result<Address, String> {
    let or = |announced: u16, own: u16| if announced == 0 { own } else { announced };
    let bus_port = match config.cluster_announce_bus_port {
        0 => bus_port_of(config)?,
        port => port,
    };
    let ip = if config.cluster_announce_ip.is_empty() { ip } else { &config.cluster_announce_ip };
    Ok(Address {
        ip: ip.to_owned(),
        port: or(config.cluster_announce_port, config.port),
        tls_port: or(config.cluster_announce_tls_port, config.tls_port),
        bus_port,
        hostname: config.cluster_announce_hostname.clone(),
        human_name: config.cluster_announce_human_nodename.clone(),
    })
}

/// Returns the port on which this node listens for other nodes.
///
/// # Errors
/// Returns an error if there is no such port.
pub(super) fn bus_port_of(config: &Config) -> Result<u16, String> {
    let base = if config.port == 0 { config.tls_port } else { config.port };
    match config.cluster_port {
        0 => base.checked_add(BUS_PORT_OFFSET).ok_or_else(|| {
            format!("port {base} is too high for cluster mode: set cluster-port, which is {base} + 10000 by default")
        }),
        port => Ok(port),
    }
}

/// Writes the topology, so that the node has the same name when it starts again.
///
/// # Errors
/// Returns a line with the reason if the file cannot be written.
pub(crate) fn save_first(server: &Server) -> Result<(), String> {
    let Some(slots) = &server.slots else { return Ok(()) };
    let config = server.config.snapshot();
    let topology = &slots.view().topology;
    store::save(path_of(&config), topology)
        .map_err(|error| format!("cannot write {}: {error}", config.cluster_config_file))?;
    tracing::info!("this server is node {} of a cluster", topology.myself().name);
    if topology.nodes().len() > 1 && topology.group().is_none() {
        tracing::info!("the nodes and slots of the cluster are those of {}", config.cluster_config_file);
    }
    Ok(())
}

/// Assigns the slots of loaded keys to this node if they have no owner, as when a server with data becomes a node. The
/// data set is loaded, and no worker is inside the gate.
///
/// # Errors
/// Returns a line with the reason if the file cannot be written.
pub(crate) fn take_slots_of_keys(server: &Server) -> Result<(), String> {
    let Some(slots) = &server.slots else { return Ok(()) };
    let view = slots.view();
    if view.topology.myself().is_replica() {
        return Ok(());
    }
    let counts = server.keyspace.slot_counts();
    let filled = || (0..SLOTS as u16).filter(|&slot| counts[usize::from(slot)] > 0);
    let unowned: Vec<u16> = filled().filter(|&slot| view.topology.owner(slot).is_none()).collect();
    let foreign = filled().filter(|&slot| view.topology.owner(slot).is_some() && !view.topology.owns(slot));
    let foreign_keys: usize = foreign.map(|slot| counts[usize::from(slot)]).sum();
    if foreign_keys > 0 {
        tracing::warn!("{foreign_keys} keys are in slots of other nodes: clients cannot access them here");
    }
    if unowned.is_empty() {
        return Ok(());
    }
    if view.topology.group().is_some() {
        tracing::warn!("{} slots of keys of this node have no owner: see CLUSTER ADDSLOTS", unowned.len());
        return Ok(());
    }
    // The bus does not put topologies into effect before the data set is loaded.
    let own_changes = Bus::of(server).own_changes.lock();
    if *own_changes == OwnChanges::Refused {
        tracing::warn!("{} slots of keys of this node have no owner: it is joining a cluster", unowned.len());
        return Ok(());
    }
    tracing::info!("{} slots with keys had no owner: they are assigned to this node", unowned.len());
    let config = server.config.snapshot();
    let mut topology = view.topology.clone();
    topology.assign(&unowned).map_err(|error| error.to_string())?;
    store::save(path_of(&config), &topology)
        .map_err(|error| format!("cannot write {}: {error}", config.cluster_config_file))?;
    slots.publish(topology, &config);
    Ok(())
}
