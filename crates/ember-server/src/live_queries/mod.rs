//! Live queries: clients watch commands that read, and receive the new result whenever it changes.
//!
//! ```text
//! a key changes       the query is marked and sent to its owner             (ember-core, executor/marked_queries.rs)
//! owner               evaluates it under the locks of all its keys          (evaluation.rs, worker/live_query_work.rs)
//!                     or offloads it to a job thread, if it is long-running (long.rs, long_runs.rs)
//!                     queries of one user never delay those of others       (fair_queue.rs)
//!                     if the result differs: a state, once to each worker with watchers
//! receiving worker    writes the state to its connections that watch the query; stores the newest for slow readers
//! ```
//!
//! The owner of a query is the worker of its first key's shard, in both modes: one worker orders its states and merges
//! the changes of all workers. A client that begins to watch runs the query on its own worker and registers it under
//! the same locks, so no change is missed between the two steps.

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
use crate::clients::watchers::{State, StatesAccount};
use crate::server::Server;

/// States are stored for slow readers while live queries take less than this many eighths of `watch-max-memory`; the
/// rest is reserved for clients that read.
const KEPT_EIGHTHS: u64 = 6;

/// The bytes of states in delivery that are always permitted, so that clients that read receive states whatever memory
/// live queries take otherwise.
const UNDER_WAY_MIN: u64 = 1 << 20;

/// The live queries of a server.
#[derive(Default)]
pub(crate) struct LiveQueries {
    /// The number of queries, the number of watchers, and the bytes of both.
    queries: AtomicI64,
    watchers: AtomicI64,
    bytes: AtomicI64,
    states: StatesAccount,
    long_runs: LongRuns,
}

impl LiveQueries {
    /// Returns the live queries of a server.
    pub(crate) fn of(server: &Server) -> &LiveQueries {
        server.services.get()
    }

    /// Returns the number of queries.
    pub(crate) fn queries(&self) -> u64 {
        self.queries.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Returns the number of watchers.
    pub(crate) fn watchers(&self) -> u64 {
        self.watchers.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    /// Returns the bytes of queries and watchers, including states that are not sent yet.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0).unsigned_abs() + self.states.all()
    }

    /// Returns the account of the states.
    pub(crate) fn states(&self) -> &StatesAccount {
        &self.states
    }

    /// Returns the evaluations on job threads.
    pub(crate) fn long_runs(&self) -> &LongRuns {
        &self.long_runs
    }

    /// Adds the growth of a watcher's memory to the bytes of live queries.
    pub(crate) fn count_growth(&self, bytes: usize) {
        if bytes > 0 {
            self.count(0, 0, bytes as i64);
        }
    }

    /// Returns whether a query may be evaluated again, given the limit `bytes_max` for all live queries. The bytes of
    /// the new state may exceed the limit: by at most `watch-max-reply` bytes per worker.
    pub(crate) fn may_run(&self, bytes_max: u64) -> bool {
        self.states.under_way() < UNDER_WAY_MIN || self.memory_bytes() < bytes_max
    }

    /// Returns whether a state may be stored for a client that does not read.
    pub(crate) fn may_keep(&self, state: &State, bytes_max: u64) -> bool {
        state.memory.is_kept() || self.memory_bytes() < bytes_max / 8 * KEPT_EIGHTHS
    }

    fn count(&self, queries: i64, watchers: i64, bytes: i64) {
        // Relaxed: these counters are used only for display and for a limit.
        self.queries.fetch_add(queries, Ordering::Relaxed);
        self.watchers.fetch_add(watchers, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
