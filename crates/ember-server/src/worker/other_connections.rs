//! Serves the other connections of a worker while one of them runs batches.
//!
//! A worker serves them from inside a long script: it accepts connections, runs the few commands that may run during a
//! script, such as SCRIPT KILL, and answers all others with `BUSY`. Other work waits for the end of the script.

use std::time::Duration;

use ember_protocol::Batch;

use super::barrier::replicas_for;
use super::connections::{Connections, LISTENER_TOKEN, connection_of, list};
use crate::clients::assembly::Forwarded;
use crate::clients::connection::{Connection, Fill, RequestLimits};
use crate::clients::listener::{Accepted, Incoming};
use crate::clients::mailbox::Message;
use crate::executor::attendance::Attend;
use crate::executor::{Executor, Progress};

/// The maximum number of full batches that run for one connection in one round.
const ROUND_BATCHES_MAX: usize = 16;

impl Attend for Connections {
    fn attend(&mut self, executor: &mut Executor) {
        self.collect_events(Duration::ZERO);
        self.handle_messages(executor);
        self.accept_waiting(executor);
        let mut scratch = Vec::new();
        for token in 0..self.all.len() {
            let Some(connection) = self.all[token].as_deref_mut() else { continue };
            let has_something = connection.readable || connection.has_unparsed;
            let is_client = connection.client.primary.is_none();
            if has_something && is_client && connection.may_run() && !connection.is_handshaking() {
                serve(connection, &self.limits, executor, &mut scratch);
                // The worker completes the work after the script.
                list(&mut self.ready, connection, token);
            }
        }
    }

    fn send_replies(&mut self, executor: &Executor) {
        for &token in &self.unsent {
            if let Some(connection) = self.all[token].as_deref_mut() {
                flush(executor, connection);
            }
        }
    }
}

impl Connections {
    /// Waits for events for at most `timeout`, and records the readiness of sockets.
    pub(super) fn collect_events(&mut self, timeout: Duration) {
        let Connections { driver, all, ready, is_accepting, running, missed, .. } = self;
        let waited = driver.wait(timeout, |readiness| {
            if readiness.token == LISTENER_TOKEN {
                *is_accepting = true;
            } else if readiness.token == *running {
                missed.push(readiness);
            } else if let Some(Some(connection)) = all.get_mut(readiness.token) {
                connection.record_readiness(&readiness);
                list(ready, connection, readiness.token);
            }
        });
        if let Err(error) = waited {
            tracing::error!("waiting for events failed: {error}");
        }
    }

    fn handle_messages(&mut self, executor: &mut Executor) {
        let mut messages = Vec::new();
        executor.server.workers[executor.index].mailbox.take(&mut messages);
        for message in messages {
            match message {
                Message::Accept(incoming) => self.accept(executor, incoming),
                Message::Run(message) => executor.refuse_forwarded(message),
                Message::Answer(message) => self.accept_answer(executor, message),
                other => self.postponed.push(other),
            }
        }
    }

    /// Accepts the answer to commands that were sent to another worker before the script began.
    fn accept_answer(&mut self, executor: &mut Executor, message: Box<Forwarded>) {
        let token = message.token;
        let Some(connection) = connection_of(&mut self.all, token, message.client_id) else { return };
        if connection.parked.is_some() {
            // The remainder of the batch must run after the answer; the worker does that after the script.
            self.postponed.push(Message::Answer(message));
            return;
        }
        let Some(assembly) = connection.accept_answer(message) else { return };
        executor.assemble(*assembly, connection);
        flush(executor, connection);
        list(&mut self.ready, connection, token);
    }

    fn accept_waiting(&mut self, executor: &mut Executor) {
        if !std::mem::take(&mut self.is_accepting) {
            return;
        }
        for number in 0..self.listeners.len() {
            while let Accepted::Connection(incoming) = self.listeners[number].accept() {
                let workers = &executor.server.workers;
                workers[executor.index].connections.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                self.accept(executor, incoming);
            }
        }
        // A listener may have failed; the next turn handles that.
        self.is_accepting = true;
    }

    fn accept(&mut self, executor: &mut Executor, incoming: Incoming) {
        // A connection that is refused is subtracted from the worker's count.
        if self.try_accept(executor, incoming).is_none() {
            executor.stats.connections_rejected.add(1);
            let connections = &executor.server.workers[executor.index].connections;
            connections.fetch_sub(1, std::sync::atomic::Ordering::SeqCst);
        }
    }
}

/// Reads once from a connection, and answers its commands.
fn serve(
    connection: &mut Connection,
    limits: &RequestLimits,
    executor: &mut Executor,
    scratch: &mut Vec<u8>,
) {
    if !connection.has_unparsed {
        let Fill::Bytes(count) = connection.fill(scratch, &mut Vec::new()) else { return };
        connection.client.view.input_bytes.add(count as u64);
    }
    let (mut input, is_own) = connection.take_input(scratch);
    let mut batch = Batch::new();
    let mut batches = 0;
    loop {
        let status = connection.next_batch(&mut input, &mut batch, limits);
        if !batch.is_empty() {
            let (client, output) = (&mut connection.client, &mut connection.output);
            let progress = executor.run_during_script(client, &batch, &input, 0, output);
            client.view.commands.add(batch.len() as u64);
            if let Progress::Close = progress {
                connection.begin_closing();
            }
            batch.clear();
        }
        if !connection.has_next_batch(status) {
            break;
        }
        batches += 1;
        if batches > ROUND_BATCHES_MAX {
            connection.has_unparsed = true;
            break;
        }
    }
    connection.put_input_back(input, is_own, scratch);
    flush(executor, connection);
}

/// Sends a connection's replies, unless they must be held; held replies are sent by the worker after the script.
fn flush(executor: &Executor, connection: &mut Connection) {
    if connection.may_send(&executor.server.journal, replicas_for(executor, connection)) {
        // The worker detects a broken connection later. All output that the socket accepts is sent now, because the
        // connection is not listed to continue.
        while let Ok((bytes, _)) = connection.flush() {
            connection.client.view.sent_bytes.add(bytes as u64);
            if !connection.has_to_flush() {
                break;
            }
        }
    }
}
