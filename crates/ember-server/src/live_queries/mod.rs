//! Live queries: clients watch commands that read, and are sent the new result whenever it changes.
//!
//! ```text
//! a key changes       the query is marked and goes to its home               (ember-core, executor/live_queries.rs)
//! home worker         runs it under the locks of all its keys                (evaluation.rs, worker/live_queries.rs)
//!                     or has a thread run it, if that takes long             (long.rs, long_runs.rs)
//!                     queries of one user never keep those of others waiting (fair_queue.rs)
//!                     another result than before: a state, once to each worker that has watchers
//! receiving worker    writes the state to its connections that watch the query, or keeps the newest for who is slow
//! ```
//!
//! The home of a query is the worker of its first key's shard, in both modes: one place gives its states their order, and
//! merges the changes of all workers. Whoever begins to watch runs the query himself and enters it under the same locks, so
//! no change falls in between.

pub(crate) mod channel;
mod digest;
pub(crate) mod evaluation;
pub(crate) mod fair_queue;
mod fingerprint;
pub(crate) mod json;
mod long;
pub(crate) mod long_runs;
pub(crate) mod opening;
pub(crate) mod version;
pub(crate) mod writing;

use std::sync::atomic::{AtomicI64, Ordering};

use self::long_runs::LongRuns;
use crate::clients::live_queries::{State, StatesAccount};
use crate::server::Server;

/// States are kept for clients that do not read while all that live queries take is less than this share of what it may
/// be, in eighths: the rest is for those who do.
const KEPT_EIGHTHS: u64 = 6;

/// Bytes of states that may be under way whatever else live queries take: so those who read are told all the same.
const UNDER_WAY_MIN: u64 = 1 << 20;

/// What there is of live queries.
#[derive(Default)]
pub(crate) struct LiveQueries {
    /// Queries, watchers, and the bytes that they take.
    queries: AtomicI64,
    watchers: AtomicI64,
    bytes: AtomicI64,
    states: StatesAccount,
    long_runs: LongRuns,
}

impl LiveQueries {
    /// Those of a server.
    pub(crate) fn of(server: &Server) -> &LiveQueries {
        server.services.get()
    }

    /// How many queries there are.
    pub(crate) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// How many watchers there are.
    pub(crate) fn watchers(&self) -> u64 {
        self.watchers.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// The bytes that they take, with the states that are not written yet.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0).unsigned_abs() + self.states.all()
    }

    /// The account of the states.
    pub(crate) fn states(&self) -> &StatesAccount {
        &self.states
    }

    /// The queries that threads run.
    pub(crate) fn long_runs(&self) -> &LongRuns {
        &self.long_runs
    }

    /// Counts what a watcher takes more than before.
    pub(crate) fn count_growth(&self, bytes: usize) {
        if bytes > 0 {
            self.count(0, 0, bytes as i64);
        }
    }

    /// Whether a query may be run again, where all together may take so many bytes. What its state takes comes on top: one
    /// of `watch-max-reply` bytes for each worker.
    pub(crate) fn may_run(&self, bytes_max: u64) -> bool {
        self.states.under_way() < UNDER_WAY_MIN || self.memory_bytes() < bytes_max
    }

    /// Whether a state may be kept for a client that does not read.
    pub(crate) fn may_keep(&self, state: &State, bytes_max: u64) -> bool {
        state.memory.is_kept() || self.memory_bytes() < bytes_max / 8 * KEPT_EIGHTHS
    }

    fn count(&self, queries: i64, watchers: i64, bytes: i64) {
        // Plain counters, for display and for a limit.
        self.queries.fetch_add(queries, Ordering::Relaxed);
        self.watchers.fetch_add(watchers, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
