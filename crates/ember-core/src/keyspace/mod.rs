//! The keyspace: databases of entries, spread over shards by the hash of their keys.
//!
//! * [`entry`] lays out one key, its metadata and its value; [`table`] finds entries; [`shard`] keeps tables, byte
//!   account and expiry index consistent behind one lock; [`expiry`] knows when to look for what has expired.
//! * This file has the array of shards and what concerns all of them.
//!
//! Locks are taken in ascending order of shards when several are needed ([`crate::keys::Guards`]).

pub mod defragmentation;
pub mod expiry;
pub mod linking;
pub mod names;
pub mod shard;
pub mod snapshot;

pub use crate::entries::{entry, external, hash, table};

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicPtr, AtomicU64, AtomicUsize, Ordering};

use crate::effects::events::Notices;
use crate::effects::observers::Observers;
use crate::entries::hash::{HashFunction, KeyHash, KeyHasher, SHARD_BITS};
use crate::entries::table::SLOTS_PER_GROUP;
use crate::memory::prefetch;
use crate::sync::{Mutex, MutexGuard};
use crate::turn::Turn;
use crate::types::elements;
use shard::handover::HeldBack;
use shard::{Database, ShardData};

/// The number of shards. Many more than cores, so that two workers seldom want the same lock, and growing one table is
/// short; few enough that the locks and table heads (64 bytes each) stay in a core's second-level cache.
pub const SHARDS: usize = 1 << SHARD_BITS;

/// The hint of a shard in which nothing ever expires.
const NEVER_MS: i64 = i64::MAX;

/// One lock and what is behind it, on a cache line of its own.
#[repr(C, align(64))]
struct Shard {
    data: Mutex<ShardData>,
    /// When active expiry has something to do here, Unix time in ms; written under the lock, read without it: a stale
    /// value delays a look by one turn, no more.
    next_due_ms: AtomicI64,
    /// Where database 0's table has its slots and how many groups they are: for fetching ahead without the lock. Only
    /// addresses are computed of them, so stale values cost a useless fetch.
    first_slots: AtomicPtr<u8>,
    first_groups: AtomicUsize,
    /// The [`ShardCounts`] of when the lock was last given back after a change: to be added up without the locks.
    counts: AtomicU64,
}

/// What of a shard can be counted without its lock.
#[derive(Clone, Copy, Debug)]
pub struct ShardCounts {
    /// The keys of database 0.
    pub keys: usize,
    /// Those of them that expire.
    pub volatile: usize,
    /// Whether there is nothing else: no other database was ever used, no value has elements that expire, and nobody
    /// observes a key.
    pub is_all: bool,
}

impl ShardCounts {
    /// Bits of each number: no machine's memory has room for so many keys in each of a thousand shards. The bit above the
    /// second one says whether there is more to be counted.
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

/// Asks the processor to fetch an entry.
#[inline]
fn prefetch_entry_at(address: *const u8) {
    prefetch(address);
    prefetch(address.wrapping_add(64));
    // An entry begins at any multiple of 8: one of less than two lines' length may stand in three. Those of 96 bytes end
    // just before the byte behind this one, so that no line is fetched for nothing.
    prefetch(address.wrapping_add(95));
}

/// All data of the server.
pub struct Keyspace {
    // Fixed after the start.
    shards: Box<[Shard]>,
    hasher: KeyHasher,
    databases: usize,
    keeps_order: bool,
    // Shared. A plain sum of what workers report after each batch; exact when all of them are idle.
    used_bytes: AtomicI64,
    held_back: Arc<HeldBack>,
}

/// What a [`Keyspace`] is made with.
#[derive(Clone, Debug)]
pub struct KeyspaceOptions {
    /// The number of databases, 1..=[`expiry::DATABASES_MAX`].
    pub databases: usize,
    /// The function that hashes keys.
    pub hash_function: HashFunction,
    /// The time now, Unix time in ms: nothing expires before it.
    pub now_ms: i64,
    /// Whether the names of keys are kept in order, too.
    pub keeps_order: bool,
}

impl Default for KeyspaceOptions {
    /// 16 databases, nothing kept in order, at the beginning of Unix time.
    fn default() -> KeyspaceOptions {
        let hash_function = HashFunction::Rapidhash;
        KeyspaceOptions { databases: 16, hash_function, now_ms: 0, keeps_order: false }
    }
}

impl Keyspace {
    /// An empty keyspace.
    ///
    /// # Errors
    /// If the system gives no random bytes for the hash function's secrets.
    pub fn new(options: &KeyspaceOptions) -> Result<Keyspace, getrandom::Error> {
        assert!(
            (1..=expiry::DATABASES_MAX).contains(&options.databases),
            "the configuration checks the range"
        );
        elements::choose_hash_function(options.hash_function);
        let shard = |_| Shard {
            next_due_ms: AtomicI64::new(NEVER_MS),
            first_slots: AtomicPtr::default(),
            first_groups: AtomicUsize::new(0),
            counts: AtomicU64::new(0),
            data: Mutex::new(ShardData::new(options.now_ms, options.keeps_order)),
        };
        Ok(Keyspace {
            shards: (0..SHARDS).map(shard).collect(),
            hasher: KeyHasher::random(options.hash_function)?,
            databases: options.databases,
            keeps_order: options.keeps_order,
            used_bytes: AtomicI64::new(0),
            held_back: Arc::default(),
        })
    }

    /// The number of databases.
    pub fn databases(&self) -> usize {
        self.databases
    }

    /// Whether the names of keys are kept in order ([`Database::names`]).
    pub fn keeps_order(&self) -> bool {
        self.keeps_order
    }

    /// Hashes a key with this keyspace's secrets.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        self.hasher.hash(key)
    }

    /// Takes a shard's lock. Release it with [`Keyspace::release`] after changes, so that the account is published.
    #[inline]
    pub fn lock(&self, shard: usize) -> MutexGuard<'_, ShardData> {
        self.shards[shard].data.lock()
    }

    /// Gives a shard's lock back and returns by how many bytes it has grown.
    #[inline]
    pub fn release(&self, shard: usize, mut data: MutexGuard<'_, ShardData>) -> i64 {
        if !data.is_changed() {
            return 0;
        }
        let Shard { next_due_ms: hint, first_slots, first_groups, counts, .. } = &self.shards[shard];
        let table = data.database(0).table();
        first_slots.store(table.slots_address().cast_mut(), Ordering::Relaxed);
        first_groups.store(table.capacity() / SLOTS_PER_GROUP, Ordering::Relaxed);
        counts.store(ShardCounts::of(&data).to_bits(), Ordering::Relaxed);
        let next_due_ms = data.next_due_ms().unwrap_or(NEVER_MS);
        if hint.load(Ordering::Relaxed) != next_due_ms {
            hint.store(next_due_ms, Ordering::Relaxed);
        }
        data.take_growth()
    }

    /// Asks the processor to fetch what a search for a key of this hash reads first, without taking the lock.
    #[inline]
    pub fn prefetch_shard(&self, hash: KeyHash) {
        prefetch(std::ptr::from_ref(&self.shards[hash.shard()]).cast());
    }

    /// Asks the processor to fetch the table line of the hash in database 0, without taking the lock.
    #[inline]
    pub fn prefetch_group(&self, hash: KeyHash) {
        let shard = &self.shards[hash.shard()];
        let groups = shard.first_groups.load(Ordering::Relaxed);
        let slots = shard.first_slots.load(Ordering::Relaxed);
        prefetch(slots.wrapping_add(table::group_offset_bytes(hash.tag(), groups)));
    }

    /// Asks the processor to fetch the first two or three lines of the entry that a search for the hash would compare, if
    /// the shard is free just now.
    #[inline]
    pub fn prefetch_entry(&self, database: usize, hash: KeyHash) {
        let Some(data) = self.shards[hash.shard()].data.try_lock() else { return };
        let address = data.database(database).table().entry_address(hash.tag());
        // Giving the lock back would wait for the translation of an address that is being fetched.
        drop(data);
        prefetch_entry_at(address);
    }

    /// As [`Keyspace::prefetch_entry`], and also what a change of the key asks the shard's live queries.
    #[inline]
    pub fn prefetch_queried_entry(&self, database: usize, hash: KeyHash) {
        let Some(data) = self.shards[hash.shard()].data.try_lock() else { return };
        let address = data.database(database).table().entry_address(hash.tag());
        let queried = data.queried_address(hash.tag());
        drop(data);
        prefetch(queried);
        prefetch_entry_at(address);
    }

    /// Adds what [`Keyspace::release`] returned, summed up by a worker, to the total.
    pub fn publish_bytes(&self, growth: i64) {
        if growth != 0 {
            // A plain counter: nothing is read on the strength of it but the number.
            self.used_bytes.fetch_add(growth, Ordering::Relaxed);
        }
    }

    /// Bytes of memory taken by all shards, as far as published.
    pub fn used_bytes(&self) -> usize {
        self.used_bytes.load(Ordering::Relaxed).max(0) as usize
    }

    /// Whether a value has elements that expire. O(shards); takes their locks, one after the other.
    pub fn has_expiring_elements(&self) -> bool {
        self.shards.iter().any(|shard| shard.data.lock().has_expiring_elements())
    }

    /// What a snapshot under way holds back in memory.
    pub fn held_back(&self) -> &HeldBack {
        &self.held_back
    }

    /// The number of keys in a database, expired ones that were not found yet included. O(shards).
    pub fn len(&self, database: usize) -> usize {
        if database == 0 {
            return (0..SHARDS).map(|shard| self.counts(shard).keys).sum();
        }
        (0..SHARDS).map(|shard| self.lock(shard).database(database).table().len()).sum()
    }

    /// What can be counted of a shard without its lock, as it was when the lock was last given back after a change.
    pub fn counts(&self, shard: usize) -> ShardCounts {
        ShardCounts::from_bits(self.shards[shard].counts.load(Ordering::Relaxed))
    }

    /// Whether a database has no key.
    pub fn is_empty(&self, database: usize) -> bool {
        (0..SHARDS).all(|shard| self.lock(shard).database(database).table().is_empty())
    }

    /// The number of keys with an expiry in a database. O(shards).
    pub fn volatile(&self, database: usize) -> usize {
        (0..SHARDS).map(|shard| self.lock(shard).database(database).volatile()).sum()
    }

    /// Makes room for `keys` keys in all of a database, so that its tables need not grow. O(the room).
    pub fn make_room_for(&self, database: usize, keys: usize) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.make_room_for(database, keys.div_ceil(SHARDS));
            self.publish_bytes(self.release(shard, data));
        }
    }

    /// Gives back room that keys have not come for. O(keys that are moved together).
    pub fn give_back_room(&self, database: usize) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.give_back_room(database);
            self.publish_bytes(self.release(shard, data));
        }
    }

    /// Locks all shards in ascending order.
    pub fn lock_all(&self) -> Vec<MutexGuard<'_, ShardData>> {
        (0..SHARDS).map(|shard| self.lock(shard)).collect()
    }

    /// Gives back the locks that [`Keyspace::lock_all`] took, and publishes what they have grown by.
    pub fn release_all(&self, guards: Vec<MutexGuard<'_, ShardData>>) {
        let growth = guards.into_iter().enumerate().map(|(shard, data)| self.release(shard, data)).sum();
        self.publish_bytes(growth);
    }

    /// Empties a database, or all, at one moment for all workers, and notifies those who watch or wait for its keys.
    /// `at_moment` is called then. Returns how many keys were in them, and what of them is to be freed by the caller: the
    /// rest is for a snapshot under way.
    pub fn flush(
        &self,
        database: Option<usize>,
        notices: &mut Notices,
        at_moment: impl FnOnce(),
    ) -> (u64, Vec<Database>) {
        let mut guards = self.lock_all();
        let databases = database.map_or(0..self.databases, |index| index..index + 1);
        let mut keys = 0;
        for data in &mut guards {
            let used = databases.start..databases.end.min(data.databases_used());
            keys += used.map(|index| data.database(index).table().len() as u64).sum::<u64>();
            databases.clone().for_each(|index| self.notify_present(data, index, index, notices));
            if data.observers().is_some() {
                data.edit_observers(Observers::forget_tracked);
            }
        }
        notices.is_flushed = true;
        at_moment();
        let taken =
            guards.iter_mut().flat_map(|data| databases.clone().map(|index| data.take_database(index)));
        let taken = taken.collect();
        self.release_all(guards);
        (keys, taken)
    }

    /// Forgets who has copies of what, for as many keys as there are more than `keys_max`, as if these had changed.
    /// O(shards + keys forgotten).
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

    /// Exchanges two databases at one moment for all workers, and notifies those who watch or wait for their keys.
    /// `at_moment` is called then. What has expired under a name that is watched or awaited goes first: it must not seem to
    /// come or to go.
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

    /// Removes what has expired in `databases` under the name of a key that is watched in one of them. Those who wait for a
    /// key look at it themselves.
    fn expire_watched(&self, data: &mut ShardData, databases: [usize; 2], turn: &mut Turn) {
        let Some(observers) = data.observers() else { return };
        let names = |index: usize| observers.watched(index).map(|(key, _)| key.to_vec());
        let names: Vec<Vec<u8>> = databases.into_iter().flat_map(names).collect();
        for name in names {
            let hash = self.hash(&name);
            databases.into_iter().for_each(|index| data.expire_key(index, hash, &name, turn));
        }
    }

    /// Notifies the observers of those keys of database `observed` that exist there or in database `other`.
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
            // A word that is no key may have a key's name: then the result is the same as before.
            if query.database() == observed && query.call().iter().skip(1).any(is_there) && query.mark() {
                notices.queries.push(Arc::clone(query));
            }
        }
    }

    /// Removes what has expired in the shards `range`, looking at no more than `budget` references; returns the numbers of
    /// entries removed and references looked at.
    pub fn expire_due(
        &self,
        range: std::ops::Range<usize>,
        turn: &mut Turn,
        budget: usize,
    ) -> (usize, usize) {
        let (mut expired, mut looked) = (0, 0);
        for shard in range {
            if self.shards[shard].next_due_ms.load(Ordering::Relaxed) > turn.now_ms {
                continue;
            }
            let mut data = self.lock(shard);
            let (removed, looked_here) = data.expire_due(turn, budget - looked);
            self.publish_bytes(self.release(shard, data));
            expired += removed.len();
            looked += looked_here;
            if looked >= budget {
                break;
            }
        }
        (expired, looked)
    }

    /// Checks all shards' invariants; for tests.
    ///
    /// # Panics
    /// If one does not hold.
    pub fn check_invariants(&self) {
        for shard in 0..SHARDS {
            let data = self.lock(shard);
            data.check_invariants();
            let published = self.counts(shard);
            assert_eq!(published.to_bits(), ShardCounts::of(&data).to_bits(), "shard {shard}: {published:?}");
        }
    }
}
