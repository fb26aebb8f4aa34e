//! A command's access to its keys: the locks it holds, and look-ups, changes and removals under them.

use ember_protocol::Args;

use crate::keyspace::Keyspace;
use crate::keyspace::entry::{EntryRef, NewValue, Slot, StringValue};
use crate::keyspace::hash::KeyHash;
use crate::keyspace::shard::ShardData;
use crate::keyspace::table::Position;
use crate::sync::MutexGuard;
use crate::turn::Turn;

/// The shard locks a worker holds, kept from one command to the next while they are the right ones: a pipeline that
/// stays on one shard locks it once.
pub enum Guards<'k> {
    /// No lock.
    None,
    /// The lock of one shard.
    One(usize, MutexGuard<'k, ShardData>),
    /// Locks of several shards, ascending.
    Many(Vec<(usize, MutexGuard<'k, ShardData>)>),
}

impl<'k> Guards<'k> {
    /// Gives all locks back; what the shards have grown by goes to the turn.
    #[inline]
    pub fn release(&mut self, keyspace: &'k Keyspace, turn: &mut Turn) {
        match std::mem::replace(self, Guards::None) {
            Guards::None => {}
            Guards::One(shard, data) => turn.growth_bytes += keyspace.release(shard, data),
            Guards::Many(held) => {
                for (shard, data) in held {
                    turn.growth_bytes += keyspace.release(shard, data);
                }
            }
        }
    }

    /// Holds exactly the lock of the shard of `hash`.
    #[inline]
    pub fn hold_one(&mut self, keyspace: &'k Keyspace, turn: &mut Turn, hash: KeyHash) {
        let wanted = hash.shard();
        if !matches!(self, Guards::One(shard, _) if *shard == wanted) {
            self.release(keyspace, turn);
            *self = Guards::One(wanted, keyspace.lock(wanted));
        }
    }

    /// Holds the locks of all shards in `shards`, which is sorted here and freed of duplicates. Ascending order is what
    /// keeps two workers from waiting for each other.
    pub fn hold_many(&mut self, keyspace: &'k Keyspace, turn: &mut Turn, shards: &mut Vec<usize>) {
        self.release(keyspace, turn);
        shards.sort_unstable();
        shards.dedup();
        *self = Guards::Many(shards.iter().map(|&shard| (shard, keyspace.lock(shard))).collect());
    }

    fn shard_mut(&mut self, wanted: usize) -> &mut ShardData {
        match self {
            Guards::One(shard, data) if *shard == wanted => data,
            Guards::Many(held) => {
                let at = held.binary_search_by_key(&wanted, |&(shard, _)| shard);
                &mut held[at.expect("the command's key specification names every key it touches")].1
            }
            _ => panic!("the command's key specification names every key it touches"),
        }
    }

    fn shard(&self, wanted: usize) -> &ShardData {
        match self {
            Guards::One(shard, data) if *shard == wanted => data,
            Guards::Many(held) => {
                let at = held.binary_search_by_key(&wanted, |&(shard, _)| shard);
                &held[at.expect("the command's key specification names every key it touches")].1
            }
            _ => panic!("the command's key specification names every key it touches"),
        }
    }
}

/// How a look-up counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// A use: counts as hit or miss and moves the eviction clock.
    Use,
    /// Counts as hit or miss, but is no use of the value (`TTL`, `TYPE`, `EXISTS`).
    NoTouch,
    /// Leaves no trace (`OBJECT`, `DEBUG`).
    Peek,
}

/// The keys of the command that is running.
pub struct Keys<'c, 'k> {
    keyspace: &'k Keyspace,
    guards: &'c mut Guards<'k>,
    args: Args<'c>,
    database: usize,
    /// The argument whose hash is known already, and that hash.
    known: (usize, KeyHash),
    /// The worker's state.
    pub turn: &'c mut Turn,
}

impl<'c, 'k> Keys<'c, 'k> {
    /// Access to the keys among `args` in `database`, for which `guards` holds the locks. `known` is an argument's index and
    /// the hash of that argument.
    #[inline]
    pub fn new(
        keyspace: &'k Keyspace,
        guards: &'c mut Guards<'k>,
        args: Args<'c>,
        database: usize,
        known: (usize, KeyHash),
        turn: &'c mut Turn,
    ) -> Keys<'c, 'k> {
        Keys { keyspace, guards, args, database, known, turn }
    }

    /// The number of the selected database.
    pub fn database(&self) -> usize {
        self.database
    }

    /// The number of databases.
    pub fn databases(&self) -> usize {
        self.keyspace.databases()
    }

    #[inline]
    fn hash(&self, arg: usize) -> KeyHash {
        if arg == self.known.0 { self.known.1 } else { self.keyspace.hash(self.args.at(arg)) }
    }

    /// Looks up the key in argument `arg` for reading, as a use.
    #[inline]
    pub fn read(&mut self, arg: usize) -> Option<EntryRef<'_>> {
        self.read_as(arg, Lookup::Use)
    }

    /// Looks up the key in argument `arg` for reading. An expired key is removed and not found.
    #[inline]
    pub fn read_as(&mut self, arg: usize, lookup: Lookup) -> Option<EntryRef<'_>> {
        let mut key = self.key(arg);
        if lookup == Lookup::Use {
            key.touch();
        }
        if lookup != Lookup::Peek {
            match key.at {
                Some(_) => key.turn.counters.hits += 1,
                None => key.turn.counters.misses += 1,
            }
        }
        key.into_entry()
    }

    /// The entry of the key in argument `arg`, if it is there and not expired, without a trace. Several such views may live
    /// together; [`Keys::read`] the keys first where the look-up is to count.
    pub fn entry(&self, arg: usize) -> Option<EntryRef<'_>> {
        let hash = self.hash(arg);
        let shard = self.guards.shard(hash.shard());
        let at = shard.find(self.database, hash, self.args.at(arg))?;
        let entry = shard.entry(self.database, at);
        entry.expire_at_ms().is_none_or(|expire_at_ms| expire_at_ms > self.turn.now_ms).then_some(entry)
    }

    /// Looks up the key in argument `arg` for a change. An expired key is removed first. The clock does not move: call
    /// [`Key::touch`] for a use.
    #[inline]
    pub fn key(&mut self, arg: usize) -> Key<'_> {
        self.key_in(self.database, arg)
    }

    /// As [`Keys::key`] in another database.
    #[inline]
    pub fn key_in(&mut self, database: usize, arg: usize) -> Key<'_> {
        let hash = self.hash(arg);
        let name = self.args.at(arg);
        let shard = self.guards.shard_mut(hash.shard());
        let at = shard.find(database, hash, name);
        let mut key = Key { shard, turn: self.turn, database, hash, name, at };
        key.drop_if_expired();
        key
    }
}

/// One key under its shard's lock: there, or not there.
pub struct Key<'x> {
    shard: &'x mut ShardData,
    turn: &'x mut Turn,
    database: usize,
    hash: KeyHash,
    name: &'x [u8],
    at: Option<Position>,
}

impl<'x> Key<'x> {
    #[inline]
    fn drop_if_expired(&mut self) {
        if let Some(entry) = self.entry()
            && let Some(expire_at_ms) = entry.expire_at_ms()
            && expire_at_ms <= self.turn.now_ms
        {
            self.take();
            self.turn.counters.expired += 1;
        }
    }

    /// The time of the turn, Unix time in ms.
    pub fn now_ms(&self) -> i64 {
        self.turn.now_ms
    }

    /// Whether the key is there.
    pub fn exists(&self) -> bool {
        self.at.is_some()
    }

    /// The entry, if the key is there.
    #[inline]
    pub fn entry(&self) -> Option<EntryRef<'_>> {
        self.at.map(|at| self.shard.entry(self.database, at))
    }

    fn into_entry(self) -> Option<EntryRef<'x>> {
        let shard: &'x ShardData = self.shard;
        self.at.map(|at| shard.entry(self.database, at))
    }

    /// When the key expires, if it is there and does.
    pub fn expire_at_ms(&self) -> Option<i64> {
        self.entry().and_then(EntryRef::expire_at_ms)
    }

    /// Moves the eviction clock as a use of the key does.
    #[inline]
    pub fn touch(&mut self) {
        let Some(at) = self.at else { return };
        if self.turn.no_touch {
            return;
        }
        let clock = self.shard.entry(self.database, at).clock();
        let touched = self.turn.touched_clock(clock);
        if touched != clock {
            self.shard.set_clock(self.database, at, touched);
        }
    }

    /// Sets value and expiry, whether or not the key is there, as a use. An expiry that has passed removes the key.
    #[inline]
    pub fn set(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>) {
        self.turn.counters.changes += 1;
        if expire_at_ms.is_some_and(|at| at <= self.turn.now_ms) {
            self.take();
            return;
        }
        match self.at {
            Some(at) => {
                self.touch();
                self.shard.edit(self.database, at, |slot| slot.set(value, expire_at_ms));
            }
            None => {
                let clock = self.turn.new_clock();
                let at = self.shard.insert(self.database, self.hash, self.name, value, expire_at_ms, clock);
                self.at = Some(at);
            }
        }
    }

    /// Sets the value and keeps the expiry.
    pub fn set_value(&mut self, value: NewValue<'_>) {
        self.set(value, self.expire_at_ms());
    }

    /// Changes the expiry of a key that is there; one that has passed removes the key.
    pub fn set_expiry(&mut self, expire_at_ms: Option<i64>) {
        let Some(at) = self.at else { return };
        self.turn.counters.changes += 1;
        if expire_at_ms.is_some_and(|at| at <= self.turn.now_ms) {
            self.take();
        } else {
            self.shard.edit(self.database, at, |slot| slot.set_expiry(expire_at_ms));
        }
    }

    /// Lets `edit` change the entry of a key that is there, as a use.
    pub fn edit<R>(&mut self, edit: impl FnOnce(&mut Slot) -> R) -> Option<R> {
        let at = self.at?;
        self.turn.counters.changes += 1;
        self.touch();
        Some(self.shard.edit(self.database, at, edit))
    }

    /// Puts a value with an expiry yet to come and an eviction clock of its own in the place of whatever is there, and
    /// returns that.
    pub fn put(&mut self, value: NewValue<'_>, expire_at_ms: Option<i64>, clock: u32) -> Option<Slot> {
        self.turn.counters.changes += 1;
        let replaced = self.take();
        self.at = Some(self.shard.insert(self.database, self.hash, self.name, value, expire_at_ms, clock));
        replaced
    }

    /// Removes the key and returns its entry, `None` if it was not there.
    pub fn remove(&mut self) -> Option<Slot> {
        let slot = self.take()?;
        self.turn.counters.changes += 1;
        Some(slot)
    }

    /// As [`Key::remove`], as a part of a change that is counted elsewhere.
    pub fn take(&mut self) -> Option<Slot> {
        self.at.take().map(|at| self.shard.remove(self.database, at))
    }
}

impl EntryRef<'_> {
    /// A value to store elsewhere that equals this entry's: large ones are shared, the others copied.
    pub fn to_value(self, copy: &mut Vec<u8>) -> NewValue<'_> {
        match self.string() {
            StringValue::Int(number) => NewValue::Int(number),
            StringValue::Large(large) => NewValue::Large(large.share()),
            StringValue::Inline(bytes) => {
                copy.clear();
                copy.extend_from_slice(bytes);
                if self.encoding_name() == "raw" { NewValue::Edited(copy) } else { NewValue::Bytes(copy) }
            }
        }
    }
}
