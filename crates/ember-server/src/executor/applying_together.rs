//! Applies the primary's stream on all cores: idle workers help to apply a round of commands on keys.
//!
//! The link's worker is inside the gate during the whole round, and applies all units that no other worker applies. So
//! a thread with exclusive access (a snapshot, a change of the role) sees only complete rounds, and a round without
//! help only takes longer. Commands on keys that share a worker keep their order; MULTI units and commands on several
//! keys run whole, after all earlier commands on their keys (`sync/lanes.rs` of ember-core). All other commands, and
//! those that may have to wait, end a round; the link's worker applies them alone, in order (`applying.rs`).

use std::sync::Arc;
use std::time::Instant;

use ember_config::ReplicaApply;
use ember_protocol::{Args, Batch, Protocol, Reply};
use emberkv_core::call::Run;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::lanes::{Following, Runner};
use emberkv_core::spec::Flags;

use super::preparing::{HEAD_AHEAD, SLOTS_AHEAD, Upcoming};
use super::session::Outcome;
use super::{Caller, Executor};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::client::Client;
use crate::clients::mailbox::Message;
use crate::clients::round::{Round, RoundCall, RoundPlan, RoundUnit};
use crate::server::conditions::Condition;

/// With fewer units than this, one worker applies all of them: waking another worker takes as long.
const UNITS_MIN: usize = 64;

/// The number of units per additional worker that is woken.
const UNITS_A_WORKER: usize = 64;

/// Conditions that may delay a command of the primary.
const DELAYS: Condition = Condition::SNAPSHOT
    .union(Condition::KEYS_HELD)
    .union(Condition::AOF_LAGS)
    .union(Condition::PUSHES_LAG)
    .union(Condition::MEMORY_LAGS)
    .union(Condition::LOADING);

/// The role of a command in a round.
enum Part {
    /// A command that does not change data.
    Nothing,
    /// A command that selects a database.
    Select(usize),
    Begin,
    End,
    /// A call that writes to the keys in its arguments.
    Call(&'static Command),
    /// Any other command, before which the round ends.
    Other,
}

/// The result of [`Executor::apply_together`].
pub(super) enum Together {
    /// Too few commands can be applied together: one worker must apply the commands before this number.
    Few(usize),
    /// The commands before this number are applied.
    Applied(usize),
    /// The command with this number, which begins at offset `at` of the history, has failed. Some commands before and
    /// after it may already be applied.
    Failed { number: usize, at: u64, why: String },
}

impl Executor {
    /// Returns whether other workers may apply some of the next commands.
    pub(super) fn applies_together(&self, client: &Client) -> bool {
        self.server.workers.len() > 1
            && self.config.replica_apply == ReplicaApply::Parallel
            && client.transaction.is_none()
            // Only one connection can be parked to wait for cold values.
            && !self.turn.checks_values
            && self.server.monitors.is_empty()
            && !self.server.conditions.get().intersects(DELAYS)
    }

    /// Applies commands of `batch` together with other workers, beginning with number `from`, as far as possible. The
    /// caller holds no lock.
    pub(super) fn apply_together(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        from: usize,
    ) -> Together {
        if batch.len() - from < UNITS_MIN {
            return Together::Few(batch.len());
        }
        let first = batch.len() - self.prepared.len();
        let mut round = RoundPlan::new(self.server.workers.len());
        let (mut numbers, mut select_ends) = (Vec::new(), Vec::new());
        let (mut database, mut requests_ack) = (client.database, false);
        // The open transaction: the number of its MULTI, the index of its first call, and the database selected before
        // it.
        let mut open: Option<(usize, usize, usize)> = None;
        let mut lanes = Vec::new();
        let mut end = from;
        while end < batch.len() {
            let args = batch.command(end, input);
            let prepared = self.prepared[end - first];
            let part = self.part(prepared.command, args);
            if !matches!(part, Part::Call(_)) {
                select_ends.push(end);
            }
            match part {
                Part::Nothing => requests_ack |= args.len() > 1,
                Part::Select(selected) => database = selected,
                Part::Begin if open.is_none() => open = Some((end, round.calls.len(), database)),
                Part::End if let Some((_, begun, _)) = open => {
                    if begun < round.calls.len() {
                        round.plan.add_to_all(std::mem::take(&mut lanes));
                        round.units.push(RoundUnit { calls: begun..round.calls.len(), is_transaction: true });
                    }
                    open = None;
                }
                Part::Call(command) => {
                    let number = round.calls.len();
                    round.commands.append(args);
                    numbers.push(end);
                    let hash = prepared.hash;
                    round.calls.push(RoundCall { command: command.index, hash, database });
                    match hash {
                        _ if open.is_some() => lanes.extend(self.lanes_of(command, hash, args)),
                        Some(hash) => round.plan.add(self.server.owner_of(hash.shard())),
                        None => round.plan.add_to_all(self.lanes_of(command, hash, args)),
                    }
                    if open.is_none() {
                        round.units.push(RoundUnit { calls: number..number + 1, is_transaction: false });
                    }
                }
                Part::Begin | Part::End | Part::Other => break,
            }
            end += 1;
        }
        let stopped_at = end;
        if let Some((begun, calls, before)) = open {
            // The rest of the transaction has not arrived, or cannot be applied together.
            (end, database) = (begun, before);
            round.calls.truncate(calls);
        }
        if round.units.len() < UNITS_MIN {
            return Together::Few(stopped_at);
        }
        let client_id = client.view.id;
        let round = Arc::new(round.complete(client_id));
        self.run_round(&round);
        let Some(primary) = &mut client.primary else { unreachable!("the client is the primary") };
        if let Some((call, why)) = round.failure() {
            let number = numbers[call];
            let mut before = Vec::new();
            (from..number).for_each(|number| batch.command(number, input).encode(&mut before));
            let at = primary.position() + before.len() as u64;
            // The applied commands are no longer a prefix of the history.
            primary.end_relay();
            return Together::Failed { number, at, why };
        }
        client.database = database;
        primary.is_ack_requested |= requests_ack;
        (from..end).for_each(|number| primary.advance(batch.command(number, input), false));
        for number in select_ends.into_iter().filter(|number| (from..end).contains(number)) {
            let (args, reply) = (batch.command(number, input), &mut Reply::default());
            if let Some(command) =
                self.prepared[number - first].command.filter(|it| it.spec.name != "replconf")
            {
                self.finish(command, &Ok(Outcome::Done), args, None, reply);
            }
        }
        // The records of other workers are on disk once the last record of the journal is.
        if self.server.journal.is_on() {
            self.last_record = self.last_record.max(self.server.journal.last_number());
        }
        Together::Applied(end)
    }

    /// Returns the role of a command in a round.
    fn part(&self, command: Option<&'static Command>, args: Args<'_>) -> Part {
        let Some(command) = command.filter(|command| command.spec.accepts(args.len())) else {
            return Part::Other;
        };
        match (&*command.full_name, args.len()) {
            ("ping", 1) | ("replconf", _) => Part::Nothing,
            ("multi", _) => Part::Begin,
            ("exec", _) => Part::End,
            ("select", _) => {
                let number = std::str::from_utf8(args.at(1)).ok().and_then(|text| text.parse().ok());
                number
                    .filter(|&number| number < self.server.keyspace.databases())
                    .map_or(Part::Other, Part::Select)
            }
            _ if is_on_keys(command) && command.spec.key_positions(args).next().is_some() => {
                Part::Call(command)
            }
            _ => Part::Other,
        }
    }

    fn lanes_of(&self, command: &Command, hash: Option<KeyHash>, args: Args<'_>) -> Vec<usize> {
        let lane = |hash: KeyHash| self.server.owner_of(hash.shard());
        match hash {
            Some(hash) => vec![lane(hash)],
            None => {
                let positions = command.spec.key_positions(args);
                positions.map(|arg| lane(self.server.keyspace.hash(args.at(arg)))).collect()
            }
        }
    }

    /// Runs a round to its end with the help of other workers.
    fn run_round(&mut self, round: &Arc<Round>) {
        let workers = self.server.workers.len();
        let wanted = (round.units.len() / UNITS_A_WORKER).min(round.lanes.busy_lanes() - 1).min(workers - 1);
        for other in (self.index + 1..self.index + workers).take(wanted) {
            self.server.workers[other % workers].mailbox.send(Message::Apply(Arc::clone(round)));
        }
        let first = self.index;
        let mut applier = Applier::new(self, round);
        round.lanes.lead(first, &mut applier);
    }

    /// Helps the link's worker with a round, unless all units are applied or a script keeps this worker outside the
    /// gate.
    pub(crate) fn help_apply(&mut self, round: &Round) {
        self.clock = Instant::now();
        self.sizes.begin_batch(round.commands.wire_bytes_max());
        if !self.enter_gate() {
            return;
        }
        self.last_record = 0;
        self.turn.notices.collects_changes = self.server.trackers.is_broadcasting();
        self.as_replay(|executor| {
            let first = executor.index;
            let mut applier = Applier::new(executor, round);
            round.lanes.help(first, &mut applier);
        });
        self.server.gate.leave(self.index);
        self.settle_quick();
        self.publish();
        self.last_record = 0;
    }
}

/// Returns whether a command writes only to the keys in its arguments and can run on any worker.
fn is_on_keys(command: &Command) -> bool {
    let flags = command.spec.flags;
    let Handler::Data(data) = command.handler else { return false };
    let runs_on_keys =
        matches!(data.run, Run::Keys(_) | Run::Prepared(_) | Run::Long(_) | Run::KeysOrLong { .. });
    runs_on_keys && flags.contains(Flags::WRITE) && !flags.contains(Flags::BLOCKING)
}

/// Applies units of a round on a worker that is inside the gate.
struct Applier<'a> {
    executor: &'a mut Executor,
    round: &'a Round,
    guards: Guards<'static>,
    /// A buffer for replies that are discarded.
    reply: Reply,
    /// Whether the keys of the next units of the lane are being prefetched.
    fetches: bool,
}

/// The following units of a lane.
struct Units<'a> {
    round: &'a Round,
    following: Following<'a>,
    /// The database whose keys are prefetched.
    database: usize,
}

impl Upcoming for Units<'_> {
    fn hash_at(&self, at: usize) -> Option<KeyHash> {
        let unit = &self.round.units[self.following.get(at)?];
        let call = &self.round.calls[unit.calls.start];
        call.hash.filter(|_| call.database == self.database)
    }

    fn writes_at(&self, _: usize) -> bool {
        true
    }
}

impl Applier<'_> {
    fn new<'a>(executor: &'a mut Executor, round: &'a Round) -> Applier<'a> {
        let reply = Reply::new(Protocol::Resp2);
        Applier { executor, round, guards: Guards::None, reply, fetches: false }
    }

    /// Prefetches the keys of the next units that write to the same database as the first of them.
    fn fetch_ahead(&mut self, following: Following<'_>) {
        let Some(unit) = following.get(0) else { return };
        let database = self.round.calls[self.round.units[unit].calls.start].database;
        let upcoming = Units { round: self.round, following, database };
        let (server, ahead) = (self.executor.server, self.executor.fetch_ahead(database));
        if !std::mem::replace(&mut self.fetches, true) {
            ahead.fetch_first(0, following.len(), &upcoming);
        }
        if let Some(hash) = upcoming.hash_at(SLOTS_AHEAD + HEAD_AHEAD) {
            server.keyspace.prefetch_shard(hash);
        }
        ahead.fetch_after(0, &upcoming);
    }

    /// Runs the call with this number; returns false if it has failed.
    fn call(&mut self, number: usize) -> bool {
        let Applier { executor, round, guards, reply, .. } = self;
        executor.run_applied(round, number, guards, reply)
    }
}

impl Executor {
    fn run_applied(
        &mut self,
        round: &Round,
        number: usize,
        guards: &mut Guards<'static>,
        reply: &mut Reply,
    ) -> bool {
        let RoundCall { command, hash, database } = round.calls[number];
        let (command, args) = (self.server.registry.get(command), round.commands.command(number));
        let mut caller = Caller { database, client: None };
        let result = self.call(command, hash, &mut caller, guards, args, reply);
        if !matches!(result, Ok(Outcome::Done) | Err(_)) {
            self.failure = Some("it would block".to_owned());
        }
        self.finish(command, &result, args, None, reply);
        self.stats.applied_together.add(1);
        self.log_sizes(command, args, round.client_id, 0);
        self.deliver(guards, Some(round.client_id));
        reply.clear();
        match self.failure.take() {
            None => true,
            Some(why) => {
                round.fail(number, why);
                false
            }
        }
    }
}

impl Runner for Applier<'_> {
    fn run(&mut self, unit: usize, following: Following<'_>) -> bool {
        self.fetch_ahead(following);
        let unit = &self.round.units[unit];
        if !unit.is_transaction {
            return self.call(unit.calls.start);
        }
        self.rest();
        let Applier { executor, round, reply, .. } = self;
        let server = executor.server;
        let shards_of = |number: usize| {
            let args = round.commands.command(number);
            let positions = server.registry.get(round.calls[number].command).spec.key_positions(args);
            positions.map(move |arg| server.keyspace.hash(args.at(arg)).shard())
        };
        let shards = unit.calls.clone().flat_map(shards_of).collect();
        let is_applied = executor.with_pinned(shards, |executor, guards| {
            unit.calls.clone().all(|number| executor.run_applied(round, number, guards, reply))
        });
        executor.deliver(&mut Guards::None, Some(round.client_id));
        is_applied
    }

    fn rest(&mut self) {
        self.guards.release(&self.executor.server.keyspace, &mut self.executor.turn);
        self.fetches = false;
    }
}
