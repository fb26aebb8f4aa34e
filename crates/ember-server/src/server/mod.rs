//! The state that all threads of the process share.

pub(crate) mod conditions;
pub(crate) mod debug_switches;
pub(crate) mod held_keys;
pub(crate) mod services;
pub(crate) mod slots;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, OsDisk};
use emberkv_core::gate::Gate;
use emberkv_core::keyspace::{Keyspace, SHARDS};
use parking_lot::{Condvar, Mutex};

use conditions::{Condition, Conditions};
use debug_switches::DebugSwitches;
use ember_config::{ConfigHandle, ShutdownOptions};
use held_keys::HeldKeys;
use services::Services;
use slots::Slots;

use crate::acl::selector::Grammar;
use crate::acl::users::Acl;
use crate::catalogue::registry::Registry;
use crate::clients::client::{ClientView, Clients};
use crate::clients::ending::EndReason;
use crate::clients::mailbox::{Mailbox, Message};
use crate::clients::monitors::Monitors;
use crate::clients::pause::Pause;
use crate::clients::subscriptions::{Address, PubSub};
use crate::clients::tracking::Trackers;
use crate::files::data_lock::DataLock;
use crate::files::encryption::FileEncryption;
use crate::journal::{JournalHub, Reader};
use crate::observability::command_log::CommandLog;
use crate::observability::hot_keys::HotKeys;
use crate::observability::latency::LatencyMonitor;
use crate::observability::over_limit::OverLimit;
use crate::observability::own_traffic::OwnTraffic;
use crate::observability::rates::Rates;
use crate::observability::stats::{CommandTotals, Counter, WorkerStats};
use ember_scripting::Scripting;

use crate::system::clock::unix_ms;
use crate::system::log::LogHandle;
use crate::tls::Tls;

/// The memory of the started server counts up to `maxmemory` divided by this number, so that a server with a very low limit
/// can store data.
const STARTUP_SHARE: u64 = 16;

/// The part of a worker's state that other threads access.
pub(crate) struct WorkerHandle {
    /// The mailbox for messages to the worker.
    pub(crate) mailbox: Mailbox,
    /// The worker's counters.
    pub(crate) stats: WorkerStats,
    /// The keys that the worker's samples contain most often.
    pub(crate) hot_keys: Mutex<HotKeys>,
    /// The number of the worker's connections.
    pub(crate) connections: AtomicU64,
    /// Bytes of the pushes in the worker's mailbox, and of the pushes that it is processing.
    pub(crate) push_bytes: AtomicUsize,
}

/// The components from which a server is built at startup.
pub(crate) struct Parts {
    pub(crate) config: ConfigHandle,
    pub(crate) tls: Tls,
    pub(crate) encryption: FileEncryption,
    pub(crate) keyspace: Keyspace,
    /// The state of a cluster node.
    pub(crate) slots: Option<Slots>,
    /// One mailbox for each worker.
    pub(crate) mailboxes: Vec<Mailbox>,
    pub(crate) registry: Registry,
    pub(crate) services: Services,
    pub(crate) run_id: String,
    pub(crate) log: LogHandle,
}

/// The state that all threads of the server share.
pub(crate) struct Server {
    // These fields do not change after startup.
    pub(crate) config: ConfigHandle,
    pub(crate) keyspace: Keyspace,
    pub(crate) registry: Registry,
    pub(crate) workers: Vec<WorkerHandle>,
    /// Whether every worker runs commands on all shards (concurrent mode); otherwise each worker runs commands only on
    /// its own shards (sharded mode).
    pub(crate) is_concurrent: bool,
    pub(crate) started: Instant,
    pub(crate) started_ms: i64,
    /// 40 random hexadecimal digits that identify this run of the program.
    pub(crate) run_id: String,
    pub(crate) log: LogHandle,
    /// Services of higher storeys, with their own state.
    pub(crate) services: Services,
    // These fields change at run time.
    pub(crate) acl: Acl,
    pub(crate) tls: Tls,
    pub(crate) encryption: FileEncryption,
    pub(crate) clients: Clients,
    /// The approximate bytes of the memory of all clients, as published by the workers
    /// ([`ClientMemory`](crate::clients::client_memory::ClientMemory)).
    pub(crate) client_bytes: AtomicI64,
    /// The limit in bytes for keys and clients while values can be demoted: other memory takes the rest of `maxmemory`.
    pub(crate) budget_bytes: AtomicUsize,
    /// The gate, which gives one worker exclusive access to the keyspace.
    pub(crate) gate: Gate,
    /// The number of clients in a blocking command.
    pub(crate) blocked_clients: AtomicU64,
    /// The number of blocked clients with a timeout.
    pub(crate) waiting_in_time: AtomicU64,
    pub(crate) pubsub: PubSub,
    pub(crate) trackers: Trackers,
    pub(crate) monitors: Monitors,
    pub(crate) pause: Pause,
    pub(crate) conditions: Conditions,
    /// The slots that this server serves; `None` if it is not a node of a cluster.
    pub(crate) slots: Option<Slots>,
    /// Keys that calls must not change at present.
    pub(crate) held_keys: HeldKeys,
    pub(crate) command_log: CommandLog,
    pub(crate) latency: LatencyMonitor,
    pub(crate) debug: DebugSwitches,
    /// The maximum of allocated bytes when they were measured; worker 0 measures in each of its ticks.
    pub(crate) peak_memory_bytes: AtomicU64,
    /// The allocated bytes when the server had started.
    pub(crate) startup_memory_bytes: AtomicU64,
    pub(crate) rates: Rates,
    pub(crate) over_limit: OverLimit,
    /// The load caused by the dashboard.
    pub(crate) own_traffic: OwnTraffic,
    /// Bytes received in full syncs from a primary, which workers do not count because they do not read them.
    pub(crate) copied_bytes: AtomicU64,
    pub(crate) scripting: Scripting,
    /// The disk that contains all files.
    pub(crate) disk: Arc<dyn Disk>,
    pub(crate) data_lock: DataLock,
    /// The journal, which receives all changes, for the AOF and for replicas.
    pub(crate) journal: JournalHub,
    /// Whether the process must stop.
    stop: Mutex<bool>,
    /// Connections of clients that have requested the shutdown. The exit of the process closes them, so that a client
    /// that sees its connection close can start another server with the same port and the same files.
    kept_to_the_end: Mutex<Vec<OwnedFd>>,
    stop_requested: Condvar,
}

impl Server {
    /// Builds the shared state from these components.
    pub(crate) fn new(parts: Parts) -> Server {
        let Parts { config, tls, encryption, keyspace, slots, mailboxes, registry, services, run_id, log } =
            parts;
        let commands = registry.all().len();
        let snapshot = config.snapshot();
        let acl = Acl::new(Grammar::of(&registry, &snapshot), snapshot.requirepass.reveal().as_bytes());
        let workers = mailboxes.len();
        let gate = Gate::new(workers);
        let clients = Clients::default();
        let pubsub = PubSub::new(Arc::clone(&clients.ending));
        let worker = |mailbox| WorkerHandle {
            mailbox,
            stats: WorkerStats::new(commands),
            hot_keys: Mutex::default(),
            connections: AtomicU64::new(0),
            push_bytes: AtomicUsize::new(0),
        };
        let conditions = Conditions::default();
        conditions.set(Condition::CLUSTER, slots.is_some());
        Server {
            config,
            keyspace,
            registry,
            workers: mailboxes.into_iter().map(worker).collect(),
            is_concurrent: snapshot.concurrent,
            started: Instant::now(),
            started_ms: unix_ms(),
            services,
            run_id,
            log,
            acl,
            tls,
            encryption,
            clients,
            client_bytes: AtomicI64::new(0),
            budget_bytes: AtomicUsize::new(usize::MAX),
            gate,
            blocked_clients: AtomicU64::new(0),
            waiting_in_time: AtomicU64::new(0),
            pubsub,
            trackers: Trackers::default(),
            monitors: Monitors::default(),
            pause: Pause::default(),
            conditions,
            slots,
            held_keys: HeldKeys::default(),
            command_log: CommandLog::default(),
            latency: LatencyMonitor::default(),
            debug: DebugSwitches::default(),
            peak_memory_bytes: AtomicU64::new(0),
            startup_memory_bytes: AtomicU64::new(0),
            rates: Rates::default(),
            over_limit: OverLimit::default(),
            own_traffic: OwnTraffic::default(),
            copied_bytes: AtomicU64::new(0),
            scripting: Scripting::new(workers, snapshot.redis_version),
            disk: Arc::new(OsDisk),
            data_lock: DataLock::default(),
            journal: JournalHub::new(workers),
            stop: Mutex::new(false),
            kept_to_the_end: Mutex::default(),
            stop_requested: Condvar::new(),
        }
    }

    /// Returns the encryption keys for new files, and those for reading existing files.
    pub(crate) fn encryption(&self) -> Encryption {
        self.encryption.current()
    }

    /// Returns the grammar of ACL rules.
    pub(crate) fn grammar(&self) -> Grammar<'_> {
        Grammar::of(&self.registry, &self.config.snapshot())
    }

    /// Returns whether any worker may run commands on any shard.
    #[inline]
    pub(crate) fn runs_anywhere(&self) -> bool {
        self.is_concurrent || self.workers.len() == 1
    }

    /// Returns the shards whose keys a worker expires; in sharded mode, it also runs commands on them.
    pub(crate) fn shards_of(&self, worker: usize) -> std::ops::Range<usize> {
        let first = |worker: usize| (worker * SHARDS).div_ceil(self.workers.len());
        first(worker)..first(worker + 1)
    }

    /// Returns the worker that owns a shard.
    #[inline]
    pub(crate) fn owner_of(&self, shard: usize) -> usize {
        shard * self.workers.len() / SHARDS
    }

    /// Returns the sum of a counter over all workers.
    pub(crate) fn sum(&self, counter: impl Fn(&WorkerStats) -> &Counter) -> u64 {
        self.workers.iter().map(|worker| counter(&worker.stats).get()).sum()
    }

    /// Returns the bytes read from clients, replicas and the primary.
    pub(crate) fn input_bytes(&self) -> u64 {
        self.sum(|stats| &stats.input_bytes) + self.copied_bytes.load(Ordering::Relaxed)
    }

    /// Returns the bytes read from the primary: full syncs and the replication stream.
    pub(crate) fn replication_input_bytes(&self) -> u64 {
        self.sum(|stats| &stats.replication_input_bytes) + self.copied_bytes.load(Ordering::Relaxed)
    }

    /// Returns the counts of all workers for the command with registry index `index`.
    pub(crate) fn totals_of(&self, index: u16) -> CommandTotals {
        let mut totals = CommandTotals::default();
        self.workers.iter().for_each(|worker| totals.add(&worker.stats.by_command[usize::from(index)]));
        totals
    }

    /// Returns the number of error replies by error code. O(workers × codes).
    pub(crate) fn errors_by_code(&self) -> BTreeMap<String, u64> {
        let mut sum = BTreeMap::new();
        self.workers.iter().for_each(|worker| worker.stats.error_codes.add_to(&mut sum));
        sum
    }

    /// Returns the worker with the fewest connections, and counts one more connection for it, which the caller passes
    /// to it.
    pub(crate) fn reserve_place(&self) -> usize {
        let load = |worker: &usize| self.workers[*worker].connections.load(Ordering::Relaxed);
        let chosen = (0..self.workers.len()).min_by_key(load).expect("there is at least one worker");
        // The connection is counted now, so that the next connection of the same burst is passed to another worker.
        self.workers[chosen].connections.fetch_add(1, Ordering::Relaxed);
        chosen
    }

    /// Decides that a client's connection is closed, and notifies its worker. Returns false if this was already
    /// decided.
    pub(crate) fn kill(&self, view: &ClientView, reason: EndReason) -> bool {
        let is_new = self.begin_ending(view, reason);
        if is_new {
            self.check_connection(view.worker, view.token, view.id);
        }
        is_new
    }

    /// Decides that a client's connection is closed: from now on, the client's waiting calls are not served. The caller
    /// ensures that the client's worker closes the connection. Returns false if this was already decided.
    pub(crate) fn begin_ending(&self, view: &ClientView, reason: EndReason) -> bool {
        if !view.begin_ending(reason) {
            return false;
        }
        self.trackers.end(view);
        self.monitors.remove(Address::of(view));
        self.publish_ending();
        true
    }

    /// Removes a client whose connection is closed.
    pub(crate) fn leave(&self, view: &ClientView) {
        if self.clients.leave(view) {
            self.publish_ending();
        }
    }

    fn publish_ending(&self) {
        let conditions = &self.conditions;
        self.clients.ending.with_any_immediate(|is_any| conditions.set(Condition::CLIENTS_ENDING, is_any));
    }

    /// Requests that worker `worker` checks one of its connections.
    pub(crate) fn check_connection(&self, worker: usize, token: usize, client_id: u64) {
        self.workers[worker].mailbox.send(Message::Check(token, client_id));
    }

    /// Resumes connections whose commands were delayed by a pause, once it has ended. O(connections).
    pub(crate) fn check_paused(&self) {
        for view in self.clients.all() {
            if view.is_paused.load(Ordering::Relaxed) {
                self.check_connection(view.worker, view.token, view.id);
            }
        }
    }

    /// Stops the process because of a signal. If data are to be saved (by the options, or because there are save
    /// rules), or replicas must receive the last changes, worker 0 does that first.
    pub(crate) fn end_by_signal(&self, options: ShutdownOptions) {
        let config = self.config.snapshot();
        let saves = options.saves.unwrap_or_else(|| !config.save.is_empty());
        let is_busy = self.scripting.running.busy_error(config.busy_reply_threshold).is_some();
        let is_recorded = [Reader::Replicas, Reader::Aof].into_iter().any(|it| self.journal.is_read_by(it));
        let has_work = saves || (is_recorded && !is_busy);
        if has_work && !self.is_loading() && !self.is_stopping() {
            self.workers[0].mailbox.send(Message::Shutdown(options));
        } else {
            self.request_stop();
        }
    }

    /// Keeps a connection open until the process exits.
    pub(crate) fn keep_to_the_end(&self, socket: OwnedFd) {
        self.kept_to_the_end.lock().push(socket);
    }

    /// Requests that the process stops serving and exits; returns immediately.
    pub(crate) fn request_stop(&self) {
        *self.stop.lock() = true;
        self.stop_requested.notify_all();
    }

    /// Returns whether [`Server::request_stop`] was called.
    pub(crate) fn is_stopping(&self) -> bool {
        *self.stop.lock()
    }

    /// Returns whether the data set is still being loaded.
    pub(crate) fn is_loading(&self) -> bool {
        self.conditions.get().contains(Condition::LOADING)
    }

    /// Returns the memory of the started server that counts against a limit of `maxmemory` bytes.
    #[inline]
    pub(crate) fn counted_startup_bytes(&self, maxmemory: u64) -> u64 {
        self.startup_memory_bytes.load(Ordering::Relaxed).min(maxmemory / STARTUP_SHARE)
    }

    /// Returns the bytes of the clients of all workers. O(workers).
    pub(crate) fn client_memory(&self) -> u64 {
        self.sum(|stats| &stats.client_bytes)
    }

    /// Waits until [`Server::request_stop`] is called.
    pub(crate) fn wait_for_stop(&self) {
        let mut stop = self.stop.lock();
        while !*stop {
            self.stop_requested.wait(&mut stop);
        }
    }
}
