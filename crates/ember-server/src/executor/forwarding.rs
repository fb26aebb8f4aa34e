//! Forwarding: in sharded mode, a worker sends commands to the owners of their keys, and puts the replies in order.

use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_protocol::{Args, Batch, Protocol};
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::Flags;

use super::authorization;
use super::conditions::Check;
use super::monitoring::{MonitoredCaller, is_monitored};
use super::preparing::{FETCH_AHEAD_MIN, Prepared, fetch_elements};
use super::session::Outcome;
use super::{Caller, Executor, Progress};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::assembly::Assembly;
use crate::clients::assembly::Forwarded;
use crate::clients::client::{Client, ReplyMode};
use crate::clients::connection::Connection;
use crate::clients::mailbox::Message;
use crate::server::conditions::Condition;
use crate::server::slots::Refusal;

/// The maximum number of empty messages whose buffers are retained: about as many as are usually in flight.
const SPARE_MAX: usize = 64;

/// How a run of a message's commands has ended.
enum MessageEnd {
    /// All commands have run.
    Done,
    /// The next command waits for a condition to end.
    Held,
    /// The next command waits for cold values.
    Fetching,
}

impl Executor {
    /// Returns whether a prepared command has a key of another worker.
    pub(super) fn has_foreign_keys(&self) -> bool {
        !self.server.runs_anywhere()
            && self.prepared.iter().any(|prepared| {
                prepared.hash.is_some_and(|hash| self.server.owner_of(hash.shard()) != self.index)
            })
    }

    /// Forwards command `from` of the batch, which `owner` must run, with the following commands that may run on any
    /// worker, up to the first that must wait for their replies. Sends each to its owner, and runs this worker's own
    /// commands meanwhile.
    pub(super) fn run_forwarding(
        &mut self,
        token: usize,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        (from, owner): (usize, usize),
        protocol: Protocol,
    ) -> Progress {
        let first = batch.len() - self.prepared.len();
        let mut guards = Guards::None;
        // Each command is checked only once, because a condition that keeps it on this worker may begin or end at any
        // moment.
        let mut owners = vec![owner];
        owners.extend((from + 1..batch.len()).map_while(|number| {
            let prepared = self.prepared[number - first];
            self.forward_to(&mut guards, client, prepared, batch.command(number, input))
        }));
        guards.release(&self.server.keyspace, &mut self.turn);
        let next = from + owners.len();
        let mut outgoing: Vec<Box<Forwarded>> = Vec::new();
        for (number, &owner) in (from..).zip(&owners) {
            let args = batch.command(number, input);
            let (command, hash) = self.known(number - first);
            if !self.server.monitors.is_empty() && is_monitored(command) {
                let limit = &self.config.client_output_buffer_limit.pubsub;
                self.server.show_to_monitors(client, command, args, limit, MonitoredCaller::Client);
            }
            if owner == self.index {
                continue;
            }
            let found = outgoing.iter().position(|message| message.owner == owner);
            let at = found.unwrap_or_else(|| {
                outgoing.push(self.address(owner, token, client, protocol));
                outgoing.len() - 1
            });
            outgoing[at].commands.append(args);
            outgoing[at].prepared.push((command.index, hash));
        }
        let mut outstanding = outgoing.len();
        for message in outgoing {
            self.stats.forwarded.add(message.prepared.len() as u64);
            self.server.workers[message.owner].mailbox.send(Message::Run(message));
        }
        let mut local = self.spare();
        local.owner = self.index;
        local.reply.set_protocol(protocol);
        let local = self.run_own(client, batch, input, (from, &owners), local);
        outstanding += usize::from(local.is_none());
        Progress::Awaiting(next, Assembly { owners, local, answers: Vec::new(), outstanding })
    }

    /// Runs those commands of the batch from number `from` on that `owners` assigns to this worker; writes their replies
    /// to `local` and returns it. If values are missing, `local` is parked, and `None` is returned.
    fn run_own(
        &mut self,
        client: &Client,
        batch: &Batch,
        input: &[u8],
        (from, owners): (usize, &[usize]),
        mut local: Box<Forwarded>,
    ) -> Option<Box<Forwarded>> {
        let (first, next) = (batch.len() - self.prepared.len(), from + owners.len());
        let mut guards = Guards::None;
        // `execute` is not used: a pause that has begun since must not delay commands of a batch that was already sent.
        self.turn.no_touch = client.view.no_touch.load(Ordering::Relaxed);
        let ahead = self.fetch_ahead(client.database);
        let mut retried = usize::MAX;
        let mut number = from;
        while number < next {
            ahead.fetch_after(number - first, &self.prepared);
            if owners[number - from] != self.index {
                number += 1;
                continue;
            }
            let (command, hash) = self.known(number - first);
            let args = batch.command(number, input);
            let mark = local.reply.mark();
            let mut caller = Caller { database: client.database, client: None };
            let reply_start = local.reply.len_bytes();
            let result = self.call(command, Some(hash), &mut caller, &mut guards, args, &mut local.reply);
            if let Ok(Outcome::Fetch) = result {
                if local.prepared.is_empty() {
                    self.complete_message(&mut local, client);
                    for number in (from..next).filter(|number| owners[number - from] == self.index) {
                        let (command, hash) = self.known(number - first);
                        local.commands.append(batch.command(number, input));
                        local.prepared.push((command.index, hash));
                    }
                }
                let may_retry = retried != number;
                if self.request_for_message(&mut local, &mut guards, may_retry) {
                    retried = number;
                    continue;
                }
                guards.release(&self.server.keyspace, &mut self.turn);
                self.fetching.push(local);
                return None;
            }
            local.marks.push(mark);
            self.finish(command, &result, args, Some(&client.view), &mut local.reply);
            self.log_sizes(command, args, client.view.id, local.reply.len_bytes() - reply_start);
            self.deliver(&mut guards, Some(client.view.id));
            number += 1;
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        local.marks.push(local.reply.mark());
        Some(local)
    }

    /// Returns the command that was prepared with number `at`, and the hash of its key.
    fn known(&self, at: usize) -> (&'static Command, KeyHash) {
        let Prepared { command: Some(command), hash: Some(hash), .. } = self.prepared[at] else {
            unreachable!("only a known command on one key may run anywhere");
        };
        (command, hash)
    }

    /// Returns the owner of the command's key if the command may run on any worker. Returns `None` if the command must
    /// run on this worker, after all earlier ones.
    pub(super) fn forward_to(
        &mut self,
        guards: &mut Guards<'static>,
        client: &Client,
        prepared: Prepared,
        args: Args<'_>,
    ) -> Option<usize> {
        let (Some(command), Some(hash)) = (prepared.command, prepared.hash) else { return None };
        let may_run_anywhere = matches!(command.handler, Handler::Data(data) if data.run.is_short(args))
            && client.transaction.is_none()
            && client.tracking.is_none()
            // RESP2 clients with subscriptions may not run data commands.
            && (client.subscriptions.is_none() || client.view.is_resp3.load(Ordering::Relaxed))
            && command.spec.accepts(args.len())
            && client.is_authenticated
            && authorization::permits(self.server, client, command, args)
            && client.reply_mode == ReplyMode::On
            && !self.server.pause.holds(self.turn.now_ms, command.spec.flags.contains(Flags::WRITE))
            && self.meets_nothing(guards, client, (command, hash), args);
        may_run_anywhere.then(|| self.server.owner_of(hash.shard()))
    }

    fn spare(&mut self) -> Box<Forwarded> {
        self.spare.pop().unwrap_or_else(|| Box::new(Forwarded::new()))
    }

    fn address(&mut self, owner: usize, token: usize, client: &Client, protocol: Protocol) -> Box<Forwarded> {
        let mut message = self.spare();
        message.owner = owner;
        message.token = token;
        message.reply.set_protocol(protocol);
        self.complete_message(&mut message, client);
        message
    }

    fn complete_message(&self, message: &mut Forwarded, client: &Client) {
        message.origin = self.index;
        message.token = client.view.token;
        message.client_id = client.view.id;
        message.database = client.database;
        message.no_touch = client.view.no_touch.load(Ordering::Relaxed);
        message.slot_caller = client.view.slot_caller();
        message.sees_expired = self.turn.sees_expired;
    }

    /// Retries the commands of other workers that wait for a condition to end.
    pub(crate) fn run_held(&mut self) {
        for message in std::mem::take(&mut self.held) {
            self.run_forwarded(message);
        }
    }

    /// Runs commands from another worker and sends the replies back. If conditions have changed since they were sent,
    /// commands are refused or delayed here.
    pub(crate) fn run_forwarded(&mut self, mut message: Box<Forwarded>) {
        self.last_record = message.last_record;
        self.clock = Instant::now();
        self.sizes.begin_batch(message.commands.wire_bytes_max());
        let keyspace = &self.server.keyspace;
        let database = message.database;
        let ahead = self.fetch_ahead(database);
        if message.prepared.len() >= FETCH_AHEAD_MIN {
            message.prepared.iter().for_each(|&(_, hash)| keyspace.prefetch_shard(hash));
            ahead.fetch_first(0, message.prepared.len(), &(&*message, &self.server.registry));
        }
        if !self.enter_gate() {
            return self.refuse_forwarded(message);
        }
        self.refresh_lease();
        self.turn.notices.collects_changes = self.server.trackers.is_broadcasting();
        let mut guards = Guards::None;
        self.turn.no_touch = message.no_touch;
        self.turn.sees_expired = message.sees_expired;
        let end = self.run_message(&mut message, &mut guards);
        self.turn.no_touch = false;
        self.turn.sees_expired = false;
        guards.release(&self.server.keyspace, &mut self.turn);
        self.server.gate.leave(self.index);
        self.settle_quick();
        self.publish();
        message.last_record = std::mem::take(&mut self.last_record);
        match end {
            MessageEnd::Fetching => self.fetching.push(message),
            MessageEnd::Held => self.held.push(message),
            MessageEnd::Done => {
                message.marks.push(message.reply.mark());
                self.server.workers[message.origin].mailbox.send(Message::Answer(message));
            }
        }
    }

    /// Runs the commands of a message that have not run yet. The worker is inside the gate.
    fn run_message(&mut self, message: &mut Forwarded, guards: &mut Guards<'static>) -> MessageEnd {
        let (server, database) = (self.server, message.database);
        let ahead = self.fetch_ahead(database);
        let conditions = server.conditions.get();
        let mut elements_fetched = message.marks.len();
        let mut retried = usize::MAX;
        while message.marks.len() < message.prepared.len() {
            let number = message.marks.len();
            ahead.fetch_after(number, &(&*message, &server.registry));
            let (command, hash) = message.prepared[number];
            let command = server.registry.get(command);
            match self.check_forwarded(conditions, message, guards, (command, hash)) {
                Ok(Check::Runs) => {}
                Ok(Check::Waits | Check::IsCut) => return MessageEnd::Held,
                Err(error) => {
                    message.marks.push(message.reply.mark());
                    self.log_refusal_of(command, &error, message.client_id);
                    self.answer_rejected(command, &error, &mut message.reply);
                    continue;
                }
            }
            if number >= elements_fetched && command.spec.elements.is_some() {
                let call = |number: usize| {
                    let &(command, hash) = message.prepared.get(number)?;
                    Some((server.registry.get(command), hash, message.commands.command(number)))
                };
                let context = (&server.keyspace, &mut *guards, &mut self.turn, database);
                elements_fetched = fetch_elements(context, number, call);
            }
            let args = message.commands.command(number);
            let mark = message.reply.mark();
            let mut caller = Caller { database, client: None };
            let reply_start = message.reply.len_bytes();
            let result = self.call(command, Some(hash), &mut caller, guards, args, &mut message.reply);
            if let Ok(Outcome::Fetch) = result {
                let may_retry = retried != number;
                if !self.request_for_message(message, guards, may_retry) {
                    return MessageEnd::Fetching;
                }
                retried = number;
                continue;
            }
            message.marks.push(mark);
            self.finish(command, &result, args, None, &mut message.reply);
            let reply_bytes = message.reply.len_bytes() - reply_start;
            self.log_sizes(command, args, message.client_id, reply_bytes);
            self.deliver(guards, Some(message.client_id));
        }
        MessageEnd::Done
    }

    /// Checks the next command of a message under the conditions that are in effect.
    ///
    /// # Errors
    /// Returns the error with which the command is refused.
    #[inline]
    fn check_forwarded(
        &mut self,
        conditions: Condition,
        message: &Forwarded,
        guards: &mut Guards<'static>,
        (command, hash): (&Command, KeyHash),
    ) -> Result<Check, CommandError> {
        if conditions.is_empty() {
            return Ok(Check::Runs);
        }
        let args = message.commands.command(message.marks.len());
        if conditions.contains(Condition::CLUSTER) {
            self.check_slots(message.slot_caller, command, Some(hash), args).map_err(Refusal::error)?;
        }
        let waits = !conditions.difference(Condition::CLUSTER).is_empty()
            && self.must_wait(None, guards, command, args)?;
        Ok(if waits { Check::Waits } else { Check::Runs })
    }

    /// Appends the replies of all workers to the connection's output, in the order of the commands.
    pub(crate) fn assemble(&mut self, assembly: Assembly, connection: &mut Connection) {
        let mut parts = assembly.answers;
        let last_record = parts.iter().map(|part| part.last_record).max().unwrap_or(0);
        connection.advance_record(last_record);
        let reply = &mut connection.output;
        parts.extend(assembly.local);
        let mut by_owner = vec![usize::MAX; self.server.workers.len()];
        for (at, part) in parts.iter().enumerate() {
            by_owner[part.owner] = at;
        }
        let mut taken = vec![0; parts.len()];
        for owner in assembly.owners {
            let at = by_owner[owner];
            let (from, to) = (parts[at].marks[taken[at]], parts[at].marks[taken[at] + 1]);
            reply.append_from(&parts[at].reply, from, to);
            taken[at] += 1;
        }
        for mut part in parts {
            part.clear();
            if self.spare.len() < SPARE_MAX {
                self.spare.push(part);
            }
        }
    }

    /// Refuses commands from another worker while a script keeps this worker outside the gate.
    #[cold]
    pub(crate) fn refuse_forwarded(&mut self, mut message: Box<Forwarded>) {
        let error = self.busy_error();
        for _ in message.marks.len()..message.prepared.len() {
            message.marks.push(message.reply.mark());
            self.answer_error(&error, &mut message.reply);
        }
        message.marks.push(message.reply.mark());
        self.server.workers[message.origin].mailbox.send(Message::Answer(message));
    }
}
