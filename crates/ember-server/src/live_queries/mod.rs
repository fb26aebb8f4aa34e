//! Live queries: clients watch commands that read, and are sent the new result whenever it changes.
//!
//! ```text
//! a key changes       the query is marked and goes to its home               (ember-core, executor/live_queries.rs)
//! home worker         runs it under the locks of all its keys                (evaluation.rs, worker/live_queries.rs)
//!                     or has a thread run it, if that takes long             (long.rs)
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
mod fingerprint;
pub(crate) mod json;
mod long;
pub(crate) mod opening;
pub(crate) mod version;
pub(crate) mod writing;

use std::sync::atomic::{AtomicI64, Ordering};

use crate::server::Server;

/// What there is of live queries.
#[derive(Default)]
pub(crate) struct LiveQueries {
    /// Queries, watchers, and about the bytes that they take.
    queries: AtomicI64,
    watchers: AtomicI64,
    bytes: AtomicI64,
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

    /// About the bytes that they take.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed).max(0).unsigned_abs()
    }

    fn count(&self, queries: i64, watchers: i64, bytes: i64) {
        // Plain counters, for display and for a limit.
        self.queries.fetch_add(queries, Ordering::Relaxed);
        self.watchers.fetch_add(watchers, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}
