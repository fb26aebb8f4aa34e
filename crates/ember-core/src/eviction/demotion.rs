//! The choice of values to demote.
//!
//! If most values are cold, most sampled entries are useless, and each costs a cache miss. So fetched values are
//! queued: the first one is demoted, unless it was used since its fetch; then it is queued again. Values that were
//! never demoted are found by sampling. The queue is used in proportion to its share of the resident values.

use crate::entries::entry::EntryRef;
use crate::entries::external::Record;
use crate::entries::table::Position;
use crate::eviction::policy::{CLOCK_MASK, EvictionPolicy, lru_now};
use crate::keyspace::shard::ShardData;
use crate::keyspace::shard::cold_values::{Demoted, DemotionRules, Encoded, SharedDemotion};
use crate::keyspace::{Keyspace, SHARDS};
use crate::turn::Turn;

/// Entries sampled in one step, adjacent ones in a shard chosen at random.
const SAMPLED: usize = 64;

/// At most this many of them are demoted, those not used for longest; and at most the same fraction of the fetched
/// values.
const CHOSEN_MAX: usize = 8;

/// Fetched values to examine for each one to demote.
const EXAMINED_PER_DEMOTION: usize = 4;

/// Consecutive steps without a value to demote after which the search ends.
const FRUITLESS_MAX: usize = 256;

/// Demotes values step by step.
#[derive(Default)]
pub struct Demoter {
    chosen: Vec<(usize, Position)>,
    found: Vec<(u64, Position)>,
    /// Values demoted without a write because their records still existed.
    pub dropped: u64,
}

impl Demoter {
    /// Demotes a few values: encodes them and passes them to `append`, which returns the record. Returns larger values,
    /// to be encoded without a lock, and whether there was progress. The caller holds no lock; one is held for some
    /// tens of microseconds. Without progress no value may be demoted, as far as a sample of all shards shows.
    pub fn step(
        &mut self,
        keyspace: &Keyspace,
        turn: &mut Turn,
        rules: &DemotionRules,
        mut append: impl FnMut(&Encoded<'_>) -> Option<Record>,
    ) -> (Vec<SharedDemotion>, bool) {
        let mut shared = Vec::new();
        let mut is_fruitful = false;
        for _ in 0..FRUITLESS_MAX {
            let shard = turn.random.below(SHARDS);
            let mut data = keyspace.lock(shard);
            self.chosen.clear();
            for database in 0..data.databases_used() {
                let (share, returned) = data.returned(database);
                is_fruitful |= if turn.random.unit() < share {
                    self.choose_returned(&mut data, database, share_of(returned), rules)
                } else {
                    self.choose_of_sample(&mut data, database, turn, rules)
                };
            }
            let keys = self.chosen.iter();
            let keys = keys.map(|&(database, at)| (database, data.entry(database, at).key().to_vec()));
            let keys: Vec<(usize, Vec<u8>)> = keys.collect();
            let mut has_space = true;
            let mut freed = Vec::new();
            for (database, key) in &keys {
                let hash = keyspace.hash(key);
                let demoted = data.demote(*database, hash, key, rules, |encoded| {
                    let record = append(encoded);
                    has_space = record.is_some();
                    record
                });
                match demoted {
                    Demoted::Cold(old) => freed.push(old),
                    Demoted::Dropped(old) => {
                        freed.push(old);
                        self.dropped += 1;
                    }
                    Demoted::Shared(demotion) => shared.push(demotion),
                    Demoted::Stays => {}
                }
                if !has_space {
                    break;
                }
            }
            keyspace.publish_bytes(keyspace.release(shard, data));
            is_fruitful |= !freed.is_empty() || !shared.is_empty() || !has_space;
            if is_fruitful {
                break;
            }
        }
        (shared, is_fruitful)
    }

    /// Chooses up to `most` fetched values of a database. Returns whether some have been used since their fetch.
    fn choose_returned(
        &mut self,
        data: &mut ShardData,
        database: usize,
        most: usize,
        rules: &DemotionRules,
    ) -> bool {
        let end = self.chosen.len() + most;
        let mut has_spared = false;
        for _ in 0..most * EXAMINED_PER_DEMOTION {
            if self.chosen.len() == end {
                break;
            }
            let Some((at, clock)) = data.take_returned(database) else { break };
            let entry = data.entry(database, at);
            if !is_demotable(data, entry, rules) {
                continue;
            }
            let is_fetched = entry.is_fetched();
            if is_fetched || entry.clock() != clock {
                has_spared = true;
                data.record_fetched(database, at);
            } else {
                self.chosen.push((database, at));
            }
            if is_fetched {
                data.clear_fetched(database, at);
            }
        }
        has_spared
    }

    /// Chooses the values in a sample of a database that were not used for longest. Returns whether others get a second
    /// chance.
    fn choose_of_sample(
        &mut self,
        data: &mut ShardData,
        database: usize,
        turn: &mut Turn,
        rules: &DemotionRules,
    ) -> bool {
        self.found.clear();
        let mut spared = Vec::new();
        data.database(database).table().sample(turn.random.next_u32(), SAMPLED, |at, entry| {
            if !is_demotable(data, entry, rules) {
                return;
            }
            if entry.is_fetched() {
                // A second chance, because a client has fetched it.
                spared.push(at);
            } else {
                self.found.push((turn.idleness(entry.clock()), at));
            }
        });
        self.found.sort_unstable_by_key(|&(idleness, _)| std::cmp::Reverse(idleness));
        let chosen = &self.found[..share_of(self.found.len())];
        self.chosen.extend(chosen.iter().map(|&(_, at)| (database, at)));
        spared.iter().for_each(|&at| data.clear_fetched(database, at));
        !spared.is_empty()
    }
}

/// Returns how many of `count` values may be demoted at once.
fn share_of(count: usize) -> usize {
    count.div_ceil(SAMPLED / CHOSEN_MAX).min(CHOSEN_MAX)
}

/// Returns whether the value of an entry may be demoted.
fn is_demotable(data: &ShardData, entry: EntryRef<'_>, rules: &DemotionRules) -> bool {
    // A value that is not in the store exists only in memory.
    !entry.is_cold()
        && (!data.has_store() || entry.is_copied())
        && (rules.bytes_min..=rules.bytes_max).contains(&entry.footprint_bytes())
}

impl Turn {
    /// Returns how long, or how rarely, a value was used; larger values are demoted first. Policies without regard to
    /// use are treated as LRU, because a demoted value is not lost.
    fn idleness(&self, clock: u32) -> u64 {
        match self.settings.policy {
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => {
                u64::from(u8::MAX - self.lfu_counter(clock))
            }
            _ => u64::from(lru_now(self.clock_ms()).wrapping_sub(clock) & CLOCK_MASK),
        }
    }
}
