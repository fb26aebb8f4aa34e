//! Accounts for calls: counts, times and logs them, and publishes the changes of a batch.
//!
//! The quick commands of one batch share a clock reading: the time between two readings is divided among them.

use std::time::Instant;

use ember_protocol::{Args, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::spec::Flags;

use super::Executor;
use super::session::SessionResult;
use crate::catalogue::registry::Command;
use crate::clients::client::{Client, ClientView};
use crate::clients::connection::Connection;
use crate::observability::command_log::LogKind;

impl Executor {
    /// Counts the running requests of a client as the incoming bytes of their commands instead of as client memory. The
    /// remaining requests are counted at the end of the client's part of the turn.
    pub(crate) fn count_as_incoming(&mut self, client: &Client) {
        self.client_memory.set(&client.view.query_bytes, 0);
        self.count_client_state(client);
    }

    /// Counts the memory of the state that a client's calls have created.
    pub(crate) fn count_client_state(&mut self, client: &Client) {
        self.client_memory.set(&client.view.multi_bytes, client.multi_bytes());
        self.client_memory.set(&client.view.kept_bytes, client.kept_bytes());
    }

    /// Counts and times a call, and writes its error to the reply.
    #[inline(always)]
    pub(crate) fn finish(
        &mut self,
        command: &'static Command,
        result: &SessionResult,
        args: Args<'_>,
        client: Option<&ClientView>,
        reply: &mut Reply,
    ) {
        if let Err(error) = result
            && !self.finish_failed(command, error, args, client, reply)
        {
            return;
        }
        self.stats.commands.add(1);
        if command.is_quick && !self.times_each {
            self.quick.push(command.index);
        } else {
            let nanoseconds = self.lap();
            let counts = &self.stats.by_command[usize::from(command.index)];
            counts.count(1, nanoseconds, self.config.latency_tracking);
            self.log_if_slow(command, nanoseconds, args, client);
        }
    }

    /// Counts the error of a call and writes it to the reply. Returns whether the call counts as run: a call that is
    /// refused for lack of memory does not.
    #[cold]
    fn finish_failed(
        &mut self,
        command: &'static Command,
        error: &CommandError,
        args: Args<'_>,
        client: Option<&ClientView>,
        reply: &mut Reply,
    ) -> bool {
        if self.applies {
            self.record_failure(error);
        }
        if let CommandError::OutOfMemory = error {
            let name = || client.map_or_else(|| "another worker's client".to_owned(), ClientView::log_name);
            Self::log_refusal(command, error, name);
            self.answer_rejected(command, error, reply);
            return false;
        }
        self.damaged_payloads.log_if_damaged(command, error, args, client, self.turn.now_ms);
        self.stats.by_command[usize::from(command.index)].failed.add(1);
        if std::mem::take(&mut self.is_error_counted) {
            reply.error_bytes(&error.text());
        } else {
            self.answer_error(error, reply);
        }
        true
    }

    /// Returns the nanoseconds since the clock was last read, and reads the clock.
    pub(super) fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let nanoseconds = now.duration_since(self.clock).as_nanos() as u64;
        self.clock = now;
        nanoseconds
    }

    /// Divides the time since the clock was last read among the quick commands run since.
    #[inline(always)]
    pub(super) fn settle_quick(&mut self) {
        if self.quick.is_empty() {
            return;
        }
        let nanoseconds = self.lap() / self.quick.len() as u64;
        let tracks_latency = self.config.latency_tracking;
        for same in self.quick.chunk_by(|one, other| one == other) {
            self.stats.by_command[usize::from(same[0])].count(same.len() as u64, nanoseconds, tracks_latency);
        }
        self.quick.clear();
    }

    #[inline]
    pub(super) fn log_if_slow(
        &mut self,
        command: &'static Command,
        nanoseconds: u64,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) {
        let microseconds = nanoseconds / 1000;
        let threshold = self.config.slowlog_log_slower_than;
        if threshold >= 0
            && microseconds >= threshold.unsigned_abs()
            && !command.spec.flags.contains(Flags::SKIP_SLOWLOG)
        {
            self.log_slow(command, microseconds, args, client);
        }
        let threshold_ms = self.config.latency_monitor_threshold;
        if threshold_ms != 0 && microseconds / 1000 >= threshold_ms {
            let event = if command.spec.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
            self.server.latency.enter(event, self.turn.clock_ms() / 1000, microseconds / 1000);
        }
    }

    #[cold]
    fn log_slow(
        &mut self,
        command: &Command,
        microseconds: u64,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) {
        self.log_command(LogKind::Slow, command, microseconds, args, client);
    }

    /// Publishes the worker's counts, the growth of the keyspace, and its journal records.
    pub(crate) fn publish(&mut self) {
        self.server.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        self.stats.absorb(&mut self.turn.counters);
        if self.turn.journal.has_records() {
            self.last_record = self.last_record.max(self.turn.journal.last_number().unwrap_or(0));
            self.server.journal.publish(self.index, &mut self.turn.journal);
        }
    }

    /// Records the last journal record of the batch in its connection.
    #[inline]
    pub(crate) fn record_last_changes(&mut self, connection: &mut Connection) {
        if self.last_record != 0 {
            let record = std::mem::take(&mut self.last_record);
            connection.advance_record(record);
        }
    }

    /// Replies with an error to a call that is counted as rejected.
    pub(super) fn answer_rejected(&mut self, command: &Command, error: &CommandError, reply: &mut Reply) {
        self.stats.by_command[usize::from(command.index)].rejected.add(1);
        self.answer_error(error, reply);
    }

    pub(super) fn answer_error(&mut self, error: &CommandError, reply: &mut Reply) {
        let text = error.text();
        self.count_error(&text);
        reply.error_bytes(&text);
    }

    /// Counts an error that a client or a script receives.
    pub(crate) fn count_error(&mut self, text: &[u8]) {
        self.stats.error_codes.count(text);
        self.stats.errors.add(1);
    }
}
