//! The keyspace: databases of entries, spread over shards by the hash of their keys.
//!
//! * [`entry`] lays out one key, its metadata and its value; [`table`] finds entries; [`shard`] keeps tables, byte
//!   account and expiry index consistent under one lock; [`expiry`] schedules the checks for expired entries.
//! * This file contains the array of shards and the operations on all shards.
//!
//! A caller that needs several locks takes them in ascending order of shards ([`crate::keys::Guards`]).

pub mod defragmentation;
pub mod expiry;
pub mod linking;
pub mod names;
pub mod shard;
pub mod snapshot;
pub mod states;

pub use crate::entries::{entry, external, hash, table};

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use ember_cluster::slots::{SLOTS, slot_of};

use crate::algorithms::random::Random;
use crate::effects::events::Notices;
use crate::effects::observers::Observers;
use crate::entries::hash::{
    HashFunction, KeyHash, KeyHasher, SHARD_BITS, SLOTS_PER_SHARD, shards_of_slot, slot_at,
};
use crate::entries::table::SLOTS_PER_GROUP;
use crate::eviction::ghosts::Turnover;
use crate::memory::prefetch;
use crate::sync::{Mutex, MutexGuard};
use crate::turn::Turn;
use crate::types::elements;
use names::RecordKinds;
use shard::snapshot_queue::HeldBack;
use shard::{Database, ShardData};

/// The number of shards. There are many more shards than cores, so that two workers rarely need the same lock and
/// growing one table takes little time. Their number is low enough that the locks and table heads (64 bytes each) fit a
/// core's L2 cache.
pub const SHARDS: usize = 1 << SHARD_BITS;

/// The due time of a shard without expiring data.
const NEVER_MS: i64 = i64::MAX;

/// The lock of a shard with the data that it protects, on separate cache lines. A lookup in database 0 reads the first
/// line only, then the slots.
#[repr(C, align(64))]
struct Shard {
    /// The address of the slots and the number of groups of database 0's table, for prefetching without the lock. They
    /// are only used to compute addresses, so a stale value causes a useless prefetch at most.
    first_slots: AtomicPtr<u8>,
    first_groups: AtomicUsize,
    data: Mutex<ShardData>,
    /// The Unix time in ms at which active expiry has work in this shard. Written under the lock and read without it: a
    /// stale value delays the work by at most one turn.
    next_due_ms: AtomicI64,
    /// The [`ShardCounts`] at the last release of the lock after a change; readers sum them without the locks.
    counts: AtomicU64,
}

impl Shard {
    /// Updates the fields that are readable without the lock, after a change; returns the growth in bytes since the last
    /// call.
    fn publish(&self, data: &mut ShardData) -> i64 {
        let table = data.database(0).table();
        self.first_slots.store(table.slots_address().cast_mut(), Ordering::Relaxed);
        self.first_groups.store(table.capacity() / SLOTS_PER_GROUP, Ordering::Relaxed);
        self.counts.store(ShardCounts::of(data).to_bits(), Ordering::Relaxed);
        let next_due_ms = data.next_due_ms().unwrap_or(NEVER_MS);
        if self.next_due_ms.load(Ordering::Relaxed) != next_due_ms {
            self.next_due_ms.store(next_due_ms, Ordering::Relaxed);
        }
        data.take_growth()
    }
}

/// The counts of a shard that are readable without the shard's lock.
#[derive(Clone, Copy, Debug)]
pub struct ShardCounts {
    /// The number of keys in database 0.
    pub keys: usize,
    /// The number of keys in database 0 that have an expiry.
    pub volatile: usize,
    /// Whether the shard contains nothing that these counts omit: no other database was ever used, no value has
    /// elements that expire, and no key is observed.
    pub is_all: bool,
}

impl ShardCounts {
    /// The bits of each count: no machine has enough memory for 2^31 keys in each of a thousand shards. The bit above
    /// the second count states whether the shard contains more than the counts cover.
    const BITS: u32 = 31;
    const MAX: usize = (1 << ShardCounts::BITS) - 1;

    #[inline]
    fn of(data: &ShardData) -> ShardCounts {
        let first = data.database(0);
        let is_all = data.databases_used() == 1 && first.expiring() == 0 && data.observers().is_none();
        ShardCounts { keys: first.table().len(), volatile: first.volatile(), is_all }
    }

    #[inline]
    fn to_bits(self) -> u64 {
        let [keys, volatile] = [self.keys, self.volatile].map(|count| count.min(ShardCounts::MAX) as u64);
        keys | volatile << ShardCounts::BITS | u64::from(!self.is_all) << (2 * ShardCounts::BITS)
    }

    fn from_bits(bits: u64) -> ShardCounts {
        let number = |bits: u64| bits as usize & ShardCounts::MAX;
        ShardCounts {
            keys: number(bits),
            volatile: number(bits >> ShardCounts::BITS),
            is_all: bits >> (2 * ShardCounts::BITS) == 0,
        }
    }
}

/// Prefetches the entry at this address.
#[inline]
fn prefetch_entry_at(address: *const u8) {
    prefetch(address);
    prefetch(address.wrapping_add(64));
    // An entry begins at a multiple of 8 bytes, so an entry shorter than two cache lines may occupy three. Byte 95 is
    // the last byte of an entry of 96 bytes, so for such an entry this prefetches no unneeded line.
    prefetch(address.wrapping_add(95));
}

/// All data of the server: the shards of all databases.
pub struct Keyspace {
    // Fields that do not change after startup.
    shards: Box<[Shard]>,
    hasher: KeyHasher,
    databases: usize,
    records: RecordKinds,
    // A field that all workers change: the sum of their reports after each batch; exact when all workers are idle.
    used_bytes: AtomicI64,
    held_back: Arc<HeldBack>,
    turnover: Turnover,
    /// Whether a shard may have ghosts of evicted keys.
    has_ghosts: AtomicBool,
}

/// The options of a new [`Keyspace`].
#[derive(Clone, Debug)]
pub struct KeyspaceOptions {
    /// The number of databases, 1..=[`expiry::DATABASES_MAX`].
    pub databases: usize,
    /// The function that hashes keys.
    pub hash_function: HashFunction,
    /// The current Unix time in ms: no key expires earlier.
    pub now_ms: i64,
    /// The records that the keyspace keeps about its keys. With [`RecordKinds::SLOTS`], the shard of a key follows from
    /// its cluster slot.
    pub records: RecordKinds,
}

impl Default for KeyspaceOptions {
    /// Returns options with 16 databases, without records, and with Unix time 0.
    fn default() -> KeyspaceOptions {
        let hash_function = HashFunction::Rapidhash;
        KeyspaceOptions { databases: 16, hash_function, now_ms: 0, records: RecordKinds::empty() }
    }
}

impl Keyspace {
    /// Returns an empty keyspace.
    ///
    /// # Errors
    /// Returns an error if the system cannot provide random bytes for the hash function's secrets.
    pub fn new(options: &KeyspaceOptions) -> Result<Keyspace, getrandom::Error> {
        assert!(
            (1..=expiry::DATABASES_MAX).contains(&options.databases),
            "the configuration checks the range"
        );
        elements::choose_hash_function(options.hash_function);
        let shard = |_| Shard {
            first_slots: AtomicPtr::default(),
            first_groups: AtomicUsize::new(0),
            data: Mutex::new(ShardData::new(options.now_ms, options.records)),
            next_due_ms: AtomicI64::new(NEVER_MS),
            counts: AtomicU64::new(0),
        };
        let hasher = KeyHasher::random(options.hash_function)?;
        let has_slots = options.records.contains(RecordKinds::SLOTS);
        Ok(Keyspace {
            shards: (0..SHARDS).map(shard).collect(),
            hasher: if has_slots { hasher.with_slots() } else { hasher },
            databases: options.databases,
            records: options.records,
            used_bytes: AtomicI64::new(0),
            held_back: Arc::default(),
            turnover: Turnover::default(),
            has_ghosts: AtomicBool::new(false),
        })
    }

    /// Returns the number of databases.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// Returns whether the keyspace keeps the names of the keys in sorted order ([`Database::names`]).
    pub fn keeps_order(&self) -> bool {
        self.records.contains(RecordKinds::NAMES)
    }

    /// Returns whether this is the keyspace of a cluster node, whose hashes contain slots ([`KeyHash::slot`]).
    pub fn has_slots(&self) -> bool {
        self.records.contains(RecordKinds::SLOTS)
    }

    /// Returns the number of keys of a database in a cluster slot, including expired keys that were not removed yet. Takes
    /// the locks of the slot's shards one after the other.
    pub fn count_in_slot(&self, database: usize, slot: u16) -> usize {
        shards_of_slot(slot).map(|shard| self.lock(shard).database(database).keys_in_slot(slot)).sum()
    }

    /// Returns the number of keys of each cluster slot in all databases. O(shards × slots of a shard); takes the locks of
    /// all shards one after the other.
    pub fn slot_counts(&self) -> Vec<usize> {
        let mut counts = vec![0; SLOTS];
        for shard in 0..SHARDS {
            let data = self.lock(shard);
            for index in 0..SLOTS_PER_SHARD {
                let slot = slot_at(shard, index);
                let number = u16::try_from(slot).expect("it is a slot");
                counts[slot] += data.all_databases().map(|here| here.keys_in_slot(number)).sum::<usize>();
            }
        }
        counts
    }

    /// Returns up to `count_max` keys of a database in a cluster slot. O(keys in the slot's shards); no lock is held for
    /// more than one group of keys.
    pub fn keys_in_slot(&self, database: usize, slot: u16, count_max: usize) -> Vec<Box<[u8]>> {
        let mut found: Vec<Box<[u8]>> = Vec::new();
        for shard in shards_of_slot(slot) {
            let mut next = Some(0);
            while let Some(tag) = next.filter(|_| found.len() < count_max) {
                let data = self.lock(shard);
                let here = data.database(database);
                next = if here.keys_in_slot(slot) == 0 {
                    None
                } else {
                    here.table().scan(tag, |entry| {
                        if slot_of(entry.key()) == slot && found.len() < count_max {
                            found.push(entry.key().into());
                        }
                    })
                };
            }
        }
        found
    }

    /// Returns a shard chosen at random for a sample of keys. In the keyspace of a cluster node, the probability of a
    /// shard is its share of the keys of database 0, because few slots may have most of the keys; otherwise all shards
    /// are equally probable, because keys are spread evenly. O(shards) for a cluster node.
    pub fn random_shard(&self, random: &mut Random) -> usize {
        let weight = |shard: usize| self.counts(shard).keys;
        let weighted = if self.has_slots() { random.weighted(SHARDS, weight) } else { None };
        weighted.unwrap_or_else(|| random.below(SHARDS))
    }

    /// Hashes a key with this keyspace's secrets.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// Takes the lock of a shard. A caller that changes the shard releases the lock with [`Keyspace::release`], so that
    /// the byte account is published.
    #[inline]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, ShardData> {
        self.shards[shard].data.lock()
    }

    /// Releases a shard's lock and returns the shard's growth in bytes.
    #[inline(always)]
    pub fn release(&self, shard: usize, mut data: MutexGuard<'_, ShardData>) -> i64 {
        if data.is_changed() { self.shards[shard].publish(&mut data) } else { 0 }
    }

    /// Prefetches the memory that a lookup of a key with this hash reads first, without taking the lock.
    #[inline]
    pub fn prefetch_shard(&self, hash: KeyHash) {
        prefetch(std::ptr::from_ref(&self.shards[hash.shard()]).cast());
    }

    /// Prefetches the cache line of the hash in the table of database 0, without taking the lock.
    #[inline]
    pub fn prefetch_group(&self, hash: KeyHash) {
        let shard = &self.shards[hash.shard()];
        let groups = shard.first_groups.load(Ordering::Relaxed);
        let slots = shard.first_slots.load(Ordering::Relaxed);
        prefetch(slots.wrapping_add(table::group_offset_bytes(hash.tag(), groups)));
    }

    /// Prefetches the first two or three cache lines of the entry that a lookup of the hash would compare, if the
    /// shard's lock is free.
    #[inline]
    pub fn prefetch_entry(&self, database: usize, hash: KeyHash) {
        let Some(data) = self.shards[hash.shard()].data.try_lock() else { return };
        let address = data.database(database).table().entry_address(hash.tag());
        // Releases the lock before the prefetch: otherwise the release would wait for the prefetch's address
        // translation.
        drop(data);
        prefetch_entry_at(address);
    }

    /// Like [`Keyspace::prefetch_entry`], and also prefetches the word that a change of the key reads from the filter
    /// of live queries.
    #[inline]
    pub fn prefetch_queried_entry(&self, database: usize, hash: KeyHash) {
        let Some(data) = self.shards[hash.shard()].data.try_lock() else { return };
        let address = data.database(database).table().entry_address(hash.tag());
        let queried = data.queried_address(hash.tag());
        drop(data);
        prefetch(queried);
        prefetch_entry_at(address);
    }

    /// Adds a worker's growth in bytes, the sum of its results of [`Keyspace::release`], to the total.
    pub fn publish_bytes(&self, growth: i64) {
        if growth != 0 {
            // Relaxed, because no other data depend on this counter.
            self.used_bytes.fetch_add(growth, Ordering::Relaxed);
        }
    }

    /// Returns the memory of all shards in bytes, as published by the workers.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed).max(0) as usize
    }

    /// Returns the clock of the policy with ghosts.
    #[inline]
    pub fn turnover_tick(&self) -> u16 {
        self.turnover.tick()
    }

    /// Counts an evicted entry, or one whose value was demoted, under the policy with ghosts, and updates the turn's
    /// tick.
    pub(crate) fn count_turnover(&self, entry_bytes: usize, turn: &mut Turn) {
        self.turnover.count(entry_bytes, self.used_bytes());
        turn.now_tick = self.turnover.tick();
        if !self.has_ghosts.load(Ordering::Relaxed) {
            self.has_ghosts.store(true, Ordering::Relaxed);
        }
    }

    /// Frees the ghosts of evicted keys; called while no eviction policy needs them. O(1) if there are no ghosts. The caller
    /// holds no lock.
    pub fn forget_ghosts(&self) {
        if self.has_ghosts.load(Ordering::Relaxed) {
            self.has_ghosts.store(false, Ordering::Relaxed);
            for shard in 0..SHARDS {
                let mut data = self.lock(shard);
                data.forget_evicted();
                self.publish_bytes(self.release(shard, data));
            }
        }
    }

    /// Returns whether any value has elements that expire. O(shards); takes the shards' locks one after the other.
    pub fn has_expiring_elements(&self) -> bool {
        self.shards.iter().any(|shard| shard.data.lock().has_expiring_elements())
    }

    /// Returns the counters of the memory that the current snapshot holds back.
    pub fn held_back(&self) -> &HeldBack {
        &self.held_back
    }

    /// Returns the number of keys in a database, including expired keys that were not removed yet. O(shards).
    pub fn len(&self, database: usize) -> usize {
        if database == 0 {
            return (0..SHARDS).map(|shard| self.counts(shard).keys).sum();
        }
        (0..SHARDS).map(|shard| self.lock(shard).database(database).table().len()).sum()
    }

    /// Returns the counts of a shard without taking its lock, as of the last release of the lock after a change.
    pub fn counts(&self, shard: usize) -> ShardCounts {
        ShardCounts::from_bits(self.shards[shard].counts.load(Ordering::Relaxed))
    }

    /// Returns whether a database has no keys.
    pub fn is_empty(&self, database: usize) -> bool {
        (0..SHARDS).all(|shard| self.lock(shard).database(database).table().is_empty())
    }

    /// Returns the number of keys with an expiry in a database. O(shards).
    pub fn volatile(&self, database: usize) -> usize {
        (0..SHARDS).map(|shard| self.lock(shard).database(database).volatile()).sum()
    }

    /// Reserves capacity for `keys` keys in total in a database, so that its tables need not grow up to that number.
    /// O(capacity).
    pub fn reserve_for(&self, database: usize, keys: usize) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.reserve_for(database, keys.div_ceil(SHARDS));
            self.publish_bytes(self.release(shard, data));
        }
    }

    /// Releases unused capacity of a database's tables. O(keys in tables that shrink).
    pub fn release_capacity(&self, database: usize) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.release_capacity(database);
            self.publish_bytes(self.release(shard, data));
        }
    }

    /// Locks all shards in ascending order.
    pub fn lock_all(&self) -> Vec<MutexGuard<'_, ShardData>> {
        (0..SHARDS).map(|shard| self.lock(shard)).collect()
    }

    /// Releases the locks that [`Keyspace::lock_all`] took, and publishes the shards' growth.
    pub fn release_all(&self, guards: Vec<MutexGuard<'_, ShardData>>) {
        let growth = guards.into_iter().enumerate().map(|(shard, data)| self.release(shard, data)).sum();
        self.publish_bytes(growth);
    }

    /// Empties one database or all databases atomically for all workers, and notifies clients that watch or wait for
    /// the removed keys. `at_moment` is called with the shards while all locks are held, before the keys are removed.
    /// Returns the number of removed keys, and the
    /// contents of the databases that were not empty, which the caller frees; databases that a current snapshot has not
    /// saved yet are passed to the snapshot instead.
    pub fn flush(
        &self,
        database: Option<usize>,
        notices: &mut Notices,
        at_moment: impl FnOnce(&[MutexGuard<'_, ShardData>]),
    ) -> (u64, Vec<Database>) {
        let mut guards = self.lock_all();
        let databases = database.map_or(0..self.databases, |index| index..index + 1);
        // An empty keyspace is flushed often, by tests, so the cost per shard must not depend on unused databases.
        let used = |data: &ShardData| databases.start..databases.end.min(data.databases_used());
        let mut keys = 0;
        for data in &mut guards {
            keys += used(data).map(|index| data.database(index).table().len() as u64).sum::<u64>();
            used(data).for_each(|index| self.notify_present(data, index, index, notices));
            if data.observers().is_some() {
                data.edit_observers(Observers::forget_tracked);
            }
        }
        notices.is_flushed = true;
        at_moment(&guards);
        let mut taken = Vec::new();
        for data in &mut guards {
            taken.extend(used(data).filter_map(|index| data.take_database(index)));
        }
        self.release_all(guards);
        (keys, taken)
    }

    /// Invalidates the copies of as many tracked keys as exceed `keys_max`, as if these keys had changed. O(shards +
    /// invalidated keys).
    pub fn limit_tracked(&self, keys_max: usize, turn: &mut Turn) {
        let tracked = |data: &ShardData| data.observers().map_or(0, Observers::tracked_keys);
        let mut excess =
            (0..SHARDS).map(|shard| tracked(&self.lock(shard))).sum::<usize>().saturating_sub(keys_max);
        let start = turn.random.below(SHARDS);
        for shard in (0..SHARDS).map(|step| (start + step) % SHARDS) {
            if excess == 0 {
                return;
            }
            let mut data = self.lock(shard);
            let count = tracked(&data).min(excess);
            if count > 0 {
                data.edit_observers(|observers| observers.forget_some_tracked(count, &mut turn.notices));
                excess -= count;
            }
        }
    }

    /// Exchanges two databases atomically for all workers, and notifies clients that watch or wait for their keys.
    /// `at_moment` is called while all locks are held. Expired keys with a watched name are removed first, so that
    /// watches do not see them appear or disappear.
    pub fn swap_databases(
        &self,
        one: usize,
        other: usize,
        turn: &mut Turn,
        at_moment: impl FnOnce(&mut Turn),
    ) {
        let mut guards = self.lock_all();
        for data in &mut guards {
            self.expire_watched(data, [one, other], turn);
        }
        for data in &mut guards {
            self.notify_present(data, one, other, &mut turn.notices);
            self.notify_present(data, other, one, &mut turn.notices);
            data.swap_databases(one, other);
        }
        at_moment(turn);
        self.release_all(guards);
    }

    /// Removes the expired keys of both `databases` whose name is watched in either of them. Calls that wait for a key
    /// check its expiry when they run again.
    fn expire_watched(&self, data: &mut ShardData, databases: [usize; 2], turn: &mut Turn) {
        let Some(observers) = data.observers() else { return };
        let names = |index: usize| observers.watched(index).map(|(key, _)| key.to_vec());
        let names: Vec<Vec<u8>> = databases.into_iter().flat_map(names).collect();
        for name in names {
            let hash = self.hash(&name);
            databases.into_iter().for_each(|index| data.expire_key(index, hash, &name, turn));
        }
    }

    /// Notifies the observers of a key in database `observed` if the key exists in `observed` or in database `other`.
    fn notify_present(&self, data: &ShardData, observed: usize, other: usize, notices: &mut Notices) {
        let Some(observers) = data.observers() else { return };
        let is_there = |key: &[u8]| {
            let hash = self.hash(key);
            [observed, other].into_iter().any(|index| data.find(index, hash, key).is_some())
        };
        let watched = observers.watched(observed).filter(|(key, _)| is_there(key));
        watched.flat_map(|(_, watches)| watches).for_each(|watch| watch.break_it());
        let awaited = observers.awaited(observed).filter(|key| is_there(key));
        notices.ready.extend(awaited.map(|key| (observed, key.into())));
        for query in observers.all_queries() {
            // An argument that is not a key may equal the name of a key: the evaluation then returns the same result as
            // before.
            if query.database() == observed && query.call().iter().skip(1).any(is_there) && query.mark() {
                notices.queries.push(Arc::clone(query));
            }
        }
    }

    /// Removes expired keys and elements in the shards of `range`, and checks at most `budget` references. Returns the
    /// number of removed entries and the number of checked references.
    pub fn expire_due(
        &self,
        range: std::ops::Range<usize>,
        turn: &mut Turn,
        budget: usize,
    ) -> (usize, usize) {
        let (mut expired, mut examined) = (0, 0);
        for shard in range {
            if self.shards[shard].next_due_ms.load(Ordering::Relaxed) > turn.now_ms {
                continue;
            }
            let mut data = self.lock(shard);
            let (removed, examined_here) = data.expire_due(turn, budget - examined);
            self.publish_bytes(self.release(shard, data));
            expired += removed.len();
            examined += examined_here;
            if examined >= budget {
                break;
            }
        }
        (expired, examined)
    }

    /// Checks the invariants of all shards, for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        for shard in 0..SHARDS {
            let data = self.lock(shard);
            data.check_invariants();
            let published = self.counts(shard);
            assert_eq!(published.to_bits(), ShardCounts::of(&data).to_bits(), "shard {shard}: {published:?}");
        }
    }
}
