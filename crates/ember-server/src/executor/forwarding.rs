//! Forwarding: in sharded mode, a worker sends commands to the owners of their keys, and puts the replies in order.

use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_protocol::{Args, Batch, Protocol, Reply};
use emberkv_core::keys::Guards;
use emberkv_core::spec::Flags;

use super::authorization;
use super::monitoring::{MonitoredCaller, is_monitored};
use super::session::Outcome;
use super::{
    Caller, Executor, FETCH_AHEAD_MIN, FETCHED_TOGETHER, Flow, Prepared, Progress, fetch_elements,
    fetch_portion,
};
use crate::catalogue::registry::Handler;
use crate::clients::assembly::Assembly;
use crate::clients::assembly::Forwarded;
use crate::clients::client::{Client, ReplyMode};
use crate::clients::connection::Connection;
use crate::clients::mailbox::Message;
use crate::server::conditions::Condition;

/// The maximum number of empty messages whose buffers are retained: about as many as are usually in flight.
const SPARE_MAX: usize = 64;

impl Executor {
    pub(super) fn has_foreign_keys(&self) -> bool {
        !self.server.runs_anywhere()
            && self.prepared.iter().any(|prepared| {
                prepared.hash.is_some_and(|hash| self.server.owner_of(hash.shard()) != self.index)
            })
    }

    /// Runs commands on this worker until one belongs to another worker. Then it collects the following commands that
    /// may run on any worker, up to the first that must wait for their replies, sends each to its owner, and runs this
    /// worker's own commands meanwhile.
    pub(super) fn run_forwarding(
        &mut self,
        token: usize,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        reply: &mut Reply,
    ) -> Progress {
        let mut guards = Guards::None;
        let owner_of =
            |executor: &mut Executor, guards: &mut Guards<'static>, client: &Client, number: usize| {
                let prepared = executor.prepared[number - start];
                executor.forward_to(guards, client, prepared, batch.command(number, input))
            };
        let mut from = start;
        // Each command is checked only once, because a condition that keeps it on this worker may begin or end at any
        // moment.
        let mut owners = Vec::new();
        while from < batch.len() {
            let owner = owner_of(self, &mut guards, client, from).filter(|&owner| owner != self.index);
            if let Some(owner) = owner {
                owners.push(owner);
                break;
            }
            let prepared = self.prepared[from - start];
            let flow = self.execute_for(client, &mut guards, batch.command(from, input), prepared, reply);
            let stopped = match flow {
                Flow::Next if self.is_outside => {
                    return self.run_during_script(client, batch, input, from + 1, reply);
                }
                Flow::Next => None,
                Flow::Close => Some(Progress::Close),
                Flow::Pause => Some(Progress::Paused(from)),
                Flow::Fetch => {
                    self.begin_fetching(client, &mut guards, batch, input, from);
                    Some(Progress::Fetching(from))
                }
                Flow::Wait(blocked) => Some(Progress::Blocked(from + 1, blocked)),
            };
            if let Some(progress) = stopped {
                guards.release(&self.server.keyspace, &mut self.turn);
                return progress;
            }
            from += 1;
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        if owners.is_empty() {
            return Progress::Done;
        }
        owners
            .extend((from + 1..batch.len()).map_while(|number| owner_of(self, &mut guards, client, number)));
        guards.release(&self.server.keyspace, &mut self.turn);
        let mut local = self.spare();
        local.owner = self.index;
        local.reply.set_protocol(reply.protocol());
        let mut outgoing: Vec<Box<Forwarded>> = Vec::new();
        for (number, &owner) in (from..).zip(&owners) {
            let Prepared { command: Some(command), hash: Some(hash) } = self.prepared[number - start] else {
                unreachable!("only a known command on one key may run anywhere");
            };
            if !self.server.monitors.is_empty() && is_monitored(command) {
                let limit = &self.config.client_output_buffer_limit.pubsub;
                let args = batch.command(number, input);
                self.server.show_to_monitors(client, command, args, limit, MonitoredCaller::Client);
            }
            if owner == self.index {
                continue;
            }
            let found = outgoing.iter().position(|message| message.owner == owner);
            let at = found.unwrap_or_else(|| {
                outgoing.push(self.address(owner, token, client, reply.protocol()));
                outgoing.len() - 1
            });
            outgoing[at].commands.append(batch.command(number, input));
            outgoing[at].prepared.push((command.index, hash));
        }
        let mut outstanding = outgoing.len();
        for message in outgoing {
            self.stats.forwarded.add(message.prepared.len() as u64);
            self.server.workers[message.owner].mailbox.send(Message::Run(message));
        }
        // `execute_for` is not used: a pause that has begun since must not delay commands of a batch that was already
        // sent.
        self.turn.no_touch = client.view.no_touch.load(Ordering::Relaxed);
        let mut misses_values = false;
        for number in (from..from + owners.len()).filter(|number| owners[number - from] == local.owner) {
            let Prepared { command: Some(command), hash } = self.prepared[number - start] else { continue };
            let args = batch.command(number, input);
            local.marks.push(local.reply.mark());
            let mut caller = Caller { database: client.database, client: None };
            let reply_start = local.reply.len_bytes();
            let result = self.call(command, hash, &mut caller, &mut guards, args, &mut local.reply);
            if let Ok(Outcome::Fetch) = result {
                misses_values = true;
                break;
            }
            self.finish(command, result, args, Some(&client.view), &mut local.reply);
            self.log_sizes(command, args, client.view.id, local.reply.len_bytes() - reply_start);
            self.deliver(&mut guards, Some(client.view.id));
        }
        let next = from + owners.len();
        let mut local = Some(local);
        if misses_values && let Some(mut message) = local.take() {
            message.marks.pop();
            self.complete_message(&mut message, client);
            for number in (from..next).filter(|number| owners[number - from] == message.owner) {
                let Prepared { command: Some(command), hash: Some(hash) } = self.prepared[number - start]
                else {
                    unreachable!("only a known command on one key may run anywhere");
                };
                message.commands.append(batch.command(number, input));
                message.prepared.push((command.index, hash));
            }
            outstanding += 1;
            self.request_for_message(&mut message, &mut guards);
            self.fetching.push(message);
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        if let Some(local) = &mut local {
            local.marks.push(local.reply.mark());
        }
        Progress::Awaiting(next, Assembly { owners, local, answers: Vec::new(), outstanding })
    }

    /// Returns the owner of the command's key if the command may run on any worker. Returns `None` if the command must
    /// run on this worker, after all earlier ones.
    fn forward_to(
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
        if message.prepared.len() >= FETCH_AHEAD_MIN {
            let hash_of = |at: usize| message.prepared.get(at).map(|&(_, hash)| hash);
            let writes = |at: usize| self.server.registry.get(message.prepared[at].0).writes();
            let asks_queries: Option<&dyn Fn(usize) -> bool> =
                if self.has_queries { Some(&writes) } else { None };
            message.prepared.iter().for_each(|&(_, hash)| keyspace.prefetch_shard(hash));
            for portion in 1..=message.prepared.len().div_ceil(FETCHED_TOGETHER) + 1 {
                fetch_portion(keyspace, database, portion * FETCHED_TOGETHER, hash_of, asks_queries);
            }
        }
        if !self.enter_gate() {
            return self.refuse_forwarded(message);
        }
        self.turn.notices.collects_changes = self.server.trackers.is_broadcasting();
        let mut guards = Guards::None;
        self.turn.no_touch = message.no_touch;
        self.turn.sees_expired = message.sees_expired;
        let mut fetched = message.marks.len();
        let conditions = self.server.conditions.get();
        let meets_nothing = conditions.difference(Condition::CLUSTER).is_empty();
        let (mut must_wait, mut misses_values) = (false, false);
        for number in message.marks.len()..message.prepared.len() {
            let (command, hash) = message.prepared[number];
            let command = self.server.registry.get(command);
            let args = message.commands.command(number);
            if conditions.contains(Condition::CLUSTER)
                && let Err(refusal) = self.check_slots(message.slot_caller, command, Some(hash), args)
            {
                message.marks.push(message.reply.mark());
                self.answer_rejected(command, &refusal.error(), &mut message.reply);
                continue;
            }
            if !meets_nothing {
                match self.must_wait(None, &mut guards, command, message.commands.command(number)) {
                    Ok(false) => {}
                    Ok(true) => {
                        must_wait = true;
                        break;
                    }
                    Err(error) => {
                        message.marks.push(message.reply.mark());
                        self.log_refusal_of(command, &error, message.client_id);
                        self.answer_rejected(command, &error, &mut message.reply);
                        continue;
                    }
                }
            }
            if number >= fetched && command.spec.elements.is_some() {
                let call = |number: usize| {
                    let &(command, hash) = message.prepared.get(number)?;
                    let command = Some(self.server.registry.get(command));
                    Some((Prepared { command, hash: Some(hash) }, message.commands.command(number)))
                };
                let context = (keyspace, &mut guards, &mut self.turn, database);
                fetched = fetch_elements(context, number, call);
            }
            let args = message.commands.command(number);
            message.marks.push(message.reply.mark());
            let mut caller = Caller { database, client: None };
            let reply_start = message.reply.len_bytes();
            let result = self.call(command, Some(hash), &mut caller, &mut guards, args, &mut message.reply);
            if let Ok(Outcome::Fetch) = result {
                message.marks.pop();
                misses_values = true;
                break;
            }
            self.finish(command, result, args, None, &mut message.reply);
            let reply_bytes = message.reply.len_bytes() - reply_start;
            self.log_sizes(command, args, message.client_id, reply_bytes);
            self.deliver(&mut guards, Some(message.client_id));
        }
        self.turn.no_touch = false;
        self.turn.sees_expired = false;
        if misses_values {
            self.request_for_message(&mut message, &mut guards);
        }
        guards.release(keyspace, &mut self.turn);
        self.server.gate.leave(self.index);
        self.settle_quick();
        self.publish();
        message.last_record = std::mem::take(&mut self.last_record);
        if misses_values {
            self.fetching.push(message);
            return;
        }
        if must_wait {
            self.held.push(message);
            return;
        }
        message.marks.push(message.reply.mark());
        self.server.workers[message.origin].mailbox.send(Message::Answer(message));
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
