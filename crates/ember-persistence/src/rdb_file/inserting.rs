//! Inserts batches of keys into a keyspace, sorted by shard, so that the lock of each shard is taken once per batch.
//!
//! The order of keys in a file is unrelated to their order in the tables. So all keys of a batch are hashed first, and
//! while one key is inserted, the cache lines of the table that the following keys need are prefetched.

use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::keyspace::shard::ShardData;
use emberkv_core::keyspace::{Keyspace, SHARDS};
use emberkv_core::rdb::KeyFacts;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;

use super::batch::{OpenKey, Opened};
use super::{Batch, RdbError, RdbProblem};

/// The number of keys by which prefetching is ahead of insertion: enough to hide the latency of memory.
const FETCHED_AHEAD: usize = 12;

/// The maximum number of skipped keys that the log names: the first names are enough to show widespread damage.
const EMPTY_NAMES_MAX: usize = 10;

/// Inserts batches into a keyspace that no other thread accesses.
pub struct Inserter<'k> {
    keyspace: &'k Keyspace,
    turn: Turn,
    limits: EncodingLimits,
    replaces: bool,
    /// The hashes of the batch's keys, in the order of the batch.
    hashes: Vec<KeyHash>,
    /// The indices of the batch's keys, sorted by shard.
    order: Vec<u32>,
    /// The start of each shard in `order`; kept between batches to reuse the allocation.
    places: Vec<u32>,
    /// A buffer for values that are stored in another form than in the file.
    buffer: Vec<u8>,
    /// The names of keys that were skipped because their values have no elements.
    empty_names: Vec<Box<[u8]>>,
}

/// The numbers of keys of a batch, by outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Inserted {
    /// The number of keys inserted.
    pub loaded: u64,
    /// The number of keys skipped because they had expired.
    pub expired: u64,
    /// The number of keys skipped because their values have no elements.
    pub empty: u64,
}

impl<'k> Inserter<'k> {
    /// Creates an inserter for `keyspace`. `turn` contains the time and the settings of eviction clocks; `limits`
    /// select the encodings of values.
    pub fn new(keyspace: &'k Keyspace, turn: Turn, limits: EncodingLimits) -> Inserter<'k> {
        let (hashes, order, places, buffer) = Default::default();
        let empty_names = Vec::new();
        Inserter { keyspace, turn, limits, replaces: false, hashes, order, places, buffer, empty_names }
    }

    /// Sets whether a key of the file replaces an existing key (`replaces`); otherwise an existing key is an error.
    #[must_use]
    pub fn replacing(self, replaces: bool) -> Inserter<'k> {
        Inserter { replaces, ..self }
    }

    /// Inserts expired keys from now on, instead of skipping them.
    pub fn keep_expired(&mut self) {
        self.turn.replay_at(self.turn.now_ms);
    }

    /// Returns the names of the first keys that were skipped since the last call because their values have no elements.
    pub fn take_empty_names(&mut self) -> Vec<Box<[u8]>> {
        std::mem::take(&mut self.empty_names)
    }

    /// Inserts all keys of a batch. O(bytes of the batch).
    ///
    /// # Errors
    /// Returns an error if the bytes of a value are not valid, a key exists and is not to be replaced, or a database
    /// does not exist. Some of the keys may then have been inserted.
    pub fn insert(&mut self, batch: &mut Batch) -> Result<Inserted, RdbError> {
        batch.build(&self.limits)?;
        self.sort(batch)?;
        let order = std::mem::take(&mut self.order);
        let result = self.insert_in(&order, batch);
        self.order = order;
        result
    }

    /// Hashes all keys and sorts their indices by shard. Keys of the same shard stay in the order of the file.
    fn sort(&mut self, batch: &Batch) -> Result<(), RdbError> {
        self.hashes.clear();
        self.places.clear();
        self.places.resize(SHARDS + 1, 0);
        for index in 0..batch.len() {
            let (name, facts) = batch.key(index);
            if facts.database >= self.keyspace.databases() {
                return Err(batch.error(index, RdbProblem::Database(facts.database as u64)));
            }
            let hash = self.keyspace.hash(name);
            self.places[hash.shard() + 1] += 1;
            self.hashes.push(hash);
        }
        for shard in 0..SHARDS {
            self.places[shard + 1] += self.places[shard];
        }
        self.order.clear();
        self.order.resize(batch.len(), 0);
        for (index, hash) in (0..).zip(&self.hashes) {
            let place = &mut self.places[hash.shard()];
            self.order[*place as usize] = index;
            *place += 1;
        }
        Ok(())
    }

    fn insert_in(&mut self, order: &[u32], batch: &mut Batch) -> Result<Inserted, RdbError> {
        let keyspace = self.keyspace;
        let shard_of = |index: u32, hashes: &[KeyHash]| hashes[index as usize].shard();
        let mut inserted = Inserted::default();
        let mut result = Ok(());
        let mut growth = 0;
        let mut at = 0;
        for &ahead in order.iter().take(FETCHED_AHEAD) {
            keyspace.prefetch_group(self.hashes[ahead as usize]);
        }
        while result.is_ok()
            && let Some(&first) = order.get(at)
        {
            let number = shard_of(first, &self.hashes);
            let mut shard = keyspace.lock(number);
            while result.is_ok()
                && let Some(&index) = order.get(at)
                && shard_of(index, &self.hashes) == number
            {
                if let Some(&ahead) = order.get(at + FETCHED_AHEAD) {
                    keyspace.prefetch_group(self.hashes[ahead as usize]);
                }
                result = self.insert_one(&mut shard, index as usize, batch, &mut inserted);
                at += 1;
            }
            growth += keyspace.release(number, shard);
        }
        keyspace.publish_bytes(growth);
        result.map(|()| inserted)
    }

    fn insert_one(
        &mut self,
        shard: &mut ShardData,
        index: usize,
        batch: &mut Batch,
        inserted: &mut Inserted,
    ) -> Result<(), RdbError> {
        let OpenKey { name, facts, value } = match batch.open(index, self.turn.now_ms, &mut self.buffer)? {
            Opened::Key(key) => key,
            Opened::Expired => {
                inserted.expired += 1;
                return Ok(());
            }
            Opened::Empty => {
                inserted.empty += 1;
                if self.empty_names.len() < EMPTY_NAMES_MAX {
                    self.empty_names.push(batch.key(index).0.into());
                }
                return Ok(());
            }
        };
        let hash = self.hashes[index];
        if let Some(at) = shard.find(facts.database, hash, name) {
            if !self.replaces {
                let problem = RdbProblem::DuplicateKey(name.to_vec());
                return Err(batch.error(index, problem));
            }
            drop(shard.remove(facts.database, at));
            shard.notify_change(facts.database, hash.tag(), name, &mut self.turn.notices);
        }
        let clock = clock_of(&self.turn, facts);
        shard.insert(facts.database, hash, name, value, facts.expire_at_ms, clock);
        inserted.loaded += 1;
        Ok(())
    }
}

/// Returns the eviction clock of a key, using the file's idle time or frequency if the eviction policy needs it.
fn clock_of(turn: &Turn, facts: KeyFacts) -> u32 {
    match (facts.idle_s, facts.frequency) {
        (Some(seconds), _) if !turn.settings.policy.counts_uses() => turn.idle_clock(seconds),
        (_, Some(counter)) if turn.settings.policy.counts_uses() => turn.frequency_clock(counter),
        _ => turn.new_clock(),
    }
}
