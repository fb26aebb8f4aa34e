//! The meaning of an entry's eviction clock, and the policies that read it.
//!
//! The clock has 24 bits. Under the LRU policies (and all others but LFU, so that `OBJECT IDLETIME` works) it is
//! the time of the last use in quarter seconds, wrapping after 48 days. Under LFU the low 8 bits are a logarithmic
//! counter and the high 16 the minute of its last decay, as in Redis.

use std::fmt;

/// The unit of the LRU clock, in ms.
pub(super) const LRU_TICK_MS: i64 = 250;

const CLOCK_BITS: u32 = 24;
pub(super) const CLOCK_MASK: u32 = (1 << CLOCK_BITS) - 1;

/// The counter of a new key under LFU: above zero, so that it is not evicted first.
pub(super) const LFU_INITIAL: u8 = 5;

/// `maxmemory-policy`: which keys may be evicted, and in which order. In the order of Redis's list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EvictionPolicy {
    /// Keys with an expiry, least recently used first.
    VolatileLru,
    /// Keys with an expiry, least frequently used first.
    VolatileLfu,
    /// Keys with an expiry, at random.
    VolatileRandom,
    /// Keys with an expiry, soonest to expire first.
    VolatileTtl,
    /// Any key, least recently used first.
    AllkeysLru,
    /// Any key, least frequently used first.
    AllkeysLfu,
    /// Any key, at random.
    AllkeysRandom,
    /// None: writes that need memory are refused.
    #[default]
    NoEviction,
}

impl EvictionPolicy {
    /// All policies, in the order of Redis's list.
    pub const ALL: &[EvictionPolicy] = &[
        EvictionPolicy::VolatileLru,
        EvictionPolicy::VolatileLfu,
        EvictionPolicy::VolatileRandom,
        EvictionPolicy::VolatileTtl,
        EvictionPolicy::AllkeysLru,
        EvictionPolicy::AllkeysLfu,
        EvictionPolicy::AllkeysRandom,
        EvictionPolicy::NoEviction,
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
    ];

    /// Returns whether the clock is an LFU counter.
    #[inline]
    pub fn is_lfu(self) -> bool {
        matches!(self, EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu)
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

/// Shows the name in the configuration.
impl fmt::Display for EvictionPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(Self::NAMES[*self as usize])
    }
}

/// Returns the LRU clock at Unix time `now_ms`.
pub(super) fn lru_now(now_ms: i64) -> u32 {
    (now_ms / LRU_TICK_MS) as u32 & CLOCK_MASK
}

/// Returns the minute of an LFU clock at Unix time `now_ms`.
pub(super) fn lfu_minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xFFFF
}

/// Returns the LFU counter in `clock`, decayed to Unix time `now_ms` by one every `decay_minutes`; 0 means no decay.
pub(super) fn lfu_counter_at(now_ms: i64, decay_minutes: u32, clock: u32) -> u8 {
    let idle_minutes = lfu_minutes(now_ms).wrapping_sub(clock >> 8) & 0xFFFF;
    let periods = idle_minutes.checked_div(decay_minutes).unwrap_or(0);
    (clock as u8).saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// Returns the seconds from the last use in `clock` to Unix time `now_ms`.
pub(super) fn idle_seconds_at(now_ms: i64, clock: u32) -> u64 {
    let ticks = lru_now(now_ms).wrapping_sub(clock) & CLOCK_MASK;
    u64::from(ticks) * LRU_TICK_MS as u64 / 1000
}

/// The interpretation of eviction clocks at one moment, for readers at that moment or later.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The policy under which the clocks were set.
    pub policy: EvictionPolicy,
    /// Minutes after which an idle LFU counter decreases by one.
    pub lfu_decay_minutes: u32,
    /// The moment, as Unix time in ms.
    pub now_ms: i64,
}

impl ClockReading {
    /// The limit up to which a clock ahead of the moment is read as just used.
    const AHEAD_MAX_MS: i64 = 24 * 3600 * 1000;

    /// Returns the LFU counter, under the policies that have one.
    pub fn frequency(&self, clock: u32) -> Option<u8> {
        let minutes = (Self::AHEAD_MAX_MS / 60_000) as u32;
        let ahead = (clock >> 8).wrapping_sub(lfu_minutes(self.now_ms)) & 0xFFFF;
        let counter = || match ahead {
            1.. if ahead <= minutes => clock as u8,
            _ => lfu_counter_at(self.now_ms, self.lfu_decay_minutes, clock),
        };
        self.policy.is_lfu().then(counter)
    }

    /// Returns the seconds since the last use, under LRU policies.
    pub fn idle_s(&self, clock: u32) -> Option<u64> {
        let ahead = clock.wrapping_sub(lru_now(self.now_ms)) & CLOCK_MASK;
        let seconds = || match ahead {
            1.. if i64::from(ahead) <= Self::AHEAD_MAX_MS / LRU_TICK_MS => 0,
            _ => idle_seconds_at(self.now_ms, clock),
        };
        self.policy.is_lru().then(seconds)
    }
}
