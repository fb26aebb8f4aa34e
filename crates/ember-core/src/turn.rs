//! A worker's state during one turn of its loop: the time, the [`Settings`], and collected effects of its commands.
//!
//! Nothing here is shared: each worker has its own state and publishes its collected effects after each batch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crate::algorithms::random::Random;
use crate::effects::events::Notices;
use crate::effects::journal::{Journal, REPLAY_TIME_MS, Removal};
use crate::eviction::policy::EvictionPolicy;
use crate::rdb::{PayloadChecks, Target};
use crate::redis_version::RedisVersion;
use crate::types::limits::EncodingLimits;

/// The effects of commands on the keyspace, as counted by `INFO stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceCounters {
    /// Lookups of existing keys by reading commands.
    pub hits: u64,
    /// Lookups of missing keys by reading commands.
    pub misses: u64,
    /// Expired keys removed.
    pub expired: u64,
    /// Expired fields of hashes removed.
    pub expired_fields: u64,
    /// Keys evicted.
    pub evicted: u64,
    /// Changes of keys since startup.
    pub changes: u64,
}

/// The commands with which the journal records removals that no client requested.
#[derive(Clone, Copy, Debug)]
pub struct Removals {
    /// Of expired keys (`lazyfree-lazy-expire`).
    pub expired: Removal,
    /// Of evicted keys (`lazyfree-lazy-eviction`).
    pub evicted: Removal,
    /// Of keys that SPOP has emptied and RESTORE has found expired (`lazyfree-lazy-server-del`).
    pub by_server: Removal,
}

/// The configuration of keys and values, as the worker last read it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How reading a key updates its eviction clock.
    pub policy: EvictionPolicy,
    /// `lfu-log-factor`: how many hits an LFU counter needs to increase.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: minutes after which an idle LFU counter decreases by one; 0 means never.
    pub lfu_decay_minutes: u32,
    /// The largest string that a command may create, in bytes (`proto-max-bulk-len`).
    pub string_bytes_max: usize,
    /// A key that takes at least this many bytes, including its value, is reported as large.
    pub large_key_bytes: usize,
    /// Whether DEL frees large values in the background (`lazyfree-lazy-user-del`).
    pub frees_deleted_lazily: bool,
    /// Whether FLUSHALL and FLUSHDB without SYNC or ASYNC free memory in the background (`lazyfree-lazy-user-flush`).
    pub frees_flushed_lazily: bool,
    /// The commands with which the journal records removals.
    pub removals: Removals,
    /// The size limits of the compact encodings.
    pub encoding: EncodingLimits,
    /// The checks that RESTORE applies to payloads.
    pub payload_checks: PayloadChecks,
    /// The RDB version of the payloads that DUMP returns.
    pub payload_version: u16,
    /// The version of Redis that the server reports to clients.
    pub redis_version: RedisVersion,
    /// The number of steps above which a call is long-running, and is offloaded if possible.
    pub short_call_steps: usize,
    /// Whether other threads link added vectors ([`crate::keyspace::linking`]).
    pub links_vectors_later: bool,
}

impl Settings {
    /// The defaults of the configuration.
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

/// A missing value: the number of its database, and its key.
pub type MissingValue = (usize, Box<[u8]>);

/// A worker's own state during a turn.
#[derive(Debug)]
pub struct Turn {
    // Set before a batch or a command.
    /// Unix time in ms, read once for each turn.
    pub now_ms: i64,
    /// The time to record for the use of a key or a consumer while the journal is replayed, instead of `now_ms`.
    pub recorded_ms: Option<i64>,
    /// Changed only by a change of the configuration.
    pub settings: Settings,
    /// Whether expired keys and elements stay in place, hidden from readers, because writes are paused (`CLIENT PAUSE`)
    /// or another server decides when keys expire (`import-mode`).
    pub keeps_expired: bool,
    /// Whether another server decides when keys expire: an expiry in the past is then set like any other and removes
    /// nothing.
    pub keeps_past_expiries: bool,
    /// Whether the caller sees expired keys and elements like all others, because it decides what expires.
    pub sees_expired: bool,
    /// Whether reads leave the eviction clock as it is (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Whether the command may read keys that are not in its arguments.
    pub reads_any_key: bool,
    /// Whether values may be cold; fixed after startup. Only then are a command's values checked before it runs.
    pub checks_values: bool,
    /// The memory limit in bytes for the values of one call, if some of them are cold.
    pub values_bytes_max: usize,
    /// The remaining steps for vector searches of this turn ([`crate::call::Call::search_steps_max`]).
    pub search_steps_left: usize,
    // Collected by commands; the worker publishes it after each batch.
    /// The missing values of a call that returned [`Attempt::Fetch`](crate::call::Attempt::Fetch).
    pub missing: Vec<MissingValue>,
    /// Notifications for other clients, to be delivered after the command.
    pub notices: Notices,
    /// The changes, as records, while the journal has a reader.
    pub journal: Journal,
    /// Counters since they were last published.
    pub counters: KeyspaceCounters,
    /// Bytes by which the shards have grown since this was last published.
    pub growth_bytes: i64,
    /// Random numbers for sampling.
    pub random: Random,
    // State of the current script or transaction.
    /// The depth of nested units.
    units: u32,
    /// Time since 1970 at the current unit's first request for it.
    unit_time: Option<Duration>,
    /// A lower bound for `now_ms` at the end of the current unit.
    awaited_ms: i64,
}

impl Turn {
    /// Returns a turn at time `now_ms` with the defaults of the configuration.
    pub fn new(now_ms: i64, seed: u64) -> Turn {
        Turn {
            now_ms,
            recorded_ms: None,
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

    /// Subtracts the steps of a search from this turn's allowance.
    pub fn count_search(&mut self, steps: usize) {
        self.search_steps_left = self.search_steps_left.saturating_sub(steps);
    }

    /// Begins a unit: until [`Turn::end_unit`] all effects are one record of the journal, and the time is fixed.
    pub fn begin_unit(&mut self) {
        self.units += 1;
        self.journal.begin_unit();
    }

    /// Ends a unit. The locks of everything it has changed are still held.
    pub fn end_unit(&mut self) {
        self.journal.end_unit();
        self.units -= 1;
        if self.units == 0 {
            self.unit_time = None;
            self.now_ms = self.now_ms.max(std::mem::take(&mut self.awaited_ms));
        }
    }

    /// Returns the time since 1970: from the system's clock, or within a unit the time of its first request.
    pub fn system_time(&mut self) -> Duration {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.units == 0 { now() } else { *self.unit_time.get_or_insert_with(now) }
    }

    /// Advances the time after a wait; within a unit, at its end.
    pub fn catch_up(&mut self, now_ms: i64) {
        let time = if self.units == 0 { &mut self.now_ms } else { &mut self.awaited_ms };
        *time = now_ms.max(*time);
    }

    /// Returns the Unix time in ms up to which expired keys and elements are hidden from the caller.
    #[inline]
    pub fn expired_ms(&self) -> i64 {
        if self.sees_expired { REPLAY_TIME_MS } else { self.now_ms }
    }

    /// Returns the Unix time in ms up to which a new expiry removes its key or element.
    #[inline]
    pub fn past_ms(&self) -> i64 {
        if self.keeps_past_expiries { i64::MIN } else { self.now_ms }
    }

    /// Returns whether changes of another server or an earlier run are being replayed. The limits checked then are not
    /// checked again.
    pub fn is_replay(&self) -> bool {
        self.recorded_ms.is_some()
    }

    /// Returns the time to record, as Unix time in ms.
    #[inline]
    pub fn clock_ms(&self) -> i64 {
        self.recorded_ms.unwrap_or(self.now_ms)
    }

    /// Prepares for a replay of the journal at time `now_ms`: nothing expires, and nothing is journaled.
    pub fn replay_at(&mut self, now_ms: i64) {
        self.now_ms = REPLAY_TIME_MS;
        self.recorded_ms = Some(now_ms);
        self.journal = Journal::default();
    }
}
