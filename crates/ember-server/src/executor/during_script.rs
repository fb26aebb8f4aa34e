//! Runs a worker's commands while a script has had exclusive access for long.

use std::time::{Duration, Instant};

use ember_protocol::{Args, Batch, Reply};
use emberkv_core::error::CommandError;
use emberkv_core::gate::ExclusiveAccess;
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Flags, Group};

use super::attendance;
use super::authorization;
use super::running::Flow;
use super::{Executor, Progress};
use crate::catalogue::registry::{Command, Handler, is_http};
use crate::clients::client::Client;
use crate::executor::session::Outcome;
use crate::server::conditions::Condition;

/// The time for which a worker waits outside the gate before it checks whether a script keeps the gate closed.
const GATE_WAIT: Duration = Duration::from_millis(10);

impl Executor {
    /// Enters the gate. Returns false if a script has kept the gate closed for long.
    #[inline(always)]
    pub(crate) fn enter_gate(&mut self) -> bool {
        if !self.server.gate.enter_open(self.index) && !self.enter_closed_gate() {
            return false;
        }
        self.is_outside = false;
        self.server.journal.attach(&mut self.turn.journal);
        true
    }

    /// Waits for the gate to open. Returns false if a script has kept it closed for long.
    #[cold]
    fn enter_closed_gate(&self) -> bool {
        while !self.server.gate.try_enter(self.index, GATE_WAIT) {
            if self.is_script_busy() {
                return false;
            }
        }
        true
    }

    /// Closes the gate for a client's command. The caller holds no lock.
    ///
    /// # Errors
    /// Returns `BUSY` if a script has kept the gate closed for long. This worker is then outside the gate, and its next
    /// commands run there until it enters again.
    pub(crate) fn close_gate(
        &mut self,
        client_id: Option<u64>,
    ) -> Result<ExclusiveAccess<'static>, CommandError> {
        // Notifications of keys that were evicted for the command are delivered while this worker is inside the gate.
        self.deliver(&mut Guards::None, client_id);
        let mut has_waited = false;
        let (server, index) = (self.server, self.index);
        let waits_on = || {
            has_waited = true;
            // Publishes the records of evictions for the command, because records with higher numbers wait for them.
            self.publish();
            !self.is_script_busy()
        };
        let Some(access) = server.gate.try_close(index, GATE_WAIT, waits_on) else {
            self.is_outside = true;
            return Err(self.busy_error());
        };
        if has_waited {
            // The time spent waiting does not count as the command's run time.
            self.clock = Instant::now();
        }
        server.journal.attach(&mut self.turn.journal);
        Ok(access)
    }

    /// Does what [`Executor::close_gate`] does, for a call that was about to run. Returns `None` if another worker has
    /// had exclusive access in the meantime and has set a condition under which the call must wait.
    ///
    /// # Errors
    /// Returns the errors of [`Executor::close_gate`], or the error with which the call must now be refused.
    pub(crate) fn close_gate_to_run(
        &mut self,
        client: &Client,
        command: &Command,
        args: Args<'_>,
    ) -> Result<Option<ExclusiveAccess<'static>>, CommandError> {
        let access = self.close_gate(Some(client.view.id))?;
        let mut guards = Guards::None;
        let conditions = self.server.conditions.get();
        if conditions.contains(Condition::CLUSTER) {
            self.check_slots_for(client, command, None, args)?;
        }
        let must_wait = !conditions.difference(Condition::CLUSTER).is_empty()
            && self.must_wait(Some(client), &mut guards, command, args)?;
        guards.release(&self.server.keyspace, &mut self.turn);
        Ok((!must_wait).then_some(access))
    }

    /// Does what [`Executor::close_gate`] does, for work that must not fail: while the worker waits, it serves its
    /// other connections.
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

    /// Returns whether a script has run so long that other clients receive `BUSY`.
    pub(crate) fn is_script_busy(&self) -> bool {
        self.server.scripting.running.is_busy(self.config.busy_reply_threshold)
    }

    /// Returns the error for a command that a script prevents from running.
    pub(super) fn busy_error(&self) -> CommandError {
        self.server.scripting.running.busy_or_ended_error(self.config.busy_reply_threshold)
    }

    /// Runs the commands of `batch`, beginning with number `start`, that are permitted during a script, and refuses the
    /// others.
    #[cold]
    pub(crate) fn run_during_script(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        reply: &mut Reply,
    ) -> Progress {
        // The clock of the running script is restored afterwards.
        let clock = self.clock;
        let runs_script = std::mem::take(&mut self.runs_script);
        let sees_expired = self.turn.sees_expired;
        let mut progress = Progress::Done;
        for number in start..batch.len() {
            if let Flow::Close = self.execute_during_script(client, batch.command(number, input), reply) {
                progress = Progress::Close;
                break;
            }
        }
        self.clock = clock;
        self.runs_script = runs_script;
        self.turn.sees_expired = sees_expired;
        progress
    }

    fn execute_during_script(&mut self, client: &mut Client, args: Args<'_>, reply: &mut Reply) -> Flow {
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
        // Commands that watch keys, or that are queued, could access the keyspace later.
        let is_harmless = matches!(command.handler, Handler::Server)
            && command.spec.flags.contains(Flags::ALLOW_BUSY)
            && (command.spec.group != Group::Transactions || command.spec.keys.is_empty())
            && (client.transaction.is_none() || command.spec.is_immediate)
            && client.watched.is_none();
        if !is_harmless {
            // The command is refused even if the script has just ended, because this worker is not inside the gate.
            let error = self.busy_error();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        let mark = client.reply_mode.is_silent().then(|| reply.mark());
        let result = self.complete(command, None, client, guards, args, reply);
        let flow = if let Ok(Outcome::Close) = result { Flow::Close } else { Flow::Next };
        self.finish(command, &result, args, Some(&client.view), reply);
        self.apply_reply_mode(client, mark, reply);
        flow
    }
}
