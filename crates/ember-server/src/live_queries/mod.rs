//! Live queries: clients watch commands that read, and are sent the new result whenever it changes.
//!
//! ```text
//! a key changes       the query is marked and goes to its home               (ember-core, executor/live_queries.rs)
//! home worker         runs it under the locks of all its keys                (evaluation.rs, worker/live_queries.rs)
//!                     another result than before: a state, once to each worker that has watchers
//! receiving worker    its table: query → connections; writes the state, or keeps the newest for who is slow
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
pub(crate) mod opening;
pub(crate) mod version;
pub(crate) mod writing;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use emberkv_core::live_query::LiveQuery;
use parking_lot::Mutex;

use crate::server::Server;

/// A connection that watches a query, and the number that it knows it by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Receiver {
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    pub(crate) number: u32,
}

/// The connections of one worker that watch queries, by the queries' addresses.
#[derive(Default)]
pub(crate) struct Table(HashMap<usize, Vec<Receiver>>);

impl Table {
    fn name(query: &Arc<LiveQuery>) -> usize {
        Arc::as_ptr(query).addr()
    }

    /// Who watches a query.
    pub(crate) fn receivers(&self, query: &Arc<LiveQuery>) -> &[Receiver] {
        self.0.get(&Table::name(query)).map_or(&[], Vec::as_slice)
    }

    fn enter(&mut self, query: &Arc<LiveQuery>, receiver: Receiver) {
        self.0.entry(Table::name(query)).or_insert_with(|| Vec::with_capacity(1)).push(receiver);
    }

    /// Takes a receiver out; whether it was the last one. O(receivers of the query).
    fn leave(&mut self, query: &Arc<LiveQuery>, receiver: Receiver) -> bool {
        let Some(receivers) = self.0.get_mut(&Table::name(query)) else { return true };
        if let Some(at) = receivers.iter().position(|other| *other == receiver) {
            receivers.swap_remove(at);
        }
        if receivers.is_empty() {
            self.0.remove(&Table::name(query));
            return true;
        }
        false
    }
}

/// What there is of live queries.
pub(crate) struct LiveQueries {
    /// By worker. Nobody but the worker takes its lock.
    tables: Box<[Mutex<Table>]>,
    /// Queries, watchers, and about the bytes that they take.
    queries: AtomicI64,
    watchers: AtomicI64,
    bytes: AtomicI64,
}

impl LiveQueries {
    /// None yet, for this number of workers.
    pub(crate) fn new(workers: usize) -> LiveQueries {
        LiveQueries {
            tables: (0..workers).map(|_| Mutex::default()).collect(),
            queries: AtomicI64::new(0),
            watchers: AtomicI64::new(0),
            bytes: AtomicI64::new(0),
        }
    }

    /// Those of a server.
    pub(crate) fn of(server: &Server) -> &LiveQueries {
        server.services.get()
    }

    /// Who of a worker's connections watches what.
    pub(crate) fn table(&self, worker: usize) -> &Mutex<Table> {
        &self.tables[worker]
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
