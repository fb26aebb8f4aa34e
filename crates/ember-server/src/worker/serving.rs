//! Serves connections: a connection's part of a turn, from reading its socket to writing to it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use ember_protocol::{Batch, Reply};

use super::Worker;
use super::barrier::Barrier;
use super::connections::{NO_TOKEN, connection_of, list};
use crate::clients::client::ClientView;
use crate::clients::connection::{self, Connection, Fill, Parked};
use crate::clients::ending::EndReason;
use crate::clients::replica::Over;
use crate::executor::attendance;
use crate::executor::{Executor, Progress};
use crate::replication::primary::Primary;
use crate::server::Server;

/// The time after which a connection with more commands to run yields to others; checked between batches.
const SLICE: Duration = Duration::from_millis(1);

/// The maximum number of connections whose replies are sent together.
const UNSENT_MAX: usize = 16;

/// The maximum time for which replies wait for those of other connections; the commands of one connection may exceed
/// it.
const UNSENT_TIME_MAX: Duration = Duration::from_micros(200);

/// The size, in bytes, from which on one connection's replies are sent without waiting for others.
const UNSENT_BYTES_MAX: usize = 16 * 1024;

/// The interval at which a worker sends its replicas the replication stream. Sending takes as long as a whole command,
/// from reading the request to writing the reply. After a longer gap, records are sent at once, and later records are
/// collected.
pub(super) const FEED_INTERVAL: Duration = Duration::from_millis(1);

/// The maximum bytes sent to one replica in a turn; the last part may exceed it.
const FED_MAX: usize = 1024 * 1024;

/// The time limit for all TLS handshakes of one turn; the last step of a handshake may exceed it. Signatures are slow,
/// and existing connections must not wait for them.
const HANDSHAKE_SLICE: Duration = Duration::from_millis(2);

impl Worker {
    /// Serves the connections with work.
    ///
    /// The replies of several connections are sent together. So a client process with many connections is woken once,
    /// not once per connection; on the same machine, each wake-up costs more than sending.
    pub(super) fn serve_all(&mut self) {
        std::mem::swap(&mut self.connections.ready, &mut self.connections.served);
        for at in 0..self.connections.served.len() {
            let is_last = at + 1 == self.connections.served.len();
            self.serve(self.connections.served[at], is_last);
            let is_due = || {
                self.connections.unsent.len() == UNSENT_MAX
                    || self.connections.unsent_since.elapsed() >= UNSENT_TIME_MAX
            };
            if !self.connections.unsent.is_empty() && (is_last || is_due()) {
                let mut unsent = std::mem::take(&mut self.connections.unsent);
                unsent.drain(..).for_each(|token| self.settle(token, true));
                self.connections.unsent = unsent;
            }
        }
        self.connections.served.clear();
    }

    /// Serves one connection, except for sending replies that may wait for those of others.
    fn serve(&mut self, token: usize, is_last: bool) {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        connection.is_listed = false;
        let continues = if connection.is_handshaking() {
            if self.handshake_time >= HANDSHAKE_SLICE {
                list(&mut self.connections.ready, connection, token);
                return;
            }
            let begun = Instant::now();
            let continues = self.advance(token);
            self.handshake_time += begun.elapsed();
            continues
        } else {
            self.advance(token)
        };
        if continues && !is_last && self.may_send_later(token) {
            if self.connections.unsent.is_empty() {
                self.connections.unsent_since = Instant::now();
            }
            self.connections.unsent.push(token);
        } else {
            self.settle(token, continues);
        }
    }

    fn may_send_later(&self, token: usize) -> bool {
        let connection = self.connections.all[token].as_deref();
        connection.is_some_and(|connection| (1..UNSENT_BYTES_MAX).contains(&connection.unsent_bytes()))
    }

    /// Returns whether states of live queries wait for this connection's socket.
    fn has_waiting_states(&self, token: usize) -> bool {
        let subscriptions =
            self.connections.all[token].as_deref().and_then(|it| it.client.subscriptions.as_ref());
        subscriptions.is_some_and(|subscriptions| subscriptions.queries.has_waiting())
    }

    /// Ends a connection's part of the turn: sends its replies, and decides how it continues. `continues` is false if
    /// the connection is broken.
    fn settle(&mut self, token: usize, continues: bool) {
        let mut continues = continues && self.flush(token) && self.feed(token);
        while continues && self.has_waiting_states(token) && self.write_waiting(token) {
            continues = self.flush(token);
        }
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        if connection.is_closing() && connection.unsent_bytes() == 0 {
            connection.discard_unread(&mut self.scratch);
        }
        if !continues || connection.is_over() {
            self.close(token);
            return;
        }
        if connection.is_closing() && connection.client.view.is_cut() {
            self.finish_ending(token);
            return;
        }
        if !self.is_within_limits(token) {
            self.end(token, EndReason::Over);
            return;
        }
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return };
        let runs = connection.may_run() && !connection.is_output_high(self.absorbed_max);
        let reads = connection.readable && (runs || connection.may_absorb(self.absorbed_max));
        if reads || (runs && connection.has_unparsed) || connection.has_to_flush() {
            list(&mut self.connections.ready, connection, token);
        } else if self.stop_at.is_some() && connection.may_run() && connection.unsent_bytes() == 0 {
            self.close(token);
        }
    }

    /// Sends unsent output of earlier turns, reads once, and runs the complete commands; returns false if the
    /// connection is broken.
    fn advance(&mut self, token: usize) -> bool {
        if !self.flush(token) {
            return false;
        }
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return false };
        if connection.is_closing() {
            return true;
        }
        if !connection.may_run() || connection.is_output_high(self.absorbed_max) {
            return !connection.readable || !connection.may_absorb(self.absorbed_max) || self.absorb(token);
        }
        if !connection.has_unparsed {
            // Bytes that the last wait for events did not report are not read yet: messages sent before them may still
            // be in the mailbox.
            if !connection.readable {
                return true;
            }
            match self.read(token) {
                Fill::Bytes(_) => {}
                // The next step of the TLS handshake may be possible.
                Fill::Nothing | Fill::End => return true,
                Fill::Broken => return false,
            }
        }
        self.run_input(token);
        true
    }

    /// Receives bytes without running commands; returns false if the connection is broken. When the peer has stopped
    /// sending, the connection is closed although it waits.
    pub(super) fn absorb(&mut self, token: usize) -> bool {
        match self.read(token) {
            Fill::Bytes(_) => {
                let Some(connection) = self.connections.all[token].as_deref_mut() else { return false };
                if connection.input.is_empty() {
                    connection.input.extend_from_slice(&self.scratch);
                }
                connection.has_unparsed = true;
                true
            }
            Fill::Nothing => true,
            Fill::End => {
                // A pause can be long: as in Redis, a disconnected client is closed before the pause ends.
                let connection = self.connections.all[token].as_deref();
                let waits_on = connection.is_none_or(|connection| {
                    connection.blocked.as_ref().is_none_or(|blocked| blocked.is_under_way)
                        && !connection.parked.as_ref().is_some_and(|parked| parked.is_paused)
                });
                if !waits_on {
                    self.end(token, EndReason::Over);
                }
                true
            }
            Fill::Broken => false,
        }
    }

    pub(super) fn read(&mut self, token: usize) -> Fill {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return Fill::Broken };
        let fill = connection.fill(&mut self.scratch, &mut self.wire);
        if let Fill::Bytes(count) = fill {
            self.executor.stats.reads.add(1);
            self.executor.stats.input_bytes.add(count as u64);
            connection.client.view.input_bytes.add(count as u64);
            if let Some(primary) = &connection.client.primary {
                primary.link.record_read(count, self.executor.turn.now_ms);
                self.executor.stats.replication_input_bytes.add(count as u64);
            }
        }
        fill
    }

    /// Parses and runs the input of a connection, until all of it is processed, the connection must wait, or its time
    /// slice ends.
    fn run_input(&mut self, token: usize) {
        // The connection is taken out of the table while it runs, so that the others can be served from inside a
        // script.
        let Some(mut connection) = self.connections.all[token].take() else { return };
        self.executor.count_as_incoming(&connection.client);
        let (mut batch, limits) = (std::mem::take(&mut self.batch), self.connections.limits);
        lend_buffer(&mut self.buffers, &mut connection);
        let (mut input, is_own) = connection.take_input(&mut self.scratch);
        let mut first_full = None;
        loop {
            let status = connection.next_batch(&mut input, &mut batch, &limits);
            if !batch.is_empty() {
                self.run_batch(token, &mut connection, &mut batch, &input, 0);
                batch.clear();
            }
            if !connection.has_next_batch(status) {
                break;
            }
            // The clock is not read for pipelines of one batch.
            let is_late = first_full.get_or_insert_with(Instant::now).elapsed() >= SLICE;
            if is_late || connection.output.len_bytes() > connection::OUTPUT_HIGH_BYTES {
                connection.has_unparsed = true;
                break;
            }
        }
        check_position(&mut connection, &input);
        connection.put_input_back(input, is_own, &mut self.scratch);
        self.batch = batch;
        self.connections.all[token] = Some(connection);
    }

    /// Runs a batch, beginning with command number `start`; parks the remainder if the connection must wait.
    fn run_batch(
        &mut self,
        token: usize,
        connection: &mut Connection,
        batch: &mut Batch,
        input: &[u8],
        start: usize,
    ) {
        let (client, output) = (&mut connection.client, &mut connection.output);
        let progress = if self.executor.prepare(client, batch, input, start) {
            self.connections.running = token;
            let progress = attendance::with_others(&mut self.connections, || {
                self.executor.run(token, client, batch, input, start, output)
            });
            self.connections.running = NO_TOKEN;
            let missed = self.connections.missed.drain(..);
            missed.for_each(|readiness| connection.record_readiness(&readiness));
            progress
        } else {
            self.executor.run(token, client, batch, input, start, output)
        };
        // The memory is counted before the replies are sent: what a client has released, according to its reply, must
        // not count any more.
        self.executor.count_client_state(&connection.client);
        self.executor.record_last_changes(connection);
        let (deadlines, barrier) = (&mut self.deadlines, &mut self.barrier);
        let Some((next, is_paused)) =
            apply_progress(self.server, progress, connection, start..batch.len(), deadlines, barrier, token)
        else {
            return;
        };
        let batch = std::mem::take(batch);
        connection.parked = Some(Box::new(Parked { batch, next, is_paused }));
        if is_paused {
            self.connections.paused.push(token);
        }
    }

    /// Sends a connection's output, unless it must be held; returns false if the connection is broken.
    pub(super) fn flush(&mut self, token: usize) -> bool {
        if !self.may_send(token) {
            return self.connections.all[token].is_some();
        }
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return false };
        let (bytes, calls) = match connection.flush() {
            Ok(flushed) => flushed,
            Err(error) => {
                connection.failure = Some(error);
                return false;
            }
        };
        if calls > 0 {
            self.executor.stats.writes.add(calls as u64);
            self.executor.stats.output_bytes.add(bytes as u64);
            connection.client.view.sent_bytes.add(bytes as u64);
            if connection.client.is_fed() {
                self.executor.stats.replication_output_bytes.add(bytes as u64);
            }
        }
        take_buffer_back(&mut self.buffers, connection);
        true
    }

    /// Returns whether a connection's output is within its limits; logs the reason if it is not.
    pub(super) fn is_within_limits(&mut self, token: usize) -> bool {
        let Some(connection) = self.connections.all[token].as_deref_mut() else { return false };
        let Executor { config, client_memory, stats, turn, .. } = &mut self.executor;
        let view = &connection.client.view;
        let (query, multi) = (connection.query_bytes(), connection.client.multi_bytes());
        let kept = connection.kept_bytes();
        client_memory.set(&view.query_bytes, query);
        client_memory.set(&view.multi_bytes, multi);
        client_memory.set(&view.kept_bytes, kept);
        client_memory.set(&view.state_bytes, connection.client.waiting_states_bytes());
        client_memory.set(&view.output_bytes, connection.output_bytes());
        let is_client = connection.client.primary.is_none();
        if is_client && (query + multi + kept) as u64 > config.client_query_buffer_limit {
            tracing::warn!(
                "closing client {}: its {query} bytes of requests, {multi} in a transaction and {kept} of \
                 stored keys and names exceed client-query-buffer-limit",
                view.id
            );
            stats.query_limit_closed.add(1);
            return false;
        }
        if connection.has_too_much_output(&config.client_output_buffer_limit, turn.now_ms) {
            let output = connection.unsent_bytes();
            tracing::warn!(
                "closing client {}: its {output} bytes of unsent replies exceed client-output-buffer-limit",
                connection.client.view.id
            );
            stats.output_limit_closed.add(1);
            return false;
        }
        true
    }

    /// Feeds a replica as much data as its socket accepts; returns false if the connection is broken.
    fn feed(&mut self, token: usize) -> bool {
        let is_replica = |connection: &Connection| connection.client.replica.is_some();
        !self.connections.all[token].as_deref().is_some_and(is_replica) || self.feed_replica(token)
    }

    #[cold]
    fn feed_replica(&mut self, token: usize) -> bool {
        let mut fed = 0;
        while let Some(connection) = self.connections.all[token].as_deref_mut()
            && connection.unsent_bytes() == 0
        {
            if fed >= FED_MAX {
                list(&mut self.connections.ready, connection, token);
                return true;
            }
            lend_buffer(&mut self.buffers, connection);
            let gathers =
                connection.client.replica.as_mut().is_some_and(|it| std::mem::take(&mut it.gathers));
            if gathers {
                connection.gather_packets();
            }
            let Some(feed) = connection.client.replica.as_mut().and_then(|replica| replica.feed.as_mut())
            else {
                return true;
            };
            match feed.feed(&mut connection.output) {
                Ok(()) => {}
                Err(Over::Served) => return false,
                Err(Over::Lost(reason)) => {
                    feed.record_end(reason);
                    return false;
                }
            }
            fed += connection.output.len_bytes();
            if connection.output.is_empty() || !self.flush(token) {
                break;
            }
        }
        self.connections.all[token].is_some()
    }

    /// Feeds replicas if a client waits for them, or if they were last fed [`FEED_INTERVAL`] ago: records collected in
    /// the meantime cost one system call, and wake each replica once.
    pub(super) fn feed_if_due(&mut self) {
        let Some(at) = self.feeds_at else { return };
        let now = Instant::now();
        if now >= at || self.is_to_feed_at_once() {
            (self.feeds_at, self.fed_at, self.is_alarm_set) = (None, now, false);
            self.list_replicas();
        }
    }

    /// Returns whether there is data for replicas, and a client waits for them.
    pub(super) fn is_to_feed_at_once(&self) -> bool {
        self.feeds_at.is_some() && Primary::of(self.server).is_awaited(self.server)
    }

    /// Adds the replicas to the connections that are served in this turn.
    pub(super) fn list_replicas(&mut self) {
        for (token, client_id) in Primary::of(self.server).replicas_of(self.executor.index) {
            if let Some(connection) = connection_of(&mut self.connections.all, token, client_id) {
                list(&mut self.connections.ready, connection, token);
            }
        }
    }

    /// Continues a connection whose wait has ended: runs the remainder of its batch, then its input.
    pub(super) fn resume(&mut self, token: usize) {
        let Some(mut connection) = self.connections.all[token].take() else { return };
        let is_free = connection.awaiting.is_none() && connection.blocked.is_none();
        if let Some(parked) = connection.parked.take_if(|_| is_free) {
            let Parked { mut batch, next, .. } = *parked;
            set_paused(self.server, &connection.client.view, false);
            self.executor.count_as_incoming(&connection.client);
            let (input, is_own) = connection.take_input(&mut self.scratch);
            lend_buffer(&mut self.buffers, &mut connection);
            self.run_batch(token, &mut connection, &mut batch, &input, next);
            connection.has_unparsed = true;
            connection.put_input_back(input, is_own, &mut self.scratch);
            list(&mut self.connections.ready, &mut connection, token);
        }
        self.connections.all[token] = Some(connection);
    }
}

/// Checks the offset in the primary's stream. The offset is advanced by the canonical form of each command, so commands
/// must arrive in that form.
fn check_position(connection: &mut Connection, input: &[u8]) {
    let Some(primary) = &connection.client.primary else { return };
    let is_all = connection.parked.is_none() && connection.parser.is_between_commands(input);
    if is_all && !connection.is_closing() && primary.position() != primary.link.read() {
        primary.link.fail(format!(
            "the commands before offset {} are not in the canonical form",
            primary.link.read()
        ));
        connection.begin_closing();
    }
}

/// Lends one of the worker's buffers to a connection without unsent replies.
pub(super) fn lend_buffer(buffers: &mut Vec<Reply>, connection: &mut Connection) {
    if connection.output.is_empty()
        && connection.output.memory_bytes() == 0
        && let Some(mut buffer) = buffers.pop()
    {
        buffer.set_protocol(connection.output.protocol());
        connection.output = buffer;
    }
}

/// Takes the buffer from a connection whose replies are all sent.
fn take_buffer_back(buffers: &mut Vec<Reply>, connection: &mut Connection) {
    if connection.output.is_empty() && connection.output.memory_bytes() > 0 {
        let empty = Reply::new(connection.output.protocol());
        let output = std::mem::replace(&mut connection.output, empty);
        // One large buffer may be retained.
        let is_welcome = output.memory_bytes() <= 2 * UNSENT_BYTES_MAX && buffers.len() < UNSENT_MAX;
        if is_welcome || buffers.is_empty() {
            buffers.push(output);
        }
    }
}

/// Records whether a connection waits for a pause to end; while it does, the client counts as blocked.
pub(super) fn set_paused(server: &Server, view: &ClientView, is_paused: bool) {
    match (view.is_paused.swap(is_paused, Ordering::Relaxed), is_paused) {
        (false, true) => _ = server.blocked_clients.fetch_add(1, Ordering::Relaxed),
        (true, false) => _ = server.blocked_clients.fetch_sub(1, Ordering::Relaxed),
        _ => {}
    }
}

/// Applies the outcome of a batch to its connection. If the connection must wait, returns the number of the command at
/// which it continues, and whether it waits for a pause to end.
fn apply_progress(
    server: &Server,
    progress: Progress,
    connection: &mut Connection,
    commands: Range<usize>,
    deadlines: &mut BTreeSet<(Instant, usize)>,
    barrier: &mut Barrier,
    token: usize,
) -> Option<(usize, bool)> {
    let Range { start, end } = commands;
    // A command that has to be retried is counted when it has run.
    let ran_to = match &progress {
        Progress::Done | Progress::Close => end,
        Progress::Paused(next) | Progress::Fetching(next) => *next,
        Progress::Awaiting(next, _) | Progress::Blocked(next, _) => *next,
    };
    connection.client.view.commands.add((ran_to - start) as u64);
    match progress {
        Progress::Done => None,
        Progress::Close => {
            connection.begin_closing();
            None
        }
        Progress::Paused(next) => {
            set_paused(server, &connection.client.view, true);
            Some((next, true))
        }
        Progress::Fetching(next) => Some((next, false)),
        Progress::Awaiting(next, assembly) => {
            connection.awaiting = Some(Box::new(assembly));
            (next < end).then_some((next, false))
        }
        Progress::Blocked(next, blocked) => {
            deadlines.extend(blocked.deadline.map(|deadline| (deadline, token)));
            if let Some((record, _)) = &blocked.durable {
                barrier.wait_for(*record, token);
            }
            connection.blocked = Some(blocked);
            (next < end).then_some((next, false))
        }
    }
}
