//! Runs batches: finds commands, prefetches their keys, takes locks, and counts and times the calls.
//!
//! ```text
//! batch ─ prepare: name → command, key → hash                    (one pass over the batch, `preparing.rs`)
//!       ─ run:     checks → shard lock → handler → reply bytes   (the lock is held while the next key is on the shard)
//!         fetch:   table lines and entries of later commands     (while earlier commands run)
//! ```
//!
//! In sharded mode, a command on one key whose shard belongs to another worker is sent to that worker, all such
//! commands of a batch in one message. When all answers have arrived, the replies are put in order ([`Assembly`]).

mod accounting;
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
mod notifying;
mod pausing;
mod pool;
mod preparing;
mod redirecting;
mod running;
mod sampling;
pub(crate) mod session;
mod sizes;
mod tracking;
pub(crate) mod transaction;
mod waiting;

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use ember_config::Config;
use ember_protocol::{Batch, Reply};
use emberkv_core::eviction::Evictor;
use emberkv_core::journal::Removal;
use emberkv_core::turn::{Removals, Turn};

use damaged_payloads::DamagedPayloads;
use preparing::Prepared;
use sampling::Sampling;
use session::ServerHandler;
use sizes::SizeLimits;

use crate::catalogue::registry::Handler;
use crate::clients::assembly::{Assembly, Forwarded};
use crate::clients::blocked::Blocked;
use crate::clients::client::Client;
use crate::clients::client_memory::ClientMemory;
use crate::clients::watchers::{EndedRun, Marked};
use crate::observability::stats::WorkerStats;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::clock::unix_ms;
use crate::tiers::Tiers;

/// The searches in one turn may together take the steps of one short call divided by this number; further searches are
/// offloaded. So other clients wait for less than half a millisecond when many connections search. Offloading makes a
/// search a tenth more expensive.
const SEARCHES_SHARE: usize = 2;

/// The value of `slowlog-log-slower-than`, in µs, below which each command is timed individually. Otherwise the quick
/// commands of one batch share a clock reading, which could not distinguish 1 ms from being descheduled in any case.
const TIME_EACH_BELOW_US: i64 = 1000;

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

/// Where [`Executor::run_here`] has stopped.
enum Stop {
    /// At the end of the batch, or at a command after which the batch does not continue now.
    At(Progress),
    /// Before the command with this number, which the worker with the second number must run.
    Foreign(usize, usize),
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
    /// Whether this cluster node may serve its slots, as of the beginning of the batch.
    has_lease: bool,
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
            has_lease: true,
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

    /// Runs the commands of `batch`, beginning with number `start`, for which [`Executor::prepare`] was called; appends
    /// replies to `reply`.
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
        } else {
            let forwards = self.has_foreign_keys();
            match self.run_here(client, batch, input, start, reply, forwards) {
                Stop::At(progress) => progress,
                Stop::Foreign(from, owner) => {
                    self.run_forwarding(token, client, batch, input, (from, owner), reply.protocol())
                }
            }
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
}
