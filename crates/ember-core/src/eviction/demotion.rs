//! The choice of values to demote.
//!
//! Values are chosen by sampling entries. But if most values are cold, most samples find no resident value, and each
//! sample costs a cache miss. So fetched values are also queued: the oldest value in the queue is demoted, unless it
//! was used since its fetch; then it is queued again. A step chooses from the queue with a probability equal to the
//! queue's share of the resident values.

use crate::entries::entry::EntryRef;
use crate::entries::external::Record;
use crate::entries::table::Position;
use crate::eviction::policy::{CLOCK_MASK, EvictionPolicy, lru_now};
use crate::keyspace::Keyspace;
use crate::keyspace::shard::ShardData;
use crate::keyspace::shard::cold_values::{Demoted, DemotionRules, Encoded, SharedDemotion};
use crate::turn::Turn;

/// The number of entries sampled in one step: adjacent entries of a shard chosen at random.
const SAMPLED: usize = 64;

/// The maximum number of sampled values that one step demotes: those not used for longest. The same fraction limits the
/// fetched values that one step demotes.
const CHOSEN_MAX: usize = 8;

/// The number of fetched values to examine for each value to demote.
const EXAMINED_PER_DEMOTION: usize = 4;

/// The number of consecutive steps without progress after which the search for values to demote ends.
const FRUITLESS_MAX: usize = 256;

/// The state for demoting values in steps.
#[derive(Default)]
pub struct Demoter {
    chosen: Vec<(usize, Position)>,
    found: Vec<(u64, Position)>,
    /// The number of values demoted without a write, because their records still existed.
    pub dropped: u64,
}

impl Demoter {
    /// Demotes a few values: encodes each value and passes it to `append`, which returns the value's record. Returns
    /// the larger values, which the caller encodes without a lock, and whether there was progress. If there was none, a
    /// sample of all shards contains no value that may be demoted. The caller holds no lock; this function holds one
    /// shard's lock at a time, for some tens of microseconds.
    pub fn step(
        &mut self,
        keyspace: &Keyspace,
        turn: &mut Turn,
        rules: &DemotionRules,
        mut append: impl FnMut(&Encoded<'_>) -> Option<Record>,
    ) -> (Vec<SharedDemotion>, bool) {
        let mut shared = Vec::new();
        let mut is_fruitful = false;
        turn.now_tick = keyspace.turnover_tick();
        for _ in 0..FRUITLESS_MAX {
            let shard = keyspace.random_shard(&mut turn.random);
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
            let keys = keys.map(|&(database, at)| {
                let entry = data.entry(database, at);
                (database, entry.key().to_vec(), entry.footprint_bytes())
            });
            let keys: Vec<(usize, Vec<u8>, usize)> = keys.collect();
            let mut has_space = true;
            let (mut freed, mut demoted_bytes) = (Vec::new(), Vec::new());
            for (database, key, bytes) in &keys {
                let hash = keyspace.hash(key);
                let demoted = data.demote(*database, hash, key, rules, |encoded| {
                    let record = append(encoded);
                    has_space = record.is_some();
                    record
                });
                if !matches!(demoted, Demoted::Stays) {
                    demoted_bytes.push(*bytes);
                }
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
            if turn.settings.policy.has_ghosts() {
                demoted_bytes.into_iter().for_each(|bytes| keyspace.count_turnover(bytes, turn));
            }
            is_fruitful |= !freed.is_empty() || !shared.is_empty() || !has_space;
            if is_fruitful {
                break;
            }
        }
        (shared, is_fruitful)
    }

    /// Chooses up to `most` fetched values of a database for demotion. Returns whether a value was spared because it
    /// was used since its fetch.
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

    /// Samples entries of a database and chooses the values that were not used for longest. Returns whether a value was
    /// spared because a client has fetched it.
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
                // The value gets a second chance, because a client has fetched it.
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

/// Returns the maximum number of values to demote in one step among `count` candidates.
fn share_of(count: usize) -> usize {
    count.div_ceil(SAMPLED / CHOSEN_MAX).min(CHOSEN_MAX)
}

/// Returns whether the value of an entry may be demoted.
fn is_demotable(data: &ShardData, entry: EntryRef<'_>, rules: &DemotionRules) -> bool {
    // With a store, only a value that the store contains may be demoted.
    !entry.is_cold()
        && (!data.has_store() || entry.is_copied())
        && (rules.bytes_min..=rules.bytes_max).contains(&entry.footprint_bytes())
}

impl Turn {
    /// Returns the idle time of a value, or under an LFU policy the inverse of its access counter; the value with the
    /// largest result is demoted first. Policies that ignore use are treated as LRU, because demotion loses no value.
    fn idleness(&self, clock: u32) -> u64 {
        match self.settings.policy {
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => {
                u64::from(u8::MAX - self.frequency(clock))
            }
            EvictionPolicy::AllkeysGhosts => self.rarity(clock),
            _ => u64::from(lru_now(self.clock_ms()).wrapping_sub(clock) & CLOCK_MASK),
        }
    }
}
