//! The choice of values that go away from memory while their keys stay.
//!
//! Where most values are away, most entries that a sample finds are of no use, and each of them is a cache miss. So values
//! that have come back stand in a queue: the first of them goes, unless it was used since it came, which it counts as coming
//! back then. What was never away is found by samples. As many looks are at the queue as it has of the values in memory.

use crate::entries::entry::EntryRef;
use crate::entries::external::Record;
use crate::entries::table::Position;
use crate::eviction::policy::{CLOCK_MASK, EvictionPolicy, lru_now};
use crate::keyspace::shard::ShardData;
use crate::keyspace::shard::away::{Demoted, DemotionRules, Encoded, SharedDemotion};
use crate::keyspace::{Keyspace, SHARDS};
use crate::turn::Turn;

/// Entries looked at in one step, which stand together in a shard chosen at random.
const LOOKED_AT: usize = 64;

/// Of these the values that were not used for longest go, at most so many; and no larger part of those that came back.
const CHOSEN_MAX: usize = 8;

/// Values that came back are looked at for each of them that may go.
const LOOKED_AT_FOR_ONE: usize = 4;

/// Steps in a row without anything that may go before it is said that there is nothing.
const FRUITLESS_MAX: usize = 256;

/// Sends values away, step by step.
#[derive(Default)]
pub struct Demoter {
    chosen: Vec<(usize, Position)>,
    found: Vec<(u64, Position)>,
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
            let mut has_room = true;
            let mut gone = Vec::new();
            for (database, key) in &keys {
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

    /// Chooses up to `most` values of a database from those that came back. Whether some have been used since.
    fn choose_returned(
        &mut self,
        data: &mut ShardData,
        database: usize,
        most: usize,
        rules: &DemotionRules,
    ) -> bool {
        let end = self.chosen.len() + most;
        let mut has_spared = false;
        for _ in 0..most * LOOKED_AT_FOR_ONE {
            if self.chosen.len() == end {
                break;
            }
            let Some((at, clock)) = data.take_returned(database) else { break };
            let entry = data.entry(database, at);
            if !may_go(data, entry, rules) {
                continue;
            }
            let is_fetched = entry.is_fetched();
            if is_fetched || entry.clock() != clock {
                has_spared = true;
                data.note_returned(database, at);
            } else {
                self.chosen.push((database, at));
            }
            if is_fetched {
                data.clear_fetched(database, at);
            }
        }
        has_spared
    }

    /// Chooses the values of a sample of a database that were not used for longest. Whether somebody waits for others.
    fn choose_of_sample(
        &mut self,
        data: &mut ShardData,
        database: usize,
        turn: &mut Turn,
        rules: &DemotionRules,
    ) -> bool {
        self.found.clear();
        let mut spared = Vec::new();
        data.database(database).table().sample(turn.random.next_u32(), LOOKED_AT, |at, entry| {
            if !may_go(data, entry, rules) {
                return;
            }
            if entry.is_fetched() {
                // A second chance: somebody has asked for it.
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

/// How many of so many may go at once.
fn share_of(count: usize) -> usize {
    count.div_ceil(LOOKED_AT / CHOSEN_MAX).min(CHOSEN_MAX)
}

/// Whether the value of an entry may go.
fn may_go(data: &ShardData, entry: EntryRef<'_>, rules: &DemotionRules) -> bool {
    // What a store has not been told of is nowhere else.
    !entry.is_away()
        && (!data.has_store() || entry.is_copied())
        && (rules.bytes_min..=rules.bytes_max).contains(&entry.footprint_bytes())
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
