//! A worker's state during one turn of its loop: the time, the [`Settings`], and the collected effects of its commands.
//!
//! Workers do not share this state: each worker has its own and publishes its collected effects after each batch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crate::algorithms::random::Random;
use crate::effects::events::Notices;
use crate::effects::journal::{Journal, REPLAY_TIME_MS, Removal};
use crate::eviction::policy::EvictionPolicy;
use crate::rdb::{PayloadChecks, Target};
use crate::redis_version::RedisVersion;
use crate::types::limits::EncodingLimits;

/// Counters of the effects of commands on the keyspace, for `INFO stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceCounters {
    /// The number of lookups by reading commands that have found their key.
    pub hits: u64,
    /// The number of lookups by reading commands whose key is missing.
    pub misses: u64,
    /// The number of expired keys that were removed.
    pub expired: u64,
    /// The number of expired hash fields that were removed.
    pub expired_fields: u64,
    /// The number of evicted keys.
    pub evicted: u64,
    /// The number of created keys that were evicted before, according to the ghosts of evicted keys.
    pub recalled: u64,
    /// The number of changes of keys.
    pub changes: u64,
}

/// The commands with which the journal records removals that no client requested.
#[derive(Clone, Copy, Debug)]
pub struct Removals {
    /// The command for removals of expired keys (`lazyfree-lazy-expire`).
    pub expired: Removal,
    /// The command for removals of evicted keys (`lazyfree-lazy-eviction`).
    pub evicted: Removal,
    /// The command for removals of keys that SPOP has emptied or RESTORE has found expired
    /// (`lazyfree-lazy-server-del`).
    pub by_server: Removal,
}

/// The configuration that applies to keys and values, as the worker last read it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// `maxmemory-policy`, which determines how a use of a key updates its eviction clock.
    pub policy: EvictionPolicy,
    /// `lfu-log-factor`: the higher it is, the more uses an LFU counter needs to increase.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: the minutes after which the LFU counter of an unused key decreases by one; 0 means no decay.
    pub lfu_decay_minutes: u32,
    /// The largest string that a command may create, in bytes (`proto-max-bulk-len`).
    pub string_bytes_max: usize,
    /// The minimum memory in bytes, including the value, of a key that is reported as large.
    pub large_key_bytes: usize,
    /// Whether DEL frees large values in the background (`lazyfree-lazy-user-del`).
    pub frees_deleted_lazily: bool,
    /// Whether FLUSHALL and FLUSHDB without SYNC or ASYNC free memory in the background (`lazyfree-lazy-user-flush`).
    pub frees_flushed_lazily: bool,
    /// The commands with which the journal records removals that no client requested.
    pub removals: Removals,
    /// The size limits of the compact encodings.
    pub encoding: EncodingLimits,
    /// The checks that RESTORE applies to payloads.
    pub payload_checks: PayloadChecks,
    /// The RDB version of the payloads that DUMP returns.
    pub payload_version: u16,
    /// The version of Redis that the server reports to clients.
    pub redis_version: RedisVersion,
    /// The number of steps above which a call is long-running; long-running calls are offloaded if possible.
    pub short_call_steps: usize,
    /// Whether other threads link added vectors ([`crate::keyspace::linking`]).
    pub links_vectors_later: bool,
}

impl Settings {
    /// The default configuration.
    pub const DEFAULT: Settings = Settings {
        policy: EvictionPolicy::NoEviction,
        lfu_log_factor: 10,
        lfu_decay_minutes: 1,
        string_bytes_max: 512 * 1024 * 1024,
        large_key_bytes: usize::MAX,
        frees_deleted_lazily: false,
        frees_flushed_lazily: false,
        removals: Removals { expired: Removal::Del, evicted: Removal::Del, by_server: Removal::Del },
        encoding: EncodingLimits::DEFAULT,
        payload_checks: PayloadChecks::ALL,
        payload_version: Target::Redis.payload_version(),
        redis_version: RedisVersion::ANSWERED,
        short_call_steps: usize::MAX,
        links_vectors_later: false,
    };
}

/// The number of the database and the name of a key whose value is missing.
pub type MissingValue = (usize, Box<[u8]>);

/// A worker's own state during a turn.
#[derive(Debug)]
pub struct Turn {
    // Fields that are set before a batch or a command.
    /// The current Unix time in ms, read once for each turn.
    pub now_ms: i64,
    /// The Unix time in ms to record for a use of a key or consumer while the journal is replayed, instead of `now_ms`.
    pub recorded_ms: Option<i64>,
    /// The tick of [`Turnover`](crate::eviction::ghosts::Turnover), read once for each turn and after each eviction.
    pub now_tick: u16,
    /// The settings; they change only when the configuration changes.
    pub settings: Settings,
    /// Whether expired keys and elements are kept, hidden from readers, because writes are paused (`CLIENT PAUSE`) or
    /// another server decides when keys expire (`import-mode`).
    pub keeps_expired: bool,
    /// Whether an expiry in the past is set like any other and removes nothing, because another server decides when
    /// keys expire.
    pub keeps_past_expiries: bool,
    /// Whether the client sees expired keys and elements like all others, because this client decides when keys expire.
    pub sees_expired: bool,
    /// Whether reads do not update the eviction clock (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Whether the command may read keys that are not in its arguments.
    pub reads_any_key: bool,
    /// Whether values may be cold; fixed after startup. If so, a command's values are checked before the command runs.
    pub checks_values: bool,
    /// The memory limit in bytes for all values of a call that has cold values.
    pub values_bytes_max: usize,
    /// The steps that vector searches may still take in this turn ([`crate::call::Call::search_steps_max`]).
    pub search_steps_left: usize,
    // Fields that commands fill; the worker publishes them after each batch.
    /// The missing values of a call that returned [`Attempt::Fetch`](crate::call::Attempt::Fetch).
    pub missing: Vec<MissingValue>,
    /// Notifications for other clients, to be delivered after the command.
    pub notices: Notices,
    /// The journal records of the commands, while the journal has a reader.
    pub journal: Journal,
    /// The counters since they were last published.
    pub counters: KeyspaceCounters,
    /// The growth of the shards in bytes since it was last published.
    pub growth_bytes: i64,
    /// The random number generator for sampling.
    pub random: Random,
    // The state of the current script or transaction.
    /// The depth of nested units.
    units: u32,
    /// The time since 1970 that the current unit's first request for it has read; `None` before that request.
    unit_time: Option<Duration>,
    /// The Unix time in ms to which `now_ms` advances at the end of the current unit, if it is lower.
    awaited_ms: i64,
}

impl Turn {
    /// Returns a turn at Unix time `now_ms` in ms with the default configuration.
    pub fn new(now_ms: i64, seed: u64) -> Turn {
        Turn {
            now_ms,
            recorded_ms: None,
            now_tick: 0,
            settings: Settings::DEFAULT,
            keeps_expired: false,
            keeps_past_expiries: false,
            sees_expired: false,
            no_touch: false,
            reads_any_key: true,
            checks_values: false,
            values_bytes_max: usize::MAX,
            search_steps_left: usize::MAX,
            missing: Vec::new(),
            notices: Notices::default(),
            journal: Journal::default(),
            counters: KeyspaceCounters::default(),
            growth_bytes: 0,
            random: Random::seeded(seed),
            units: 0,
            unit_time: None,
            awaited_ms: 0,
        }
    }

    /// Subtracts the steps of a vector search from those that searches may still take in this turn.
    pub fn count_search(&mut self, steps: usize) {
        self.search_steps_left = self.search_steps_left.saturating_sub(steps);
    }

    /// Begins a unit: until [`Turn::end_unit`], all effects form one record of the journal, and the time is fixed.
    pub fn begin_unit(&mut self) {
        self.units += 1;
        self.journal.begin_unit();
    }

    /// Ends a unit. The caller still holds the locks of all keys that the unit has changed.
    pub fn end_unit(&mut self) {
        self.journal.end_unit();
        self.units -= 1;
        if self.units == 0 {
            self.unit_time = None;
            self.now_ms = self.now_ms.max(std::mem::take(&mut self.awaited_ms));
        }
    }

    /// Returns the time since 1970 from the system's clock; within a unit, the time that the unit's first request has
    /// read.
    pub fn system_time(&mut self) -> Duration {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.units == 0 { now() } else { *self.unit_time.get_or_insert_with(now) }
    }

    /// Advances the time to `now_ms` after a wait; within a unit, the time advances at the end of the unit.
    pub fn catch_up(&mut self, now_ms: i64) {
        let time = if self.units == 0 { &mut self.now_ms } else { &mut self.awaited_ms };
        *time = now_ms.max(*time);
    }

    /// Returns the Unix time in ms up to which keys and elements count as expired and are hidden from the client.
    #[inline]
    pub fn expired_ms(&self) -> i64 {
        if self.sees_expired { REPLAY_TIME_MS } else { self.now_ms }
    }

    /// Returns the Unix time in ms up to which setting an expiry removes the key or element.
    #[inline]
    pub fn past_ms(&self) -> i64 {
        if self.keeps_past_expiries { i64::MIN } else { self.now_ms }
    }

    /// Returns whether the worker replays changes of another server or an earlier run. Limits that were checked when
    /// the changes were made are not checked again.
    pub fn is_replay(&self) -> bool {
        self.recorded_ms.is_some()
    }

    /// Returns the Unix time in ms to record for uses of keys and consumers.
    #[inline]
    pub fn clock_ms(&self) -> i64 {
        self.recorded_ms.unwrap_or(self.now_ms)
    }

    /// Prepares for a replay of the journal, with `now_ms` as the time to record: nothing expires, and nothing is
    /// recorded in the journal.
    pub fn replay_at(&mut self, now_ms: i64) {
        self.now_ms = REPLAY_TIME_MS;
        self.recorded_ms = Some(now_ms);
        self.journal = Journal::default();
    }
}
