//! The ghosts of evicted keys, with which the policy `allkeys-ghosts` decides which keys stay in memory.
//!
//! Most keys of a large cache are used once. Others are used once every few thousand requests. A policy with counters
//! only for keys in memory repeatedly evicts such a key before its next use. This policy counts the uses of each key,
//! also of keys that are not in memory any more:
//!
//! * The eviction clock of an entry contains a counter of uses up to `COUNTER_MAX`, which is halved with time, and the
//!   tick of the last use. A new key begins with 0 uses. The key with the lowest counter of a sample is evicted first,
//!   of equal ones the key that was not used for longest. So keys that are used once are evicted early.
//! * An evicted key leaves a *ghost*: 12 bits of its hash and its counter, in `EvictedKeys`. A key that is created
//!   while its ghost exists begins with one use more than its ghost, so it is kept like a key that was never evicted.
//! * Time is measured in evictions: one *turnover* is the eviction of as many bytes as the keyspace contains
//!   ([`Turnover`]). So the policy has no parameter that depends on the rate of requests.
//!
//! The parts come from published policies: counters with periodic halving from `TinyLFU` (Einziger, Friedman and Manes,
//! 2017), early removal of keys that are used once and records of evicted keys from S3-FIFO (Yang and others, 2023).
//! Those keep queues; here candidates are sampled, as under the other policies, so entries need no links.

use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use crate::entries::hash::{KeyHash, TAG_BITS};

/// The maximum of a counter of uses. A maximum of 31 improves the hit rate of no trace that was measured.
pub(super) const COUNTER_MAX: u8 = 15;

/// The number of ticks in a turnover.
const TICKS_PER_TURNOVER: u64 = 64;

/// The number of ticks after which a counter is halved: two turnovers. Three are better for constant popularity, one is
/// better when popularity changes at once (`docs/decisions/eviction-ghosts.md`).
const HALVING_TICKS: u16 = 2 * TICKS_PER_TURNOVER as u16;

/// Returns the counter in `clock`, halved for the time until `now_tick`.
pub(super) fn counter_at(now_tick: u16, clock: u32) -> u8 {
    let halvings = idle_ticks_at(now_tick, clock) / HALVING_TICKS;
    (clock as u8).checked_shr(halvings.into()).unwrap_or(0)
}

/// The maximum number of ticks by which a clock may be later than the reader's tick, because another worker has read a
/// later one: such a key counts as just used.
const AHEAD_MAX_TICKS: u16 = TICKS_PER_TURNOVER as u16;

/// Returns the ticks since the last use that `clock` records.
pub(super) fn idle_ticks_at(now_tick: u16, clock: u32) -> u16 {
    let idle = now_tick.wrapping_sub((clock >> 8) as u16);
    if idle > u16::MAX - AHEAD_MAX_TICKS { 0 } else { idle }
}

/// Returns the eviction clock of a key with this counter that is used at `now_tick`.
pub(super) fn clock_with(now_tick: u16, counter: u8) -> u32 {
    u32::from(now_tick) << 8 | u32::from(counter)
}

/// The bytes of a key outside its entry, which the memory of the keyspace contains: ten for its slot, two and a half for
/// the history.
const SLOT_BYTES: usize = 12;

/// The clock of the policy, which all workers share: it advances with the bytes that are evicted.
#[derive(Debug, Default)]
pub struct Turnover {
    tick: AtomicU16,
    /// The bytes evicted in the current tick.
    evicted_bytes: AtomicU64,
}

impl Turnover {
    /// Returns the current tick, which wraps after a thousand turnovers.
    #[inline]
    pub fn tick(&self) -> u16 {
        self.tick.load(Ordering::Relaxed)
    }

    /// Counts an entry of `entry_bytes` that was evicted from a keyspace of `used_bytes`. A tick that two workers end at
    /// once counts once or twice; this inaccuracy does not matter.
    pub(crate) fn count(&self, entry_bytes: usize, used_bytes: usize) {
        let bytes = (entry_bytes + SLOT_BYTES) as u64;
        let evicted = self.evicted_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if evicted * TICKS_PER_TURNOVER >= used_bytes as u64 {
            self.evicted_bytes.store(0, Ordering::Relaxed);
            self.tick.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The bits of a ghost; the bits above the counter are a part of the hash, which is not 0.
const GHOST_BITS: u32 = u64::BITS / GHOSTS_PER_BUCKET as u32;
const COUNTER_BITS: u32 = 4;

const _: () = assert!(COUNTER_MAX < 1 << COUNTER_BITS);

/// The number of ghosts in a bucket, which is one word.
const GHOSTS_PER_BUCKET: usize = 4;

/// The ghosts of the keys that were evicted from a shard: a table of buckets with four ghosts each, found by the tag of
/// the hash. In a bucket, a new ghost replaces the oldest one. One in a thousand keys finds a ghost that is not its own.
#[derive(Debug, Default)]
pub(crate) struct EvictedKeys {
    /// Four ghosts per word, the newest in the lowest bits; 0 is no ghost.
    buckets: Box<[u64]>,
}

impl EvictedKeys {
    /// Returns a table for the keys of a shard with `slots` slots: two bytes per slot, so it has a ghost for each key of
    /// a full cache. O(slots).
    pub(crate) fn for_slots(slots: usize) -> EvictedKeys {
        EvictedKeys { buckets: vec![0; slots.div_ceil(GHOSTS_PER_BUCKET)].into() }
    }

    /// Returns whether the table still fits a shard with `slots` slots: it has at least half as many ghosts, and at most
    /// twice as many.
    pub(crate) fn fits(&self, slots: usize) -> bool {
        (slots / 2..=slots * 2).contains(&(self.buckets.len() * GHOSTS_PER_BUCKET))
    }

    /// Returns the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    fn bucket(&mut self, hash: KeyHash) -> Option<&mut u64> {
        let index = (hash.tag() as usize * self.buckets.len()) >> TAG_BITS;
        self.buckets.get_mut(index)
    }

    /// Adds the ghost of a key with this hash and counter.
    pub(crate) fn add(&mut self, hash: KeyHash, counter: u8) {
        let ghost = fingerprint(hash) << COUNTER_BITS | u64::from(counter.min(COUNTER_MAX));
        if let Some(bucket) = self.bucket(hash) {
            *bucket = *bucket << GHOST_BITS | ghost;
        }
    }

    /// Removes the ghost of a key and returns its counter.
    pub(crate) fn take(&mut self, hash: KeyHash) -> Option<u8> {
        let wanted = fingerprint(hash);
        let bucket = self.bucket(hash)?;
        let mut shifts = (0..GHOSTS_PER_BUCKET as u32).map(|index| index * GHOST_BITS);
        let shift = shifts.find(|shift| ghost_at(*bucket, *shift) >> COUNTER_BITS == wanted)?;
        let counter = ghost_at(*bucket, shift) as u8 & COUNTER_MAX;
        *bucket &= !(GHOST_MASK << shift);
        Some(counter)
    }
}

const GHOST_MASK: u64 = (1 << GHOST_BITS) - 1;

fn ghost_at(bucket: u64, shift: u32) -> u64 {
    bucket >> shift & GHOST_MASK
}

/// Returns 12 bits of a hash that select neither its shard nor its bucket, and are hash bits in a cluster, too. They are
/// not 0.
fn fingerprint(hash: KeyHash) -> u64 {
    const SHIFT: u32 = 20;
    const MASK: u64 = (1 << (GHOST_BITS - COUNTER_BITS)) - 1;
    (hash.bits() >> SHIFT & MASK).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::hash::{HashFunction, KeyHasher};

    fn hash(number: u32) -> KeyHash {
        KeyHasher::seeded(HashFunction::Rapidhash, 1, 2).hash(&number.to_le_bytes())
    }

    #[test]
    fn counters_are_halved_every_two_turnovers_even_when_the_tick_wraps() {
        let clock = clock_with(u16::MAX - 10, 13);
        let counter = |ticks: u16| counter_at((u16::MAX - 10).wrapping_add(ticks), clock);
        assert_eq!([0, 127, 128, 256, 384, 512, 30_000].map(counter), [13, 13, 6, 3, 1, 0, 0]);
    }

    #[test]
    fn a_use_that_another_worker_has_recorded_later_counts_as_now() {
        for now in [0, 3, 100] {
            let clock = clock_with(now + 2, 9);
            assert_eq!((counter_at(now, clock), idle_ticks_at(now, clock)), (9, 0));
        }
    }

    #[test]
    fn a_turnover_has_64_ticks() {
        let turnover = Turnover::default();
        (0..1000).for_each(|_| turnover.count(100 - SLOT_BYTES, 100_000));
        assert!((60..=64).contains(&turnover.tick()), "{} ticks", turnover.tick());
    }

    #[test]
    fn an_evicted_key_is_remembered_once_with_its_counter() {
        let mut evicted = EvictedKeys::for_slots(2000);
        assert!(evicted.fits(2000) && evicted.fits(3000) && evicted.bytes() == 4000);
        assert!([0, 900, 4100].map(|slots| evicted.fits(slots)) == [false; 3]);
        for number in 0..500 {
            evicted.add(hash(number), (number % 20) as u8);
        }
        let found = (0..500).filter(|&number| {
            evicted.take(hash(number)).is_some_and(|counter| u32::from(counter) == (number % 20).min(15))
        });
        assert!(found.count() > 480);
        let strangers = (0..500).filter(|&number| evicted.take(hash(number)).is_some()).count();
        assert!(strangers < 5, "{strangers} keys are found twice");
    }

    #[test]
    fn a_new_ghost_replaces_the_oldest_of_its_bucket() {
        let mut evicted = EvictedKeys::for_slots(GHOSTS_PER_BUCKET);
        (0..6).for_each(|number| evicted.add(hash(number), number as u8));
        let counters = (0..6).map(|number| evicted.take(hash(number))).collect::<Vec<_>>();
        assert_eq!(counters, [None, None, Some(2), Some(3), Some(4), Some(5)]);
        assert_eq!(EvictedKeys::default().take(hash(1)), None);
    }
}
