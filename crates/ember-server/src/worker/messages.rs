//! Handles messages: requests of other workers and threads to this worker.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::Worker;
use super::connections::{connection_of, list};
use super::serving::{FEED_INTERVAL, lend_buffer};
use super::waits::Ending;
use crate::clients::assembly::Forwarded;
use crate::clients::client::ReplyMode;
use crate::clients::connection::OUTPUT_HIGH_BYTES;
use crate::clients::ending::EndReason;
use crate::clients::mailbox::Message;
use crate::clients::push::{Push, Receiver};

impl Worker {
    pub(super) fn handle_messages(&mut self) {
        let mut messages = std::mem::take(&mut self.messages);
        self.server.workers[self.executor.index].mailbox.take(&mut messages);
        // Postponed messages are older than the messages in the mailbox.
        if !self.connections.postponed.is_empty() {
            let newer = std::mem::replace(&mut messages, std::mem::take(&mut self.connections.postponed));
            messages.extend(newer);
        }
        for message in messages.drain(..) {
            match message {
                Message::Accept(incoming) => self.accept(incoming),
                Message::Run(message) => self.executor.run_forwarded(message),
                Message::Answer(message) => self.accept_answer(message),
                Message::Apply(round) => self.executor.help_apply(&round),
                Message::Push(push, receivers) => {
                    self.push(&push, &receivers);
                    let bytes = push.message_bytes(&receivers);
                    self.server.workers[self.executor.index].push_bytes.fetch_sub(bytes, Ordering::Relaxed);
                }
                Message::Check(token, client_id) => self.check_connection(token, client_id),
                Message::Served(token, client_id, reply, record) => {
                    self.end_waiting(token, client_id, Ending::Served(reply, record))
                }
                Message::Unblock(token, client_id, false) => {
                    self.end_waiting(token, client_id, Ending::TimedOut)
                }
                Message::Unblock(token, client_id, true) => {
                    self.end_waiting(token, client_id, Ending::WithError)
                }
                Message::Arrived(awaiting, failure) => self.resume_fetched(awaiting, failure),
                Message::Evaluate(marked) => self.queries.mark(marked),
                Message::State(state) => self.accept_state(state),
                Message::Feed => self.feeds_at = self.feeds_at.or(Some(self.fed_at + FEED_INTERVAL)),
                Message::JobsDone => self.settle_jobs(),
                Message::SlotsLost => self.lose_slots(),
                Message::TryAgain => self.resume_paused(),
                Message::Primary(order) => self.follow(order),
                Message::Listen(listeners) => self.listen(listeners),
                Message::Shutdown(options) => self.ending = Some(options),
                Message::Stop => self.stop(),
            }
        }
        self.messages = messages;
        self.server.end_push_delay();
    }

    pub(super) fn accept_answer(&mut self, message: Box<Forwarded>) {
        let Some(connection) = connection_of(&mut self.connections.all, message.token, message.client_id)
        else {
            return; // closed in the meantime
        };
        let token = message.token;
        let Some(assembly) = connection.accept_answer(message) else { return };
        lend_buffer(&mut self.buffers, connection);
        self.executor.assemble(*assembly, connection);
        if connection.parked.is_some() {
            self.resume(token);
        } else {
            list(&mut self.connections.ready, connection, token);
        }
    }

    /// Writes a push to connections. Connections that do not read fast enough are closed here if their output is large,
    /// otherwise when they are served next.
    pub(super) fn push(&mut self, push: &Push, receivers: &[Receiver]) {
        for Receiver { token, client_id, pattern } in receivers {
            let Some(connection) = connection_of(&mut self.connections.all, *token, *client_id) else {
                continue;
            };
            // The lines that a monitor receives are replies to its MONITOR.
            let is_wanted = !matches!(push, Push::Line(_)) || connection.client.reply_mode == ReplyMode::On;
            if !connection.is_closing() && is_wanted {
                connection.push(push, pattern.as_deref());
                list(&mut self.connections.ready, connection, *token);
                // Smaller outputs are checked when the connection is served next.
                let is_much = connection.output.len_bytes() > OUTPUT_HIGH_BYTES;
                if is_much && !self.is_within_limits(*token) {
                    self.end(*token, EndReason::Over);
                }
            }
        }
    }

    pub(super) fn check_connection(&mut self, token: usize, client_id: u64) {
        let Some(connection) = connection_of(&mut self.connections.all, token, client_id) else { return };
        let reason = connection.client.view.end_reason();
        if let Some(reason) = reason.filter(|reason| reason.is_immediate()) {
            if reason == EndReason::PushDropped && !connection.is_closing() {
                tracing::warn!(
                    "closing client {client_id}: too many bytes were pushed to it before this worker could \
                     send them"
                );
                self.executor.stats.output_limit_closed.add(1);
            }
            self.end(token, reason);
        } else if connection.is_closing() {
            // The waiter was being served, but there was no element for it.
            list(&mut self.connections.ready, connection, token);
        } else if connection.client.view.is_paused.load(Ordering::Relaxed)
            && !self.server.pause.holds(self.executor.turn.now_ms, true)
        {
            self.connections.paused.retain(|&other| other != token);
            self.resume(token);
        }
    }

    pub(super) fn stop(&mut self) {
        let seconds = u64::from(self.executor.config.shutdown_timeout);
        self.stop_at = Some(Instant::now() + Duration::from_secs(seconds));
        self.connections.listeners.clear();
        self.connections.is_accepting = false;
        self.connections.accepts_at_tick = false;
        for token in 0..self.connections.all.len() {
            if let Some(connection) = self.connections.all[token].as_deref_mut() {
                connection.readable = true;
                // A pause may last longer than the process. The commands are not run, which the client notices because
                // the connection is closed.
                let was_paused = connection.parked.take_if(|parked| parked.is_paused).is_some();
                // The primary does not stop sending.
                if was_paused || connection.client.primary.is_some() {
                    connection.begin_closing();
                }
                // As in Redis, blocked clients are not served any more.
                if connection.blocked.is_some() {
                    self.end(token, EndReason::Over);
                    continue;
                }
                list(&mut self.connections.ready, connection, token);
            }
        }
    }
}
