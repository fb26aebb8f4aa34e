//! A worker: a thread with an event loop of its own that serves its connections and runs commands.
//!
//! One turn: wait for readiness, read the clock, open the letters, then give every connection that has something to do
//! one read, its commands and one write. A connection that could go on is served again in the next turn, after the
//! others: a deep pipeline costs everybody else [`SLICE`] of time, not its whole length.
//!
//! A connection that waits (for answers of other workers, for `CLIENT PAUSE` to end, for the peer to read replies) runs
//! nothing, but what its peer sends is taken in up to a bound. At the end of a peer's requests its connection lives on
//! until all of them are answered.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use ember_protocol::{Batch, Limits, ParseStatus, Protocol, Reply};
use emberkv_core::keys::Guards;
use parking_lot::Mutex;

use crate::acl::Identity;
use crate::bystanders::{self, Bystanders};
use crate::client::{Client, ClientView, Names, ReplyMode};
use crate::connection::{self, Connection, Fill, Parked};
use crate::driver::{Driver, Readiness};
use crate::executor::{Executor, Progress};
use crate::listener::{self, Accepted, Incoming, Listener};
use crate::mailbox::{Forwarded, Letter};
use crate::memory;
use crate::pubsub::{Address, Push, Receiver};
use crate::rates::Totals;
use crate::server::Server;
use crate::transaction;
use crate::waiting::Blocked;

/// References that active expiry looks at in one turn: about 0.1 ms, so that a million keys due at once delay no
/// batch by more; what is left goes on in the next turn.
const EXPIRE_BUDGET: usize = 1000;

/// Shards between the beginnings of two rounds of active expiry: a prime, so that each is the first at some time.
const EXPIRE_STRIDE: usize = 61;

/// Connections looked at for timeouts in one tick.
const TIMEOUT_CHECKS_MAX: usize = 1000;

/// After this time a connection with more to run lets others go first. Looked at between batches.
const SLICE: Duration = Duration::from_millis(1);

/// Time that all handshakes of one turn may take, give or take one step of one: their signatures are slow, and those who
/// are connected already are not to wait for them.
const HANDSHAKE_SLICE: Duration = Duration::from_millis(2);

/// After this time a connection is closed whose handshake is not over.
const HANDSHAKE_TIMEOUT_MS: i64 = 10_000;

/// Connections accepted in one turn; a flood of them must not hold up those already served.
const ACCEPTS_MAX: usize = 256;

/// After this time a call that is being served when its time is over is looked at again.
const SERVING_MAX: Duration = Duration::from_millis(1);

/// Tokens of listeners are counted down from here, connections' up from zero.
pub(crate) const LISTENER_TOKEN: usize = usize::MAX / 2;

/// The parts of a worker that can be attended to while the connection of this token runs something.
macro_rules! bystanders {
    ($worker:expr, $token:expr) => {
        Bystanders {
            server: $worker.server,
            driver: &mut $worker.driver,
            listeners: &mut $worker.listeners,
            connections: &mut $worker.connections,
            vacant: &mut $worker.vacant,
            ready: &mut $worker.ready,
            is_accepting: &mut $worker.is_accepting,
            postponed: &mut $worker.postponed,
            limits: &$worker.limits,
            unauthenticated: &$worker.unauthenticated,
            token: $token,
            missed: Vec::new(),
        }
    };
}

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
    /// Those of the last turn; kept for its memory.
    served: Vec<usize>,
    /// Listeners may have more connections to accept.
    is_accepting: bool,
    /// Accepting failed, for lack of descriptors most likely: the next tick tries again.
    accepts_at_tick: bool,
    /// Connections that wait for `CLIENT PAUSE` to end.
    paused: Vec<usize>,
    /// When connections in blocking commands stop waiting.
    deadlines: BTreeSet<(Instant, usize)>,
    letters: Vec<Letter>,
    /// Letters that came while a script ran.
    postponed: Vec<Letter>,
    /// What any connection without leftovers reads into.
    scratch: Vec<u8>,
    /// What encrypted bytes are read into.
    wire: Vec<u8>,
    /// What any connection without leftovers answers into.
    reply: Reply,
    batch: Batch,
    limits: Limits,
    unauthenticated: Limits,
    /// Requests taken in while replies wait, in bytes.
    absorbed_max: usize,
    next_tick: Instant,
    /// Where the search for idle connections goes on.
    timeout_cursor: usize,
    /// Time that handshakes have taken in this turn.
    handshake_time: Duration,
    /// Active expiry did not finish in its budget.
    is_expiring: bool,
    /// Counts the rounds of active expiry.
    expire_turn: usize,
    stop_at: Option<Instant>,
    /// When it last began to work.
    woke_at: Instant,
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
            served: Vec::new(),
            is_accepting: false,
            accepts_at_tick: false,
            paused: Vec::new(),
            deadlines: BTreeSet::new(),
            letters: Vec::new(),
            postponed: Vec::new(),
            scratch: Vec::new(),
            wire: Vec::new(),
            reply: Reply::new(Protocol::Resp2),
            batch: Batch::new(),
            limits: Limits::default(),
            unauthenticated: Limits::unauthenticated(),
            absorbed_max: 0,
            next_tick: Instant::now(),
            timeout_cursor: 0,
            handshake_time: Duration::ZERO,
            is_expiring: false,
            expire_turn: 0,
            stop_at: None,
            woke_at: Instant::now(),
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

    /// Whether it is time to end: when all connections of all workers are drained, because commands of the others may
    /// need this worker's shards until then, or when draining took too long.
    fn is_done(&self) -> bool {
        let Some(stop_at) = self.stop_at else { return false };
        is_drained(self.server) || Instant::now() >= stop_at
    }

    fn turn(&mut self) {
        let now = Instant::now();
        let is_busy =
            !self.ready.is_empty() || !self.postponed.is_empty() || self.is_expiring || self.is_accepting;
        let wake_at = self.deadlines.first().map_or(self.next_tick, |&(at, _)| at.min(self.next_tick));
        let mut timeout = if is_busy { Duration::ZERO } else { wake_at.saturating_duration_since(now) };
        let server = self.server;
        let mailbox = &server.workers[self.executor.index].mailbox;
        // The last of the others to be drained rings; it may have rung before this worker fell asleep.
        if !timeout.is_zero() && (!mailbox.fall_asleep() || (self.stop_at.is_some() && is_drained(server))) {
            timeout = Duration::ZERO;
        }
        let Worker { driver, connections, ready, listeners, is_accepting, .. } = self;
        let waited = driver.wait(timeout, |readiness| {
            if LISTENER_TOKEN.wrapping_sub(readiness.token) < listeners.len() {
                *is_accepting = true;
            } else {
                note_readiness(connections, ready, readiness);
            }
        });
        mailbox.wake_up();
        if let Err(error) = waited {
            tracing::error!("waiting for events failed: {error}");
        }
        self.count_time(now, timeout);
        if self.executor.begin_turn() {
            self.apply_config();
        }
        self.open_letters();
        if self.is_accepting {
            self.accept();
        }
        self.handshake_time = Duration::ZERO;
        std::mem::swap(&mut self.ready, &mut self.served);
        for at in 0..self.served.len() {
            self.serve(self.served[at]);
        }
        self.served.clear();
        // Nobody's waiting ends while a script keeps everyone from the keyspace: this worker would wait with them.
        if !self.deadlines.is_empty() && !self.server.scripting.running.is_busy() {
            self.expire_waiting();
        }
        if self.is_expiring {
            self.observed("expire-cycle", Worker::expire);
        }
        if Instant::now() >= self.next_tick {
            self.tick();
        }
    }

    /// Counts the turn before, and the time waited since it ended. To look at what is there without waiting is work.
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
        stats.busy_nanoseconds.add(worked.as_nanos() as u64);
    }

    fn apply_config(&mut self) {
        let config = &self.executor.config;
        self.limits.bulk_len_max = config.proto_max_bulk_len;
        self.absorbed_max = connection::absorbed_max(config.client_query_buffer_limit);
    }

    // Letters.

    fn open_letters(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.server.workers[self.executor.index].mailbox.take(&mut letters);
        // Those that were postponed are older than those that are still in the mailbox.
        if !self.postponed.is_empty() {
            let newer = std::mem::replace(&mut letters, std::mem::take(&mut self.postponed));
            letters.extend(newer);
        }
        for letter in letters.drain(..) {
            match letter {
                Letter::Adopt(incoming) => self.adopt(incoming),
                Letter::Run(message) => self.executor.run_forwarded(message),
                Letter::Answer(message) => self.accept_answer(message),
                Letter::Push(push, receivers) => self.push(&push, &receivers),
                Letter::Look(token, client_id) => self.look(token, client_id),
                Letter::Served(token, client_id, reply) => {
                    self.end_waiting(token, client_id, Ending::Served(reply))
                }
                Letter::Unblock(token, client_id, false) => {
                    self.end_waiting(token, client_id, Ending::InVain)
                }
                Letter::Unblock(token, client_id, true) => {
                    self.end_waiting(token, client_id, Ending::WithError)
                }
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
        if !assembly.accept(message) {
            connection.awaiting = Some(assembly);
            return;
        }
        lend_buffer(&mut self.reply, connection);
        self.executor.assemble(*assembly, &mut connection.output);
        if connection.parked.is_some() {
            self.resume(token);
        } else {
            list(&mut self.ready, connection, token);
        }
    }

    /// Answers a call that has waited, and goes on with its connection.
    fn end_waiting(&mut self, token: usize, client_id: u64, ending: Ending) {
        let Some(connection) = connection_of(&mut self.connections, token, client_id) else { return };
        let Some(blocked) = connection.blocked.take() else { return };
        forget_waiting(&mut self.deadlines, self.server, connection, &blocked, token);
        lend_buffer(&mut self.reply, connection);
        let mode = connection.client.reply_mode;
        match (mode, &ending) {
            (ReplyMode::Off, _) => {}
            (ReplyMode::SkipNext, _) => connection.client.reply_mode = ReplyMode::On,
            (ReplyMode::On, Ending::Served(reply)) => connection.output.append(reply),
            (ReplyMode::On, Ending::InVain) => connection.output.null_array(),
            (ReplyMode::On, Ending::WithError) => {
                connection.output.error("UNBLOCKED client unblocked via CLIENT UNBLOCK");
            }
        }
        if !matches!(ending, Ending::Served(_)) {
            self.withdraw(&blocked);
        }
        let Some(connection) = connection_of(&mut self.connections, token, client_id) else { return };
        connection.has_unparsed |= !connection.input.is_empty();
        if connection.parked.is_some() {
            self.resume(token);
        } else {
            list(&mut self.ready, connection, token);
        }
    }

    /// Takes a waiter whose waiting was ended out of the queues of its keys.
    fn withdraw(&mut self, blocked: &Blocked) {
        let (gate, worker) = (&self.server.gate, self.executor.index);
        gate.enter(worker);
        self.executor.withdraw(blocked);
        gate.leave(worker);
        self.executor.publish();
    }

    /// Ends the waiting of connections whose time is over.
    fn expire_waiting(&mut self) {
        let now = Instant::now();
        while let Some(&(deadline, token)) = self.deadlines.first()
            && deadline <= now
        {
            self.deadlines.pop_first();
            let Some(connection) = self.connections[token].as_deref_mut() else { continue };
            let Some(blocked) = &mut connection.blocked else { continue };
            if blocked.waiter.cancel() {
                let client_id = connection.client.view.id;
                self.end_waiting(token, client_id, Ending::InVain);
            } else {
                // It is served just now: its reply is on its way, or it will wait on and be asked again.
                let again = now + SERVING_MAX;
                blocked.deadline = Some(again);
                self.deadlines.insert((again, token));
            }
        }
    }

    /// Writes a push to connections; those who do not read fast enough are closed when they are served next.
    fn push(&mut self, push: &Push, receivers: &[Receiver]) {
        for Receiver { token, client_id, pattern } in receivers {
            let Some(connection) = connection_of(&mut self.connections, *token, *client_id) else { continue };
            if !connection.closing && connection.client.reply_mode == ReplyMode::On {
                let is_subscribed = connection.client.subscriptions.is_some();
                push.write(pattern.as_deref(), is_subscribed, &mut connection.output);
                list(&mut self.ready, connection, *token);
            }
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
        self.is_accepting = false;
        self.accepts_at_tick = false;
        for token in 0..self.connections.len() {
            if let Some(connection) = self.connections[token].as_deref_mut() {
                connection.readable = true;
                // A pause may last longer than the process will: its commands are not run, which their clients see.
                connection.closing |= connection.parked.take_if(|parked| parked.is_paused).is_some();
                // Who waits for a key is not served any more, as in Redis.
                connection.closing |= connection.blocked.is_some();
                list(&mut self.ready, connection, token);
            }
        }
    }

    // Connections come and go.

    fn accept(&mut self) {
        self.is_accepting = false;
        let mut accepted = 0;
        for number in 0..self.listeners.len() {
            loop {
                if accepted == ACCEPTS_MAX {
                    self.is_accepting = true;
                    return;
                }
                match self.listeners[number].accept() {
                    Accepted::Connection(incoming) => self.place(incoming),
                    Accepted::Nothing => break,
                    Accepted::Failed => {
                        self.accepts_at_tick = true;
                        break;
                    }
                }
                accepted += 1;
            }
        }
    }

    /// Gives a new connection to the worker with the fewest.
    fn place(&mut self, incoming: Incoming) {
        let workers = &self.server.workers;
        let load = |worker: &usize| workers[*worker].connections.load(Ordering::Relaxed);
        let chosen = (0..workers.len()).min_by_key(load).expect("there is at least one worker");
        // Counted at once, so that the next connection of the same burst goes elsewhere.
        workers[chosen].connections.fetch_add(1, Ordering::Relaxed);
        if chosen == self.executor.index {
            self.adopt(incoming);
        } else {
            workers[chosen].mailbox.send(Letter::Adopt(incoming));
        }
    }

    fn adopt(&mut self, incoming: Incoming) {
        if self.stop_at.is_some() || self.try_adopt(incoming).is_none() {
            self.executor.stats.connections_rejected.add(1);
            self.discount();
        }
    }

    fn try_adopt(&mut self, incoming: Incoming) -> Option<()> {
        // A password set since the turn began is asked for: its CONFIG SET may have been answered already.
        if self.executor.refresh_config() {
            self.apply_config();
        }
        bystanders!(self, usize::MAX).try_adopt(&mut self.executor, incoming)
    }

    fn close(&mut self, token: usize) {
        if let Some(mut connection) = self.connections[token].take() {
            connection.say_goodbye();
            self.forget(&mut connection, token);
            self.server.clients.leave(connection.client.view.id);
            self.vacant.push(token);
            drop(connection);
            self.discount();
        }
    }

    /// Takes back what the keyspace knows of a connection: what it waits for and watches.
    fn forget(&mut self, connection: &mut Connection, token: usize) {
        if let Some(blocked) = connection.blocked.take() {
            forget_waiting(&mut self.deadlines, self.server, connection, &blocked, token);
            // If somebody serves it just now, he takes it out of the queues himself; the reply is for nobody.
            blocked.waiter.cancel();
            self.withdraw(&blocked);
        }
        if let Some(mut subscriptions) = connection.client.subscriptions.take() {
            self.server.pubsub.forget(Address::of(&connection.client.view), &mut subscriptions);
        }
        let view = &connection.client.view;
        self.server.trackers.end(view);
        if view.is_monitor.load(Ordering::Relaxed) {
            self.server.monitors.remove(Address::of(view));
        }
        if connection.client.watched.is_some() {
            let (gate, worker) = (&self.server.gate, self.executor.index);
            gate.enter(worker);
            transaction::unwatch(self.server, &mut self.executor.turn, &mut connection.client);
            gate.leave(worker);
        }
    }

    /// One connection less; tells the other workers when they may wait for that.
    fn discount(&self) {
        let workers = &self.server.workers;
        workers[self.executor.index].connections.fetch_sub(1, Ordering::SeqCst);
        if self.stop_at.is_some() && is_drained(self.server) {
            workers.iter().for_each(|worker| worker.mailbox.ring());
        }
    }

    // Serving.

    /// Gives one connection its part of the turn.
    fn serve(&mut self, token: usize) {
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        connection.is_listed = false;
        let goes_on = if connection.is_handshaking() {
            if self.handshake_time >= HANDSHAKE_SLICE {
                list(&mut self.ready, connection, token);
                return;
            }
            let begun = Instant::now();
            let goes_on = self.advance(token);
            self.handshake_time += begun.elapsed();
            goes_on
        } else {
            self.advance(token)
        };
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        if connection.closing && connection.unsent_bytes() == 0 {
            connection.discard_unread(&mut self.scratch);
        }
        if !goes_on || connection.is_over() || !self.is_within_limits(token) {
            self.close(token);
            return;
        }
        let Some(connection) = self.connections[token].as_deref_mut() else { return };
        let runs = connection.may_run() && !connection.is_output_high(self.absorbed_max);
        let reads = connection.readable && (runs || connection.may_absorb(self.absorbed_max));
        if reads || (runs && connection.has_unparsed) {
            list(&mut self.ready, connection, token);
        } else if self.stop_at.is_some() && connection.may_run() && connection.unsent_bytes() == 0 {
            self.close(token);
        }
    }

    /// One read, the commands it completed, one write; false when the connection is broken.
    fn advance(&mut self, token: usize) -> bool {
        if !self.flush(token) {
            return false;
        }
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        if connection.closing {
            return true;
        }
        if !connection.may_run() || connection.is_output_high(self.absorbed_max) {
            return !connection.readable || !connection.may_absorb(self.absorbed_max) || self.absorb(token);
        }
        if !connection.has_unparsed {
            match self.read(token) {
                Fill::Bytes(_) => {}
                // The next part of a handshake may have become ready.
                Fill::Nothing | Fill::End => return self.flush(token),
                Fill::Broken => return false,
            }
        }
        self.run_input(token);
        self.flush(token)
    }

    /// Takes bytes in for later; false when the connection is broken, or over although it waits.
    fn absorb(&mut self, token: usize) -> bool {
        match self.read(token) {
            Fill::Bytes(_) => {
                let Some(connection) = self.connections[token].as_deref_mut() else { return false };
                if connection.input.is_empty() {
                    connection.input.extend_from_slice(&self.scratch);
                }
                connection.has_unparsed = true;
                true
            }
            Fill::Nothing => true,
            Fill::End => {
                // A pause can be long: who has gone is not kept for its end, as in Redis.
                let connection = self.connections[token].as_deref();
                connection.is_some_and(|connection| {
                    connection.blocked.is_none()
                        && !connection.parked.as_ref().is_some_and(|parked| parked.is_paused)
                })
            }
            Fill::Broken => false,
        }
    }

    fn read(&mut self, token: usize) -> Fill {
        let Some(connection) = self.connections[token].as_deref_mut() else { return Fill::Broken };
        let fill = connection.fill(&mut self.scratch, &mut self.wire);
        if let Fill::Bytes(count) = fill {
            self.executor.stats.reads.add(1);
            self.executor.stats.input_bytes.add(count as u64);
        }
        fill
    }

    /// Parses and runs what the connection has read, until it is used up, the connection must wait, or its time is.
    fn run_input(&mut self, token: usize) {
        // It is out of its place while it runs something, so that the others can be attended to from inside a script.
        let Some(mut vacated) = self.connections[token].take() else { return };
        let connection = &mut *vacated;
        let (mut input, is_own) = connection.take_input(&mut self.scratch);
        connection.has_unparsed = false;
        lend_buffer(&mut self.reply, connection);
        let mut first_full = None;
        loop {
            let limits =
                if connection.client.is_authenticated { &self.limits } else { &self.unauthenticated };
            let status = connection.parser.parse(&input, &mut self.batch, limits);
            if let ParseStatus::NeedLarge = status {
                input.truncate(input.len() - connection.parser.release_tail());
            }
            if !self.batch.is_empty() {
                let (client, output) = (&mut connection.client, &mut connection.output);
                let mut bystanders = bystanders!(self, token);
                let progress = bystanders::beside(&mut bystanders, || {
                    self.executor.run(token, client, &self.batch, &input, 0, output)
                });
                bystanders.missed.iter().for_each(|readiness| connection.note(readiness));
                let len = self.batch.len();
                if let Some((next, is_paused)) =
                    note_progress(progress, connection, len, &mut self.deadlines, token)
                {
                    let batch = std::mem::take(&mut self.batch);
                    connection.parked = Some(Box::new(Parked { batch, next, is_paused }));
                    if is_paused {
                        self.paused.push(token);
                    }
                    break;
                }
                self.batch.clear();
            }
            if connection.closing {
                break;
            }
            match status {
                ParseStatus::NeedMore | ParseStatus::NeedLarge => break,
                // Later; the parser repeats an error.
                _ if connection.awaiting.is_some() || connection.blocked.is_some() => {
                    connection.has_unparsed = true;
                    break;
                }
                ParseStatus::Full => {
                    // The clock is not read for a pipeline of one batch.
                    let is_late = first_full.get_or_insert_with(Instant::now).elapsed() >= SLICE;
                    if is_late || connection.output.len_bytes() > connection::OUTPUT_HIGH_BYTES {
                        connection.has_unparsed = true;
                        break;
                    }
                }
                ParseStatus::Err(error) => {
                    connection.output.protocol_error(error);
                    connection.closing = true;
                    break;
                }
            }
        }
        connection.put_input_back(input, is_own, &mut self.scratch);
        self.connections[token] = Some(vacated);
    }

    /// Sends a connection's output; false when the connection is broken.
    fn flush(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections[token].as_deref_mut() else { return false };
        let Ok((bytes, calls)) = connection.flush() else { return false };
        if calls > 0 {
            self.executor.stats.writes.add(calls as u64);
            self.executor.stats.output_bytes.add(bytes as u64);
        }
        take_buffer_back(&mut self.reply, connection);
        true
    }

    /// Goes on with a connection whose waiting is over: the rest of its batch, then its input.
    fn resume(&mut self, token: usize) {
        let Some(mut vacated) = self.connections[token].take() else { return };
        let connection = &mut *vacated;
        let is_free = connection.awaiting.is_none() && connection.blocked.is_none();
        let Some(parked) = connection.parked.take_if(|_| is_free) else {
            self.connections[token] = Some(vacated);
            return;
        };
        connection.client.view.is_paused.store(false, Ordering::Relaxed);
        let Parked { batch, next, .. } = *parked;
        let (input, is_own) = connection.take_input(&mut self.scratch);
        lend_buffer(&mut self.reply, connection);
        let (client, output) = (&mut connection.client, &mut connection.output);
        let mut bystanders = bystanders!(self, token);
        let progress = bystanders::beside(&mut bystanders, || {
            self.executor.run(token, client, &batch, &input, next, output)
        });
        bystanders.missed.iter().for_each(|readiness| connection.note(readiness));
        if let Some((next, is_paused)) =
            note_progress(progress, connection, batch.len(), &mut self.deadlines, token)
        {
            connection.parked = Some(Box::new(Parked { batch, next, is_paused }));
            if is_paused {
                self.paused.push(token);
            }
        }
        connection.has_unparsed = true;
        connection.put_input_back(input, is_own, &mut self.scratch);
        list(&mut self.ready, connection, token);
        self.connections[token] = Some(vacated);
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
        let limits = &config.client_output_buffer_limit;
        let limit = if view.is_subscribed() { limits.pubsub } else { limits.normal };
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
        self.is_accepting |= std::mem::take(&mut self.accepts_at_tick);
    }

    /// Does periodic work, which is an event of the latency monitor when it takes too long.
    fn observed(&mut self, event: &'static str, work: impl FnOnce(&mut Worker)) {
        let begun = Instant::now();
        let (gate, worker) = (&self.server.gate, self.executor.index);
        if !self.executor.enter_gate() {
            return; // a script runs for long; the next tick tries again
        }
        work(self);
        self.executor.deliver(&mut Guards::None, None);
        gate.leave(worker);
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
        // Begin elsewhere each time, so that no shard waits for ever behind a busy one.
        self.expire_turn = self.expire_turn.wrapping_add(1);
        let from = shards.start + self.expire_turn * EXPIRE_STRIDE % shards.len();
        let mut left = EXPIRE_BUDGET;
        for range in [from..shards.end, shards.start..from] {
            let (expired, looked) = self.server.keyspace.expire_due(range, &mut self.executor.turn, left);
            self.executor.stats.expired.add(expired as u64);
            left -= looked;
            if left == 0 {
                self.is_expiring = true;
                return;
            }
        }
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
            let is_late = connection.is_handshaking() && idle_ms > HANDSHAKE_TIMEOUT_MS;
            let is_idle = is_late || (timeout_ms != 0 && idle_ms > timeout_ms && connection.may_run());
            if is_idle || !self.is_within_limits(token) {
                self.close(token);
            }
        }
    }
}

impl Bystanders<'_> {
    /// Makes a socket a connection; `None` if that is not possible, which the peer is told.
    pub(crate) fn try_adopt(&mut self, executor: &mut Executor, incoming: Incoming) -> Option<()> {
        let config = &executor.config;
        if let Err(error) = listener::prepare(&incoming.socket, &incoming.peer, config.tcp_keepalive) {
            tracing::warn!("cannot set up a connection: {error}");
            return None;
        }
        let identity = Identity::unknown(self.server);
        let needs_password = !identity.user().needs_no_password();
        if listener::is_protected_from(&incoming.peer, config.protected_mode, needs_password) {
            listener::turn_away(&incoming, listener::PROTECTED);
            return None;
        }
        let tls = match incoming.is_tls.then(|| self.server.tls.accept()).transpose() {
            Ok(tls) => tls.map(Box::new),
            Err(error) => {
                tracing::warn!("cannot begin a TLS connection: {error}");
                return None;
            }
        };
        let token = self.vacant.pop().unwrap_or_else(|| {
            self.connections.push(None);
            self.connections.len() - 1
        });
        let now_ms = executor.turn.now_ms;
        let worker = executor.index;
        let view = self.server.clients.enter(config.maxclients as usize, |id| ClientView {
            id,
            peer: incoming.peer.clone(),
            descriptor: incoming.socket.as_raw_fd(),
            worker,
            token,
            created_ms: now_ms,
            names: Mutex::new(Names::default()),
            user: Mutex::new(Arc::clone(identity.user())),
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
            waiter: Mutex::new(None),
            is_monitor: AtomicBool::new(false),
            tracking: Mutex::new(None),
            queued: AtomicI64::new(-1),
            channels: AtomicU64::new(0),
            patterns: AtomicU64::new(0),
            shard_channels: AtomicU64::new(0),
        });
        let Ok(view) = view else {
            listener::turn_away(&incoming, listener::TOO_MANY);
            self.vacant.push(token);
            return None;
        };
        if let Err(error) = self.driver.watch(incoming.socket.as_fd(), token) {
            tracing::warn!("cannot watch a connection: {error}");
            self.server.clients.leave(view.id);
            self.vacant.push(token);
            return None;
        }
        executor.stats.connections_received.add(1);
        let client = Client::new(view, identity);
        self.connections[token] =
            Some(Box::new(Connection::new(incoming.socket, tls, client, Reply::new(Protocol::Resp2))));
        Some(())
    }
}

pub(crate) fn connection_of(
    connections: &mut [Option<Box<Connection>>],
    token: usize,
    client_id: u64,
) -> Option<&mut Connection> {
    let connection = connections.get_mut(token)?.as_deref_mut()?;
    (connection.client.view.id == client_id).then_some(connection)
}

/// Whether no worker has a connection.
fn is_drained(server: &Server) -> bool {
    // SeqCst pairs with the subtraction in `Worker::discount`: of two workers that close their last connections at once
    // at least one sees that there are none left.
    server.workers.iter().all(|worker| worker.connections.load(Ordering::SeqCst) == 0)
}

/// Lets a connection without unsent replies answer into the worker's buffer.
fn lend_buffer(buffer: &mut Reply, connection: &mut Connection) {
    if connection.output.is_empty() && connection.output.memory_bytes() < buffer.memory_bytes() {
        buffer.set_protocol(connection.output.protocol());
        std::mem::swap(&mut connection.output, buffer);
    }
}

/// Takes the buffer of a connection whose replies are all sent; of two the worker keeps the larger.
fn take_buffer_back(buffer: &mut Reply, connection: &mut Connection) {
    if connection.output.is_empty() && connection.output.memory_bytes() > 0 {
        let empty = Reply::new(connection.output.protocol());
        let output = std::mem::replace(&mut connection.output, empty);
        if output.memory_bytes() > buffer.memory_bytes() {
            *buffer = output;
        }
    }
}

pub(crate) fn list(ready: &mut Vec<usize>, connection: &mut Connection, token: usize) {
    if !connection.is_listed {
        connection.is_listed = true;
        ready.push(token);
    }
}

pub(crate) fn note_readiness(
    connections: &mut [Option<Box<Connection>>],
    ready: &mut Vec<usize>,
    readiness: Readiness,
) {
    let Some(Some(connection)) = connections.get_mut(readiness.token) else { return };
    connection.note(&readiness);
    list(ready, connection, readiness.token);
}

/// Writes down how a batch ended; returns where it goes on, and whether after a pause, if it must wait.
fn note_progress(
    progress: Progress,
    connection: &mut Connection,
    batch_len: usize,
    deadlines: &mut BTreeSet<(Instant, usize)>,
    token: usize,
) -> Option<(usize, bool)> {
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
        Progress::Blocked(next, blocked) => {
            deadlines.extend(blocked.deadline.map(|deadline| (deadline, token)));
            connection.blocked = Some(blocked);
            (next < batch_len).then_some((next, false))
        }
    }
}

/// How the waiting of a call ends.
enum Ending {
    Served(Box<Reply>),
    InVain,
    WithError,
}

/// Notes that a connection does not wait any more.
fn forget_waiting(
    deadlines: &mut BTreeSet<(Instant, usize)>,
    server: &Server,
    connection: &Connection,
    blocked: &Blocked,
    token: usize,
) {
    if let Some(deadline) = blocked.deadline {
        deadlines.remove(&(deadline, token));
        server.waiting_in_time.fetch_sub(1, Ordering::Relaxed);
    }
    *connection.client.view.waiter.lock() = None;
    server.blocked_clients.fetch_sub(1, Ordering::Relaxed);
}
