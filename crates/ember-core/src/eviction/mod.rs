//! Eviction: the clock each entry carries, and the choice of keys to give up when memory is short.
//!
//! The clock has 24 bits. Under the LRU policies (and all others but LFU, so that `OBJECT IDLETIME` works) it is
//! the time of the last use in quarter seconds, wrapping after 48 days. Under LFU the low 8 bits are a logarithmic
//! counter and the high 16 the minute of its last decay, as in Redis.
//!
//! Candidates are sampled: a few entries that stand together in a shard chosen at random, of a database chosen by
//! its share of the shard's keys. Keys are spread over shards and groups by their hash, so this is a uniform
//! sample. The best candidates of past samples wait in a pool, as in Redis since 3.0, which brings sampled LRU
//! close to exact LRU (`tests/eviction_quality.rs` measures it).

use std::fmt;

use crate::algorithms::random::Random;
use crate::events::Event;
use crate::keyspace::entry::EntryRef;
use crate::keyspace::{Keyspace, SHARDS};
use crate::turn::Turn;

/// The unit of the LRU clock, in ms.
const LRU_TICK_MS: i64 = 250;

const CLOCK_BITS: u32 = 24;
const CLOCK_MASK: u32 = (1 << CLOCK_BITS) - 1;

/// The counter of a new key under LFU: above zero, so that it is not the first to go.
const LFU_INITIAL: u8 = 5;

/// Candidates remembered from one sample to the next.
const POOL_MAX: usize = 16;

/// Shards tried in a row without finding a candidate before all of them are searched in turn.
const EMPTY_SHARDS_MAX: usize = 64;

/// `maxmemory-policy`: which keys may go, and which go first. In the order Redis lists them.
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
    /// All policies, in the order Redis lists them.
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

    /// Their names in the configuration, in the order of [`EvictionPolicy::ALL`].
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

    /// Whether the clock is an LFU counter.
    #[inline]
    pub fn is_lfu(self) -> bool {
        matches!(self, EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu)
    }

    /// Whether the clock tells when a key was last used, and that matters.
    pub fn is_lru(self) -> bool {
        matches!(self, EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru)
    }

    fn is_volatile(self) -> bool {
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

fn lru_now(now_ms: i64) -> u32 {
    (now_ms / LRU_TICK_MS) as u32 & CLOCK_MASK
}

fn lfu_minutes(now_ms: i64) -> u32 {
    (now_ms / 60_000) as u32 & 0xFFFF
}

/// The LFU counter in `clock`, decayed to Unix time `now_ms` by one in so many minutes, or not at all with 0 of them.
fn lfu_counter_at(now_ms: i64, decay_minutes: u32, clock: u32) -> u8 {
    let idle_minutes = lfu_minutes(now_ms).wrapping_sub(clock >> 8) & 0xFFFF;
    let periods = idle_minutes.checked_div(decay_minutes).unwrap_or(0);
    (clock as u8).saturating_sub(u8::try_from(periods).unwrap_or(u8::MAX))
}

/// Seconds from the last use in `clock` to Unix time `now_ms`.
fn idle_seconds_at(now_ms: i64, clock: u32) -> u64 {
    let ticks = lru_now(now_ms).wrapping_sub(clock) & CLOCK_MASK;
    u64::from(ticks) * LRU_TICK_MS as u64 / 1000
}

/// What eviction clocks say at one moment, also to those who look at them later.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// What the clocks mean.
    pub policy: EvictionPolicy,
    /// Minutes after which an idle LFU counter falls by one.
    pub lfu_decay_minutes: u32,
    /// The moment, Unix time in ms.
    pub now_ms: i64,
}

impl ClockReading {
    /// How far clocks may be ahead of the moment: so long after it they are still read rightly.
    const AHEAD_MAX_MS: i64 = 24 * 3600 * 1000;

    /// The LFU counter, under the policies that have one.
    pub fn frequency(&self, clock: u32) -> Option<u8> {
        let minutes = (Self::AHEAD_MAX_MS / 60_000) as u32;
        let ahead = (clock >> 8).wrapping_sub(lfu_minutes(self.now_ms)) & 0xFFFF;
        let counter = || match ahead {
            1.. if ahead <= minutes => clock as u8,
            _ => lfu_counter_at(self.now_ms, self.lfu_decay_minutes, clock),
        };
        self.policy.is_lfu().then(counter)
    }

    /// Seconds since the last use, under the policies that look at it.
    pub fn idle_s(&self, clock: u32) -> Option<u64> {
        let ahead = clock.wrapping_sub(lru_now(self.now_ms)) & CLOCK_MASK;
        let seconds = || match ahead {
            1.. if i64::from(ahead) <= Self::AHEAD_MAX_MS / LRU_TICK_MS => 0,
            _ => idle_seconds_at(self.now_ms, clock),
        };
        self.policy.is_lru().then(seconds)
    }
}

impl Turn {
    /// The clock of a key made now.
    #[inline]
    pub fn new_clock(&self) -> u32 {
        if self.policy.is_lfu() {
            lfu_minutes(self.clock_ms()) << 8 | u32::from(LFU_INITIAL)
        } else {
            lru_now(self.clock_ms())
        }
    }

    /// The clock of a key with `clock` after a use now.
    #[inline]
    pub fn touched_clock(&mut self, clock: u32) -> u32 {
        if self.policy.is_lfu() { self.touched_lfu(clock) } else { lru_now(self.clock_ms()) }
    }

    fn touched_lfu(&mut self, clock: u32) -> u32 {
        let mut counter = self.lfu_counter(clock);
        if counter < u8::MAX {
            let base = f64::from(counter.saturating_sub(LFU_INITIAL));
            if self.random.unit() < 1.0 / (base * f64::from(self.lfu_log_factor) + 1.0) {
                counter += 1;
            }
        }
        lfu_minutes(self.clock_ms()) << 8 | u32::from(counter)
    }

    /// The LFU counter in `clock`, decayed to now: what `OBJECT FREQ` answers.
    pub fn lfu_counter(&self, clock: u32) -> u8 {
        lfu_counter_at(self.clock_ms(), self.lfu_decay_minutes, clock)
    }

    /// Seconds since the last use in `clock`: what `OBJECT IDLETIME` answers.
    pub fn idle_seconds(&self, clock: u32) -> u64 {
        idle_seconds_at(self.clock_ms(), clock)
    }

    /// The clock under an LRU policy of a key that was not used for so many seconds, or as many as the clock can tell.
    pub fn idle_clock(&self, seconds: u64) -> u32 {
        let ticks = seconds.saturating_mul(1000 / LRU_TICK_MS as u64).min(CLOCK_MASK.into());
        lru_now(self.clock_ms()).wrapping_sub(ticks as u32) & CLOCK_MASK
    }

    /// The clock under an LFU policy of a key with this counter.
    pub fn frequency_clock(&self, counter: u8) -> u32 {
        lfu_minutes(self.clock_ms()) << 8 | u32::from(counter)
    }

    /// How much an entry deserves to go under the policy; larger goes first.
    fn score(&self, entry: EntryRef<'_>) -> u64 {
        match self.policy {
            EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru => {
                u64::from(lru_now(self.clock_ms()).wrapping_sub(entry.clock()) & CLOCK_MASK)
            }
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => {
                u64::from(u8::MAX - self.lfu_counter(entry.clock()))
            }
            EvictionPolicy::VolatileTtl => u64::MAX - entry.expire_at_ms().unwrap_or(i64::MAX).max(0) as u64,
            EvictionPolicy::AllkeysRandom | EvictionPolicy::VolatileRandom | EvictionPolicy::NoEviction => 0,
        }
    }
}

struct Candidate {
    score: u64,
    database: usize,
    key: Vec<u8>,
}

/// A number below `count`, chosen with a chance in proportion to its weight; `None` if all weigh nothing.
fn weighted(count: usize, weight: impl Fn(usize) -> usize, random: &mut Random) -> Option<usize> {
    let total: usize = (0..count).map(&weight).sum();
    let mut rank = if total == 0 { return None } else { random.below(total) };
    (0..count).find(|&index| {
        let here = weight(index);
        let found = rank < here;
        rank = rank.saturating_sub(here);
        found
    })
}

/// Makes room, with the memory of one worker for good candidates.
#[derive(Default)]
pub struct Evictor {
    /// Ascending by score; the last one goes first.
    pool: Vec<Candidate>,
}

/// Memory is short and the policy allows no key to go.
#[derive(Debug, PartialEq, Eq)]
pub struct NothingToEvict;

impl Evictor {
    /// Removes keys until the keyspace takes at most `limit_bytes`. The caller holds no shard's lock and has
    /// published what it has grown by. Expected O(`samples`) for each key removed.
    ///
    /// # Errors
    /// If the limit cannot be reached because the policy finds no key.
    pub fn make_room(
        &mut self,
        keyspace: &Keyspace,
        turn: &mut Turn,
        limit_bytes: usize,
        samples: usize,
    ) -> Result<(), NothingToEvict> {
        while keyspace.used_bytes() > limit_bytes {
            if turn.policy == EvictionPolicy::NoEviction || !self.evict_one(keyspace, turn, samples) {
                return Err(NothingToEvict);
            }
        }
        Ok(())
    }

    fn evict_one(&mut self, keyspace: &Keyspace, turn: &mut Turn, samples: usize) -> bool {
        loop {
            if !self.fill_pool(keyspace, turn, samples) && self.pool.is_empty() {
                return false;
            }
            while let Some(candidate) = self.pool.pop() {
                let hash = keyspace.hash(&candidate.key);
                let mut data = keyspace.lock(hash.shard());
                let Some(at) = data.find(candidate.database, hash, &candidate.key) else { continue };
                let entry = data.entry(candidate.database, at);
                if turn.policy.is_volatile() && entry.expire_at_ms().is_none() {
                    continue;
                }
                if turn.score(entry) < candidate.score {
                    continue; // used since it was sampled
                }
                let removed = data.remove(candidate.database, at);
                data.tell_change(candidate.database, &candidate.key, &mut turn.notices);
                turn.journal.tell_removal(candidate.database, &candidate.key);
                turn.notices.notify(Event::EVICTED, candidate.database, &candidate.key);
                keyspace.publish_bytes(keyspace.release(hash.shard(), data));
                drop(removed);
                turn.counters.evicted += 1;
                return true;
            }
        }
    }

    /// Samples one shard into the pool; false if no shard has a key that may go.
    fn fill_pool(&mut self, keyspace: &Keyspace, turn: &mut Turn, samples: usize) -> bool {
        for _ in 0..EMPTY_SHARDS_MAX {
            let shard = turn.random.below(SHARDS);
            if self.sample_shard(keyspace, turn, shard, samples) {
                return true;
            }
        }
        let start = turn.random.below(SHARDS);
        (0..SHARDS).any(|step| self.sample_shard(keyspace, turn, (start + step) % SHARDS, usize::MAX))
    }

    fn sample_shard(&mut self, keyspace: &Keyspace, turn: &mut Turn, shard: usize, samples: usize) -> bool {
        let data = keyspace.lock(shard);
        let volatile = turn.policy.is_volatile();
        let weight = |database: usize| {
            let here = data.database(database);
            if volatile { here.volatile() } else { here.table().len() }
        };
        let Some(database) = weighted(keyspace.databases(), weight, &mut turn.random) else { return false };
        // Entries without an expiry count towards the sample, so a volatile policy looks at more of them.
        let count = if volatile { samples.saturating_mul(4) } else { samples };
        let start = turn.random.next_u32();
        let mut found = false;
        data.database(database).table().sample(start, count, |entry| {
            if !volatile || entry.expire_at_ms().is_some() {
                found = true;
                self.offer(turn.score(entry), database, entry.key());
            }
        });
        found
    }

    fn offer(&mut self, score: u64, database: usize, key: &[u8]) {
        if self.pool.len() == POOL_MAX && score <= self.pool[0].score {
            return;
        }
        if self.pool.iter().any(|other| other.database == database && other.key == key) {
            return;
        }
        let at = self.pool.partition_point(|other| other.score <= score);
        self.pool.insert(at, Candidate { score, database, key: key.to_vec() });
        if self.pool.len() > POOL_MAX {
            self.pool.remove(0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_ahead_of_the_moment_are_those_of_keys_just_used() {
        let mut turn = Turn::new(1_700_000_000_000, 1);
        for policy in [EvictionPolicy::AllkeysLru, EvictionPolicy::VolatileLfu] {
            turn.policy = policy;
            let reading = ClockReading { policy, lfu_decay_minutes: 1, now_ms: turn.now_ms };
            let now = turn.new_clock();
            turn.now_ms += 3600 * 1000;
            let later = turn.new_clock();
            turn.now_ms -= 7200 * 1000;
            let before = turn.new_clock();
            turn.now_ms += 3600 * 1000;
            let is_lru = policy.is_lru();
            for (clock, idle_s, counter) in
                [(now, 0, LFU_INITIAL), (later, 0, LFU_INITIAL), (before, 3600, 0)]
            {
                assert_eq!(reading.idle_s(clock), is_lru.then_some(idle_s));
                assert_eq!(reading.frequency(clock), (!is_lru).then_some(counter));
            }
        }
    }
}
