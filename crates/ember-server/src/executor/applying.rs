//! Applies the stream of this server's primary: commands run in their order when they arrive, on one worker, or on
//! several workers where possible (`applying_together.rs`).
//!
//! Commands do not receive replies. A command that fails here has succeeded on the primary, so the data would diverge:
//! the commands after it are not applied.

use ember_config::AppendFsync;
use ember_protocol::{Args, Batch, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::journal::REPLAY_TIME_MS;
use emberkv_core::keys::Guards;
use emberkv_core::spec::Flags;

use super::applying_together::Together;
use super::running::Flow;
use super::{Executor, Progress};
use crate::clients::client::Client;
use crate::journal::Reader;

/// Commands other than writes that a primary sends.
const NON_WRITES: [&str; 6] = ["ping", "select", "multi", "exec", "script|load", "script|flush"];

impl Executor {
    /// Applies the commands of `batch`, beginning with number `start`. The worker is inside the gate.
    pub(super) fn apply(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        output: &mut Reply,
    ) -> Progress {
        let Some(mut primary) = client.primary.take() else { return Progress::Close };
        if primary.link.is_cut() {
            client.primary = Some(primary);
            return Progress::Close;
        }
        let mut unsent = std::mem::take(&mut primary.unsent);
        client.primary = Some(primary);
        let progress =
            self.as_replay(|executor| executor.apply_all(client, batch, input, start, &mut unsent));
        let durable = self.durable_to_confirm();
        if let Some(primary) = &mut client.primary {
            primary.unsent = unsent;
            primary.publish(client.database);
            if durable.is_some() {
                let made = self.turn.journal.last_number().unwrap_or_default();
                primary.advance_record(made.max(self.last_record));
            }
            if primary.is_ack_requested && matches!(progress, Progress::Done) {
                primary.acknowledge(output, durable);
            }
        }
        progress
    }

    /// Runs `act`, whose calls are commands of the primary.
    pub(super) fn as_replay<R>(&mut self, act: impl FnOnce(&mut Executor) -> R) -> R {
        // The primary decides which keys have expired.
        let now_ms = std::mem::replace(&mut self.turn.now_ms, REPLAY_TIME_MS);
        self.turn.recorded_ms = Some(now_ms);
        let string_bytes_max = std::mem::replace(&mut self.turn.settings.string_bytes_max, usize::MAX);
        (self.applies, self.failure) = (true, None);
        let result = act(self);
        self.applies = false;
        (self.turn.now_ms, self.turn.recorded_ms) = (now_ms, None);
        self.turn.settings.string_bytes_max = string_bytes_max;
        result
    }

    /// Returns the number of the record up to which all changes will be on disk by the time the primary receives the
    /// acknowledgement; `None` without an append-only file.
    pub(crate) fn durable_to_confirm(&self) -> Option<u64> {
        let journal = &self.server.journal;
        journal.is_read_by(Reader::Aof).then(|| {
            let is_held =
                self.config.appendfsync == AppendFsync::Always && !self.config.no_appendfsync_on_rewrite;
            // The acknowledgement is held until all changes before it are durable.
            if is_held { u64::MAX } else { journal.durable() }
        })
    }

    fn apply_all(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        unsent: &mut Reply,
    ) -> Progress {
        let mut guards = Guards::None;
        let mut progress = Progress::Done;
        let (mut number, mut sequential_until, mut retried) = (start, start, usize::MAX);
        while number < batch.len() {
            if number >= sequential_until && self.applies_together(client) {
                guards.release(&self.server.keyspace, &mut self.turn);
                match self.apply_together(client, batch, input, number) {
                    Together::Few(end) => sequential_until = end,
                    Together::Applied(end) => {
                        (number, sequential_until) = (end, end + 1);
                        continue;
                    }
                    Together::Failed { number, at, why } => {
                        give_up(client, batch.command(number, input), at, &why);
                        progress = Progress::Close;
                        break;
                    }
                }
            }
            self.fetch_ahead(client.database).fetch_after(number - start, &self.prepared);
            let args = batch.command(number, input);
            if self.prepared[number - start].hash.is_none()
                && let Some(primary) = &mut client.primary
            {
                // The call may wait for another worker with exclusive access, which must see the applied offset.
                primary.publish(client.database);
            }
            match self.apply_one(client, &mut guards, number - start, args, unsent) {
                Flow::Next => {}
                Flow::Pause => {
                    progress = Progress::Paused(number);
                    break;
                }
                Flow::Fetch => {
                    let may_retry = retried != number;
                    if self.begin_fetching(client, &mut guards, batch, input, number, may_retry) {
                        retried = number;
                        continue;
                    }
                    progress = Progress::Fetching(number);
                    break;
                }
                Flow::Close | Flow::Wait(_) => {
                    let text = self
                        .failure
                        .take()
                        .unwrap_or_else(|| "it would close the connection of the primary".to_owned());
                    let at = client.primary.as_ref().map_or(0, |primary| primary.position());
                    give_up(client, args, at, &text);
                    progress = Progress::Close;
                    break;
                }
            }
            unsent.clear();
            let is_open = client.transaction.is_some();
            if let Some(primary) = &mut client.primary {
                primary.advance(args, is_open);
            }
            number += 1;
        }
        unsent.clear();
        guards.release(&self.server.keyspace, &mut self.turn);
        progress
    }

    /// Applies one command; returns [`Flow::Close`] if it has failed.
    fn apply_one(
        &mut self,
        client: &mut Client,
        guards: &mut Guards<'static>,
        at: usize,
        args: Args<'_>,
        unsent: &mut Reply,
    ) -> Flow {
        if args.at(0).eq_ignore_ascii_case(b"replconf") {
            let requests_ack = args.get(1).is_some_and(|word| word.eq_ignore_ascii_case(b"getack"));
            if let Some(primary) = &mut client.primary {
                primary.is_ack_requested |= requests_ack;
            }
            return Flow::Next;
        }
        let prepared = self.prepared[at];
        let known = prepared.command.filter(|command| command.subcommands.is_empty());
        if let Some(command) = known.or_else(|| self.server.registry.resolve(args).ok()) {
            let writes = command.spec.flags.intersects(Flags::WRITE.union(Flags::MAY_REPLICATE));
            let is_allowed = writes || NON_WRITES.contains(&&*command.full_name);
            if !is_allowed || command.spec.flags.contains(Flags::BLOCKING) {
                self.failure = Some("a primary does not send this command".to_owned());
                return Flow::Close;
            }
        }
        let flow = self.execute(client, guards, args, prepared, unsent);
        if self.is_outside {
            // The command has not failed: a running script delays it.
            self.failure = None;
            return Flow::Pause;
        }
        match flow {
            Flow::Next if self.failure.is_some() => Flow::Close,
            Flow::Wait(blocked) => {
                blocked.waiter.cancel();
                Flow::Close
            }
            flow => flow,
        }
    }

    /// Records why a call of the primary has failed. Errors inside a script are ignored, because they occurred on the
    /// primary, too.
    #[cold]
    pub(super) fn record_failure(&mut self, error: &CommandError) {
        if !self.runs_script {
            self.failure.get_or_insert_with(|| String::from_utf8_lossy(&error.text()).into_owned());
        }
    }

    /// Returns whether the running calls are commands of the primary.
    pub(crate) fn is_applying(&self) -> bool {
        self.applies
    }

    /// Sets whether the running calls are commands of the primary; returns the previous value.
    pub(super) fn pause_applying(&mut self, applies: bool) -> bool {
        std::mem::replace(&mut self.applies, applies)
    }
}

/// Fails the link because of the command at offset `at`.
fn give_up(client: &Client, args: Args<'_>, at: u64, why: &str) {
    if let Some(primary) = &client.primary {
        let name = shown_name(args);
        primary.link.fail(format!("command '{name}' at offset {at} is not applied: {why}"));
    }
}

/// The longest command name that the log shows.
const NAME_BYTES_MAX: usize = 64;

/// Returns the name of a command for the log.
fn shown_name(args: Args<'_>) -> String {
    let name = args.at(0);
    name[..name.len().min(NAME_BYTES_MAX)].escape_ascii().to_string()
}
