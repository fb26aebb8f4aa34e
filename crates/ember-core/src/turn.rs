//! What a worker has at hand during one turn of its loop: the time, the [`Settings`], and what its commands gather.
//!
//! Nothing here is shared: each worker has its own, and publishes what was gathered after each batch.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

pub use crate::algorithms::random::Random;
use crate::effects::events::Notices;
use crate::effects::journal::{Journal, REPLAY_TIME_MS, Removal};
use crate::eviction::policy::EvictionPolicy;
use crate::rdb::{PayloadChecks, Target};
use crate::redis_version::RedisVersion;
use crate::types::limits::EncodingLimits;

/// What commands did to the keyspace, as `INFO stats` reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyspaceCounters {
    /// Look-ups of existing keys by reading commands.
    pub hits: u64,
    /// Look-ups of missing keys by reading commands.
    pub misses: u64,
    /// Keys removed because their time had come.
    pub expired: u64,
    /// Fields of hashes removed because their time had come.
    pub expired_fields: u64,
    /// Keys removed to make room.
    pub evicted: u64,
    /// Changes of keys since the start.
    pub changes: u64,
}

/// The commands by which removals are recorded that no client has asked for.
#[derive(Clone, Copy, Debug)]
pub struct Removals {
    /// Of expired keys (`lazyfree-lazy-expire`).
    pub expired: Removal,
    /// Of evicted keys (`lazyfree-lazy-eviction`).
    pub evicted: Removal,
    /// Of what SPOP has emptied and RESTORE found expired (`lazyfree-lazy-server-del`).
    pub by_server: Removal,
}

/// What the configuration says about keys and values, as a worker has read it.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How reading a key moves its eviction clock.
    pub policy: EvictionPolicy,
    /// `lfu-log-factor`: how many hits an LFU counter takes to rise.
    pub lfu_log_factor: u32,
    /// `lfu-decay-time`: minutes after which an idle LFU counter falls by one; 0 is never.
    pub lfu_decay_minutes: u32,
    /// The largest string a command may make, in bytes (`proto-max-bulk-len`).
    pub string_bytes_max: usize,
    /// A key that takes at least this many bytes with its value is reported as large.
    pub large_key_bytes: usize,
    /// Whether DEL frees large values in the background (`lazyfree-lazy-user-del`).
    pub frees_deleted_lazily: bool,
    /// Whether FLUSHALL and FLUSHDB without SYNC or ASYNC free in the background (`lazyfree-lazy-user-flush`).
    pub frees_flushed_lazily: bool,
    /// By which commands removals are recorded.
    pub removals: Removals,
    /// Up to which size values with elements keep their compact encodings.
    pub encoding: EncodingLimits,
    /// What RESTORE asks of what it is given.
    pub payload_checks: PayloadChecks,
    /// The version of RDB whose readers the payloads of DUMP are for.
    pub payload_version: u16,
    /// The version of Redis that the server reports to clients.
    pub redis_version: RedisVersion,
    /// A call that takes more steps than these is long, and run elsewhere if it can be.
    pub short_call_steps: usize,
    /// Whether there are others who link the vectors that are added ([`crate::keyspace::linking`]).
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

/// A value that a call lacks: the number of the database, and the key.
pub type LackingValue = (usize, Box<[u8]>);

/// A worker's own state during a turn.
#[derive(Debug)]
pub struct Turn {
    // Set before a batch or a command.
    /// Unix time in ms, read once for each turn.
    pub now_ms: i64,
    /// The time to note in its place while the journal is replayed: when a key was used or a consumer seen.
    pub noted_ms: Option<i64>,
    /// Changed only by a change of the configuration.
    pub settings: Settings,
    /// Whether what has expired stays where it is, hidden from readers: writes are paused (`CLIENT PAUSE`), or others decide
    /// when keys expire (`import-mode`).
    pub keeps_expired: bool,
    /// Whether others decide when keys expire: an expiry that has passed is set like any other, and removes nothing.
    pub keeps_past_expiries: bool,
    /// Whether the caller sees what has expired like all else: it is the one who decides.
    pub sees_expired: bool,
    /// Whether reads leave the eviction clock as it is (`CLIENT NO-TOUCH`).
    pub no_touch: bool,
    /// Whether the command may read keys that its arguments do not name.
    pub reads_any_key: bool,
    /// Whether values may be away: fixed after the start. A command's values are looked for before it runs only then.
    pub checks_values: bool,
    /// The bytes of memory that the values of one call may take, if some of them are away.
    pub values_bytes_max: usize,
    /// Steps that searches among vectors may still take in this turn ([`crate::call::Call::search_steps_max`]).
    pub search_steps_left: usize,
    // Gathered by commands; the worker publishes it after each batch.
    /// The values that a call lacks which has been answered with [`Attempt::Fetch`](crate::call::Attempt::Fetch).
    pub lacking: Vec<LackingValue>,
    /// What others are to be notified of after the command.
    pub notices: Notices,
    /// The changes, as records, while the journal has a reader.
    pub journal: Journal,
    /// Counted since they were last published.
    pub counters: KeyspaceCounters,
    /// Bytes the shards have grown by since this was last published.
    pub growth_bytes: i64,
    /// Random numbers for sampling.
    pub random: Random,
    // Of the script or transaction under way.
    /// Units under way, one in the other.
    units: u32,
    /// Since 1970, as it was when the unit under way first asked for it.
    unit_time: Option<Duration>,
    /// What `now_ms` is to be at the end of the unit under way, or less.
    awaited_ms: i64,
}

impl Turn {
    /// A turn at time `now_ms` with the defaults of the configuration.
    pub fn new(now_ms: i64, seed: u64) -> Turn {
        Turn {
            now_ms,
            noted_ms: None,
            settings: Settings::DEFAULT,
            keeps_expired: false,
            keeps_past_expiries: false,
            sees_expired: false,
            no_touch: false,
            reads_any_key: true,
            checks_values: false,
            values_bytes_max: usize::MAX,
            search_steps_left: usize::MAX,
            lacking: Vec::new(),
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

    /// Counts a search among those of this turn.
    pub fn note_search(&mut self, steps: usize) {
        self.search_steps_left = self.search_steps_left.saturating_sub(steps);
    }

    /// Until [`Turn::end_unit`] all effects are one record of the journal, and the time does not move.
    pub fn begin_unit(&mut self) {
        self.units += 1;
        self.journal.begin_unit();
    }

    /// Ends a unit. The locks of all it has changed are still held.
    pub fn end_unit(&mut self) {
        self.journal.end_unit();
        self.units -= 1;
        if self.units == 0 {
            self.unit_time = None;
            self.now_ms = self.now_ms.max(std::mem::take(&mut self.awaited_ms));
        }
    }

    /// The time since 1970: of the system's clock, or the same for all that a unit does.
    pub fn system_time(&mut self) -> Duration {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        if self.units == 0 { now() } else { *self.unit_time.get_or_insert_with(now) }
    }

    /// Moves the time on after a wait, at the end of the unit if one is under way.
    pub fn catch_up(&mut self, now_ms: i64) {
        let time = if self.units == 0 { &mut self.now_ms } else { &mut self.awaited_ms };
        *time = now_ms.max(*time);
    }

    /// What expires up to this Unix time in ms is not there for the caller.
    #[inline]
    pub fn expired_ms(&self) -> i64 {
        if self.sees_expired { REPLAY_TIME_MS } else { self.now_ms }
    }

    /// A new expiry up to this Unix time in ms removes what it is given to.
    #[inline]
    pub fn past_ms(&self) -> i64 {
        if self.keeps_past_expiries { i64::MIN } else { self.now_ms }
    }

    /// Whether what others have done is done again: it is not judged by limits that held for them.
    pub fn is_replay(&self) -> bool {
        self.noted_ms.is_some()
    }

    /// The time to note, Unix time in ms.
    #[inline]
    pub fn clock_ms(&self) -> i64 {
        self.noted_ms.unwrap_or(self.now_ms)
    }

    /// Prepares for a replay of the journal at time `now_ms`: nothing expires, and nothing is journaled.
    pub fn replay_at(&mut self, now_ms: i64) {
        self.now_ms = REPLAY_TIME_MS;
        self.noted_ms = Some(now_ms);
        self.journal = Journal::default();
    }
}
