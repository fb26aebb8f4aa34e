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

/// The parts of a worker that can be served while the connection with this token runs commands.
macro_rules! other_connections {
    ($worker:expr, $token:expr) => {
        OtherConnections {
            server: $worker.server,
            driver: &mut $worker.driver,
            listeners: &mut $worker.listeners,
            connections: &mut $worker.connections,
            vacant: &mut $worker.vacant,
            ready: &mut $worker.ready,
            unsent: &$worker.unsent,
            is_accepting: &mut $worker.is_accepting,
            postponed: &mut $worker.postponed,
            limits: &$worker.limits,
            token: $token,
            missed: Vec::new(),
        }
    };
}

pub(crate) mod other_connections;

mod accepting;
pub(crate) mod barrier;
mod closing;
mod evicting;
mod live_query_work;
mod messages;
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
use ember_protocol::{Batch, Limits, Reply};

use crate::clients::connection::{self, Connection, RequestLimits};
use crate::clients::listener::Listener;
use crate::clients::mailbox::Message;
use crate::executor::Executor;
use crate::executor::session::ServerHandler;
use crate::live_queries::LiveQueries;
use crate::observability::hot_keys::Announced;
use crate::replication::primary::good_replicas;
use crate::server::Server;
use crate::snapshot::state::SnapshotState;
use crate::system::driver::{Driver, Readiness};
use barrier::Barrier;
use closing::is_drained;
use live_query_work::QueryWork;
use other_connections::OtherConnections;

/// The token of all listeners; tokens of connections count up from zero.
const LISTENER_TOKEN: usize = usize::MAX / 2;

/// A token that no connection has.
const NO_TOKEN: usize = usize::MAX;

/// A worker thread's state.
pub(crate) struct Worker {
    server: &'static Server,
    driver: Driver,
    executor: Executor,
    barrier: Barrier,
    listeners: Vec<Arc<Listener>>,
    connections: Vec<Option<Box<Connection>>>,
    /// Unused indexes in `connections`.
    vacant: Vec<usize>,
    /// The tokens of connections with work.
    ready: Vec<usize>,
    /// The connections served in the last turn; the vector is retained for its allocation.
    served: Vec<usize>,
    /// Connections whose replies are to be sent together, and the time of the first reply.
    unsent: Vec<usize>,
    unsent_since: Instant,
    /// Whether more connections may be waiting to be accepted.
    is_accepting: bool,
    /// Whether accepting has failed, most likely for lack of descriptors, so that the next tick retries.
    accepts_at_tick: bool,
    /// Connections that wait for the end of `CLIENT PAUSE`.
    paused: Vec<usize>,
    /// The deadlines of blocked calls, with the tokens of their connections.
    deadlines: BTreeSet<(Instant, usize)>,
    messages: Vec<Message>,
    /// Messages that arrived while a script ran, to be handled after it.
    postponed: Vec<Message>,
    /// The read buffer for connections without unprocessed bytes.
    scratch: Vec<u8>,
    /// The read buffer for encrypted bytes.
    wire: Vec<u8>,
    /// The reply buffers for connections without unsent replies.
    buffers: Vec<Reply>,
    batch: Batch,
    limits: RequestLimits,
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
            driver,
            executor: Executor::new(server, index, seed, handlers),
            barrier: Barrier::default(),
            listeners,
            connections: Vec::new(),
            vacant: Vec::new(),
            ready: Vec::new(),
            served: Vec::new(),
            unsent: Vec::new(),
            unsent_since: Instant::now(),
            is_accepting: false,
            accepts_at_tick: false,
            paused: Vec::new(),
            deadlines: BTreeSet::new(),
            messages: Vec::new(),
            postponed: Vec::new(),
            scratch: Vec::new(),
            wire: Vec::new(),
            buffers: Vec::new(),
            batch: Batch::new(),
            limits: RequestLimits::new(Limits::default().bulk_len_max),
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
        self.listeners.iter().for_each(|listener| self.watch_listener(listener));
        while !self.is_done() {
            self.turn();
        }
        for token in 0..self.connections.len() {
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
        let is_busy = !self.ready.is_empty()
            || feeds_after == Some(Duration::ZERO)
            || !self.postponed.is_empty()
            || self.is_expiring
            || self.is_collecting
            || self.is_accepting
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
            self.driver.set_alarm(after);
            self.is_alarm_set = true;
        }
        other_connections!(self, NO_TOKEN).collect_events(timeout);
        mailbox.wake_up();
        self.count_time(now, timeout);
        self.executor.has_queries = self.live.queries() > 0;
        if self.executor.begin_turn() {
            self.apply_config();
        }
        self.handle_messages();
        self.feed_if_due();
        self.release_held();
        if self.is_accepting {
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
        self.limits = RequestLimits::new(config.proto_max_bulk_len);
        self.absorbed_max = connection::absorbed_max(config.client_query_buffer_limit);
        SnapshotState::of(self.server).background.refuse_writes(self.server, config);
        good_replicas::refuse_writes(self.server, config);
        self.recheck_held();
    }
}

fn connection_of(
    connections: &mut [Option<Box<Connection>>],
    token: usize,
    client_id: u64,
) -> Option<&mut Connection> {
    let connection = connections.get_mut(token)?.as_deref_mut()?;
    (connection.client.view.id == client_id).then_some(connection)
}

fn list(ready: &mut Vec<usize>, connection: &mut Connection, token: usize) {
    if !connection.is_listed {
        connection.is_listed = true;
        ready.push(token);
    }
}

fn record_readiness(
    connections: &mut [Option<Box<Connection>>],
    ready: &mut Vec<usize>,
    readiness: Readiness,
) {
    let Some(Some(connection)) = connections.get_mut(readiness.token) else { return };
    connection.record_readiness(&readiness);
    list(ready, connection, readiness.token);
}
