//! Running a live query: its result at one moment, and the number of that moment.

use std::sync::Arc;

use ember_protocol::{Args, Protocol, Reply};
use emberkv_core::dispatch::live;
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::keys::Guards;

use super::digest;
use crate::catalogue::registry::{Command, Handler};
use crate::clients::live_queries::{Marked, State};
use crate::executor::Executor;

/// A result, and the moment at which it was that.
pub(super) struct Evaluated {
    pub(super) sequence: u64,
    pub(super) record: Option<u64>,
    pub(super) hash: u128,
    pub(super) body: Vec<u8>,
}

/// What the command of a query is called with.
#[derive(Clone, Copy)]
pub(super) struct Question<'q> {
    pub(super) command: &'static Command,
    pub(super) args: Args<'q>,
    pub(super) database: usize,
    pub(super) protocol: Protocol,
}

/// Runs a call. The locks of all its keys stay pinned in `guards`, which held none. `at_moment` is called under them before
/// it runs. The worker is inside the gate.
pub(super) fn evaluate(
    executor: &mut Executor,
    guards: &mut Guards<'static>,
    question: Question<'_>,
    at_moment: impl FnOnce(),
) -> Evaluated {
    let Question { command, args, database, protocol } = question;
    let Handler::Data(data) = command.handler else { unreachable!("only commands on keys are watched") };
    let server = executor.server;
    let mut reply = Reply::new(protocol);
    executor.turn.reads_any_key = false;
    let mut context = Context {
        keyspace: &server.keyspace,
        guards,
        turn: &mut executor.turn,
        database,
        waiting: Waiting::Never,
    };
    let result = live::evaluate(data, &mut context, args, &mut reply, at_moment);
    executor.turn.reads_any_key = true;
    if let Err(error) = result {
        reply.error_bytes(&error.text());
    }
    // What has changed these keys has taken its number under the locks that are held now; what will, takes a higher one.
    let (sequence, record) = server.journal.state_number(&executor.turn.journal);
    let mut body = reply.to_vec();
    let hash = digest::of_result(command.spec, &body);
    let max = executor.config.watch_max_reply;
    if body.len() as u64 > max {
        let mut error = Reply::new(protocol);
        error.error(&format!("ERR the result has {} bytes: read it yourself", body.len()));
        body = error.to_vec();
    }
    Evaluated { sequence, record, hash, body }
}

/// Runs a query again that is marked, on its home. Returns its state, and the workers that are to be told; none if they know
/// it. The worker is inside the gate and holds no lock.
pub(crate) fn renew(executor: &mut Executor, marked: &Marked) -> Option<(State, Vec<u16>)> {
    let Marked { query, since } = marked;
    if !query.is_marked() || query.with_audience(|audience| audience.is_empty()) {
        return None;
    }
    let command = executor.server.registry.get(query.command);
    let question =
        Question { command, args: query.call(), database: query.database(), protocol: query.protocol };
    let mut guards = Guards::None;
    let found = evaluate(executor, &mut guards, question, || query.unmark());
    executor.stats.query_evaluations.add(1);
    let workers = query.with_audience(|audience| {
        if audience.known() == Some(found.hash) && !audience.wants_equal() {
            return None;
        }
        audience.set_known(Some(found.hash));
        Some(audience.workers())
    });
    guards.unpin(&executor.server.keyspace, &mut executor.turn);
    let Some(workers) = workers else {
        executor.stats.query_equal.add(1);
        return None;
    };
    let Evaluated { sequence, record, hash, body } = found;
    let body = Arc::new(body);
    Some((State { query: Arc::clone(query), sequence, record, hash, since: *since, body }, workers))
}
