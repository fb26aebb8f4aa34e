//! Runs batches: finds commands, prefetches their keys, takes locks, and counts and times the calls.
//!
//! ```text
//! batch ─ prepare: name → command, key → hash, shard line        (one pass over the batch)
//!       ─ fetch:   table lines, then entry lines                 (in the same pass, one group of keys later)
//!       ─ run:     checks → shard lock → handler → reply bytes   (the lock is held while the next key is on the shard)
//! ```
//!
//! In sharded mode, a command on one key whose shard belongs to another worker is sent to that worker, all such
//! commands of a batch in one message. When all answers have arrived, the replies are put in order ([`Assembly`]).

mod applying;
mod applying_together;
pub(crate) mod attendance;
pub(crate) mod authorization;
mod conditions;
mod damaged_payloads;
mod delivery;
mod during_script;
mod expiry_rules;
mod fetching;
mod forwarding;
mod hot_keys;
pub(crate) mod jobs;
pub(crate) mod linking;
mod long_calls;
mod marked_queries;
mod memory_limit;
pub(crate) mod monitoring;
mod pausing;
mod pool;
mod redirecting;
mod sampling;
pub(crate) mod session;
mod sizes;
mod tracking;
pub(crate) mod transaction;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_protocol::{Args, BATCH_COMMANDS_MAX, Batch, Mark, Reply};
use emberkv_core::call::{Attempt, Run};
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::error::CommandError;
use emberkv_core::events::Errand;
use emberkv_core::eviction::Evictor;
use emberkv_core::journal::Removal;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::spec::{Flags, Group};
use emberkv_core::turn::{Removals, Turn};
use emberkv_core::types::elements::FETCHED_MAX;

use conditions::Check;
use monitoring::{MonitoredCaller, is_monitored};
use sampling::Sampling;
use sizes::SizeLimits;

use crate::clients::client::{Client, ClientView, ReplyMode};
use crate::clients::watchers::{EndedRun, Marked};

use ember_config::Config;

use crate::catalogue::registry::{Command, Handler, is_http};
use crate::clients;
use crate::clients::assembly::Assembly;
use crate::clients::assembly::Forwarded;
use crate::clients::client_memory::ClientMemory;
use crate::clients::connection::Connection;
use crate::observability::command_log::LogKind;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::clock::unix_ms;
use crate::tiers::{Tiers, demotion};
use damaged_payloads::DamagedPayloads;
use session::{Execution, Outcome, ServerHandler, Session, SessionResult};
use tracking::AtOnce;

use crate::clients::blocked::Blocked;
use crate::observability::stats::WorkerStats;

/// The minimum number of commands in a batch for which keys are prefetched: with fewer, there is no latency to overlap.
const FETCH_AHEAD_MIN: usize = 3;

/// The number of keys in a group: the table lines of one group are prefetched at once, then the entries of the group
/// before it. Prefetching a whole long batch in one burst takes longer than in groups.
const FETCHED_TOGETHER: usize = 16;

/// The searches in one turn may together take the steps of one short call divided by this number; further searches are
/// offloaded. So other clients wait for less than half a millisecond when many connections search. Offloading makes a
/// search a tenth more expensive.
const SEARCHES_SHARE: usize = 2;

/// The value of `slowlog-log-slower-than`, in µs, below which each command is timed individually. Otherwise the quick
/// commands of one batch share a clock reading, which could not distinguish 1 ms from being descheduled in any case.
const TIME_EACH_BELOW_US: i64 = 1000;

/// The result of [`Executor::prepare`] for a command.
#[derive(Clone, Copy)]
struct Prepared {
    command: Option<&'static Command>,
    /// The hash of the command's key, if it has exactly one.
    hash: Option<KeyHash>,
}

/// The outcome of running a batch: where it has stopped, and why.
pub(crate) enum Progress {
    /// All commands have run.
    Done,
    /// The connection must be closed once its output is sent; later commands do not run.
    Close,
    /// The command with this number waits for the end of `CLIENT PAUSE`, or until a snapshot has saved the keys that it
    /// changes.
    Paused(usize),
    /// The command with this number waits for values that are being fetched.
    Fetching(usize),
    /// The command with this number (or the end of the batch) waits for answers of other workers.
    Awaiting(usize, Assembly),
    /// A command is blocked; the number is that of the next command, or the length of the batch.
    Blocked(usize, Box<Blocked>),
}

/// The caller of a command: its database, and its client if that is connected to this worker.
pub(crate) struct Caller<'c> {
    database: usize,
    client: Option<&'c mut Client>,
}

/// The access of other threads to the keyspace while a command runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    /// All workers have access, subject to shard locks.
    Shared,
    /// All workers have access, but the locks of all shards that the command needs are pinned (transactions).
    Pinned,
    /// No other thread has access: the gate is closed.
    Exclusive,
}

/// A worker's state for running commands.
pub(crate) struct Executor {
    pub(crate) server: &'static Server,
    /// The handlers of server commands, by registry index.
    handlers: &'static [Option<ServerHandler>],
    pub(crate) index: usize,
    pub(crate) config: Arc<Config>,
    generation: u64,
    /// Whether the configuration has been reloaded since the worker was last notified of a new configuration.
    has_new_config: bool,
    pub(crate) turn: Turn,
    pub(crate) stats: &'static WorkerStats,
    evictor: Evictor,
    /// Marked live queries that this worker owns and will evaluate.
    pub(crate) marked: Vec<Marked>,
    /// Whether there were live queries when the worker's turn began.
    pub(crate) has_queries: bool,
    /// The results of long-running evaluations of live queries that have ended on job threads.
    pub(crate) ended_runs: Vec<EndedRun>,
    /// Whether memory was short and no key could be evicted; eviction is not retried before the next write or tick.
    has_nothing_to_evict: bool,
    prepared: Vec<Prepared>,
    /// The registry indexes of the quick commands run since the clock was last read.
    quick: Vec<u16>,
    /// The last clock reading, from which the next command is timed.
    pub(crate) clock: Instant,
    times_each: bool,
    pub(crate) sizes: SizeLimits,
    sampling: Sampling,
    pub(crate) section: Section,
    /// Whether the running calls are those of a script.
    pub(crate) runs_script: bool,
    /// Whether the error of the call that is ending was already counted for a call of its script.
    pub(crate) is_error_counted: bool,
    /// The state for logging payloads that RESTORE has refused.
    damaged_payloads: DamagedPayloads,
    /// Whether the running calls are commands of the primary; the next field is the reason why one of them has failed.
    applies: bool,
    failure: Option<String>,
    /// Whether the server was a replica when the turn began.
    is_replica: bool,
    /// Whether this worker is outside the gate because a script prevented it from closing the gate.
    is_outside: bool,
    /// The number of the last published journal record with changes of the current batch; 0 if there is none.
    pub(crate) last_record: u64,
    pub(crate) client_memory: ClientMemory,
    /// Empty messages, whose buffers are reused.
    #[expect(clippy::vec_box, reason = "messages are large and are moved often")]
    spare: Vec<Box<Forwarded>>,
    /// Messages of other workers whose next command waits for a condition to end.
    #[expect(clippy::vec_box, reason = "messages are large and are moved often")]
    held: Vec<Box<Forwarded>>,
    /// Messages of other workers, or of this one, whose next command waits for cold values.
    #[expect(clippy::vec_box, reason = "messages are large and are moved often")]
    fetching: Vec<Box<Forwarded>>,
    /// The number of the message that was last added to `fetching`.
    last_parked: u64,
    /// The reason why the values of the next command cannot be read.
    pub(crate) unread: Option<Box<str>>,
}

/// The step that follows a command that has removed all keys; the caller holds no lock. It is a hook because the RDB
/// file belongs to a higher storey.
pub(crate) struct AfterEmptying(pub(crate) fn(&mut Executor));

impl Executor {
    /// Creates the executor of worker `index`.
    pub(crate) fn new(
        server: &'static Server,
        index: usize,
        seed: u64,
        handlers: &'static [Option<ServerHandler>],
    ) -> Executor {
        let generation = server.config.generation();
        let mut executor = Executor {
            server,
            handlers,
            index,
            config: server.config.snapshot(),
            generation,
            has_new_config: false,
            turn: Turn::new(unix_ms(), seed),
            stats: &server.workers[index].stats,
            evictor: Evictor::default(),
            marked: Vec::new(),
            has_queries: false,
            ended_runs: Vec::new(),
            has_nothing_to_evict: false,
            prepared: Vec::new(),
            quick: Vec::new(),
            clock: Instant::now(),
            times_each: false,
            sizes: SizeLimits::default(),
            sampling: Sampling::OFF,
            section: Section::Shared,
            runs_script: false,
            is_error_counted: false,
            damaged_payloads: DamagedPayloads::default(),
            applies: false,
            failure: None,
            is_replica: false,
            is_outside: false,
            last_record: 0,
            client_memory: ClientMemory::new(&server.workers[index].stats.client_bytes, &server.client_bytes),
            spare: Vec::new(),
            held: Vec::new(),
            fetching: Vec::new(),
            last_parked: 0,
            unread: None,
        };
        executor.turn.checks_values = Tiers::of(server).is_on();
        executor.apply_config();
        executor
    }

    /// Begins a turn of the event loop: reads the clock, and the configuration if it has changed. Returns whether the
    /// configuration has changed since the worker was last notified.
    pub(crate) fn begin_turn(&mut self) -> bool {
        self.turn.now_ms = unix_ms();
        self.turn.now_tick = self.server.keyspace.turnover_tick();
        self.turn.search_steps_left = self.turn.settings.short_call_steps / SEARCHES_SHARE;
        self.is_replica = self.server.conditions.get().contains(Condition::REPLICA);
        self.update_expiry_rules();
        self.turn.settings.payload_checks.checksum =
            !self.server.debug.skips_checksums.load(Ordering::Relaxed);
        // The flag is set here because expiry and eviction may precede all batches.
        self.turn.notices.collects_changes = self.server.trackers.is_broadcasting();
        self.take_new_config()
    }

    /// Reads the configuration if it has changed. Returns whether it has changed since the worker was last notified.
    pub(crate) fn take_new_config(&mut self) -> bool {
        self.refresh_config();
        std::mem::take(&mut self.has_new_config)
    }

    /// Reads the configuration if it has changed, possibly in the middle of a batch.
    fn refresh_config(&mut self) {
        let generation = self.server.config.generation();
        if generation != self.generation {
            self.generation = generation;
            self.config = self.server.config.snapshot();
            self.has_new_config = true;
            self.apply_config();
            // The sizes of the batch's remaining requests are not known here, so each request is checked.
            self.sizes.include(usize::MAX);
        }
    }

    fn apply_config(&mut self) {
        let config = &self.config;
        self.turn.settings.policy = config.maxmemory_policy;
        self.turn.settings.lfu_log_factor = config.lfu_log_factor;
        self.turn.settings.lfu_decay_minutes = config.lfu_decay_time;
        self.turn.settings.string_bytes_max =
            usize::try_from(config.proto_max_bulk_len).unwrap_or(usize::MAX);
        self.turn.settings.frees_deleted_lazily = config.lazyfree_lazy_user_del;
        self.turn.settings.removals = Removals {
            expired: Removal::lazy(config.lazyfree_lazy_expire),
            evicted: Removal::lazy(config.lazyfree_lazy_eviction),
            by_server: Removal::lazy(config.lazyfree_lazy_server_del),
        };
        self.turn.values_bytes_max = match config.maxmemory {
            0 => usize::MAX,
            bytes => usize::try_from(bytes / 2).unwrap_or(usize::MAX),
        };
        self.turn.notices.classes = config.notify_keyspace_events.wanted();
        self.turn.settings.frees_flushed_lazily = config.lazyfree_lazy_user_flush;
        self.turn.settings.encoding = config.encoding_limits();
        self.turn.settings.payload_checks.version_max = config.version_check().newest();
        self.turn.settings.redis_version = config.redis_version;
        self.turn.settings.payload_version = config.rdb_target().payload_version();
        self.times_each = (0..TIME_EACH_BELOW_US).contains(&config.slowlog_log_slower_than);
        self.sizes = SizeLimits::of(config);
        self.turn.settings.links_vectors_later = true;
        self.turn.settings.short_call_steps = match config.long_call_elements {
            0 => usize::MAX,
            elements => usize::try_from(elements).unwrap_or(usize::MAX),
        };
        self.turn.settings.large_key_bytes =
            sizes::limit(config.commandlog_key_larger_than, config.commandlog_large_key_max_len);
        self.sampling.set_interval(config.hotkeys_sampling);
        self.update_expiry_rules();
    }

    /// Runs the commands of `batch`, beginning with number `start`; appends replies to `reply`.
    pub(crate) fn run(
        &mut self,
        token: usize,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        start: usize,
        reply: &mut Reply,
    ) -> Progress {
        if client.is_user_stale() && !client.refresh_user() {
            return Progress::Close;
        }
        self.last_record = 0;
        self.clock = Instant::now();
        self.sizes.begin_batch(batch.wire_bytes_max(input.len()));
        self.sample(client, batch, input, start);
        self.prepare(batch, input, start, client.database);
        if !self.enter_gate() {
            if client.primary.is_some() {
                return Progress::Paused(start);
            }
            return self.run_during_script(client, batch, input, start, reply);
        }
        self.update_source(client);
        self.turn.notices.collects_changes = self.server.trackers.is_broadcasting();
        let mut start = start;
        if let Some(failure) = self.unread.take() {
            let is_primary = client.primary.is_some();
            self.refuse_unread(client, batch.command(start, input), failure, reply);
            if is_primary {
                return self.leave_unread(client);
            }
            self.prepared.remove(0);
            start += 1;
        }
        let progress = if client.primary.is_some() {
            self.apply(client, batch, input, start, reply)
        } else if self.has_foreign_keys() {
            self.run_forwarding(token, client, batch, input, start, reply)
        } else {
            self.run_here(client, batch, input, start, reply)
        };
        self.server.gate.leave(self.index);
        self.turn.sees_expired = false;
        self.settle_quick();
        self.publish();
        // A server command has recorded itself already, because subcommands have their own names.
        if let Some(Prepared { command: Some(command), .. }) = self.prepared.last()
            && let Handler::Data(_) = command.handler
        {
            client.view.record_command(command.index);
        }
        client.view.active_ms.store(self.turn.now_ms, Ordering::Relaxed);
        progress
    }

    /// Finds commands, hashes keys, and prefetches shards, table lines and entries.
    fn prepare(&mut self, batch: &Batch, input: &[u8], start: usize, database: usize) {
        let Executor { server, index, prepared, has_queries, .. } = self;
        let keyspace = &server.keyspace;
        let is_concurrent = server.runs_anywhere();
        let is_here = |hash: &KeyHash| is_concurrent || server.owner_of(hash.shard()) == *index;
        // A prefetch for a command also serves the following commands on the same key.
        let hash_of = |prepared: &[Prepared], at: usize| {
            let hash = prepared.get(at)?.hash.filter(is_here)?;
            (at == 0 || prepared[at - 1].hash != Some(hash)).then_some(hash)
        };
        let fetch = |prepared: &[Prepared], end: usize| {
            let writes = |at: usize| prepared[at].command.is_some_and(|command| command.writes());
            let asks_queries: Option<&dyn Fn(usize) -> bool> =
                if *has_queries { Some(&writes) } else { None };
            fetch_portion(keyspace, database, end, |at| hash_of(prepared, at), asks_queries);
        };
        // In a longer batch, which only a primary sends, keys are prefetched while commands run.
        let fetches_ahead = (FETCH_AHEAD_MIN..=BATCH_COMMANDS_MAX).contains(&(batch.len() - start));
        prepared.clear();
        let mut last: (&[u8], Option<&'static Command>) = (&[], None);
        for number in start..batch.len() {
            let args = batch.command(number, input);
            let name = args.at(0);
            if name != last.0 {
                last = (name, server.registry.find(name));
            }
            let mut hash = None;
            if let Some(Command { access: Access::One(arg), .. }) = last.1
                && let Some(key) = args.get(*arg)
            {
                let key_hash = keyspace.hash(key);
                keyspace.prefetch_shard(key_hash);
                hash = Some(key_hash);
            }
            prepared.push(Prepared { command: last.1, hash });
            if fetches_ahead && prepared.len().is_multiple_of(FETCHED_TOGETHER) {
                fetch(prepared, prepared.len());
            }
        }
        if fetches_ahead {
            let end = prepared.len().next_multiple_of(FETCHED_TOGETHER);
            if end != prepared.len() {
                fetch(prepared, end);
            }
            fetch(prepared, end + FETCHED_TOGETHER);
        }
    }

    /// Runs the commands on this worker, from number `from` to the end of the batch.
    fn run_here(
        &mut self,
        client: &mut Client,
        batch: &Batch,
        input: &[u8],
        from: usize,
        reply: &mut Reply,
    ) -> Progress {
        let first = batch.len() - self.prepared.len();
        let mut guards = Guards::None;
        let mut progress = Progress::Done;
        let mut fetched = from;
        for number in from..batch.len() {
            let prepared = self.prepared[number - first];
            if number >= fetched && prepared.command.is_some_and(|command| command.spec.elements.is_some()) {
                let call =
                    |number: usize| Some((*self.prepared.get(number - first)?, batch.command(number, input)));
                let context = (&self.server.keyspace, &mut guards, &mut self.turn, client.database);
                fetched = fetch_elements(context, number, call);
            }
            match self.execute_for(client, &mut guards, batch.command(number, input), prepared, reply) {
                Flow::Next if self.is_outside => {
                    progress = self.run_during_script(client, batch, input, number + 1, reply);
                    break;
                }
                Flow::Next => {}
                Flow::Close => {
                    progress = Progress::Close;
                    break;
                }
                Flow::Pause => {
                    progress = Progress::Paused(number);
                    break;
                }
                Flow::Fetch => {
                    self.begin_fetching(client, &mut guards, batch, input, number);
                    progress = Progress::Fetching(number);
                    break;
                }
                Flow::Wait(blocked) => {
                    progress = Progress::Blocked(number + 1, blocked);
                    break;
                }
            }
        }
        guards.release(&self.server.keyspace, &mut self.turn);
        progress
    }

    /// Runs one command of a connection of this worker.
    #[inline]
    fn execute_for(
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
            let name = &command.full_name;
            let error = format!(
                "ERR Can't execute '{name}': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are \
                 allowed in this context"
            );
            return self.refuse(client, guards, Some(command), error.into(), reply);
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
            Ok(Outcome::Close) => Flow::Close,
            Ok(Outcome::Wait(blocked)) => return Flow::Wait(blocked),
            Ok(Outcome::Again) => return Flow::Pause,
            Ok(Outcome::Fetch) => return Flow::Fetch,
            _ => Flow::Next,
        };
        // The replies of commands that change subscriptions are written like messages, in every reply mode.
        let mark = mark.filter(|_| result.is_err() || !is_subscribing(command));
        self.finish(command, result, args, Some(&client.view), reply);
        self.log_sizes(command, args, client.view.id, reply.len_bytes() - reply_start);
        self.apply_reply_mode(client, mark, reply);
        self.deliver(guards, Some(client.view.id));
        flow
    }

    /// Runs a command for a connection of this worker, and delivers its notifications.
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
        let mut caller = Caller { database: client.database, client: Some(client) };
        let result = match self.call(command, hash, &mut caller, guards, args, reply) {
            Ok(Outcome::Continue(next_step)) => {
                let result = { next_step(&mut Execution { executor: self, client, command, args, reply }) };
                if client.is_user_stale() && !client.refresh_user() { Ok(Outcome::Close) } else { result }
            }
            result => result,
        };
        if let Ok(Outcome::Again | Outcome::Fetch) = result {
            return result;
        }
        if matches!(command.handler, Handler::Server) {
            // A changed parameter applies from the next command on; it also decides whether this call is logged.
            let tracked_max = self.config.tracking_table_max_keys;
            self.refresh_config();
            if self.config.tracking_table_max_keys != tracked_max {
                self.limit_tracked();
            }
            self.update_source(client);
        }
        if !self.server.monitors.is_empty() && is_monitored(command) {
            let limit = &self.config.client_output_buffer_limit.pubsub;
            let caller = if self.runs_script { MonitoredCaller::Script } else { MonitoredCaller::Client };
            self.server.show_to_monitors(client, command, args, limit, caller);
        }
        if client.tracking.is_some() && result.is_ok() {
            self.track(client, command, args, guards);
        }
        result
    }

    /// Delivers the notifications of the last command. In a transaction, it does nothing: its notifications are
    /// delivered together at the end.
    #[inline]
    pub(crate) fn deliver(&mut self, guards: &mut Guards<'static>, changed_by: Option<u64>) {
        if !self.turn.notices.is_empty() && self.section == Section::Shared {
            self.deliver_notices(guards, changed_by, None);
        }
    }

    /// Delivers notifications now; notifications for the client of `at_once` are written between its replies.
    #[cold]
    fn deliver_notices(
        &mut self,
        guards: &mut Guards<'static>,
        changed_by: Option<u64>,
        mut at_once: Option<AtOnce<'_>>,
    ) {
        guards.release(&self.server.keyspace, &mut self.turn);
        if self.turn.notices.is_flushed {
            self.log_emptying(changed_by);
        }
        self.publish_events();
        self.send_invalidations(changed_by, at_once.as_mut());
        while !self.turn.notices.ready.is_empty() {
            self.serve_ready();
            self.publish_events();
            self.send_invalidations(changed_by, at_once.as_mut());
        }
        self.send_marked();
        self.send_on_errands();
        if std::mem::take(&mut self.turn.notices.is_emptied) {
            let AfterEmptying(act) = *self.server.services.get::<AfterEmptying>();
            act(self);
        }
    }

    /// Logs that databases have been emptied, by a command or by the load of other data.
    fn log_emptying(&self, changed_by: Option<u64>) {
        let what = if self.turn.notices.is_emptied { "all databases have" } else { "a database has" };
        let client = || changed_by.and_then(|id| self.server.clients.get(id)).map(|view| view.log_name());
        tracing::debug!("{what} been emptied by {}", client().unwrap_or_else(|| "the server".to_owned()));
    }

    /// Passes the background work that the last command has requested to other threads. The caller holds no lock.
    fn send_on_errands(&mut self) {
        for (errand, database, key) in self.turn.notices.errands.drain(..) {
            match errand {
                Errand::Link => linking::Links::of(self.server).link(self.server, (database, key)),
                Errand::Demote => demotion::queue_demotion(self.server, database, key),
            }
        }
    }

    fn publish_events(&mut self) {
        for notice in std::mem::take(&mut self.turn.notices.events) {
            self.server.publish_event(&notice, self.config.notify_keyspace_events.0);
        }
    }

    /// Removes a reply that the client has disabled. `mark` is the start of the reply; it is `None` if all replies were
    /// enabled when the command began. So the reply to the command that changes the mode remains.
    #[inline]
    fn apply_reply_mode(&self, client: &mut Client, mark: Option<Mark>, reply: &mut Reply) {
        if client.reply_mode != ReplyMode::On {
            mark.into_iter().for_each(|mark| reply.truncate_to(mark));
            client.reply_mode = client.reply_mode.next();
        }
    }

    /// Replies with an error to a command that does not run.
    #[cold]
    fn refuse(
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

    /// Replies with an error to a call that is counted as rejected.
    fn answer_rejected(&mut self, command: &Command, error: &CommandError, reply: &mut Reply) {
        self.stats.by_command[usize::from(command.index)].rejected.add(1);
        self.answer_error(error, reply);
    }

    fn answer_error(&mut self, error: &CommandError, reply: &mut Reply) {
        let text = error.text();
        self.count_error(&text);
        reply.error_bytes(&text);
    }

    /// Counts an error that a client or a script receives.
    pub(crate) fn count_error(&mut self, text: &[u8]) {
        self.stats.error_codes.count(text);
        self.stats.errors.add(1);
    }

    /// Runs a command's handler with the locks it needs.
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
        if !command.is_quick || self.times_each {
            self.settle_quick();
        }
        if self.config.maxmemory != 0
            && command.spec.flags.contains(Flags::DENYOOM)
            && self.section == Section::Shared
        {
            self.free_memory(guards, args.total_bytes())?;
        }
        match (command.handler, &mut caller.client) {
            (Handler::Data(data), client) => {
                let server = self.server;
                let mut exclusive = None;
                if matches!(data.run, Run::Exclusive(_)) && self.section == Section::Shared {
                    guards.release(&server.keyspace, &mut self.turn);
                    // The records are published first, because another worker may have exclusive access for long.
                    self.publish();
                    exclusive = match client {
                        None => Some(self.close_gate(None)?),
                        Some(client) => match self.close_gate_to_run(client, command, args)? {
                            None => return Ok(Outcome::Again),
                            access => access,
                        },
                    };
                }
                let (turn, database) = (&mut self.turn, caller.database);
                turn.reads_any_key = client
                    .as_ref()
                    .is_none_or(|client| authorization::may_read_any_key(client, command, args));
                let may_wait = self.section == Section::Shared && client.is_some() && !self.applies;
                let waiting = match may_wait {
                    _ if self.runs_script => Waiting::InScript,
                    true => Waiting::Allowed,
                    false => Waiting::Never,
                };
                let mut context = Context { keyspace: &server.keyspace, guards, turn, database, waiting };
                let mut attempt = dispatch::run(data, command.access, hash, &mut context, args, reply)?;
                while matches!(attempt, Attempt::Fetch) && !self.may_park() {
                    self.fetch_missing(guards, database)?;
                    let turn = &mut self.turn;
                    let mut context = Context { keyspace: &server.keyspace, guards, turn, database, waiting };
                    attempt = dispatch::run(data, command.access, hash, &mut context, args, reply)?;
                }
                drop(exclusive);
                match (attempt, client) {
                    (Attempt::Done, _) => Ok(Outcome::Done),
                    (Attempt::Fetch, _) => Ok(Outcome::Fetch),
                    (Attempt::Wait(wait), Some(client)) => {
                        Ok(Outcome::Wait(self.enlist(command, wait, args, client, guards, reply)))
                    }
                    (Attempt::Offload, Some(client)) => {
                        self.offload((command, data), args, client, guards, reply)
                    }
                    (Attempt::Wait(_) | Attempt::Offload, None) => {
                        unreachable!("only a connection's call may wait")
                    }
                }
            }
            (Handler::Server, Some(client)) => {
                let run = self.handlers[usize::from(command.index)].expect("a server command has a handler");
                guards.release(&self.server.keyspace, &mut self.turn);
                self.publish();
                // EXEC and scripts count the calls that they run themselves.
                if self.section == Section::Shared {
                    client.view.record_command(command.index);
                }
                let server = self.server;
                let result = run(&mut Session { args, command, server, client, turn: &mut self.turn, reply });
                // The command may have changed or removed its caller's own user.
                if client.is_user_stale() && !client.refresh_user() { Ok(Outcome::Close) } else { result }
            }
            _ => unreachable!("containers are resolved before, and server commands are not forwarded"),
        }
    }

    /// Counts the running requests of a client as the incoming bytes of their commands instead of as client memory. The
    /// remaining requests are counted at the end of the client's part of the turn.
    pub(crate) fn count_as_incoming(&mut self, client: &Client) {
        self.client_memory.set(&client.view.query_bytes, 0);
        self.count_client_state(client);
    }

    /// Counts the memory of the state that a client's calls have created.
    pub(crate) fn count_client_state(&mut self, client: &Client) {
        self.client_memory.set(&client.view.multi_bytes, client.multi_bytes());
        self.client_memory.set(&client.view.kept_bytes, client.kept_bytes());
    }

    /// Counts and times a call, and writes its error to the reply.
    #[inline]
    pub(crate) fn finish(
        &mut self,
        command: &'static Command,
        result: SessionResult,
        args: Args<'_>,
        client: Option<&ClientView>,
        reply: &mut Reply,
    ) {
        if self.applies
            && let Err(error) = &result
        {
            self.record_failure(error);
        }
        if let Err(error @ CommandError::OutOfMemory) = result {
            let name = || client.map_or_else(|| "another worker's client".to_owned(), ClientView::log_name);
            Self::log_refusal(command, &error, name);
            return self.answer_rejected(command, &error, reply);
        }
        self.stats.commands.add(1);
        if let Err(error) = result {
            self.damaged_payloads.log_if_damaged(command, &error, args, client, self.turn.now_ms);
            self.stats.by_command[usize::from(command.index)].failed.add(1);
            if std::mem::take(&mut self.is_error_counted) {
                reply.error_bytes(&error.text());
            } else {
                self.answer_error(&error, reply);
            }
        }
        if command.is_quick && !self.times_each {
            self.quick.push(command.index);
        } else {
            let nanoseconds = self.lap();
            self.stats.by_command[usize::from(command.index)].count(
                1,
                nanoseconds,
                self.config.latency_tracking,
            );
            self.log_if_slow(command, nanoseconds, args, client);
        }
    }

    /// Returns the nanoseconds since the clock was last read, and reads the clock.
    fn lap(&mut self) -> u64 {
        let now = Instant::now();
        let nanoseconds = now.duration_since(self.clock).as_nanos() as u64;
        self.clock = now;
        nanoseconds
    }

    /// Divides the time since the clock was last read among the quick commands run since.
    fn settle_quick(&mut self) {
        if self.quick.is_empty() {
            return;
        }
        let nanoseconds = self.lap() / self.quick.len() as u64;
        let tracks_latency = self.config.latency_tracking;
        for same in self.quick.chunk_by(|one, other| one == other) {
            self.stats.by_command[usize::from(same[0])].count(same.len() as u64, nanoseconds, tracks_latency);
        }
        self.quick.clear();
    }

    #[inline]
    fn log_if_slow(
        &mut self,
        command: &'static Command,
        nanoseconds: u64,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) {
        let microseconds = nanoseconds / 1000;
        let threshold = self.config.slowlog_log_slower_than;
        if threshold >= 0
            && microseconds >= threshold.unsigned_abs()
            && !command.spec.flags.contains(Flags::SKIP_SLOWLOG)
        {
            self.log_slow(command, microseconds, args, client);
        }
        let threshold_ms = self.config.latency_monitor_threshold;
        if threshold_ms != 0 && microseconds / 1000 >= threshold_ms {
            let event = if command.spec.flags.contains(Flags::FAST) { "fast-command" } else { "command" };
            self.server.latency.enter(event, self.turn.clock_ms() / 1000, microseconds / 1000);
        }
    }

    #[cold]
    fn log_slow(
        &mut self,
        command: &Command,
        microseconds: u64,
        args: Args<'_>,
        client: Option<&ClientView>,
    ) {
        self.log_command(LogKind::Slow, command, microseconds, args, client);
    }

    /// Publishes the worker's counts, the growth of the keyspace, and its journal records.
    pub(crate) fn publish(&mut self) {
        self.server.keyspace.publish_bytes(std::mem::take(&mut self.turn.growth_bytes));
        self.stats.absorb(&mut self.turn.counters);
        if self.turn.journal.has_records() {
            self.last_record = self.last_record.max(self.turn.journal.last_number().unwrap_or(0));
            self.server.journal.publish(self.index, &mut self.turn.journal);
        }
    }

    /// Records the last journal record of the batch in its connection.
    #[inline]
    pub(crate) fn record_last_changes(&mut self, connection: &mut Connection) {
        if self.last_record != 0 {
            let record = std::mem::take(&mut self.last_record);
            connection.advance_record(record);
        }
    }
}

/// Prefetches the table lines of the group of keys that ends before number `end`, and the entries of the group before
/// it. `hash_of` returns the hash of a key; `None` for keys that must not be prefetched and for numbers beyond the
/// last. If there are live queries, `asks_queries` returns whether a command changes its key.
#[inline]
fn fetch_portion(
    keyspace: &Keyspace,
    database: usize,
    end: usize,
    hash_of: impl Fn(usize) -> Option<KeyHash>,
    asks_queries: Option<&dyn Fn(usize) -> bool>,
) {
    let groups_from = end - FETCHED_TOGETHER;
    (groups_from..end).filter_map(&hash_of).for_each(|hash| keyspace.prefetch_group(hash));
    let entries = groups_from.saturating_sub(FETCHED_TOGETHER)..groups_from;
    let Some(asks_queries) = asks_queries else {
        return entries.filter_map(&hash_of).for_each(|hash| keyspace.prefetch_entry(database, hash));
    };
    for at in entries {
        match hash_of(at) {
            Some(hash) if asks_queries(at) => keyspace.prefetch_queried_entry(database, hash),
            Some(hash) => keyspace.prefetch_entry(database, hash),
            None => {}
        }
    }
}

/// Prefetches the elements that commands name, beginning with number `from`, as long as the commands have the same key.
/// `call` returns a command and its arguments, or `None` beyond the last command. Returns the number of the first
/// command that was not read.
#[inline(never)]
fn fetch_elements<'a>(
    (keyspace, guards, turn, database): (&'static Keyspace, &mut Guards<'static>, &mut Turn, usize),
    from: usize,
    call: impl Fn(usize) -> Option<(Prepared, Args<'a>)>,
) -> usize {
    let mut names: [&[u8]; FETCHED_MAX] = [&[]; FETCHED_MAX];
    let mut count = 0;
    let mut of_key = None;
    let mut next = from;
    while count < FETCHED_MAX
        && let Some((Prepared { command: Some(command), hash: Some(hash) }, args)) = call(next)
        && let (Some(elements), Access::One(key)) = (command.spec.elements, command.access)
        && of_key.is_none_or(|(first, _)| first == hash)
    {
        of_key = Some((hash, args.get(key).unwrap_or_default()));
        for (name, to) in elements.names(args).zip(&mut names[count..]) {
            *to = name;
            count += 1;
        }
        next += 1;
    }
    if let Some((hash, key)) = of_key.filter(|_| count >= FETCH_AHEAD_MIN) {
        let mut context = Context { keyspace, guards, turn, database, waiting: Waiting::Never };
        dispatch::fetch_elements(&mut context, hash, key, &names[..count]);
    }
    next.max(from + 1)
}

/// The next step after a command was run.
enum Flow {
    Next,
    Close,
    Pause,
    Fetch,
    Wait(Box<Blocked>),
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
