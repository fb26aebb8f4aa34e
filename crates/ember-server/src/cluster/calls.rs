//! Calls that wait for the nodes to agree, and topologies that a worker puts into effect.

use std::sync::Arc;
use std::time::Instant;

use ember_cluster::node::DataSet;
use ember_cluster::topology::Topology;
use ember_config::PrimaryAddress;
use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::error::CommandError;

use super::bus::{Bus, Order};
use super::changing::notify_workers;
use super::shard;
use crate::catalogue::registry::Command;
use crate::clients::client::ClientView;
use crate::executor::Executor;
use crate::executor::Section;
use crate::executor::jobs::{Finished, Job, Jobs, Settled};
use crate::executor::session::{Execution, Outcome, SessionResult};
use crate::replication::link::role;
use crate::server::Server;

/// The reason for role changes, for the log.
const WHY: &str = "the topology of the cluster requires it";

/// A call whose connection is parked until the nodes have agreed.
pub(crate) struct ChangeCall {
    client: Arc<ClientView>,
    protocol: Protocol,
    command: &'static Command,
    call: OwnedBatch,
    begun: Instant,
    result: Result<(), String>,
}

/// Parks the connection until the order that `order` creates for the call is carried out.
///
/// # Errors
/// Returns an error in a transaction or a script, which cannot wait.
pub(crate) fn park(
    execution: &mut Execution<'_>,
    order: impl FnOnce(Box<ChangeCall>) -> Order,
) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    if executor.section != Section::Shared {
        return Err("ERR The cluster cannot be changed inside a transaction or a script".into());
    }
    let mut call = OwnedBatch::new();
    call.append(*args);
    let call = Box::new(ChangeCall {
        client: Arc::clone(&client.view),
        protocol: reply.protocol(),
        command,
        call,
        begun: Instant::now(),
        result: Ok(()),
    });
    let parked = executor.park(command, client, reply);
    Bus::of(executor.server).order(order(call));
    Ok(Outcome::Wait(parked))
}

impl ChangeCall {
    /// Requests that the worker of the client send the reply.
    pub(super) fn complete(mut self: Box<Self>, server: &Server, result: Result<(), String>) {
        self.result = result;
        Jobs::of(server).notify(server, self);
    }
}

impl Job for ChangeCall {
    fn worker(&self) -> usize {
        self.client.worker
    }

    fn run(&mut self, _: &'static Server) {
        unreachable!("the bus does the work");
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let mut reply = Box::new(Reply::new(self.protocol));
        let result = match &self.result {
            Ok(()) => {
                reply.ok();
                Ok(())
            }
            Err(why) => Err(CommandError::from(format!("ERR {why}"))),
        };
        let call = Finished {
            client: &self.client,
            command: self.command,
            args: self.call.command(0),
            wire_bytes_max: self.call.wire_bytes_max(),
            begun: self.begun,
            keys: &[],
        };
        Some(executor.finish_job(&call, result, reply))
    }
}

/// A topology that is stored, and that a worker puts into effect.
pub(super) struct Publication {
    pub(super) number: u64,
    pub(super) topology: Topology,
}

impl Job for Publication {
    fn worker(&self) -> usize {
        0
    }

    fn run(&mut self, _: &'static Server) {
        unreachable!("the bus does the work");
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let Publication { number, topology } = *self;
        let server = executor.server;
        let config = server.config.snapshot();
        let slots = server.slots.as_ref().expect("the server is a node of a cluster");
        let primary = primary_of(&topology, config.tls_replication);
        // A new primary stops to follow its old one before it serves the slots, so that its data cannot be replaced then. A
        // new replica stops to serve before it follows.
        let leads = primary == Some(PrimaryAddress::NONE);
        if leads {
            change_role(executor, primary.clone());
        }
        let has_lost = executor.with_exclusive_access(|executor, _| {
            executor.publish();
            slots.publish(topology, &config)
        });
        if has_lost {
            notify_workers(server);
        }
        if !leads {
            change_role(executor, primary);
        }
        shard::continue_hand_over(executor);
        Bus::of(server).order(Order::Published(number));
        None
    }
}

fn change_role(executor: &mut Executor, primary: Option<PrimaryAddress>) {
    let changed = primary.map_or(Ok(role::Changed::No), |primary| role::change(executor, None, primary, WHY));
    if let Err(error) = changed {
        tracing::error!("the role cannot change: {}", String::from_utf8_lossy(&error.text()));
    }
}

/// The request of a replica to take over the slots of this node.
pub(super) struct HandOver {
    pub(super) replica: DataSet,
}

impl Job for HandOver {
    fn worker(&self) -> usize {
        0
    }

    fn run(&mut self, _: &'static Server) {
        unreachable!("the bus does the work");
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        shard::begin_hand_over(executor, self.replica);
        None
    }
}

/// Returns the primary of this node, or [`PrimaryAddress::NONE`] if the node is a primary. Returns `None` if the
/// address of its primary is not known.
fn primary_of(topology: &Topology, uses_tls: bool) -> Option<PrimaryAddress> {
    let Some(primary) = topology.myself().primary() else { return Some(PrimaryAddress::NONE) };
    let address = &topology.node(primary)?.address;
    let port = address.client_port(uses_tls);
    (!address.ip.is_empty() && port != 0).then(|| PrimaryAddress::new(address.ip.clone(), port))
}
