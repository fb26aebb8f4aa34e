//! The slots of a cluster that this node serves, and the reasons for which it refuses calls.
//!
//! Workers test one bit per call: whether this node serves the slot now. The bits change only while a worker has exclusive
//! access to the keyspace, so no batch sees two topologies; `cluster-require-full-coverage` is an exception, because it
//! moves no slot. Everything else, such as the owner of a slot, is read from the topology only when a call is not served.
//!
//! A member of a group serves its slots only while it has a lease (`ember_cluster::lease`). Workers read the clock once per
//! batch.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use ember_cluster::node::{DataSet, Node};
use ember_cluster::slots::{SLOTS, slot_of};
use ember_cluster::topology::Topology;
use ember_config::{Config, EndpointType};
use ember_protocol::Args;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Flags, Group};

use crate::catalogue::registry::Command;
use crate::clients::client::SlotCaller;
use crate::system::clock::boot_ms;
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
    /// Whether the node is a member of a group, so that it needs a lease.
    needs_lease: AtomicBool,
    /// The end of the lease in ms of [`boot_ms`]; 0 if there is none.
    lease_until_ms: AtomicU64,
    /// The number of the data of this node.
    incarnation: AtomicU64,
    /// Whether these data have followed a primary since the server started.
    is_linked: AtomicBool,
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
    /// Whether this node may serve its slots now.
    has_lease: bool,
}

impl SlotCall {
    /// Returns the properties of a client's call of a command.
    #[inline]
    pub(crate) fn of(caller: SlotCaller, command: &Command, has_lease: bool) -> SlotCall {
        let names_channels = command.spec.group == Group::PubSub;
        SlotCall { caller, writes: command.spec.flags.contains(Flags::WRITE), names_channels, has_lease }
    }

    /// Returns the properties of EXEC, whose queued calls have these flags.
    pub(crate) fn of_queued(caller: SlotCaller, flags: Flags, has_lease: bool) -> SlotCall {
        SlotCall { caller, writes: flags.contains(Flags::WRITE), names_channels: false, has_lease }
    }
}

impl Slots {
    /// Returns the state of a node with this topology; `incarnation` is the random number of its data.
    pub(crate) fn new(topology: Topology, config: &Config, incarnation: u64) -> Slots {
        let served = (0..SLOTS / 64).map(|_| AtomicU64::new(0)).collect();
        let view = RwLock::new(Arc::new(View { topology: topology.clone(), is_ok: false }));
        let slots = Slots {
            served,
            view,
            needs_lease: AtomicBool::new(false),
            lease_until_ms: AtomicU64::new(0),
            incarnation: AtomicU64::new(incarnation),
            is_linked: AtomicBool::new(false),
        };
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

    /// Returns whether this node may serve its slots now, as far as it needs a lease.
    #[inline]
    pub(crate) fn has_lease(&self) -> bool {
        // Relaxed: the flag changes while no worker is inside the gate, and the time is compared with the clock alone.
        !self.needs_lease.load(Ordering::Relaxed) || boot_ms() < self.lease_until_ms.load(Ordering::Relaxed)
    }

    /// Sets the end of the lease.
    pub(crate) fn set_lease(&self, until_ms: u64) {
        self.lease_until_ms.store(until_ms, Ordering::Relaxed);
    }

    /// Returns the remaining time of the lease in ms; `None` if this node needs none.
    pub(crate) fn lease_ms(&self) -> Option<u64> {
        let until_ms = self.lease_until_ms.load(Ordering::Relaxed);
        self.needs_lease.load(Ordering::Relaxed).then(|| until_ms.saturating_sub(boot_ms()))
    }

    /// Returns the number of the data of this node, which is another one after each start and full sync.
    pub(crate) fn incarnation(&self) -> u64 {
        self.incarnation.load(Ordering::SeqCst)
    }

    /// Returns the word for this node and the number of its data, which it states to its primary; `None` outside a group.
    pub(crate) fn shown_data(&self) -> Option<String> {
        let view = self.view();
        let data = DataSet { node: view.topology.myself().name, incarnation: self.incarnation() };
        view.topology.group().map(|_| data.to_string())
    }

    /// Returns whether the data have followed a primary since the server started.
    pub(crate) fn is_linked(&self) -> bool {
        self.is_linked.load(Ordering::SeqCst)
    }

    /// Records that the data are about to be replaced by those of the primary. The caller has exclusive access.
    pub(crate) fn begin_copy(&self) {
        self.is_linked.store(false, Ordering::SeqCst);
        self.incarnation.fetch_add(1, Ordering::SeqCst);
    }

    /// Records that the data follow the primary.
    pub(crate) fn record_link(&self) {
        self.is_linked.store(true, Ordering::SeqCst);
    }

    /// Returns whether the members have agreed that this node is a primary with its present data. Until then, other data
    /// may replace them, so that no replica must copy them. Outside a group, nothing has to be agreed on.
    pub(crate) fn serves_own_data(&self) -> bool {
        let view = self.view();
        let myself = view.topology.myself();
        let is_agreed = !myself.is_replica() && myself.state.incarnation == self.incarnation();
        is_agreed || view.topology.group().is_none()
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
        self.needs_lease.store(topology.group().is_some(), Ordering::Relaxed);
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
        if is_one && call.has_lease && self.serves(slot) {
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
        let is_ok = view.is_ok && (call.has_lease || !view.topology.is_myself(owner));
        match call {
            _ if is_ok => {}
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
