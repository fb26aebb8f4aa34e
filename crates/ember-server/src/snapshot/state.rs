//! The state of the RDB file, of saving, and of loading.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use super::background::Background;
use super::loading::Loading;
use super::point_in_time::{Claims, Purpose};
use crate::server::Server;
use crate::system::clock::unix_ms;

/// The state of the RDB file.
#[derive(Default)]
pub(crate) struct SnapshotState {
    /// When the file was last loaded or written, Unix time in ms; 0 if never.
    pub(super) saved_ms: AtomicI64,
    /// The number of changes of keys that the file contains.
    saved_changes: AtomicU64,
    /// The number of times that a primary's data have replaced all keys; no command counts these changes.
    replacements: AtomicU64,
    /// Whether a signal has requested a shutdown.
    pub(crate) is_ending: AtomicBool,
    /// Whether the file is written when all workers have ended, if keys have changed since the last save.
    pub(crate) saves_at_end: AtomicBool,
    /// The number of times that the file was written.
    pub(crate) saves: AtomicU64,
    /// The number of keys loaded, and the number skipped because they had expired.
    pub(crate) loaded: AtomicU64,
    pub(crate) expired: AtomicU64,
    /// The number of keys that the current load has skipped because their values have no elements.
    pub(super) empty: AtomicU64,
    pub(crate) loading: Loading,
    pub(crate) claims: Claims,
    pub(crate) background: Background,
    /// Whether a running snapshot is aborted, because the server is shutting down.
    pub(crate) is_given_up: AtomicBool,
}

impl SnapshotState {
    /// Returns the server's snapshot state.
    pub(crate) fn of(server: &Server) -> &SnapshotState {
        server.services.get()
    }

    /// Returns when the file last matched the data set, Unix time in s; if never, when the server started.
    pub(crate) fn saved_s(&self, server: &Server) -> i64 {
        let saved_ms = self.saved_ms.load(Ordering::Relaxed);
        if saved_ms == 0 { server.started_ms / 1000 } else { saved_ms / 1000 }
    }

    /// Returns the number of changes of keys that the file does not contain.
    pub(crate) fn changes(&self, server: &Server) -> u64 {
        self.all_changes(server).saturating_sub(self.saved_changes.load(Ordering::Relaxed))
    }

    /// Returns the number of changes of keys since the server started.
    pub(super) fn all_changes(&self, server: &Server) -> u64 {
        server.sum(|stats| &stats.changes) + self.replacements.load(Ordering::Relaxed)
    }

    /// Counts a replacement of all keys by a primary's data. With `saves`, a save is scheduled, because the file still
    /// contains the previous keys.
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

    /// Records that the file has been written; it contains `changes` changes of keys.
    pub(super) fn record_saved(&self, changes: u64) {
        self.saved_ms.store(unix_ms(), Ordering::Relaxed);
        // Two saves may overlap; the one that ends last may have written an earlier state.
        self.saved_changes.fetch_max(changes, Ordering::Relaxed);
        self.saves.fetch_add(1, Ordering::Relaxed);
    }
}
