//! What is known of the file and of what is done with it.

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use super::background::Background;
use super::loading::Loading;
use super::point_in_time::{Claims, Purpose};
use crate::server::Server;
use crate::system::clock::unix_ms;

/// What is known of the file.
#[derive(Default)]
pub(crate) struct SnapshotState {
    /// When it was last read or written, Unix time in ms; 0 is never.
    pub(super) saved_ms: AtomicI64,
    /// Changes of keys up to then.
    saved_changes: AtomicU64,
    /// How often the data of a primary have replaced all keys, which is no command.
    replacements: AtomicU64,
    /// A signal has asked for the end.
    pub(crate) is_ending: AtomicBool,
    /// Whether it is to be written at the end, if anything has changed by then.
    pub(crate) saves_at_end: AtomicBool,
    /// How often it was written.
    pub(crate) saves: AtomicU64,
    /// Keys that were read, and those left out because their time had come.
    pub(crate) loaded: AtomicU64,
    pub(crate) expired: AtomicU64,
    /// Keys that the load under way has skipped because their values have no elements.
    pub(super) empty: AtomicU64,
    pub(crate) loading: Loading,
    pub(crate) claims: Claims,
    pub(crate) background: Background,
    /// The server ends: a snapshot under way is not written to its end.
    pub(crate) is_given_up: AtomicBool,
}

impl SnapshotState {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &SnapshotState {
        server.services.get()
    }

    /// When the data set was last on disk as it was in memory, Unix time in s.
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

    /// Counts that the data of a primary have replaced all keys. Where there are save rules the file is written soon: until
    /// then it has the keys of before.
    pub(crate) fn count_replacement(&self, saves: bool) {
        self.replacements.fetch_add(1, Ordering::Relaxed);
        if saves {
            self.background.schedule();
        }
    }

    /// Whether the data set is saved in the background, for the file or, as Redis counts it, for replicas.
    pub(crate) fn is_saving(&self) -> bool {
        self.background.current_s().is_some() || self.claims.purpose() == Some(Purpose::Sync)
    }

    /// Records that all keys are those of the file, which was read in their place.
    pub(super) fn record_loaded(&self, server: &Server) {
        self.saved_changes.fetch_max(self.all_changes(server), Ordering::Relaxed);
    }

    /// Records that the file has been written, with the data set as it was after `changes` changes.
    pub(super) fn record_saved(&self, changes: u64) {
        self.saved_ms.store(unix_ms(), Ordering::Relaxed);
        // Two may be written at once, one of them of an earlier moment.
        self.saved_changes.fetch_max(changes, Ordering::Relaxed);
        self.saves.fetch_add(1, Ordering::Relaxed);
    }
}
