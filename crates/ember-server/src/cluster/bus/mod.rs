//! The thread that exchanges messages with other nodes and agrees with them on the topology.
//!
//! ```text
//! worker   CLUSTER ADDSLOTS ─ parks the connection ─ order ─────▶ thread   proposes, stores, sends (`thread.rs`)
//! worker 0 ◀─ a new topology that the nodes have agreed on ────── thread
//! worker 0 puts it into effect with exclusive access ───────────▶ thread
//! worker   ◀─ the result of the call ──────────────────────────── thread
//! ```
//!
//! Workers never wait for the thread. A node that is in no group changes its slots by itself, on its workers; while it
//! meets another node, these changes are refused ([`Bus::own_changes`]).

mod link;
mod thread;

use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::{AtomicU64, Ordering};

use ember_cluster::change::Change;
use ember_cluster::member::Status;
use ember_cluster::node::Name;
use ember_cluster::topology::Topology;
use ember_config::Config;
use ember_config::TlsAuthClients;
use parking_lot::Mutex;

use super::calls::ChangeCall;
use super::shard::HandingOver;
use crate::server::Server;
use crate::system::driver::{Bell, Driver};

pub(crate) use thread::Prepared;

/// A request of a worker to the thread.
pub(crate) enum Order {
    /// Agree on this change, and then complete the call.
    Change(Change, Box<ChangeCall>),
    /// Meet the node at this address.
    Meet(SocketAddr, Box<ChangeCall>),
    /// Leave the group with this topology.
    Leave(Box<Topology>, Box<ChangeCall>),
    /// The topology with this number is in effect.
    Published(u64),
    /// The data set is loaded: topologies can be put into effect.
    Loaded,
    /// Agree on this change of the shard of this node. Its outcome follows from the topology.
    Shard(Change),
    /// Take over the slots of the primary of this node, with its help.
    TakeOver(Box<ChangeCall>),
    /// Inform a replica why this node does not hand over its slots to it.
    Keep(Name, String),
}

/// A link as CLUSTER LINKS shows it.
#[derive(Clone, Debug)]
pub(crate) struct LinkFacts {
    pub(crate) is_dialed: bool,
    pub(crate) peer: String,
    pub(crate) created_ms: i64,
}

/// The state that the thread and the workers share.
#[derive(Default)]
pub(crate) struct Bus {
    orders: Mutex<Vec<Order>>,
    bell: Mutex<Option<Bell>>,
    /// Whether the workers must not change the topology of a node in no group, because it meets another node.
    pub(crate) own_changes: Mutex<OwnChanges>,
    pub(crate) status: Mutex<Option<Status>>,
    /// The hand-over of the slots of this node that is running.
    pub(super) handing_over: Mutex<Option<HandingOver>>,
    /// The nodes from which the leader receives no messages.
    pub(crate) failed: Mutex<Vec<Name>>,
    pub(crate) links: Mutex<Vec<LinkFacts>>,
    pub(crate) sent: AtomicU64,
    pub(crate) received: AtomicU64,
}

/// Whether a node in no group may change its topology by itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum OwnChanges {
    #[default]
    Allowed,
    /// The node meets another one.
    Refused,
}

impl Bus {
    /// Returns the bus of a server.
    pub(crate) fn of(server: &Server) -> &Bus {
        server.services.get()
    }

    /// Sends an order to the thread. Without cluster mode there is no thread, and nothing happens.
    pub(crate) fn order(&self, order: Order) {
        let bell = self.bell.lock();
        if let Some(bell) = &*bell {
            self.orders.lock().push(order);
            bell.ring();
        }
    }

    fn take_orders(&self) -> Vec<Order> {
        std::mem::take(&mut *self.orders.lock())
    }

    fn count_sent(&self) {
        self.sent.fetch_add(1, Ordering::Relaxed);
    }

    fn count_received(&self) {
        self.received.fetch_add(1, Ordering::Relaxed);
    }

    fn connect(&self, driver: &Driver) {
        *self.bell.lock() = Some(driver.bell());
    }
}

/// Returns whether nodes authenticate each other.
fn is_authenticated(config: &Config) -> bool {
    let has_certificates = config.tls_cluster && config.tls_auth_clients == TlsAuthClients::Yes;
    has_certificates || !config.cluster_auth_pass.reveal().is_empty()
}

/// Checks that an address may be contacted or listened on.
///
/// # Errors
/// Returns which parameter is missing.
pub(crate) fn check_reach(config: &Config, address: IpAddr) -> Result<(), String> {
    if address.is_loopback() || config.cluster_unauthenticated || is_authenticated(config) {
        return Ok(());
    }
    Err(format!(
        "nodes beyond the loopback interface, such as {address}, need cluster-auth-pass or tls-cluster with \
         tls-auth-clients; if the network can be trusted, set cluster-unauthenticated yes"
    ))
}
