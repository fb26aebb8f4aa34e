//! Evaluation of a live query: its result at one moment, and the sequence number of that moment.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::{Args, Protocol, Reply};
use emberkv_core::call::{Attempt, AttemptResult, CommandResult, DataCommand};
use emberkv_core::dispatch::live;
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::keys::Guards;

use super::{LiveQueries, digest, long};
use crate::catalogue::registry::{Command, Handler};
use crate::clients::watchers::{Marked, State, StateMemory, Update};
use crate::executor::Executor;
use crate::tiers::Tiers;

/// A result, and the moment at which it was read.
pub(super) struct Evaluated {
    pub(super) sequence: u64,
    pub(super) record: Option<u64>,
    pub(super) hash: u128,
    pub(super) body: Vec<u8>,
}

/// A call to evaluate: the command of a query, its arguments, and its context.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) command: &'static Command,
    pub(super) args: Args<'q>,
    pub(super) database: usize,
    pub(super) protocol: Protocol,
}

impl Question<'_> {
    pub(super) fn data(&self) -> &'static DataCommand {
        let Handler::Data(data) = self.command.handler else {
            unreachable!("only commands on keys are watched")
        };
        data
    }
}

/// Runs the handler; returns its result and its reply. `at_moment` is called before the handler runs, after the locks
/// of all keys are taken. The locks stay pinned in `guards`, which the caller passes empty. The worker is inside the
/// gate.
fn run(
    executor: &mut Executor,
    guards: &mut Guards<'static>,
    question: Question<'_>,
    waiting: Waiting,
    at_moment: impl FnOnce(),
) -> (AttemptResult, Reply) {
    let Question { args, database, protocol, .. } = question;
    let mut reply = Reply::new(protocol);
    executor.turn.reads_any_key = false;
    let server = executor.server;
    let (keyspace, turn) = (&server.keyspace, &mut executor.turn);
    let mut context = Context { keyspace, guards, turn, database, waiting };
    let fetch_now = |context: &mut Context<'_, '_>| Tiers::of(server).fetch_now(context);
    let result = live::evaluate(question.data(), &mut context, args, &mut reply, at_moment, fetch_now);
    executor.turn.reads_any_key = true;
    (result, reply)
}

/// The result of the first evaluation, for a client that begins to watch.
pub(super) enum FirstResult {
    Found(Evaluated),
    /// The call is long-running and was not run; the sequence number of the present moment.
    Long(u64),
}

/// Runs a call for a client that begins to watch, unless the call is long-running. The locks of all its keys stay
/// pinned in `guards`, which the caller passes empty. The worker is inside the gate.
pub(super) fn evaluate_first(
    executor: &mut Executor,
    guards: &mut Guards<'static>,
    question: Question<'_>,
) -> FirstResult {
    let (result, reply) = run(executor, guards, question, Waiting::Allowed, || ());
    if matches!(result, Ok(Attempt::Offload)) {
        let (sequence, _) = executor.server.journal.state_number(&executor.turn.journal);
        return FirstResult::Long(sequence);
    }
    FirstResult::Found(evaluated(executor, &question, result.map(|_| ()), reply))
}

/// Adds the moment and the hash to a result that was read under the locks that are still held.
fn evaluated(
    executor: &mut Executor,
    question: &Question<'_>,
    result: CommandResult,
    reply: Reply,
) -> Evaluated {
    // Changes of these keys up to now received their sequence numbers under the locks that are held now; later changes
    // receive higher numbers.
    let (sequence, record) = executor.server.journal.state_number(&executor.turn.journal);
    let (hash, body) = shown(executor.config.watch_max_reply, question.command, result, reply);
    Evaluated { sequence, record, hash, body }
}

/// Returns the hash of a result, and the body to send: the result, or an error if it exceeds `bytes_max`.
pub(super) fn shown(
    bytes_max: u64,
    command: &Command,
    result: CommandResult,
    mut reply: Reply,
) -> (u128, Vec<u8>) {
    if let Err(error) = result {
        reply.error_bytes(&error.text());
    }
    let body = reply.to_vec();
    let hash = digest::of_result(command.spec, &body);
    if body.len() as u64 <= bytes_max {
        return (hash, body);
    }
    let mut error = Reply::new(reply.protocol());
    error.error(&format!("ERR the result has {} bytes: run the command to read it", body.len()));
    (hash, error.to_vec())
}

/// The outcome of evaluating a marked query again.
pub(crate) enum Renewed {
    /// No watcher needs the result: there are none, or they already have it.
    Known,
    /// The query's new state.
    Update(Update),
    /// The query is long-running, and a job thread evaluates it.
    Runs,
    /// The query is long-running, and its keys are in use. It remains marked and must be retried at this time.
    Waits(Instant),
}

/// Evaluates a marked query on its owner. The worker is inside the gate and holds no lock.
pub(crate) fn renew(executor: &mut Executor, marked: &Marked) -> Renewed {
    let Marked { query, since } = marked;
    if !query.is_marked() || query.with_audience(|audience| audience.is_empty()) {
        return Renewed::Known;
    }
    let command = executor.server.registry.get(query.command);
    let question =
        Question { command, args: query.call(), database: query.database(), protocol: query.protocol };
    let mut guards = Guards::None;
    let (result, reply) = run(executor, &mut guards, question, Waiting::Allowed, || query.unmark());
    if matches!(result, Ok(Attempt::Offload)) {
        return long::begin(executor, marked, &question, guards);
    }
    let found = evaluated(executor, &question, result.map(|_| ()), reply);
    executor.stats.query_evaluations.add(1);
    let workers = query.with_audience(|audience| {
        if audience.known() == Some(found.hash) && !audience.sends_equal() {
            return None;
        }
        audience.set_known(Some(found.hash));
        Some(audience.workers())
    });
    guards.unpin(&executor.server.keyspace, &mut executor.turn);
    let Some(workers) = workers else {
        executor.stats.query_equal.add(1);
        return Renewed::Known;
    };
    let Evaluated { sequence, record, hash, body } = found;
    let (query, since, body) = (Arc::clone(query), *since, Arc::new(body));
    let memory = StateMemory::new(LiveQueries::of(executor.server).states(), &body);
    Renewed::Update((State { query, sequence, record, hash, position: None, since, body, memory }, workers))
}
