//! Eviction: the choice of keys to remove when the memory limit is exceeded.
//!
//! Candidates are sampled: a few adjacent entries of one database in a shard chosen at random
//! ([`Keyspace::random_shard`]); the probability of a database is its share of the shard's keys. Keys are spread over
//! groups by their hash, so this is a uniform sample. The best candidates of past samples are kept in a pool, as in
//! Redis since 3.0, which brings sampled LRU close to exact LRU (`tests/eviction_quality.rs` measures it).

mod clock;
pub mod demotion;
pub mod ghosts;
pub mod policy;

pub use policy::{ClockReading, EvictionPolicy};

use crate::effects::events::Event;
use crate::entries::entry::EntryRef;
use crate::keyspace::{Keyspace, SHARDS};
use crate::turn::Turn;
use policy::{CLOCK_MASK, lru_now};

/// The maximum number of candidates kept from one sample to the next.
const POOL_MAX: usize = 16;

/// The number of consecutive shards that are sampled without finding a candidate; after that, all shards are searched
/// in order.
const EMPTY_SHARDS_MAX: usize = 64;

impl Turn {
    /// Returns the eviction score of an entry under the policy; the entry with the largest score is evicted first.
    fn score(&self, entry: EntryRef<'_>) -> u64 {
        match self.settings.policy {
            EvictionPolicy::AllkeysLru | EvictionPolicy::VolatileLru => {
                u64::from(lru_now(self.clock_ms()).wrapping_sub(entry.clock()) & CLOCK_MASK)
            }
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => {
                u64::from(u8::MAX - self.frequency(entry.clock()))
            }
            EvictionPolicy::AllkeysGhosts => self.rarity(entry.clock()),
            EvictionPolicy::VolatileTtl => u64::MAX - entry.expire_at_ms().unwrap_or(i64::MAX).max(0) as u64,
            EvictionPolicy::AllkeysRandom | EvictionPolicy::VolatileRandom | EvictionPolicy::NoEviction => 0,
        }
    }

    /// Returns how rarely a key was used, under the policy with ghosts: keys with a lower counter have a larger
    /// result, and so have keys with an equal counter that were not used for longer.
    fn rarity(&self, clock: u32) -> u64 {
        let counter = ghosts::counter_at(self.now_tick, clock);
        u64::from(u8::MAX - counter) << 16 | u64::from(ghosts::idle_ticks_at(self.now_tick, clock))
    }
}

struct Candidate {
    score: u64,
    database: usize,
    key: Vec<u8>,
}

/// The eviction of one worker, with good candidates that are kept for the next call.
#[derive(Default)]
pub struct Evictor {
    /// The candidates, in ascending order of score; the last candidate is evicted first.
    pool: Vec<Candidate>,
}

/// The error of [`Evictor::free_memory`]: the memory limit is exceeded and the policy allows no key to be evicted.
#[derive(Debug, PartialEq, Eq)]
pub struct NothingToEvict;

impl Evictor {
    /// Removes keys until the keyspace takes at most `limit_bytes`. The caller holds no shard lock and has published
    /// its growth. Expected O(`samples`) per removed key.
    ///
    /// # Errors
    /// Returns an error if the limit cannot be reached because the policy allows no further key to be evicted.
    pub fn free_memory(
        &mut self,
        keyspace: &Keyspace,
        turn: &mut Turn,
        limit_bytes: usize,
        samples: usize,
    ) -> Result<(), NothingToEvict> {
        while keyspace.used_bytes() > limit_bytes {
            if turn.settings.policy == EvictionPolicy::NoEviction || !self.evict_one(keyspace, turn, samples)
            {
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
                if turn.settings.policy.is_volatile() && entry.expire_at_ms().is_none() {
                    continue;
                }
                if turn.score(entry) < candidate.score {
                    continue; // used since it was sampled
                }
                if turn.journal.captures() {
                    data.mark_for_server(candidate.database, at, "evicted", turn);
                }
                let counter = turn.settings.policy.has_ghosts().then(|| turn.frequency(entry.clock()));
                let removed = data.remove(candidate.database, at);
                if let Some(counter) = counter {
                    data.remember_evicted(hash, counter);
                }
                data.notify_server_change(candidate.database, hash.tag(), &candidate.key, &mut turn.notices);
                let removal = turn.settings.removals.evicted;
                turn.journal.record_removal(candidate.database, &candidate.key, removal);
                turn.notices.notify(Event::EVICTED, candidate.database, &candidate.key);
                keyspace.publish_bytes(keyspace.release(hash.shard(), data));
                if counter.is_some() {
                    keyspace.count_turnover(removed.entry().footprint_bytes(), turn);
                }
                drop(removed);
                turn.counters.evicted += 1;
                return true;
            }
        }
    }

    /// Adds a sample of one shard to the pool; returns false if no shard contains a key that may be evicted.
    fn fill_pool(&mut self, keyspace: &Keyspace, turn: &mut Turn, samples: usize) -> bool {
        for _ in 0..EMPTY_SHARDS_MAX {
            let shard = keyspace.random_shard(&mut turn.random);
            if self.sample_shard(keyspace, turn, shard, samples) {
                return true;
            }
        }
        let start = turn.random.below(SHARDS);
        (0..SHARDS).any(|step| self.sample_shard(keyspace, turn, (start + step) % SHARDS, usize::MAX))
    }

    fn sample_shard(&mut self, keyspace: &Keyspace, turn: &mut Turn, shard: usize, samples: usize) -> bool {
        let data = keyspace.lock(shard);
        let volatile = turn.settings.policy.is_volatile();
        let weight = |database: usize| {
            let here = data.database(database);
            if volatile { here.volatile() } else { here.table().len() }
        };
        let Some(database) = turn.random.weighted(keyspace.databases(), weight) else { return false };
        // Entries without an expiry count towards the sample, so a volatile policy samples four times as many entries.
        let count = if volatile { samples.saturating_mul(4) } else { samples };
        let start = turn.random.next_u32();
        let mut found = false;
        data.database(database).table().sample(start, count, |_, entry| {
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
