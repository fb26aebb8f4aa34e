//! Runs the commands of a batch on this worker: checks, locks, the handler, and the next step of the caller.

use std::sync::atomic::Ordering;

use ember_protocol::{Args, Batch, Mark, Reply};
use emberkv_core::call::{Attempt, Run};
use emberkv_core::dispatch::{self, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::gate::ExclusiveAccess;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::{Flags, Group};

use super::conditions::Check;
use super::monitoring::{MonitoredCaller, is_monitored};
use super::preparing::{Prepared, fetch_elements};
use super::session::{Execution, Outcome, Session, SessionResult};
use super::{Caller, Executor, Progress, Section, Stop, authorization, transaction};
use crate::catalogue::registry::{Command, Handler, is_http};
use crate::clients;
use crate::clients::blocked::Blocked;
use crate::clients::client::{Client, ReplyMode};

/// The next step after a command was run.
pub(super) enum Flow {
    Next,
    Close,
    Pause,
    Fetch,
    Wait(Box<Blocked>),
}

impl Executor {
    /// Runs the commands on this worker, from number `from` to the end of the batch or, if `forwards`, to the first
    /// command that another worker must run.
    pub(super) fn run_here(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        from: usize,
        reply: &mut Reply,
        forwards: bool,
    ) -> Stop {
        let first = batch.len() - self.prepared.len();
        let mut guards = Guards::None;
        let mut progress = Progress::Done;
        let (mut elements_fetched, mut retried) = (from, usize::MAX);
        let ahead = self.fetch_ahead(client.database);
        let mut number = from;
        while number < batch.len() {
            ahead.fetch_after(number - first, &self.prepared);
            let (prepared, args) = (self.prepared[number - first], batch.command(number, input));
            if forwards
                && let Some(owner) = self.forward_to(&mut guards, client, prepared, args)
                && owner != self.index
            {
                guards.release(&self.server.keyspace, &mut self.turn);
                return Stop::Foreign(number, owner);
            }
            let has_elements = prepared.command.is_some_and(|command| command.spec.elements.is_some());
            if has_elements && number >= elements_fetched {
                let call = |number: usize| {
                    let Prepared { command, hash, .. } = *self.prepared.get(number - first)?;
                    Some((command?, hash?, batch.command(number, input)))
                };
                let context = (&self.server.keyspace, &mut guards, &mut self.turn, client.database);
                elements_fetched = fetch_elements(context, number, call);
            }
            progress = match self.execute(client, &mut guards, args, prepared, reply) {
                Flow::Next if self.is_outside => {
                    self.run_during_script(client, batch, input, number + 1, reply)
                }
                Flow::Next => {
                    number += 1;
                    continue;
                }
                Flow::Close => Progress::Close,
                Flow::Pause => Progress::Paused(number),
                Flow::Fetch => {
                    let may_retry = retried != number;
                    if self.begin_fetching(client, &mut guards, batch, input, number, may_retry) {
                        retried = number;
                        continue;
                    }
                    Progress::Fetching(number)
                }
                Flow::Wait(blocked) => Progress::Blocked(number + 1, blocked),
            };
            break;
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        Stop::At(progress)
    }

    /// Runs one command of a connection of this worker.
    #[inline]
    pub(super) fn execute(
        &mut self,
        client: &mut Client,
        guards: &mut Guards<'static>,
        args: Args<'_>,
        prepared: Prepared,
        reply: &mut Reply,
    ) -> Flow {
        let command = match prepared.command {
            Some(command) if command.subcommands.is_empty() && command.spec.accepts(args.len()) => command,
            _ => match self.server.registry.resolve(args) {
                Ok(command) => command,
                Err(_) if is_http(args) => {
                    tracing::debug!("a connection that speaks HTTP is closed");
                    return Flow::Close;
                }
                Err(error) => return self.refuse(client, guards, prepared.command, error, reply),
            },
        };
        if !client.is_authenticated && !command.spec.flags.contains(Flags::NO_AUTH) {
            let error = "NOAUTH Authentication required.".into();
            return self.refuse(client, guards, Some(command), error, reply);
        }
        if let Err(error) = authorization::authorize(self.server, client, command, args) {
            return self.refuse(client, guards, Some(command), error, reply);
        }
        if self.is_paused(client, command, args) {
            return Flow::Pause;
        }
        if client.subscriptions.is_some() && !reply.is_resp3() && !is_for_subscribers(command) {
            return self.refuse(client, guards, Some(command), subscriber_error(command), reply);
        }
        let hash =
            if std::ptr::eq(command, prepared.command.unwrap_or(command)) { prepared.hash } else { None };
        let conditions = self.server.conditions.get();
        if !conditions.is_empty() {
            match self.check_conditions(conditions, client, guards, (command, hash), args) {
                Ok(Check::Runs) => {}
                Ok(Check::Waits) => return Flow::Pause,
                Ok(Check::IsCut) => return Flow::Close,
                Err(error) => return self.refuse(client, guards, Some(command), error, reply),
            }
        }
        self.free_memory_before(client, guards, reply);
        let mark = client.reply_mode.is_silent().then(|| reply.mark());
        if client.transaction.is_some() && !command.spec.is_immediate {
            return match self.queue(client, guards, command, args, reply) {
                Ok(()) => {
                    self.apply_reply_mode(client, mark, reply);
                    Flow::Next
                }
                Err(error) => self.refuse(client, guards, Some(command), error, reply),
            };
        }
        let reply_start = reply.len_bytes();
        self.turn.no_touch = client.view.no_touch.load(Ordering::Relaxed);
        let result = self.complete(command, hash, client, guards, args, reply);
        let flow = match result {
            Ok(Outcome::Done | Outcome::Continue(_)) | Err(_) => Flow::Next,
            Ok(Outcome::Close) => Flow::Close,
            Ok(Outcome::Wait(blocked)) => return Flow::Wait(blocked),
            Ok(Outcome::Again) => return Flow::Pause,
            Ok(Outcome::Fetch) => return Flow::Fetch,
        };
        // The replies of commands that change subscriptions are written like messages, in every reply mode.
        let mark = mark.filter(|_| result.is_err() || !is_subscribing(command));
        self.finish(command, &result, args, Some(&client.view), reply);
        self.log_sizes(command, args, client.view.id, reply.len_bytes() - reply_start);
        self.apply_reply_mode(client, mark, reply);
        self.deliver(guards, Some(client.view.id));
        flow
    }

    /// Runs a command for a connection of this worker.
    #[inline]
    pub(crate) fn complete(
        &mut self,
        command: &'static Command,
        hash: Option<KeyHash>,
        client: &mut Client,
        guards: &mut Guards<'static>,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> SessionResult {
        let result = if let Handler::Server = command.handler {
            self.call_server(command, client, guards, args, reply)
        } else {
            let mut caller = Caller { database: client.database, client: Some(client) };
            self.call(command, hash, &mut caller, guards, args, reply)
        };
        if !self.server.monitors.is_empty() || client.tracking.is_some() {
            self.observe(command, client, guards, args, &result);
        }
        result
    }

    /// Sends a call to monitors, and records what a tracking client has read. The caller still holds the locks of the
    /// call's keys.
    #[cold]
    fn observe(
        &mut self,
        command: &'static Command,
        client: &mut Client,
        guards: &mut Guards<'static>,
        args: Args<'_>,
        result: &SessionResult,
    ) {
        if let Ok(Outcome::Again | Outcome::Fetch) = result {
            return;
        }
        if !self.server.monitors.is_empty() && is_monitored(command) {
            let limit = &self.config.client_output_buffer_limit.pubsub;
            let caller = if self.runs_script { MonitoredCaller::Script } else { MonitoredCaller::Client };
            self.server.show_to_monitors(client, command, args, limit, caller);
        }
        if client.tracking.is_some() && result.is_ok() {
            self.track(client, command, args, guards);
        }
    }

    /// Runs the handler of a data command with the locks it needs, for a client of this worker or of another one.
    #[inline]
    pub(crate) fn call(
        &mut self,
        command: &'static Command,
        hash: Option<KeyHash>,
        caller: &mut Caller<'_>,
        guards: &mut Guards<'static>,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> SessionResult {
        let Handler::Data(data) = command.handler else {
            unreachable!("containers are resolved before, and server commands are not forwarded");
        };
        self.prepare_call(command, guards, args)?;
        let exclusive = match data.run {
            Run::Exclusive(_) if self.section == Section::Shared => {
                match self.begin_exclusive_call(command, caller, guards, args)? {
                    None => return Ok(Outcome::Again),
                    access => access,
                }
            }
            _ => None,
        };
        let client = caller.client.as_deref();
        self.turn.reads_any_key =
            client.is_none_or(|client| authorization::may_read_any_key(client, command, args));
        let may_wait = self.section == Section::Shared && client.is_some() && !self.applies;
        let waiting = match may_wait {
            _ if self.runs_script => Waiting::InScript,
            true => Waiting::Allowed,
            false => Waiting::Never,
        };
        let (keyspace, database) = (&self.server.keyspace, caller.database);
        let mut context = Context { keyspace, guards, turn: &mut self.turn, database, waiting };
        let mut result = dispatch::run(data, command.access, hash, &mut context, args, reply);
        while matches!(result, Ok(Attempt::Fetch)) && !self.may_park() {
            self.fetch_missing(guards, database)?;
            let mut context = Context { keyspace, guards, turn: &mut self.turn, database, waiting };
            result = dispatch::run(data, command.access, hash, &mut context, args, reply);
        }
        drop(exclusive);
        match result {
            Ok(Attempt::Done) => Ok(Outcome::Done),
            Ok(Attempt::Fetch) => Ok(Outcome::Fetch),
            Err(error) => Err(error),
            Ok(attempt) => {
                let client = caller.client.as_deref_mut().expect("only a connection's call may wait");
                match attempt {
                    Attempt::Wait(wait) => {
                        Ok(Outcome::Wait(self.enlist(command, wait, args, client, guards, reply)))
                    }
                    _ => self.offload((command, data), args, client, guards, reply),
                }
            }
        }
    }

    /// Ends the shared timing of earlier calls if a call is timed individually, and frees memory for the call.
    #[inline]
    fn prepare_call(
        &mut self,
        command: &Command,
        guards: &mut Guards<'static>,
        args: Args<'_>,
    ) -> Result<(), CommandError> {
        if !command.is_quick || self.times_each {
            self.settle_quick();
        }
        let needs_memory = self.config.maxmemory != 0
            && command.spec.flags.contains(Flags::DENYOOM)
            && self.section == Section::Shared;
        if needs_memory { self.free_memory(guards, args.total_bytes()) } else { Ok(()) }
    }

    /// Gives a call exclusive access to the keyspace; returns `None` if the call must be retried later.
    fn begin_exclusive_call(
        &mut self,
        command: &Command,
        caller: &Caller<'_>,
        guards: &mut Guards<'static>,
        args: Args<'_>,
    ) -> Result<Option<ExclusiveAccess<'static>>, CommandError> {
        guards.release(&self.server.keyspace, &mut self.turn);
        // The records are published first, because another worker may have exclusive access for long.
        self.publish();
        match caller.client.as_deref() {
            None => Ok(Some(self.close_gate(None)?)),
            Some(client) => self.close_gate_to_run(client, command, args),
        }
    }

    /// Runs the handler of a server command.
    fn call_server(
        &mut self,
        command: &'static Command,
        client: &mut Client,
        guards: &mut Guards<'static>,
        args: Args<'_>,
        reply: &mut Reply,
    ) -> SessionResult {
        self.prepare_call(command, guards, args)?;
        let run = self.handlers[usize::from(command.index)].expect("a server command has a handler");
        guards.release(&self.server.keyspace, &mut self.turn);
        self.publish();
        // EXEC and scripts count the calls that they run themselves.
        if self.section == Section::Shared {
            client.view.record_command(command.index);
        }
        let server = self.server;
        // The command may have changed or removed its caller's own user.
        let keep = |client: &mut Client, result| match client.is_user_stale() && !client.refresh_user() {
            true => Ok(Outcome::Close),
            false => result,
        };
        let result = run(&mut Session { args, command, server, client, turn: &mut self.turn, reply });
        let mut result = keep(client, result);
        if let Ok(Outcome::Continue(next_step)) = result {
            let next = next_step(&mut Execution { executor: self, client, command, args, reply });
            result = keep(client, next);
        }
        if let Ok(Outcome::Again | Outcome::Fetch) = result {
            return result;
        }
        // A changed parameter applies from the next command on; it also decides whether this call is logged.
        let tracked_max = self.config.tracking_table_max_keys;
        self.refresh_config();
        if self.config.tracking_table_max_keys != tracked_max {
            self.limit_tracked();
        }
        self.update_source(client);
        result
    }

    /// Removes a reply that the client has disabled. `mark` is the start of the reply; it is `None` if all replies were
    /// enabled when the command began. So the reply to the command that changes the mode remains.
    #[inline]
    pub(super) fn apply_reply_mode(&self, client: &mut Client, mark: Option<Mark>, reply: &mut Reply) {
        if client.reply_mode != ReplyMode::On {
            mark.into_iter().for_each(|mark| reply.truncate_to(mark));
            client.reply_mode = client.reply_mode.next();
        }
    }

    /// Replies with an error to a command that does not run.
    #[cold]
    pub(super) fn refuse(
        &mut self,
        client: &mut Client,
        guards: &mut Guards<'static>,
        command: Option<&'static Command>,
        error: CommandError,
        reply: &mut Reply,
    ) -> Flow {
        if let Some(command) = command {
            self.stats.by_command[usize::from(command.index)].rejected.add(1);
            Self::log_refusal(command, &error, || client.view.log_name());
        }
        if self.applies {
            self.record_failure(&error);
        }
        let mut error = error;
        if let Some(transaction) = &mut client.transaction {
            transaction.abort();
            if command.is_some_and(|command| command.spec.name == "exec") {
                guards.release(&self.server.keyspace, &mut self.turn);
                clients::transaction::discard(&self.server.keyspace, &mut self.turn, client);
                error = transaction::aborted_because_of(&error);
            }
        }
        let mark = reply.mark();
        self.answer_error(&error, reply);
        self.apply_reply_mode(client, Some(mark), reply);
        Flow::Next
    }
}

/// Returns the error of a command that a RESP2 client with subscriptions may not call.
#[cold]
fn subscriber_error(command: &Command) -> CommandError {
    let name = &command.full_name;
    let error = format!(
        "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
         allowed in this context"
    );
    error.into()
}

/// Returns whether a RESP2 client with subscriptions may call a command. Other commands are refused, because replies
/// and messages look alike in RESP2.
#[cold]
fn is_for_subscribers(command: &Command) -> bool {
    matches!(command.spec.name, "ping" | "quit" | "reset" | "unwatch") || is_subscribing(command)
}

/// Returns whether a command begins or ends subscriptions or watches of live queries.
fn is_subscribing(command: &Command) -> bool {
    command.base.is_some()
        || (command.spec.group == Group::PubSub && command.spec.flags.contains(Flags::NOSCRIPT))
}
