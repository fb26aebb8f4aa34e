//! The data set in an RDB file: read when the server starts, written by SAVE, BGSAVE, save rules and at the end.
//!
//! The file is [`rdb_file`](ember_persistence::rdb_file)'s: Redis 7 reads what is written here, as long as no field of a
//! hash expires, and what any Redis from 2.8 on has written is read here. It appears under its name all at once, or not at
//! all.
//!
//! * [`point_in_time`]: the keyspace at one moment, written while commands go on: for BGSAVE and the base of an AOF.
//! * [`background`]: BGSAVE and when it is due. [`saving`]: SAVE, and the file at the end. [`loading`]: the start.

mod background;
mod loading;
pub(crate) mod point_in_time;
mod saving;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

pub(crate) use background::{Background, GIVE_UP_WAIT, Unbegun, begin_bgsave};
pub(crate) use loading::{Loading, load_at_start, load_from, tell_removed};
pub(crate) use point_in_time::{Claim, Claims, PointInTime, Purpose, begin};
pub(crate) use saving::{save, save_at_end, save_before_end, write_all};

use crate::server::Server;
use crate::system::clock::unix_ms;

/// What is known of the file.
#[derive(Default)]
pub(crate) struct SnapshotState {
    /// When it was last read or written, Unix time in ms; 0 is never.
    saved_ms: AtomicI64,
    /// Changes of keys up to then.
    saved_changes: AtomicU64,
    /// A signal has asked for the end.
    pub(crate) is_ending: AtomicBool,
    /// Whether it is to be written at the end, if anything has changed by then.
    pub(crate) saves_at_end: AtomicBool,
    /// How often it was written.
    pub(crate) saves: AtomicU64,
    /// Keys that were read, and those left out because their time had come.
    pub(crate) loaded: AtomicU64,
    pub(crate) expired: AtomicU64,
    pub(crate) loading: Loading,
    pub(crate) claims: Claims,
    pub(crate) background: Background,
    /// The server ends: a snapshot under way is not written to its end.
    pub(crate) is_given_up: AtomicBool,
}

impl SnapshotState {
    /// When the data set was last on disk as it was in memory, Unix time in s.
    pub(crate) fn saved_s(&self, server: &Server) -> i64 {
        let saved_ms = self.saved_ms.load(Ordering::Relaxed);
        if saved_ms == 0 { server.started_ms / 1000 } else { saved_ms / 1000 }
    }

    /// Changes of keys since then.
    pub(crate) fn changes(&self, server: &Server) -> u64 {
        server.sum(|stats| &stats.changes).saturating_sub(self.saved_changes.load(Ordering::Relaxed))
    }

    /// Notes that the file has been written, with the data set as it was after so many changes.
    fn note_saved(&self, changes: u64) {
        self.saved_ms.store(unix_ms(), Ordering::Relaxed);
        self.saved_changes.store(changes, Ordering::Relaxed);
        self.saves.fetch_add(1, Ordering::Relaxed);
    }
}
