//! The slots of a cluster that this node serves, and the reasons for which it refuses calls.
//!
//! Workers test one bit per call: whether this node serves the slot now. The bits change only while a worker has exclusive
//! access to the keyspace, so no batch sees two topologies; `cluster-require-full-coverage` is an exception, because it
//! moves no slot. Everything else, such as the owner of a slot, is read from the topology only when a call is not served.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_cluster::node::Node;
use ember_cluster::slots::{SLOTS, slot_of};
use ember_cluster::topology::Topology;
use ember_config::{Config, EndpointType};
use ember_protocol::Args;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Flags, Group};

use crate::catalogue::registry::Command;
use crate::clients::client::SlotCaller;
use parking_lot::RwLock;

/// The error of calls while slots have no owner and `cluster-require-full-coverage` is on.
pub(crate) const DOWN_ERROR: &str = "CLUSTERDOWN The cluster is down";

const CROSS_SLOT_ERROR: &str = "CROSSSLOT Keys in request don't hash to the same slot";

/// The topology, and the state of the cluster that follows from it.
pub(crate) struct View {
    pub(crate) topology: Topology,
    /// Whether the cluster serves commands: enough slots have an owner.
    pub(crate) is_ok: bool,
}

/// The state of a server as a node of a cluster.
pub(crate) struct Slots {
    /// A bit for each slot that this node serves now.
    served: Box<[AtomicU64]>,
    view: RwLock<Arc<View>>,
}

/// The reason why this node does not run a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The keys are in different slots.
    CrossSlot,
    /// The slot has no owner.
    Unassigned,
    /// The cluster does not serve commands.
    Down,
    /// The cluster serves only commands that read.
    DownForWrites,
    /// Another node owns the slot; the text is the error, which names the node.
    Moved(String),
}

impl Refusal {
    /// Returns the error for the client.
    pub(crate) fn error(self) -> CommandError {
        match self {
            Refusal::CrossSlot => CROSS_SLOT_ERROR.into(),
            Refusal::Unassigned => "CLUSTERDOWN Hash slot not served".into(),
            Refusal::Down => DOWN_ERROR.into(),
            Refusal::DownForWrites => "CLUSTERDOWN The cluster is down and only accepts read commands".into(),
            Refusal::Moved(text) => text.into(),
        }
    }

    /// Returns the error of a call of a script.
    pub(crate) fn script_error(&self) -> CommandError {
        match self {
            Refusal::DownForWrites => {
                "ERR Script attempted to execute a write command while the cluster is down and readonly"
            }
            Refusal::Down => "ERR Script attempted to execute a command while the cluster is down",
            Refusal::CrossSlot | Refusal::Unassigned | Refusal::Moved(_) => {
                "ERR Script attempted to access a non local key in a cluster node"
            }
        }
        .into()
    }

    /// Returns whether an error is that of a refusal.
    pub(crate) fn is_error_of_one(text: &[u8]) -> bool {
        [&b"MOVED "[..], b"CLUSTERDOWN ", b"CROSSSLOT "].iter().any(|code| text.starts_with(code))
    }
}

/// The properties of a call that decide whether this node runs it.
#[derive(Clone, Copy)]
pub(crate) struct SlotCall {
    caller: SlotCaller,
    writes: bool,
    /// Whether the keys are names of shard channels.
    names_channels: bool,
}

impl SlotCall {
    /// Returns the properties of a client's call of a command.
    #[inline]
    pub(crate) fn of(caller: SlotCaller, command: &Command) -> SlotCall {
        let names_channels = command.spec.group == Group::PubSub;
        SlotCall { caller, writes: command.spec.flags.contains(Flags::WRITE), names_channels }
    }

    /// Returns the properties of EXEC, whose queued calls have these flags.
    pub(crate) fn of_queued(caller: SlotCaller, flags: Flags) -> SlotCall {
        SlotCall { caller, writes: flags.contains(Flags::WRITE), names_channels: false }
    }
}

impl Slots {
    /// Returns the state of a node with this topology.
    pub(crate) fn new(topology: Topology, config: &Config) -> Slots {
        let served = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        let view = RwLock::new(Arc::new(View { topology: topology.clone(), is_ok: false }));
        let slots = Slots { served, view };
        slots.publish(topology, config);
        slots
    }

    /// Returns whether this node serves a slot now, so that a call needs no further check.
    #[inline]
    pub(crate) fn serves(&self, slot: u16) -> bool {
        // Relaxed: slots move while no worker is inside the gate, whose entry orders the accesses.
        let word = self.served[usize::from(slot) / 64].load(Ordering::Relaxed);
        word >> (slot % 64) & 1 == 1
    }

    /// Returns the present topology.
    pub(crate) fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read())
    }

    /// Makes a topology the present one. A caller that changes owners of slots has exclusive access to the keyspace.
    /// Returns whether the node has stopped serving a slot.
    pub(crate) fn publish(&self, topology: Topology, config: &Config) -> bool {
        let is_covered = topology.assigned() == SLOTS || !config.cluster_require_full_coverage;
        let is_ok = is_covered && topology.size() > 0;
        let mut has_lost = false;
        for (index, word) in self.served.iter().enumerate() {
            let first = index * 64;
            let bit = |slot: usize| u64::from(is_ok && topology.owns(slot as u16)) << (slot % 64);
            let now = (first..first + 64).map(bit).sum::<u64>();
            has_lost |= word.swap(now, Ordering::Relaxed) & !now != 0;
        }
        let mut view = self.view.write();
        if view.is_ok != is_ok {
            tracing::info!("cluster state changed: {}", if is_ok { "ok" } else { "fail" });
        }
        *view = Arc::new(View { topology, is_ok });
        has_lost
    }

    /// Returns whether this node has the data of a slot: it owns the slot, or replicates the owner.
    pub(crate) fn has_data_of(&self, slot: u16) -> bool {
        if self.serves(slot) {
            return true;
        }
        let view = self.view();
        view.topology.owner(slot).is_some_and(|owner| view.has_data_of(owner))
    }

    /// Checks a call with keys in these slots; returns the slot, if there are keys.
    ///
    /// # Errors
    /// Returns why this node does not run the call.
    #[inline]
    pub(crate) fn check(
        &self,
        config: &Config,
        call: SlotCall,
        mut slots: impl Iterator<Item = u16>,
    ) -> Result<Option<u16>, Refusal> {
        let Some(slot) = slots.next() else { return Ok(None) };
        let is_one = slots.all(|other| other == slot);
        if is_one && self.serves(slot) {
            return Ok(Some(slot));
        }
        self.check_by_topology(config, call, slot, is_one).map(|()| Some(slot))
    }

    #[cold]
    fn check_by_topology(
        &self,
        config: &Config,
        call: SlotCall,
        slot: u16,
        is_one: bool,
    ) -> Result<(), Refusal> {
        let view = self.view();
        let owner = view.topology.owner(slot).ok_or(Refusal::Unassigned)?;
        if !is_one {
            return Err(Refusal::CrossSlot);
        }
        match call {
            _ if view.is_ok => {}
            SlotCall { names_channels: true, .. } if config.cluster_allow_pubsubshard_when_down => {}
            SlotCall { names_channels: true, .. } => return Err(Refusal::Down),
            _ if !config.cluster_allow_reads_when_down => return Err(Refusal::Down),
            SlotCall { writes: true, .. } => return Err(Refusal::DownForWrites),
            SlotCall { .. } => {}
        }
        let may_read = (call.caller.is_readonly || call.names_channels) && !call.writes;
        if view.topology.is_myself(owner) || (may_read && view.has_data_of(owner)) {
            return Ok(());
        }
        let (endpoint, port) = (endpoint(config, owner), owner.address.client_port(call.caller.uses_tls));
        Err(Refusal::Moved(format!("MOVED {slot} {endpoint}:{port}")))
    }
}

impl View {
    /// Returns whether this node has the data of another node's slots, or `owner` is this node.
    fn has_data_of(&self, owner: &Node) -> bool {
        self.topology.is_myself(owner) || self.topology.myself().primary() == Some(owner.name)
    }
}

/// Returns the address of a node without the port, in the form that `cluster-preferred-endpoint-type` requires.
pub(crate) fn endpoint<'n>(config: &Config, node: &'n Node) -> &'n str {
    match config.cluster_preferred_endpoint_type {
        EndpointType::Ip => &node.address.ip,
        EndpointType::Hostname if node.address.hostname.is_empty() => "?",
        EndpointType::Hostname => &node.address.hostname,
        EndpointType::Unknown => "",
    }
}

/// Returns the slots of the keys of a call.
#[inline]
pub(crate) fn slots_of<'a>(command: &'a Command, args: Args<'a>) -> impl Iterator<Item = u16> + use<'a> {
    command.spec.key_positions(args).map(move |arg| slot_of(args.at(arg)))
}
