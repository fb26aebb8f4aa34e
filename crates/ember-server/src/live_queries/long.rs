//! A live query that takes long is run by a thread of its own, on values that its keys lend it, as long calls are
//! (`executor/long_calls.rs`): nobody waits for it but who would change one of its keys.
//!
//! Its number is that of the moment when they were lent. One that is marked meanwhile is run again afterwards, never beside.

use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_protocol::Reply;
use emberkv_core::call::CommandResult;
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::live_query::LiveQuery;

use super::LiveQueries;
use super::evaluation::{Question, Renewed, shown};
use crate::clients::live_queries::{EndedRun, Marked, News, State, StateMemory};
use crate::executor::Executor;
use crate::executor::jobs::{Effort, Job, Jobs, Settled};
use crate::server::Server;

/// A query that runs elsewhere.
struct LongRun {
    query: Arc<LiveQuery>,
    since: Instant,
    /// The number of the moment at which its keys have lent their values, and that of the last record then.
    sequence: u64,
    record: Option<u64>,
    /// The keys, which are held.
    keys: Vec<Box<[u8]>>,
    loan: Loan,
    reply: Reply,
    result: CommandResult,
    took: Duration,
}

/// Has a query run elsewhere. The locks of all its keys are pinned in `guards`, and its mark was taken back under them.
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
    if !server.hold_keys_unless_awaited(&keys) {
        query.mark();
        guards.unpin(&server.keyspace, &mut executor.turn);
        return Renewed::Waits;
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
        reply: Reply::new(question.protocol),
        result: Ok(()),
        took: Duration::ZERO,
    });
    if let Err((mut job, error)) = Jobs::begin(server, Effort::Processor, job) {
        tracing::warn!("a long live query runs on its worker: the system gives no thread: {error}");
        job.run(server);
        Jobs::of(server).tell(server, job);
    }
    Renewed::Runs
}

impl Job for LongRun {
    fn worker(&self) -> usize {
        self.query.home()
    }

    fn run(&mut self, server: &'static Server) {
        let begun = Instant::now();
        self.result = self.loan.run(&server.keyspace, &mut self.reply);
        self.took = begun.elapsed();
    }

    fn settle(self: Box<Self>, executor: &mut Executor) -> Option<Settled> {
        executor.server.let_keys_go(&self.keys);
        let (query, took) = (Arc::clone(&self.query), self.took);
        let news = self.news(executor);
        executor.stats.query_evaluations.add(1);
        executor.stats.query_equal.add(u64::from(news.is_none()));
        executor.ended_runs.push(EndedRun { query, took, news });
        None
    }
}

impl LongRun {
    fn news(self, executor: &mut Executor) -> Option<News> {
        let LongRun { query, since, sequence, record, keys, reply, result, .. } = self;
        let server = executor.server;
        let (hash, body) = shown(executor, server.registry.get(query.command), result, reply);
        let mut guards = Guards::None;
        let mut shards = keys.iter().map(|key| server.keyspace.hash(key).shard()).collect();
        guards.pin(&server.keyspace, &mut executor.turn, &mut shards);
        let workers = query.with_audience(|audience| {
            if audience.is_empty() || (audience.known() == Some(hash) && !audience.wants_equal()) {
                return None;
            }
            // If a key has changed since, some may have begun to watch with another result.
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
