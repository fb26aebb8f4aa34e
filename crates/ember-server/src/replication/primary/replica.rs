//! The state of a replica.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use ember_cluster::node::DataSet;

use crate::clients::client::ClientView;

/// The stage of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// The replica waits for a snapshot of the data.
    Waiting,
    /// The replica receives the snapshot.
    Copying,
    /// The replica receives the stream.
    Online,
}

impl Stage {
    /// Returns the name of the stage in INFO.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Waiting => "wait_bgsave",
            Stage::Copying => "send_bulk",
            Stage::Online => "online",
        }
    }
}

/// The state of a replica that other threads can read.
pub(crate) struct ReplicaView {
    pub(crate) client: Arc<ClientView>,
    /// The port and address on which the replica accepts connections.
    pub(crate) port: u16,
    pub(crate) address: String,
    /// The cluster node that the replica is, and the number of its data when it connected.
    pub(super) node_data: Option<DataSet>,
    /// Whether the replica began with a full sync.
    is_copied: AtomicBool,
    /// Whether the replica receives only a snapshot, so that no part of the stream is kept for it.
    pub(super) is_copied_only: bool,
    /// Whether the replica sent SYNC, and therefore does not report its offset.
    pub(super) is_old: bool,
    /// Whether the replica's snapshot contains all the data, so that other replicas share the snapshot.
    pub(super) receives_all: bool,
    stage: AtomicU8,
    /// The number of bytes of its snapshot that the replica has received.
    pub(super) copied: AtomicU64,
    /// Whether the connection of the replica is closed.
    pub(super) is_closed: AtomicBool,
    /// Whether the replica has sent an acknowledgement.
    has_confirmed: AtomicBool,
    /// The stream position of the next byte to send.
    pub(super) position: AtomicU64,
    /// The stream position of the first byte sent to the replica, whose data include all bytes before.
    begins_at: AtomicU64,
    /// Whether the replica needs a full sync, because it was too slow or could not be sent unsupported commands.
    pub(super) is_dropped: AtomicBool,
    /// The stream position up to which the replica has run commands, the position up to which it has them on disk, and
    /// when it last reported, Unix time in ms.
    acknowledged: AtomicU64,
    durable: AtomicU64,
    acknowledged_ms: AtomicI64,
    /// The reason why this server closes the connection of the replica.
    end: OnceLock<String>,
}

impl ReplicaView {
    pub(super) fn new(client: Arc<ClientView>, port: u16, address: String, now_ms: i64) -> ReplicaView {
        ReplicaView {
            client,
            port,
            address,
            node_data: None,
            is_copied: AtomicBool::new(false),
            is_copied_only: false,
            is_old: false,
            receives_all: true,
            stage: AtomicU8::new(Stage::Waiting as u8),
            copied: AtomicU64::new(0),
            is_closed: AtomicBool::new(false),
            has_confirmed: AtomicBool::new(false),
            // Until the position is known, no part of the stream is kept for the replica.
            position: AtomicU64::new(u64::MAX),
            begins_at: AtomicU64::new(u64::MAX),
            is_dropped: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            acknowledged_ms: AtomicI64::new(now_ms),
            end: OnceLock::new(),
        }
    }

    /// Returns the name of the replica in the log.
    pub(crate) fn name(&self) -> String {
        format!("{}:{}", self.address, self.port)
    }

    pub(crate) fn stage(&self) -> Stage {
        match self.stage.load(Ordering::Relaxed) {
            0 => Stage::Waiting,
            1 => Stage::Copying,
            _ => Stage::Online,
        }
    }

    pub(super) fn enter(&self, stage: Stage, now_ms: i64) {
        self.acknowledged_ms.store(now_ms, Ordering::Relaxed);
        self.stage.store(stage as u8, Ordering::Relaxed);
    }

    /// Records that the replica begins with a full sync.
    pub(super) fn begin_copy(&self) {
        self.is_copied.store(true, Ordering::Relaxed);
    }

    /// Returns the cluster node that the replica is, and the number of its data: a node counts one more with the full sync
    /// that replaces them.
    pub(crate) fn node_data(&self) -> Option<DataSet> {
        let DataSet { node, incarnation } = self.node_data?;
        let copies = u64::from(self.is_copied.load(Ordering::Relaxed));
        Some(DataSet { node, incarnation: incarnation.wrapping_add(copies) })
    }

    /// Records why the connection is about to be closed, unless a reason is recorded already.
    pub(super) fn record_end(&self, why: String) {
        let _ = self.end.set(why);
    }

    /// Returns why the connection is closed, if a reason was recorded.
    pub(super) fn why_it_ends(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }

    /// Whether the replica has sent an acknowledgement.
    pub(super) fn has_confirmed(&self) -> bool {
        self.has_confirmed.load(Ordering::Relaxed)
    }

    /// Whether the replica receives only a snapshot of the data.
    pub(crate) fn is_copied_only(&self) -> bool {
        self.is_copied_only
    }

    /// Returns the stream position up to which the replica has confirmed that it has run commands.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// Sets the position at which the replica's stream begins.
    pub(super) fn begin_at(&self, position: u64) {
        self.begins_at.store(position, Ordering::Relaxed);
        self.position.store(position, Ordering::Relaxed);
    }

    /// Returns the first stream position that the replica needs: bytes that it has not confirmed may not have arrived.
    pub(super) fn needed(&self) -> u64 {
        let position = self.position.load(Ordering::Relaxed);
        if self.is_old {
            return position;
        }
        position.min(self.begins_at.load(Ordering::Relaxed).max(self.acknowledged()))
    }

    /// Returns how many bytes of the stream, which ends at `end`, the replica has not confirmed. 0 for a replica that
    /// waits for a snapshot of the data: the stream after the snapshot begins at the end.
    pub(crate) fn lag_bytes(&self, end: u64) -> u64 {
        end.saturating_sub(self.needed())
    }

    /// Whether the replica can resume at its position when it reconnects.
    pub(super) fn can_resume(&self) -> bool {
        let is_whole = self.stage() == Stage::Online && !self.is_copied_only && !self.is_old;
        is_whole && !self.is_dropped.load(Ordering::Relaxed)
    }

    /// Returns the stream position up to which the replica has confirmed that it has the stream on disk.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Relaxed)
    }

    /// Returns when the last message of the replica arrived, Unix time in ms.
    pub(crate) fn acknowledged_ms(&self) -> i64 {
        self.acknowledged_ms.load(Ordering::Relaxed)
    }

    /// Returns the whole seconds since the last message of the replica.
    pub(crate) fn lag_s(&self, now_ms: i64) -> i64 {
        (now_ms - self.acknowledged_ms()).max(0) / 1000
    }

    /// Records an acknowledgement. A position after `end` counts as `end`.
    pub(super) fn acknowledge(&self, position: u64, durable: Option<u64>, end: u64, now_ms: i64) {
        self.has_confirmed.store(true, Ordering::Relaxed);
        self.acknowledged.fetch_max(position.min(end), Ordering::Relaxed);
        self.durable.fetch_max(durable.unwrap_or_default().min(end), Ordering::Relaxed);
        self.acknowledged_ms.store(now_ms, Ordering::Relaxed);
    }
}
