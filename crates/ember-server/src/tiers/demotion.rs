//! The thread that demotes values when memory is short, and also reclaims segments (`reclaiming.rs`).
//!
//! Demotion begins at nine tenths of `maxmemory`, or earlier if much memory is used for other purposes than keys and
//! values (`memory_budget.rs`). Above the limit, writes that need memory wait until some is freed
//! ([`Condition::MEMORY_LAGS`]). If no value can be demoted, `maxmemory-policy` applies, as without tiers.

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use ember_config::Config;
use ember_storage::segments::{AppendSource, LogFull, Which};
use emberkv_core::eviction::demotion::Demoter;
use emberkv_core::keyspace::external::Location;
use emberkv_core::keyspace::shard::cold_values::{Demoted, DemotionRules, Encoded, SharedDemotion};
use emberkv_core::turn::{MissingValue, Turn};

use super::reclaiming::Reclaimer;
use super::{Tiers, used_bytes};
use crate::clients::mailbox::Message;
use crate::server::Server;
use crate::server::conditions::Condition;
use crate::system::abort_on_panic::AbortOnPanic;
use crate::system::clock::unix_ms;

/// The interval at which the thread checks memory if it is not woken.
const CHECK_INTERVAL: Duration = Duration::from_millis(5);

/// The interval of searches for segments to reclaim.
const RECLAIM_INTERVAL: Duration = Duration::from_millis(100);

/// The pause after a failed write; each further failure doubles it, up to the maximum.
const PAUSE_MIN: Duration = Duration::from_millis(100);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// The maximum number of queued requests to demote a value.
const WISHES_MAX: usize = 10_000;

/// The maximum number of values with queued requests that wait until the store has saved them. Further values stay in
/// memory until it is short.
const UNSAVED_WISHES_MAX: usize = 100_000;

/// The time after which the thread checks again if it found no value to demote.
const STUCK_PAUSE: Duration = Duration::from_millis(100);

/// The percentage of `maxmemory` below which writes continue even if no value can be demoted: keys alone may take more
/// than other memory leaves for keys and values.
const STUCK_PERCENT: u64 = 90;

/// The minimum time between two checkpoint requests if no value could be demoted after the first: each checkpoint walks
/// all keys.
const CHECKPOINTS_APART: Duration = Duration::from_secs(1);

/// Starts the demoting thread.
pub(crate) fn start(server: &'static Server) -> std::io::Result<()> {
    let named = thread::Builder::new().name("storage-demoter".to_owned());
    named.spawn(move || {
        let _guard = AbortOnPanic;
        Worker::new(server).run();
    })?;
    Ok(())
}

/// Returns the demotion rules of a configuration.
pub(crate) fn rules(config: &Config) -> DemotionRules {
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    DemotionRules {
        bytes_min: bytes(config.tiered_min_value).saturating_add(1),
        bytes_max: bytes(config.tiered_max_value),
        now_ms: unix_ms(),
    }
}

struct Worker {
    server: &'static Server,
    tiers: &'static Tiers,
    turn: Turn,
    demoter: Demoter,
    reclaimed_at: Instant,
    /// The current length of the pause after a failed write, and its end.
    pause: Duration,
    paused_until: Option<Instant>,
    reclaimer: Reclaimer,
    /// The time at which a checkpoint was last requested, and the number of checkpoints that had ended by then.
    asked: Option<(Instant, u64)>,
    /// Whether any value could be demoted since that request.
    has_helped: bool,
    /// The time at which no value could be demoted before a checkpoint, with the numbers of ended checkpoints and of
    /// fetched values at that time.
    fruitless: Option<(Instant, [u64; 2])>,
    /// The number of ended checkpoints at the last attempt, and the values that are to be demoted once the store has
    /// saved them.
    unsaved: (u64, Vec<MissingValue>),
}

impl Worker {
    fn new(server: &'static Server) -> Worker {
        Worker {
            server,
            tiers: Tiers::of(server),
            turn: Turn::new(unix_ms(), getrandom::u64().unwrap_or(1)),
            demoter: Demoter::default(),
            reclaimed_at: Instant::now(),
            pause: PAUSE_MIN,
            paused_until: None,
            reclaimer: Reclaimer::new(server),
            asked: None,
            has_helped: false,
            fruitless: None,
            unsaved: (0, Vec::new()),
        }
    }

    fn run(&mut self) {
        loop {
            self.tiers.wait_for_work(CHECK_INTERVAL);
            self.fulfil_wishes();
            let config = self.server.config.snapshot();
            self.turn.now_ms = unix_ms();
            self.turn.settings.policy = config.maxmemory_policy;
            self.turn.settings.lfu_log_factor = config.lfu_log_factor;
            self.turn.settings.lfu_decay_minutes = config.lfu_decay_time;
            self.tiers.records.set_limit(&config);
            if config.maxmemory > 0 {
                self.demote(&config);
            }
            if self.tiers.records.has_full_buffer() && self.may_write() {
                self.write(Which::Full);
            }
            self.end_waiting(&config);
            self.reclaim();
        }
    }

    /// Demotes values on request. A value that cannot be demoted stays in memory.
    fn fulfil_wishes(&mut self) {
        let mut wishes = std::mem::take(&mut *self.tiers.wishes.lock());
        let ended = self.tiers.checkpoints.load(Ordering::Relaxed);
        if ended != self.unsaved.0 {
            self.unsaved.0 = ended;
            wishes.append(&mut self.unsaved.1);
        }
        for (database, key) in wishes {
            let demoted = demote_key(self.server, database, &key, &DemotionRules::ANY);
            if demoted.is_err() && self.tiers.store().is_some() {
                self.wish_when_saved(database, key);
            }
        }
    }

    /// Stores the request for a value that the store has not saved yet: the value can be demoted after the next
    /// checkpoint.
    fn wish_when_saved(&mut self, database: usize, key: Box<[u8]>) {
        let hash = self.server.keyspace.hash(&key);
        let data = self.server.keyspace.lock(hash.shard());
        let found = data.find(database, hash, &key);
        let is_unsaved = found.is_some_and(|at| !data.entry(database, at).is_copied());
        drop(data);
        if is_unsaved && self.unsaved.1.len() < UNSAVED_WISHES_MAX {
            self.unsaved.1.push((database, key));
            if self.unsaved.1.len() > WISHES_MAX {
                self.tiers.needs_checkpoint.store(true, Ordering::Relaxed);
            }
        }
    }

    /// Returns whether values may be written, that is, no pause after a failed write is in progress.
    fn may_write(&self) -> bool {
        self.paused_until.is_none_or(|until| Instant::now() >= until)
    }

    /// Returns whether memory is short, so that values must be demoted.
    fn is_memory_short(&self) -> bool {
        used_bytes(self.server) as u64 > self.tiers.resident.goal_bytes()
    }

    /// Demotes values while memory is short.
    fn demote(&mut self, config: &Config) {
        let rules = rules(config);
        while self.is_memory_short() {
            if !self.may_write() || self.is_to_find_nothing() {
                return;
            }
            let mut full = None;
            let mut demoted_count = 0;
            let (tiers, keyspace) = (self.tiers, &self.server.keyspace);
            let (shared, found) = self.demoter.step(keyspace, &mut self.turn, &rules, |encoded| match tiers
                .records
                .append(encoded, AppendSource::Demoted)
            {
                Ok(record) => {
                    demoted_count += 1;
                    Some(record)
                }
                Err(error) => {
                    full = Some(error);
                    None
                }
            });
            tiers.counters.demoted.fetch_add(demoted_count, Ordering::Relaxed);
            tiers.wake_memory_waiters();
            let dropped = std::mem::take(&mut self.demoter.dropped);
            tiers.counters.dropped.fetch_add(dropped, Ordering::Relaxed);
            for demotion in shared {
                self.demote_shared(&demotion, &mut full);
            }
            match full {
                Some(LogFull::TooLarge) | None => {}
                Some(LogFull::Buffers | LogFull::Failing) => {
                    if !self.write(Which::Full) {
                        return;
                    }
                    continue;
                }
                Some(LogFull::Limit) => {
                    // No value can be demoted before the files are reclaimed.
                    self.reclaimer.update();
                    while self.reclaimer.step() {}
                    self.set_stuck(true);
                    return;
                }
            }
            if self.tiers.records.has_full_buffer() {
                if !self.write(Which::Full) {
                    return;
                }
                self.reclaim();
            }
            self.has_helped |= found;
            if !found && self.awaits_checkpoint() {
                self.fruitless = Some((Instant::now(), self.ended_and_fetched()));
                tiers.awaits_checkpoint.store(true, Ordering::Relaxed);
                self.set_stuck(false);
                return;
            }
            tiers.is_spent.store(!found, Ordering::Relaxed);
            let is_stuck = !found && used_bytes(self.server) as u64 > config.maxmemory / 100 * STUCK_PERCENT;
            self.set_stuck(is_stuck);
            if is_stuck {
                thread::park_timeout(STUCK_PAUSE);
            }
            if !found {
                return;
            }
            self.end_waiting(config);
        }
        self.tiers.awaits_checkpoint.store(false, Ordering::Relaxed);
        self.tiers.is_spent.store(false, Ordering::Relaxed);
    }

    fn ended_and_fetched(&self) -> [u64; 2] {
        [&self.tiers.checkpoints, &self.tiers.counters.fetched].map(|count| count.load(Ordering::Relaxed))
    }

    /// Returns whether a new search would find no value either, because nothing has changed since the last one. The
    /// result expires, because the configuration also affects which values may be demoted.
    fn is_to_find_nothing(&self) -> bool {
        self.fruitless
            .is_some_and(|(at, counts)| counts == self.ended_and_fetched() && at.elapsed() < STUCK_PAUSE)
    }

    /// Returns whether values can be demoted once a checkpoint has saved them in the store; requests a checkpoint if
    /// necessary.
    fn awaits_checkpoint(&mut self) -> bool {
        if self.tiers.store().is_none() {
            return false;
        }
        let ended = self.tiers.checkpoints.load(Ordering::Relaxed);
        if let Some((at, ended_then)) = self.asked {
            if ended == ended_then {
                return true;
            }
            if !self.has_helped && at.elapsed() < CHECKPOINTS_APART {
                return false;
            }
        }
        self.asked = Some((Instant::now(), ended));
        self.has_helped = false;
        self.tiers.needs_checkpoint.store(true, Ordering::Relaxed);
        true
    }

    /// Demotes a value that is too large to be encoded under its shard's lock.
    fn demote_shared(&mut self, demotion: &SharedDemotion, full: &mut Option<LogFull>) {
        match demotion.append(|encoded| self.tiers.records.append(encoded, AppendSource::Demoted)) {
            Ok(record) => {
                let keyspace = &self.server.keyspace;
                let mut data = keyspace.lock(demotion.shard());
                let demoted = data.demote_shared(demotion, record);
                keyspace.publish_bytes(keyspace.release(demotion.shard(), data));
                if let Demoted::Cold(old) = demoted {
                    self.tiers.counters.demoted.fetch_add(1, Ordering::Relaxed);
                    drop(old);
                }
            }
            Err(error) => *full = Some(error),
        }
    }

    /// Writes buffers to disk. Returns false after a failure: no data are lost, but demotion pauses.
    fn write(&mut self, which: Which) -> bool {
        match self.tiers.records.write(which) {
            Ok(_) => {
                self.pause = PAUSE_MIN;
                self.paused_until = None;
                true
            }
            Err(error) => {
                tracing::error!("values stay in memory: {error}; next attempt in {:?}", self.pause);
                self.tiers.counters.write_errors.fetch_add(1, Ordering::Relaxed);
                self.paused_until = Some(Instant::now() + self.pause);
                self.pause = (self.pause * 2).min(PAUSE_MAX);
                self.set_stuck(true);
                false
            }
        }
    }

    /// Reclaims one slice of a segment, if there is one to reclaim.
    fn reclaim(&mut self) {
        if self.reclaimed_at.elapsed() >= RECLAIM_INTERVAL {
            self.reclaimer.update();
            self.reclaimed_at = Instant::now();
        }
        self.reclaimer.step();
    }

    /// Records whether no value can be demoted, so that `maxmemory-policy` applies at the limit.
    fn set_stuck(&self, is_stuck: bool) {
        let was_stuck = self.tiers.is_stuck.swap(is_stuck, Ordering::Relaxed);
        if is_stuck && !was_stuck {
            self.tiers.counters.pauses.fetch_add(1, Ordering::Relaxed);
        }
        self.tiers.wake_memory_waiters();
    }

    /// Returns whether clients may write: at least half of the bytes between the goal and the budget are free.
    fn has_headroom(&self, config: &Config) -> bool {
        let budget = self.server.budget_bytes.load(Ordering::Relaxed) as u64;
        let goal = self.tiers.resident.goal_bytes();
        config.maxmemory == 0 || used_bytes(self.server) as u64 <= goal + budget.saturating_sub(goal) / 2
    }

    /// Resumes writes that wait for memory, if some is free or none can be freed.
    fn end_waiting(&self, config: &Config) {
        let conditions = &self.server.conditions;
        if !conditions.get().contains(Condition::MEMORY_LAGS) {
            return;
        }
        let [is_stuck, is_spent] =
            [&self.tiers.is_stuck, &self.tiers.is_spent].map(|flag| flag.load(Ordering::Relaxed));
        if self.has_headroom(config) || is_stuck || is_spent {
            conditions.set(Condition::MEMORY_LAGS, false);
            self.server.workers.iter().for_each(|worker| worker.mailbox.send(Message::TryAgain));
        }
    }
}

/// Requests that the value of a key is demoted soon. If the queue is full, the caller demotes the value itself, and
/// waits for the disk.
pub(crate) fn queue_demotion(server: &'static Server, database: usize, key: Box<[u8]>) {
    let tiers = Tiers::of(server);
    let mut wishes = tiers.wishes.lock();
    if wishes.len() < WISHES_MAX {
        wishes.push((database, key));
        drop(wishes);
        tiers.wake_demoter();
    } else {
        drop(wishes);
        let _ = demote_key(server, database, &key, &DemotionRules::ANY);
    }
}

/// Demotes the value of one key immediately.
///
/// # Errors
/// Returns why the value stays in memory.
pub(crate) fn demote_key(
    server: &'static Server,
    database: usize,
    key: &[u8],
    rules: &DemotionRules,
) -> Result<(), &'static str> {
    const STAYS: &str = "ERR the value stays in memory";
    let (tiers, keyspace) = (Tiers::of(server), &server.keyspace);
    if !tiers.is_on() {
        return Err("ERR values cannot be demoted: there is neither a tiered-path nor a store in files");
    }
    let hash = keyspace.hash(key);
    for _ in 0..2 {
        let mut full = None;
        let mut data = keyspace.lock(hash.shard());
        let mut append = |encoded: &Encoded<'_>| {
            let appended = tiers.records.append(encoded, AppendSource::Demoted);
            appended.map_err(|error| full = Some(error)).ok()
        };
        let mut demoted = data.demote(database, hash, key, rules, &mut append);
        keyspace.publish_bytes(keyspace.release(hash.shard(), data));
        if let Demoted::Shared(demotion) = demoted {
            let record = demotion.append(&mut append);
            let mut data = keyspace.lock(hash.shard());
            demoted = record.map_or(Demoted::Stays, |record| data.demote_shared(&demotion, record));
            keyspace.publish_bytes(keyspace.release(hash.shard(), data));
        }
        if let Demoted::Dropped(_) = demoted {
            tiers.counters.dropped.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if let Demoted::Cold(old) = demoted {
            drop(old);
            tiers.counters.demoted.fetch_add(1, Ordering::Relaxed);
            return Ok(());
        }
        if full != Some(LogFull::Buffers) || tiers.records.write(Which::Full).is_err() {
            return Err(STAYS);
        }
    }
    Err(STAYS)
}

/// Returns the location of a key's value, if it is cold.
pub(crate) fn location_of(server: &Server, database: usize, key: &[u8]) -> Option<Location> {
    let hash = server.keyspace.hash(key);
    let data = server.keyspace.lock(hash.shard());
    Some(data.entry(database, data.find(database, hash, key)?).external()?.location)
}
