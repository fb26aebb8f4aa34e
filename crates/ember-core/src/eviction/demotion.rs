//! The choice of values that go away from memory while their keys stay.

use crate::entries::external::Record;
use crate::eviction::policy::{CLOCK_MASK, EvictionPolicy, lru_now};
use crate::keyspace::shard::away::{Demoted, DemotionRules, Encoded, SharedDemotion};
use crate::keyspace::{Keyspace, SHARDS};
use crate::turn::Turn;

/// Entries looked at in one step, which stand together in a shard chosen at random.
const LOOKED_AT: usize = 64;

/// Of these the values that were not used for longest go, at most so many.
const CHOSEN_MAX: usize = 8;

/// Steps in a row without anything that may go before it is said that there is nothing.
const FRUITLESS_MAX: usize = 256;

/// Sends values away, step by step.
#[derive(Default)]
pub struct Demoter {
    chosen: Vec<(u64, usize, Vec<u8>)>,
    /// Values whose records were there still, so that nothing was written.
    pub dropped: u64,
}

impl Demoter {
    /// Sends a few values away: encodes them and gives them to `append`, which says where a record is. Returns larger ones,
    /// to be encoded without a lock, and whether anything comes of it. The caller holds no lock; one is held for some
    /// tens of microseconds. When nothing does, nothing may go, as far as a sample of all shards can tell.
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
            let mut spared = Vec::new();
            for database in 0..data.databases_used() {
                let start = turn.random.next_u32();
                data.database(database).table().sample(start, LOOKED_AT, |entry| {
                    let may_go = |bytes| (rules.bytes_min..=rules.bytes_max).contains(&bytes);
                    if entry.is_fetched() {
                        // A second chance: somebody has asked for it.
                        spared.push((database, entry.key().to_vec()));
                    } else if !entry.is_away() && may_go(entry.footprint_bytes()) {
                        self.chosen.push((turn.idleness(entry.clock()), database, entry.key().to_vec()));
                    }
                });
            }
            for (database, key) in spared {
                if let Some(at) = data.find(database, keyspace.hash(&key), &key) {
                    data.clear_fetched(database, at);
                    is_fruitful = true;
                }
            }
            let count = self.chosen.len().div_ceil(LOOKED_AT / CHOSEN_MAX).min(CHOSEN_MAX);
            self.chosen.sort_unstable_by_key(|&(idleness, ..)| std::cmp::Reverse(idleness));
            let mut has_room = true;
            let mut gone = Vec::new();
            for (_, database, key) in self.chosen.iter().take(count) {
                let hash = keyspace.hash(key);
                let demoted = data.demote(*database, hash, key, rules, |encoded| {
                    let record = append(encoded);
                    has_room = record.is_some();
                    record
                });
                match demoted {
                    Demoted::Gone(old) => gone.push(old),
                    Demoted::Dropped(old) => {
                        gone.push(old);
                        self.dropped += 1;
                    }
                    Demoted::Shared(demotion) => shared.push(demotion),
                    Demoted::Stays => {}
                }
                if !has_room {
                    break;
                }
            }
            keyspace.publish_bytes(keyspace.release(shard, data));
            is_fruitful |= !gone.is_empty() || !shared.is_empty() || !has_room;
            if is_fruitful {
                break;
            }
        }
        (shared, is_fruitful)
    }
}

impl Turn {
    /// How long a value was not used, or how seldom; a larger one goes first. Policies that do not look at use are taken for
    /// LRU: a value that goes away is not gone.
    fn idleness(&self, clock: u32) -> u64 {
        match self.settings.policy {
            EvictionPolicy::AllkeysLfu | EvictionPolicy::VolatileLfu => {
                u64::from(u8::MAX - self.lfu_counter(clock))
            }
            _ => u64::from(lru_now(self.clock_ms()).wrapping_sub(clock) & CLOCK_MASK),
        }
    }
}
