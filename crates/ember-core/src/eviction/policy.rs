//! The format of an entry's eviction clock, and the policies that read the clock.
//!
//! The clock has 24 bits. Under the LRU policies (and all others but LFU, so that `OBJECT IDLETIME` works) it contains
//! the time of the last use in quarter seconds, which wraps after 48 days. Under LFU the low 8 bits are a logarithmic
//! counter and the high 16 bits are the minute of the counter's last decay, as in Redis. Under `allkeys-ghosts` the low
//! 8 bits are a counter and the high 16 bits are the tick of the last use ([`super::ghosts`]).

use std::fmt;

use super::ghosts;

/// The unit of the LRU clock, in ms.
pub(super) const LRU_TICK_MS: i64 = 250;

const CLOCK_BITS: u32 = 24;
pub(super) const CLOCK_MASK: u32 = (1 << CLOCK_BITS) - 1;

/// The LFU counter of a new key: above zero, so that new keys are not evicted first.
pub(super) const LFU_INITIAL: u8 = 5;

/// `maxmemory-policy`: which keys may be evicted, and in which order. The variants are in the order of Redis's list; those
/// that Redis does not have follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Evicts keys with an expiry, least recently used first.
    VolatileLru,
    /// Evicts keys with an expiry, least frequently used first.
    VolatileLfu,
    /// Evicts keys with an expiry, in random order.
    VolatileRandom,
    /// Evicts keys with an expiry, soonest expiry first.
    VolatileTtl,
    /// Evicts any key, least recently used first.
    AllkeysLru,
    /// Evicts any key, least frequently used first.
    AllkeysLfu,
    /// Evicts any key, in random order.
    AllkeysRandom,
    /// Evicts no keys: writes that need memory are refused.
    #[default]
    NoEviction,
    /// Evicts any key, least frequently used first; uses before an eviction count, too.
    AllkeysGhosts,
}

impl EvictionPolicy {
    /// All policies, in the order of the variants.
    pub const ALL: &[EvictionPolicy] = &[
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileLfu,
        EvictionPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl,
        EvictionPolicy::AllkeysLru,
        EvictionPolicy::AllkeysLfu,
        EvictionPolicy::AllkeysRandom,
        EvictionPolicy::NoEviction,
        EvictionPolicy::AllkeysGhosts,
    ];

    /// The names of the policies in the configuration, in the order of [`EvictionPolicy::ALL`].
    pub const NAMES: &[&str] = &[
        "volatile-lru",
        "volatile-lfu",
        "volatile-random",
        "volatile-ttl",
        "allkeys-lru",
        "allkeys-lfu",
        "allkeys-random",
        "noeviction",
        "allkeys-ghosts",
    ];

    /// Returns whether eviction clocks contain a counter of uses under this policy.
    #[inline]
    pub fn counts_uses(self) -> bool {
        matches!(
            self,
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu | EvictionPolicy::AllkeysGhosts
        )
    }

    /// Returns whether the policy keeps ghosts of evicted keys.
    #[inline]
    pub fn has_ghosts(self) -> bool {
        self == EvictionPolicy::AllkeysGhosts
    }

    /// Returns whether the policy evicts by the time of the last use.
    pub fn is_lru(self) -> bool {
        matches!(self, EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru)
    }

    /// Returns whether only keys with an expiry may be evicted.
    pub(super) fn is_volatile(self) -> bool {
        matches!(
            self,
            EvictionPolicy::VolatileLru
                | EvictionPolicy::VolatileLfu
                | EvictionPolicy::VolatileRandom
                | EvictionPolicy::VolatileTtl
        )
    }
}

/// Formats the policy as its name in the configuration.
impl fmt::Display for EvictionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// Returns the LRU clock at Unix time `now_ms`.
pub(super) fn lru_now(now_ms: i64) -> u32 {
    (now_ms / LRU_TICK_MS) as u32 & CLOCK_MASK
}

/// Returns Unix time `now_ms` in minutes, as an LFU clock contains it.
pub(super) fn lfu_minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xFFFF
}

/// Returns the LFU counter in `clock`, decayed by one for every `decay_minutes` until Unix time `now_ms`; 0 means no
/// decay.
pub(super) fn lfu_counter_at(now_ms: i64, decay_minutes: u32, clock: u32) -> u8 {
    let idle_minutes = lfu_minutes(now_ms).wrapping_sub(clock >> 8) & 0xFFFF;
    let periods = idle_minutes.checked_div(decay_minutes).unwrap_or(0);
    (clock as u8).saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// Returns the seconds from the last use that `clock` records to Unix time `now_ms`.
pub(super) fn idle_seconds_at(now_ms: i64, clock: u32) -> u64 {
    let ticks = lru_now(now_ms).wrapping_sub(clock) & CLOCK_MASK;
    u64::from(ticks) * LRU_TICK_MS as u64 / 1000
}

/// The parameters for reading eviction clocks as they were at one moment; the reader may run later.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The policy under which the clocks were set.
    pub policy: EvictionPolicy,
    /// The minutes after which the LFU counter of an unused key decreases by one.
    pub lfu_decay_minutes: u32,
    /// The moment for which clocks are read, as Unix time in ms.
    pub now_ms: i64,
    /// The moment for which clocks are read, as a tick of [`ghosts::Turnover`].
    pub now_tick: u16,
}

impl ClockReading {
    /// A clock that is ahead of the time of reading by at most this many ms is read as used at that time.
    const AHEAD_MAX_MS: i64 = 24 * 3600 * 1000;

    /// Returns the counter of uses in `clock`; `None` if the policy counts no uses.
    pub fn frequency(&self, clock: u32) -> Option<u8> {
        if self.policy.has_ghosts() {
            return Some(ghosts::counter_at(self.now_tick, clock));
        }
        let minutes = (Self::AHEAD_MAX_MS / 60_000) as u32;
        let ahead = (clock >> 8).wrapping_sub(lfu_minutes(self.now_ms)) & 0xFFFF;
        let counter = || match ahead {
            1.. if ahead <= minutes => clock as u8,
            _ => lfu_counter_at(self.now_ms, self.lfu_decay_minutes, clock),
        };
        self.policy.counts_uses().then(counter)
    }

    /// Returns the seconds since the last use that `clock` records; `None` if the policy is not LRU.
    pub fn idle_s(&self, clock: u32) -> Option<u64> {
        let ahead = clock.wrapping_sub(lru_now(self.now_ms)) & CLOCK_MASK;
        let seconds = || match ahead {
            1.. if i64::from(ahead) <= Self::AHEAD_MAX_MS / LRU_TICK_MS => 0,
            _ => idle_seconds_at(self.now_ms, clock),
        };
        self.policy.is_lru().then(seconds)
    }
}
