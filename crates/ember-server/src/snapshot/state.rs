//! The state of the RDB file, and of saving and loading.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use super::background::Background;
use super::loading::Loading;
use super::point_in_time::{Claims, Purpose};
use crate::server::Server;
use crate::system::clock::unix_ms;

/// The state of the RDB file.
#[derive(Default)]
pub(crate) struct SnapshotState {
    /// When it was last read or written, Unix time in ms; 0 if never.
    pub(super) saved_ms: AtomicI64,
    /// Changes of keys up to then.
    saved_changes: AtomicU64,
    /// The number of times that a primary's data have replaced all keys, which no command counts.
    replacements: AtomicU64,
    /// A signal requested the shutdown.
    pub(crate) is_ending: AtomicBool,
    /// Whether the file is written at shutdown, if anything has changed by then.
    pub(crate) saves_at_end: AtomicBool,
    /// The number of times that the file was written.
    pub(crate) saves: AtomicU64,
    /// Keys that were loaded, and those skipped because they had expired.
    pub(crate) loaded: AtomicU64,
    pub(crate) expired: AtomicU64,
    /// Keys that the current load has skipped because their values have no elements.
    pub(super) empty: AtomicU64,
    pub(crate) loading: Loading,
    pub(crate) claims: Claims,
    pub(crate) background: Background,
    /// The server ends: a running snapshot is abandoned.
    pub(crate) is_given_up: AtomicBool,
}

impl SnapshotState {
    /// Returns the server's snapshot state.
    pub(crate) fn of(server: &Server) -> &SnapshotState {
        server.services.get()
    }

    /// Returns when the file last matched the data set, Unix time in s.
    pub(crate) fn saved_s(&self, server: &Server) -> i64 {
        let saved_ms = self.saved_ms.load(Ordering::Relaxed);
        if saved_ms == 0 { server.started_ms / 1000 } else { saved_ms / 1000 }
    }

    /// Changes of keys since then.
    pub(crate) fn changes(&self, server: &Server) -> u64 {
        self.all_changes(server).saturating_sub(self.saved_changes.load(Ordering::Relaxed))
    }

    /// Changes of keys since the start of the server.
    pub(super) fn all_changes(&self, server: &Server) -> u64 {
        server.sum(|stats| &stats.changes) + self.replacements.load(Ordering::Relaxed)
    }

    /// Counts that a primary's data have replaced all keys. If there are save rules, the file is written soon: until
    /// then it contains the previous keys.
    pub(crate) fn count_replacement(&self, saves: bool) {
        self.replacements.fetch_add(1, Ordering::Relaxed);
        if saves {
            self.background.schedule();
        }
    }

    /// Whether a background save is running, for the file or, counted as in Redis, for replicas.
    pub(crate) fn is_saving(&self) -> bool {
        self.background.current_s().is_some() || self.claims.purpose() == Some(Purpose::Sync)
    }

    /// Records that the file was loaded and replaced all keys.
    pub(super) fn record_loaded(&self, server: &Server) {
        self.saved_changes.fetch_max(self.all_changes(server), Ordering::Relaxed);
    }

    /// Records that the file has been written, with the data set after `changes` changes.
    pub(super) fn record_saved(&self, changes: u64) {
        self.saved_ms.store(unix_ms(), Ordering::Relaxed);
        // Two files may be written at once, one of them with an earlier state.
        self.saved_changes.fetch_max(changes, Ordering::Relaxed);
        self.saves.fetch_add(1, Ordering::Relaxed);
    }
}
