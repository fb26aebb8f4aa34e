//! Beside a script: what a worker does with commands while a script has had exclusive access for long.

use std::time::{Duration, Instant};

use ember_protocol::{Args, Batch, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::gate::ExclusiveAccess;
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Flags, Group};

use super::attendance;
use super::authorization;
use super::{Executor, Flow, Progress};
use crate::catalogue::registry::{Command, Handler, is_http};
use crate::clients::client::Client;
use crate::executor::session::Outcome;

/// How long a worker waits outside the gate before it looks whether a script keeps it closed.
const GATE_WAIT: Duration = Duration::from_millis(10);

impl Executor {
    /// Goes inside the gate. False if a script keeps everyone out and has been doing so for long.
    #[inline]
    pub(crate) fn enter_gate(&mut self) -> bool {
        while !self.server.gate.try_enter(self.index, GATE_WAIT) {
            if self.is_script_busy() {
                return false;
            }
        }
        self.is_outside = false;
        self.server.journal.attach(&mut self.turn.journal);
        true
    }

    /// Closes the gate for a command of a client. No lock is held.
    ///
    /// # Errors
    /// If a script keeps it closed and has been doing so for long. Then this worker is outside, and so is what it runs
    /// next, until it enters again.
    pub(crate) fn close_gate(
        &mut self,
        client_id: Option<u64>,
    ) -> Result<ExclusiveAccess<'static>, CommandError> {
        // What has been evicted for the command is told while this worker is inside.
        self.deliver(&mut Guards::None, client_id);
        let mut has_waited = false;
        let (server, index) = (self.server, self.index);
        let waits_on = || {
            has_waited = true;
            // What has been evicted for the command is recorded: later records wait for that.
            self.publish();
            !self.is_script_busy()
        };
        let Some(access) = server.gate.try_close(index, GATE_WAIT, waits_on) else {
            self.is_outside = true;
            return Err(self.busy_error());
        };
        if has_waited {
            // It is not the command that took this time.
            self.clock = Instant::now();
        }
        server.journal.attach(&mut self.turn.journal);
        Ok(access)
    }

    /// The same when the call was about to run. Meanwhile another worker may have had exclusive access, and what it left
    /// behind may keep the call waiting: nothing is returned then.
    ///
    /// # Errors
    /// Also if the call is refused by now.
    pub(crate) fn close_gate_to_run(
        &mut self,
        client: &Client,
        command: &Command,
        args: Args<'_>,
    ) -> Result<Option<ExclusiveAccess<'static>>, CommandError> {
        let access = self.close_gate(Some(client.view.id))?;
        let mut guards = Guards::None;
        let must_wait = !self.server.conditions.get().is_empty()
            && self.must_wait(Some(client), &mut guards, command, args)?;
        guards.release(&self.server.keyspace, &mut self.turn);
        Ok((!must_wait).then_some(access))
    }

    /// As [`Executor::close_gate`], for what must not fail: the worker's other connections are served while it waits.
    pub(crate) fn close_gate_serving_others(&mut self) -> ExclusiveAccess<'static> {
        let (server, index) = (self.server, self.index);
        loop {
            let waits_on = || !self.is_script_busy();
            if let Some(access) = server.gate.try_close(index, GATE_WAIT, waits_on) {
                server.journal.attach(&mut self.turn.journal);
                return access;
            }
            attendance::attend(self);
        }
    }

    /// Whether a script has been running for so long that others are told.
    pub(crate) fn is_script_busy(&self) -> bool {
        self.server.scripting.running.is_busy(self.config.busy_reply_threshold)
    }

    /// What a command is told that a script keeps from running.
    pub(super) fn busy_error(&self) -> CommandError {
        self.server.scripting.running.busy_or_ended_error(self.config.busy_reply_threshold)
    }

    /// Runs what may run beside a script of the commands of `batch` from number `start` on, and refuses the others.
    #[cold]
    pub(crate) fn run_beside_script(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        reply: &mut Reply,
    ) -> Progress {
        // The script's own time goes on.
        let clock = self.clock;
        let runs_script = std::mem::take(&mut self.runs_script);
        let sees_expired = self.turn.sees_expired;
        let mut progress = Progress::Done;
        for number in start..batch.len() {
            if let Flow::Close = self.execute_beside_script(client, batch.command(number, input), reply) {
                progress = Progress::Close;
                break;
            }
        }
        self.clock = clock;
        self.runs_script = runs_script;
        self.turn.sees_expired = sees_expired;
        progress
    }

    fn execute_beside_script(&mut self, client: &mut Client, args: Args<'_>, reply: &mut Reply) -> Flow {
        let guards = &mut Guards::None;
        let command = match self.server.registry.resolve(args) {
            Ok(command) => command,
            Err(_) if is_http(args) => return Flow::Close,
            Err(error) => return self.refuse(client, guards, None, error, reply),
        };
        if !client.is_authenticated && !command.spec.flags.contains(Flags::NO_AUTH) {
            let error = "NOAUTH Authentication required.".into();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        if let Err(error) = authorization::authorize(self.server, client, command, args) {
            return self.refuse(client, guards, Some(command), error, reply);
        }
        // What watches keys, or is queued, could come to touch the keyspace.
        let is_harmless = matches!(command.handler, Handler::Server)
            && command.spec.flags.contains(Flags::ALLOW_BUSY)
            && (command.spec.group != Group::Transactions || command.spec.keys.is_empty())
            && (client.transaction.is_none() || command.spec.is_immediate)
            && client.watched.is_none();
        if !is_harmless {
            // Also when the script has ended just now: this worker is not inside the gate.
            let error = self.busy_error();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        let mark = client.reply_mode.is_silent().then(|| reply.mark());
        let result = self.complete(command, None, client, guards, args, reply);
        let flow = if let Ok(Outcome::Close) = result { Flow::Close } else { Flow::Next };
        self.finish(command, result, args, Some(&client.view), reply);
        self.apply_reply_mode(client, mark, reply);
        flow
    }
}
