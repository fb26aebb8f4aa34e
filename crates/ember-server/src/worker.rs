//! A worker: a thread with an event loop of its own that serves its connections and runs commands.
//!
//! One turn: wait for readiness, read the clock, open the letters, then give every connection that has something to do
//! one read, its commands and one write. A connection that could go on is served again in the next turn, after the
//! others: a deep pipeline costs everybody else one buffer's worth of time, not its whole length.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ember_protocol::{Batch, Limits, ParseStatus, Protocol, Reply};
use parking_lot::Mutex;

use crate::client::{Client, ClientView, Names, Peer};
use crate::connection::{Connection, Fill, Parked};
use crate::driver::{Driver, Readiness};
use crate::executor::{Executor, Progress};
use crate::listener::{self, Listener};
use crate::mailbox::{Forwarded, Letter};
use crate::memory;
use crate::rates::Totals;
use crate::server::Server;

/// References that active expiry looks at in one turn: about 0.1 ms, so that a million keys due at once delay no
/// batch by more; what is left goes on in the next turn.
const EXPIRE_BUDGET: usize = 1000;

/// Connections looked at for timeouts in one tick.
const TIMEOUT_CHECKS_MAX: usize = 1000;

/// Tokens of listeners are counted down from here, connections' up from zero.
const LISTENER_TOKEN: usize = usize::MAX / 2;

/// The thread's state.
pub(crate) struct Worker {
    server: &'static Server,
    driver: Driver,
    executor: Executor,
    listeners: Vec<Listener>,
    connections: Vec<Option<Box<Connection>>>,
    /// Numbers in `connections` that are free.
    vacant: Vec<usize>,
    /// Connections with something to do.
    ready: Vec<usize>,
    /// Connections that wait for `CLIENT PAUSE` to end.
    paused: Vec<usize>,
    letters: Vec<Letter>,
    /// What any connection without leftovers reads into.
    scratch: Vec<u8>,
    /// What any connection without leftovers answers into.
    reply: Reply,
    batch: Batch,
    limits: Limits,
    unauthenticated: Limits,
    next_tick: Instant,
    /// Where the search for idle connections goes on.
    timeout_cursor: usize,
    /// Active expiry did not finish in its budget.
    is_expiring: bool,
    expire_cursor: usize,
    stop_at: Option<Instant>,
}

impl Worker {
    /// Worker `index`; the one that gets listeners accepts connections for all.
    pub(crate) fn new(
        server: &'static Server,
        index: usize,
        driver: Driver,
        listeners: Vec<Listener>,
        seed: u64,
    ) -> Worker {
        Worker {
            server,
            driver,
            executor: Executor::new(server, index, seed),
            listeners,
            connections: Vec::new(),
            vacant: Vec::new(),
            ready: Vec::new(),
            paused: Vec::new(),
            letters: Vec::new(),
            scratch: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
            batch: Batch::new(),
            limits: Limits::default(),
            unauthenticated: Limits::unauthenticated(),
            next_tick: Instant::now(),
            timeout_cursor: 0,
            is_expiring: false,
            expire_cursor: 0,
            stop_at: None,
        }
    }

    /// Serves until the server stops.
    pub(crate) fn run(mut self) {
        self.apply_config();
        for (number, listener) in self.listeners.iter().enumerate() {
            if let Err(error) = self.driver.watch(listener.as_fd(), LISTENER_TOKEN - number) {
                tracing::error!("cannot watch a listening socket: {error}");
                self.server.request_stop();
            }
        }
        while !self.is_done() {
            self.turn();
        }
        for token in 0..self.connections.len() {
            self.close(token);
        }
        self.executor.publish();
    }

    fn is_done(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        self.connections.iter().all(Option::is_none) || Instant::now() >= stop_at
    }

    fn turn(&mut self) {
        let now = Instant::now();
        let timeout = if self.ready.is_empty() && !self.is_expiring {
            self.next_tick.saturating_duration_since(now)
        } else {
            Duration::ZERO
        };
        let mailbox = &self.server.workers[self.executor.index].mailbox;
        let Worker { driver, connections, ready, listeners, .. } = self;
        let mut accepts = false;
        let waited = driver.wait(
            timeout,
            || mailbox.has_letters(),
            |readiness| {
                if LISTENER_TOKEN.wrapping_sub(readiness.token) < listeners.len() {
                    accepts = true;
                } else {
                    note_readiness(connections, ready, readiness);
                }
            },
        );
        if let Err(error) = waited {
            tracing::error!("waiting for events failed: {error}");
        }
        if self.executor.begin_turn() {
            self.apply_config();
        }
        self.open_letters();
        if accepts {
            self.accept();
        }
        for token in std::mem::take(&mut self.ready) {
            self.serve(token);
        }
        if self.is_expiring {
            self.expire();
        }
        if Instant::now() >= self.next_tick {
            self.tick();
        }
    }

    fn apply_config(&mut self) {
        let config = &self.executor.config;
        self.limits.bulk_len_max = config.proto_max_bulk_len;
    }

    // Letters.

    fn open_letters(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.server.workers[self.executor.index].mailbox.take(&mut letters);
        for letter in letters.drain(..) {
            match letter {
                Letter::Adopt(socket, peer) => self.adopt(socket, peer),
                Letter::Run(message) => self.executor.run_forwarded(message),
                Letter::Answer(message) => self.accept_answer(message),
                Letter::Look(token, client_id) => self.look(token, client_id),
                Letter::Stop => self.stop(),
            }
        }
        self.letters = letters;
    }

    fn accept_answer(&mut self, message: Box<Forwarded>) {
        let Some(connection) = connection_of(&mut self.connections, message.token, message.client_id) else {
            return; // closed in the meantime
        };
        let token = message.token;
        let Some(mut assembly) = connection.awaiting.take() else { return };
        if assembly.accept(message) {
            self.executor.assemble(*assembly, &mut connection.output);
            list(&mut self.ready, connection, token);
        } else {
            connection.awaiting = Some(assembly);
        }
    }

    fn look(&mut self, token: usize, client_id: u64) {
        let Some(connection) = connection_of(&mut self.connections, token, client_id) else { return };
        if connection.client.view.is_killed.load(Ordering::Relaxed) {
            self.close(token);
        } else if connection.client.view.is_paused.load(Ordering::Relaxed)
            && !self.server.pause.holds(self.executor.turn.now_ms, true)
        {
            self.paused.retain(|&other| other != token);
            self.resume(token);
        }
    }

    fn stop(&mut self) {
        let seconds = u64::from(self.executor.config.shutdown_timeout);
        self.stop_at = Some(Instant::now() + Duration::from_secs(seconds));
        self.listeners.clear();
        for token in 0..self.connections.len() {
            if let Some(connection) = self.connections[token].as_deref_mut() {
                connection.readable = true;
                list(&mut self.ready, connection, token);
            }
        }
    }

    // Connections come and go.

    fn accept(&mut self) {
        for number in 0..self.listeners.len() {
            while let Some((socket, peer)) = self.listeners[number].accept() {
                let workers = &self.server.workers;
                let load = |worker: &usize| workers[*worker].connections.load(Ordering::Relaxed);
                let chosen = (0..workers.len()).min_by_key(load).expect("there is at least one worker");
                // Counted at once, so that the next connection of the same burst goes elsewhere.
                workers[chosen].connections.fetch_add(1, Ordering::Relaxed);
                if chosen == self.executor.index {
                    self.adopt(socket, peer);
                } else {
                    workers[chosen].mailbox.send(Letter::Adopt(socket, peer));
                }
            }
        }
    }

    fn adopt(&mut self, socket: OwnedFd, peer: Peer) {
        if self.try_adopt(socket, peer).is_none() {
            self.server.workers[self.executor.index].connections.fetch_sub(1, Ordering::Relaxed);
            self.executor.stats.connections_rejected.add(1);
        }
    }

    fn try_adopt(&mut self, socket: OwnedFd, peer: Peer) -> Option<()> {
        let config = &self.executor.config;
        if let Err(error) = listener::prepare(&socket, &peer, config.tcp_keepalive) {
            tracing::warn!("cannot set up a connection: {error}");
            return None;
        }
        let has_password = !config.requirepass.reveal().is_empty();
        if config.protected_mode && !has_password && !peer.is_loopback() {
            listener::turn_away(&socket, listener::PROTECTED);
            return None;
        }
        let token = self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let now_ms = self.executor.turn.now_ms;
        let worker = self.executor.index;
        let view = self.server.clients.enter(config.maxclients as usize, |id| ClientView {
            id,
            peer,
            descriptor: socket.as_raw_fd(),
            worker,
            token,
            created_ms: now_ms,
            names: Mutex::new(Names::default()),
            active_ms: AtomicI64::new(now_ms),
            database: AtomicU32::new(0),
            command: AtomicU32::new(0),
            is_resp3: AtomicBool::new(false),
            no_evict: AtomicBool::new(false),
            no_touch: AtomicBool::new(false),
            query_bytes: AtomicU64::new(0),
            output_bytes: AtomicU64::new(0),
            is_killed: AtomicBool::new(false),
            is_paused: AtomicBool::new(false),
        });
        let Ok(view) = view else {
            listener::turn_away(&socket, listener::TOO_MANY);
            self.vacant.push(token);
            return None;
        };
        if let Err(error) = self.driver.watch(socket.as_fd(), token) {
            tracing::warn!("cannot watch a connection: {error}");
            self.server.clients.leave(view.id);
            self.vacant.push(token);
            return None;
        }
        self.executor.stats.connections_received.add(1);
        let client = Client::new(view, !has_password);
        self.connections[token] =
            Some(Box::new(Connection::new(socket, client, Reply::new(Protocol::Resp2))));
        Some(())
    }

    fn close(&mut self, token: usize) {
        if let Some(connection) = self.connections[token].take() {
            self.server.clients.leave(connection.client.view.id);
            self.server.workers[self.executor.index].connections.fetch_sub(1, Ordering::Relaxed);
            self.vacant.push(token);
        }
    }

    // Serving.

    /// Gives one connection its part of the turn.
    fn serve(&mut self, token: usize) {
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        connection.is_listed = false;
        let goes_on = self.advance(token);
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        let is_over = connection.closing && connection.unsent_bytes() == 0;
        if !goes_on || is_over || !self.is_within_limits(token) {
            self.close(token);
            return;
        }
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        let may_go_on = connection.may_run() && !connection.is_output_high();
        let could_absorb = !connection.may_run() && connection.may_absorb();
        if (connection.has_unparsed && may_go_on) || (connection.readable && (may_go_on || could_absorb)) {
            list(&mut self.ready, connection, token);
        } else if self.stop_at.is_some() && connection.may_run() && connection.unsent_bytes() == 0 {
            self.close(token);
        }
    }

    /// One read, the commands it completed, one write; false when the connection is broken or ended.
    fn advance(&mut self, token: usize) -> bool {
        if !self.flush(token) {
            return false;
        }
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        if connection.closing {
            return true;
        }
        if !connection.may_run() || connection.is_output_high() {
            return !connection.readable || !connection.may_absorb() || self.absorb(token);
        }
        if !connection.has_unparsed {
            match connection.fill(&mut self.scratch) {
                Fill::End => return false,
                Fill::Nothing => return true,
                Fill::Bytes(count) => {
                    self.executor.stats.reads.add(1);
                    self.executor.stats.input_bytes.add(count as u64);
                }
            }
        }
        self.run_input(token);
        self.flush(token)
    }

    /// Takes bytes in for later; false when the connection is broken or ended.
    fn absorb(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        let had_input = !connection.input.is_empty();
        match connection.fill(&mut self.scratch) {
            Fill::End => false,
            Fill::Nothing => true,
            Fill::Bytes(count) => {
                self.executor.stats.reads.add(1);
                self.executor.stats.input_bytes.add(count as u64);
                if !had_input {
                    connection.input.extend_from_slice(&self.scratch);
                }
                connection.has_unparsed = true;
                true
            }
        }
    }

    /// Parses and runs what the connection has read, until it is used up or the connection must wait.
    fn run_input(&mut self, token: usize) {
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        // Either the connection's own leftovers or, nearly always, the bytes just read into scratch.
        let owns_input = !connection.input.is_empty();
        let mut input = std::mem::take(if owns_input { &mut connection.input } else { &mut self.scratch });
        if !owns_input && connection.parser.retained_bytes() > 0 && connection.has_unparsed {
            input.clear();
        }
        connection.has_unparsed = false;
        if connection.output.is_empty() {
            self.reply.set_protocol(connection.output.protocol());
            std::mem::swap(&mut connection.output, &mut self.reply);
        }
        let is_parked = loop {
            let limits =
                if connection.client.is_authenticated { &self.limits } else { &self.unauthenticated };
            let status = connection.parser.parse(&input, &mut self.batch, limits);
            if !self.batch.is_empty() {
                let progress = self.executor.run(
                    token,
                    &mut connection.client,
                    &self.batch,
                    &input,
                    0,
                    &mut connection.output,
                );
                let batch_len = self.batch.len();
                let parked_at = note_progress(progress, connection, batch_len);
                if let Some((next, is_paused)) = parked_at {
                    let batch = std::mem::take(&mut self.batch);
                    connection.parked = Some(Box::new(Parked { batch, next, is_paused }));
                    if is_paused {
                        self.paused.push(token);
                    }
                    break true;
                }
                self.batch.clear();
            }
            if connection.closing {
                break false;
            }
            match status {
                ParseStatus::Full if connection.awaiting.is_some() || connection.is_output_high() => {
                    connection.has_unparsed = true;
                    break false;
                }
                ParseStatus::Full => {}
                ParseStatus::NeedMore => break false,
                ParseStatus::NeedLarge => {
                    let moved = connection.parser.release_tail();
                    input.truncate(input.len() - moved);
                    break false;
                }
                ParseStatus::Err(error) if connection.awaiting.is_some() => {
                    // The parser repeats the error once the answers are there.
                    let _ = error;
                    connection.has_unparsed = true;
                    break false;
                }
                ParseStatus::Err(error) => {
                    connection.output.protocol_error(error);
                    connection.closing = true;
                    break false;
                }
            }
        };
        self.keep_rest(token, input, owns_input, is_parked);
    }

    /// Puts back the buffers that [`Worker::run_input`] took, and keeps what of the input is still needed.
    fn keep_rest(&mut self, token: usize, mut input: Vec<u8>, owns_input: bool, is_parked: bool) {
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        if !is_parked {
            let consumed = connection.parser.consumed();
            connection.parser.discard(consumed);
            if owns_input {
                input.drain(..consumed);
            } else if consumed < input.len() {
                connection.input = input[consumed..].to_vec();
            }
        } else if !owns_input {
            connection.input = input.clone();
        }
        if !owns_input {
            self.scratch = input;
        } else if !input.is_empty() {
            connection.input = input;
        }
    }

    /// Sends a connection's output; false when the connection is broken.
    fn flush(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        let Ok((bytes, calls)) = connection.flush() else { return false };
        if calls > 0 {
            self.executor.stats.writes.add(calls as u64);
            self.executor.stats.output_bytes.add(bytes as u64);
        }
        if connection.output.is_empty() && connection.output.memory_bytes() > 0 {
            // Give the buffer back: the next connection answers into it.
            let protocol = connection.output.protocol();
            std::mem::swap(&mut connection.output, &mut self.reply);
            connection.output.set_protocol(protocol);
        }
        true
    }

    /// Goes on with a connection whose waiting is over: the rest of its batch, then its input.
    fn resume(&mut self, token: usize) {
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        let Some(parked) = connection.parked.take() else { return };
        connection.client.view.is_paused.store(false, Ordering::Relaxed);
        let Parked { batch, next, .. } = *parked;
        let input = std::mem::take(&mut connection.input);
        let progress =
            self.executor.run(token, &mut connection.client, &batch, &input, next, &mut connection.output);
        connection.input = input;
        if let Some((next, is_paused)) = note_progress(progress, connection, batch.len()) {
            connection.parked = Some(Box::new(Parked { batch, next, is_paused }));
            if is_paused {
                self.paused.push(token);
            }
        } else {
            let consumed = connection.parser.consumed();
            connection.parser.discard(consumed);
            connection.input.drain(..consumed);
            connection.has_unparsed = !connection.input.is_empty();
        }
        list(&mut self.ready, connection, token);
    }

    /// Whether a connection keeps its limits; says why not.
    fn is_within_limits(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        let config = &self.executor.config;
        let view = &connection.client.view;
        let (query, output) = (connection.query_bytes() as u64, connection.unsent_bytes() as u64);
        view.query_bytes.store(query, Ordering::Relaxed);
        view.output_bytes.store(output, Ordering::Relaxed);
        if query > config.client_query_buffer_limit {
            tracing::warn!("closing client {}: its query buffer has {query} bytes", view.id);
            self.executor.stats.query_limit_closed.add(1);
            return false;
        }
        let limit = config.client_output_buffer_limit.normal;
        let now_ms = self.executor.turn.now_ms;
        let is_above_soft = limit.soft_bytes != 0 && output > limit.soft_bytes;
        if !is_above_soft {
            connection.soft_since_ms = 0;
        } else if connection.soft_since_ms == 0 {
            connection.soft_since_ms = now_ms;
        }
        let soft_ms = i64::try_from(limit.soft_seconds.saturating_mul(1000)).unwrap_or(i64::MAX);
        let is_above_hard = limit.hard_bytes != 0 && output > limit.hard_bytes;
        if is_above_hard || (is_above_soft && now_ms - connection.soft_since_ms >= soft_ms) {
            tracing::warn!("closing client {}: {output} bytes of replies wait for it", view.id);
            self.executor.stats.output_limit_closed.add(1);
            return false;
        }
        true
    }

    // Periodic work.

    fn tick(&mut self) {
        self.next_tick = Instant::now() + Duration::from_secs(1) / self.executor.config.hz;
        self.observed("expire-cycle", Worker::expire);
        self.observed("eviction-cycle", |worker| worker.executor.make_room_idly());
        self.check_timeouts();
        if self.executor.index == 0 {
            self.sample();
        }
        let now_ms = self.executor.turn.now_ms;
        if !self.paused.is_empty() && !self.server.pause.holds(now_ms, true) {
            for token in std::mem::take(&mut self.paused) {
                self.resume(token);
            }
        }
    }

    /// Does periodic work, which is an event of the latency monitor when it takes too long.
    fn observed(&mut self, event: &'static str, work: impl FnOnce(&mut Worker)) {
        let begun = Instant::now();
        work(self);
        let milliseconds = begun.elapsed().as_millis() as u64;
        let threshold = self.executor.config.latency_monitor_threshold;
        if threshold != 0 && milliseconds >= threshold {
            self.server.latency.enter(event, self.executor.turn.now_ms / 1000, milliseconds);
        }
    }

    /// Looks at what INFO tells the course of: counters for rates, memory for its peak.
    fn sample(&self) {
        let server = self.server;
        server.peak_memory_bytes.fetch_max(memory::allocator().allocated, Ordering::Relaxed);
        server.rates.sample(Instant::now(), || Totals {
            commands: server.sum(|stats| &stats.commands),
            input_bytes: server.sum(|stats| &stats.input_bytes),
            output_bytes: server.sum(|stats| &stats.output_bytes),
        });
    }

    fn expire(&mut self) {
        self.is_expiring = false;
        if !self.server.expires_actively.load(Ordering::Relaxed) {
            return;
        }
        let shards = self.server.shards_of(self.executor.index);
        let now_ms = self.executor.turn.now_ms;
        let (expired, looked) = self.server.keyspace.expire_due(shards, now_ms, EXPIRE_BUDGET);
        self.executor.stats.expired.add(expired as u64);
        self.is_expiring = looked >= EXPIRE_BUDGET;
    }

    /// Closes connections that were idle for `timeout` seconds, and those whose replies wait too long.
    fn check_timeouts(&mut self) {
        let count = self.connections.len();
        for _ in 0..count.min(TIMEOUT_CHECKS_MAX) {
            self.timeout_cursor = (self.timeout_cursor + 1) % count;
            let token = self.timeout_cursor;
            let Some(connection) = self.connections[token].as_deref() else { continue };
            let idle_ms =
                self.executor.turn.now_ms - connection.client.view.active_ms.load(Ordering::Relaxed);
            let timeout_ms = i64::from(self.executor.config.timeout) * 1000;
            let is_idle = timeout_ms != 0 && idle_ms > timeout_ms && connection.may_run();
            if is_idle || !self.is_within_limits(token) {
                self.close(token);
            }
        }
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

fn note_readiness(connections: &mut [Option<Box<Connection>>], ready: &mut Vec<usize>, readiness: Readiness) {
    let Some(Some(connection)) = connections.get_mut(readiness.token) else { return };
    connection.readable |= readiness.readable;
    connection.read_closed |= readiness.read_closed;
    if readiness.writable {
        connection.set_writable();
    }
    list(ready, connection, readiness.token);
}

/// Writes down how a batch ended; returns where it goes on, and whether after a pause, if it must wait.
fn note_progress(progress: Progress, connection: &mut Connection, batch_len: usize) -> Option<(usize, bool)> {
    match progress {
        Progress::Done => None,
        Progress::Close => {
            connection.closing = true;
            None
        }
        Progress::Paused(next) => {
            connection.client.view.is_paused.store(true, Ordering::Relaxed);
            Some((next, true))
        }
        Progress::Awaiting(next, assembly) => {
            connection.awaiting = Some(Box::new(assembly));
            (next < batch_len).then_some((next, false))
        }
    }
}
