//! Evaluates long-running live queries on job threads, on borrowed values, like long calls (`executor/long_calls.rs`):
//! only writes to the query's keys wait for the evaluation.
//!
//! The state has the sequence number of the moment at which the values were borrowed. If the query is marked during an
//! evaluation, it is evaluated again afterwards, never concurrently. `long_runs.rs` limits the number of concurrent
//! evaluations.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_protocol::{Protocol, Reply};
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::live_query::LiveQuery;

use super::LiveQueries;
use super::evaluation::{Question, Renewed, shown};
use super::long_runs::RETRY_TIME;
use crate::clients::watchers::{EndedRun, Marked, State, StateMemory, Update};
use crate::executor::Executor;
use crate::executor::jobs::{Effort, Job, Jobs, Settled};
use crate::server::Server;

/// An evaluation on a job thread.
struct LongRun {
    query: Arc<LiveQuery>,
    since: Instant,
    /// The sequence number of the moment at which the values were borrowed, and the number of the last journal record
    /// at that moment.
    sequence: u64,
    record: Option<u64>,
    /// The query's keys, which are held until the evaluation ends.
    keys: Vec<Box<[u8]>>,
    loan: Loan,
    protocol: Protocol,
    reply_bytes_max: u64,
    /// The hash of the result, and the body to send.
    result: (u128, Vec<u8>),
    took: Duration,
}

/// Starts an evaluation on a job thread. The locks of all the query's keys are pinned in `guards`; the query's mark was
/// cleared under them.
pub(super) fn begin(
    executor: &mut Executor,
    marked: &Marked,
    question: &Question<'_>,
    mut guards: Guards<'static>,
) -> Renewed {
    let Marked { query, since } = marked;
    let (server, args) = (executor.server, question.args);
    let positions = question.command.spec.key_positions(args);
    let keys: Vec<Box<[u8]>> = positions.map(|arg| args.at(arg).into()).collect();
    let (runs, now) = (LiveQueries::of(server).long_runs(), Instant::now());
    let begun = runs.begin(&keys, server.workers.len(), now).and_then(|()| {
        let holds = server.hold_keys_unless_awaited(&keys);
        if !holds {
            runs.end(&keys, Duration::ZERO);
        }
        holds.then_some(()).ok_or(now + RETRY_TIME)
    });
    if let Err(retry_at) = begun {
        query.mark();
        guards.unpin(&server.keyspace, &mut executor.turn);
        return Renewed::Waits(retry_at);
    }
    let (sequence, record) = server.journal.state_number(&executor.turn.journal);
    let (keyspace, turn, database) = (&server.keyspace, &mut executor.turn, question.database);
    let mut context = Context { keyspace, guards: &mut guards, turn, database, waiting: Waiting::Never };
    let loan = Loan::take(question.data(), &mut context, args);
    guards.unpin(keyspace, &mut executor.turn);
    let job = Box::new(LongRun {
        query: Arc::clone(query),
        since: *since,
        sequence,
        record,
        keys,
        loan,
        protocol: question.protocol,
        reply_bytes_max: executor.config.watch_max_reply,
        result: (0, Vec::new()),
        took: Duration::ZERO,
    });
    if let Err((mut job, error)) = Jobs::begin(server, Effort::Processor, job) {
        tracing::warn!("a long-running live query runs on its worker: cannot start a thread: {error}");
        job.run(server);
        Jobs::of(server).notify(server, job);
    }
    Renewed::Runs
}

impl Job for LongRun {
    fn worker(&self) -> usize {
        self.query.owner()
    }

    fn run(&mut self, server: &'static Server) {
        let begun = Instant::now();
        let mut reply = Reply::new(self.protocol);
        let result = self.loan.run(&server.keyspace, &mut reply);
        // Writes to the keys wait only until this point.
        self.took = begun.elapsed();
        server.release_keys(&self.keys);
        LiveQueries::of(server).long_runs().end(&self.keys, self.took);
        let command = server.registry.get(self.query.command);
        self.result = shown(self.reply_bytes_max, command, result, reply);
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        let (query, took) = (Arc::clone(&self.query), self.took);
        let update = self.update(executor);
        executor.stats.query_evaluations.add(1);
        executor.stats.query_equal.add(u64::from(update.is_none()));
        executor.ended_runs.push(EndedRun { query, took, update });
        None
    }
}

impl LongRun {
    fn update(self, executor: &mut Executor) -> Option<Update> {
        let LongRun { query, since, sequence, record, keys, result: (hash, body), .. } = self;
        let server = executor.server;
        let mut guards = Guards::None;
        let mut shards = keys.iter().map(|key| server.keyspace.hash(key).shard()).collect();
        guards.pin(&server.keyspace, &mut executor.turn, &mut shards);
        let workers = query.with_audience(|audience| {
            if audience.is_empty() || (audience.known() == Some(hash) && !audience.sends_equal()) {
                return None;
            }
            // If a key has changed since the evaluation began, other clients may have begun to watch with a different
            // result.
            audience.set_known((!query.is_marked()).then_some(hash));
            Some(audience.workers())
        });
        guards.unpin(&server.keyspace, &mut executor.turn);
        let body = Arc::new(body);
        let workers = workers?;
        let memory = StateMemory::new(LiveQueries::of(server).states(), &body);
        Some((State { query, sequence, record, hash, position: None, since, body, memory }, workers))
    }
}
