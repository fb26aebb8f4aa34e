//! A worker: a thread with its own event loop that serves its connections and runs commands.
//!
//! One turn: wait for readiness, read the clock, handle the messages of other threads, then serve every connection that
//! has work: one read, its commands, one write; the writes of several connections are batched. A connection with more
//! work is served again in the next turn, after the others: a deep pipeline delays other connections by
//! [`SLICE`](serving), not by its whole length.
//!
//! A connection that waits (for answers of other workers, for the end of `CLIENT PAUSE`, for the peer to read replies)
//! does not run commands, but still receives requests, up to a limit. When the peer has stopped sending, its connection
//! remains open until all requests are answered.

mod accepting;
pub(crate) mod barrier;
mod closing;
mod connections;
mod evicting;
mod live_query_work;
mod messages;
mod other_connections;
mod periodic;
mod primary;
mod serving;
mod slots;
mod tls_files;
mod waits;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_config::ShutdownOptions;
use ember_protocol::{Batch, Reply};

use crate::clients::connection::{self, RequestLimits};
use crate::clients::listener::Listener;
use crate::clients::mailbox::Message;
use crate::executor::Executor;
use crate::executor::session::ServerHandler;
use crate::live_queries::LiveQueries;
use crate::observability::hot_keys::Announced;
use crate::replication::primary::good_replicas;
use crate::server::Server;
use crate::snapshot::state::SnapshotState;
use crate::system::driver::Driver;
use barrier::Barrier;
use closing::is_drained;
use connections::Connections;
use live_query_work::QueryWork;

/// A worker thread's state.
pub(crate) struct Worker {
    server: &'static Server,
    executor: Executor,
    barrier: Barrier,
    connections: Connections,
    /// The deadlines of blocked calls, with the tokens of their connections.
    deadlines: BTreeSet<(Instant, usize)>,
    messages: Vec<Message>,
    /// The read buffer for connections without unprocessed bytes.
    scratch: Vec<u8>,
    /// The read buffer for encrypted bytes.
    wire: Vec<u8>,
    /// The reply buffers for connections without unsent replies.
    buffers: Vec<Reply>,
    batch: Batch,
    /// The maximum bytes of requests received while replies wait to be sent.
    absorbed_max: usize,
    next_tick: Instant,
    /// The time of the next search for clients to evict.
    evicts_at: Instant,
    /// The index of the connection at which the search for idle connections continues.
    timeout_cursor: usize,
    /// The time that TLS handshakes have taken in this turn.
    handshake_time: Duration,
    /// Whether active expiry has used up its budget before it was finished.
    is_expiring: bool,
    /// Whether scripts have left garbage that is still to be collected.
    is_collecting: bool,
    /// The number of rounds of active expiry so far.
    expire_turn: usize,
    /// The hot keys that worker 0 has announced, and the time at which it checks again.
    announced: Announced,
    announces_at: Instant,
    /// The number of the last defragmentation walk for which the allocator's cache was flushed.
    flushed_for: u64,
    /// The time at which worker 0 next checks the TLS files.
    checks_tls_at: Instant,
    /// The pending work for live queries.
    queries: QueryWork,
    /// The options of a shutdown that a signal has requested and that has not begun yet.
    ending: Option<ShutdownOptions>,
    stop_at: Option<Instant>,
    /// The time at which the worker last resumed work after waiting for events.
    woke_at: Instant,
    live: &'static LiveQueries,
    /// The time at which replicas are fed next; `None` if there is nothing to send.
    feeds_at: Option<Instant>,
    /// The time at which replicas were last fed.
    fed_at: Instant,
    /// Whether the timer for the next feed is set.
    is_alarm_set: bool,
}

impl Worker {
    /// Creates worker `index`; the worker with listeners accepts connections for all workers.
    pub(crate) fn new(
        server: &'static Server,
        index: usize,
        driver: Driver,
        listeners: Vec<Arc<Listener>>,
        seed: u64,
        handlers: &'static [Option<ServerHandler>],
    ) -> Worker {
        Worker {
            server,
            executor: Executor::new(server, index, seed, handlers),
            barrier: Barrier::default(),
            connections: Connections::new(driver, listeners),
            deadlines: BTreeSet::new(),
            messages: Vec::new(),
            scratch: Vec::new(),
            wire: Vec::new(),
            buffers: Vec::new(),
            batch: Batch::new(),
            absorbed_max: 0,
            next_tick: Instant::now(),
            evicts_at: Instant::now(),
            timeout_cursor: 0,
            handshake_time: Duration::ZERO,
            is_expiring: false,
            is_collecting: false,
            expire_turn: 0,
            announced: Announced::default(),
            announces_at: Instant::now(),
            flushed_for: 0,
            checks_tls_at: Instant::now(),
            queries: QueryWork::default(),
            ending: None,
            stop_at: None,
            woke_at: Instant::now(),
            live: LiveQueries::of(server),
            feeds_at: None,
            fed_at: Instant::now(),
            is_alarm_set: false,
        }
    }

    /// Serves connections until the server stops.
    pub(crate) fn run(mut self) {
        self.apply_config();
        self.connections.listeners.iter().for_each(|listener| self.watch_listener(listener));
        while !self.is_done() {
            self.turn();
        }
        for token in 0..self.connections.all.len() {
            self.close(token);
        }
        self.executor.publish();
    }

    /// Returns whether the worker must exit: either no worker has connections left, or closing them has taken too long.
    /// Until then, commands of other workers may need this worker's shards.
    fn is_done(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        is_drained(self.server) || Instant::now() >= stop_at
    }

    fn turn(&mut self) {
        self.server.journal.pass_on_own(self.executor.index);
        let now = Instant::now();
        let feeds_after = self.feeds_at.map(|at| at.saturating_duration_since(now));
        let is_busy = !self.connections.ready.is_empty()
            || feeds_after == Some(Duration::ZERO)
            || !self.connections.postponed.is_empty()
            || self.is_expiring
            || self.is_collecting
            || self.connections.is_accepting
            || !self.executor.marked.is_empty()
            || self.queries.is_due(self.server);
        let mut wake_at = self.deadlines.first().map_or(self.next_tick, |&(at, _)| at.min(self.next_tick));
        wake_at = self.queries.next_at().map_or(wake_at, |at| at.min(wake_at));
        let mut timeout = if is_busy { Duration::ZERO } else { wake_at.saturating_duration_since(now) };
        let server = self.server;
        let mailbox = &server.workers[self.executor.index].mailbox;
        // The last worker that closes its connections rings the bell, and so does a thread that waits for replicas;
        // they may have done so before this worker fell asleep.
        if !timeout.is_zero()
            && (!mailbox.fall_asleep()
                || self.can_release()
                || self.is_to_feed_at_once()
                || (self.stop_at.is_some() && is_drained(server)))
        {
            timeout = Duration::ZERO;
        }
        if let Some(after) = feeds_after.filter(|_| !timeout.is_zero() && !self.is_alarm_set) {
            self.connections.driver.set_alarm(after);
            self.is_alarm_set = true;
        }
        self.connections.collect_events(timeout);
        mailbox.wake_up();
        self.count_time(now, timeout);
        self.executor.has_queries = self.live.queries() > 0;
        if self.executor.begin_turn() {
            self.apply_config();
        }
        self.handle_messages();
        self.feed_if_due();
        self.release_held();
        if self.connections.is_accepting {
            self.accept_waiting();
        }
        self.handshake_time = Duration::ZERO;
        self.serve_all();
        self.evict_clients();
        self.is_collecting = self.server.scripting.collect_garbage();
        if !self.deadlines.is_empty() {
            self.expire_waiting();
        }
        if self.is_expiring {
            self.observed("expire-cycle", Worker::expire);
        }
        self.work_on_queries();
        if let Some(options) = self.ending {
            self.begin_shutdown(options);
        }
        if Instant::now() >= self.next_tick {
            self.tick();
        }
    }

    /// Counts the duration of the previous turn, and the time spent waiting since it ended. Checking for events without
    /// waiting counts as work.
    fn count_time(&mut self, ended: Instant, timeout: Duration) {
        let stats = &self.executor.stats;
        let mut worked = ended.saturating_duration_since(self.woke_at);
        self.woke_at = Instant::now();
        let waited = self.woke_at.saturating_duration_since(ended);
        if timeout.is_zero() {
            worked += waited;
        } else {
            stats.idle_nanoseconds.add(waited.as_nanos() as u64);
        }
        stats.turns.add(1);
        stats.busy_nanoseconds.add(worked.as_nanos() as u64);
    }

    fn apply_config(&mut self) {
        let config = &self.executor.config;
        self.connections.limits = RequestLimits::new(config.proto_max_bulk_len);
        self.absorbed_max = connection::absorbed_max(config.client_query_buffer_limit);
        SnapshotState::of(self.server).background.refuse_writes(self.server, config);
        good_replicas::refuse_writes(self.server, config);
        self.recheck_held();
    }
}
