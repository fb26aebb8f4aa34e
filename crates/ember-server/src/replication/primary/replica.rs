//! What is known of a replica.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use crate::clients::client::ClientView;

/// How far a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Stage {
    /// It waits for a copy of the data.
    Waiting,
    /// It gets one.
    Copying,
    /// It gets the stream.
    Online,
}

impl Stage {
    /// The word of INFO.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Stage::Waiting => "wait_bgsave",
            Stage::Copying => "send_bulk",
            Stage::Online => "online",
        }
    }
}

/// A replica, as far as others may see it.
pub(crate) struct ReplicaView {
    pub(crate) client: Arc<ClientView>,
    /// The port that it listens to, and its address.
    pub(crate) port: u16,
    pub(crate) address: String,
    /// It gets a copy of the data alone: nothing of the stream is kept for it.
    pub(super) is_copied_only: bool,
    /// It has sent SYNC, and so does not say how far it is.
    pub(super) is_old: bool,
    /// Its copy has all of the data, and is the one that others get.
    pub(super) wants_all: bool,
    stage: AtomicU8,
    /// How many bytes of its copy it has got.
    pub(super) copied: AtomicU64,
    /// Its connection is closed.
    pub(super) is_gone: AtomicBool,
    /// It has confirmed something.
    has_confirmed: AtomicBool,
    /// The position in the stream of what it gets next.
    pub(super) position: AtomicU64,
    /// That of the first byte it gets: what lies before it has.
    begins_at: AtomicU64,
    /// It was too slow, or could not be told all, and needs a copy.
    pub(super) is_dropped: AtomicBool,
    /// Up to which position it has run the stream, and has that on its disk, as it said at this Unix time in ms.
    acknowledged: AtomicU64,
    durable: AtomicU64,
    acknowledged_ms: AtomicI64,
    /// Why this server closes its connection.
    end: OnceLock<String>,
}

impl ReplicaView {
    pub(super) fn new(client: Arc<ClientView>, port: u16, address: String, now_ms: i64) -> ReplicaView {
        ReplicaView {
            client,
            port,
            address,
            is_copied_only: false,
            is_old: false,
            wants_all: true,
            stage: AtomicU8::new(Stage::Waiting as u8),
            copied: AtomicU64::new(0),
            is_gone: AtomicBool::new(false),
            has_confirmed: AtomicBool::new(false),
            // Nothing is kept for it before it is known what it needs.
            position: AtomicU64::new(u64::MAX),
            begins_at: AtomicU64::new(u64::MAX),
            is_dropped: AtomicBool::new(false),
            acknowledged: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            acknowledged_ms: AtomicI64::new(now_ms),
            end: OnceLock::new(),
        }
    }

    /// What the log calls it.
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

    /// Notes why its connection is about to be closed, unless that is known.
    pub(super) fn note_end(&self, why: String) {
        let _ = self.end.set(why);
    }

    /// Why its connection is closed, if that is known.
    pub(super) fn why_it_ends(&self) -> Option<&str> {
        self.end.get().map(String::as_str)
    }

    /// Whether it has confirmed something.
    pub(super) fn has_confirmed(&self) -> bool {
        self.has_confirmed.load(Ordering::Relaxed)
    }

    /// Whether it gets a copy of the data alone.
    pub(crate) fn is_copied_only(&self) -> bool {
        self.is_copied_only
    }

    /// What it has confirmed: the position that it has run the stream up to.
    pub(crate) fn acknowledged(&self) -> u64 {
        self.acknowledged.load(Ordering::Relaxed)
    }

    /// It gets the stream from this position on.
    pub(super) fn begin_at(&self, position: u64) {
        self.begins_at.store(position, Ordering::Relaxed);
        self.position.store(position, Ordering::Relaxed);
    }

    /// The position from which on it needs the stream: what it has not confirmed it may not have got.
    pub(super) fn needed(&self) -> u64 {
        let position = self.position.load(Ordering::Relaxed);
        if self.is_old {
            return position;
        }
        position.min(self.begins_at.load(Ordering::Relaxed).max(self.acknowledged()))
    }

    /// Bytes of the stream that it has not confirmed, if that ends at `end`. One that waits for a copy of the data lacks
    /// none: its copy begins at the end.
    pub(crate) fn lag_bytes(&self, end: u64) -> u64 {
        end.saturating_sub(self.needed())
    }

    /// Whether it can go on where it is when it comes back.
    pub(super) fn comes_back(&self) -> bool {
        let is_whole = self.stage() == Stage::Online && !self.is_copied_only && !self.is_old;
        is_whole && !self.is_dropped.load(Ordering::Relaxed)
    }

    /// The position up to which it has the stream on its disk.
    pub(crate) fn durable(&self) -> u64 {
        self.durable.load(Ordering::Relaxed)
    }

    /// When it was last heard, Unix time in ms.
    pub(crate) fn acknowledged_ms(&self) -> i64 {
        self.acknowledged_ms.load(Ordering::Relaxed)
    }

    /// Whole seconds since it was last heard.
    pub(crate) fn lag_s(&self, now_ms: i64) -> i64 {
        (now_ms - self.acknowledged_ms()).max(0) / 1000
    }

    /// Takes what it confirms. Nobody is believed to have what does not exist.
    pub(super) fn acknowledge(&self, position: u64, durable: Option<u64>, end: u64, now_ms: i64) {
        self.has_confirmed.store(true, Ordering::Relaxed);
        self.acknowledged.fetch_max(position.min(end), Ordering::Relaxed);
        self.durable.fetch_max(durable.unwrap_or_default().min(end), Ordering::Relaxed);
        self.acknowledged_ms.store(now_ms, Ordering::Relaxed);
    }
}
