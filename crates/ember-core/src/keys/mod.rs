//! Access of a command to its keys: the locks that the command holds, and lookups, changes and removals under these
//! locks.

mod effect;
mod guards;
mod key;

use std::sync::Arc;

use ember_protocol::{Args, Protocol};

pub use effect::{Edited, Effect};
pub use guards::Guards;
pub use key::Key;

use crate::effects::events::Event;
use crate::effects::journal::Words;
use crate::effects::live_query::LiveQuery;
use crate::effects::observers::{Waiter, Watch};
use crate::entries::entry::EntryRef;
use crate::entries::hash::KeyHash;
use crate::error::CommandError;
use crate::keyspace::Keyspace;
use crate::turn::Turn;
use crate::types::Variant;
use key::typed;

/// The way in which a lookup of a key is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The lookup counts as a hit or miss, and as a use, which updates the eviction clock.
    Use,
    /// The lookup counts as a hit or miss, but not as a use of the value (`TTL`, `TYPE`, `EXISTS`).
    NoTouch,
    /// The lookup changes no counter and no eviction clock (`OBJECT`, `DEBUG`).
    Peek,
}

/// Access to the keys of the current command.
pub struct Keys<'c, 'k> {
    keyspace: &'k Keyspace,
    guards: &'c mut Guards<'k>,
    args: Args<'c>,
    database: usize,
    /// The index of an argument whose hash the caller has computed, and that hash.
    known: (usize, KeyHash),
    /// The state of the worker that runs the command.
    pub turn: &'c mut Turn,
}

impl<'c, 'k> Keys<'c, 'k> {
    /// Returns access to the keys among `args` in `database`; `guards` holds the locks of these keys. `known` is the
    /// index of an argument and the hash of that argument.
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

    /// Returns the number of the selected database.
    pub fn database(&self) -> usize {
        self.database
    }

    /// Returns whether this server is a node of a cluster.
    pub fn has_slots(&self) -> bool {
        self.keyspace.has_slots()
    }

    /// Returns the number of databases.
    pub fn databases(&self) -> usize {
        self.keyspace.databases()
    }

    #[inline]
    fn hash(&self, arg: usize) -> KeyHash {
        if arg == self.known.0 { self.known.1 } else { self.keyspace.hash(self.args.at(arg)) }
    }

    /// Finds the key in argument `arg` for reading, and counts as a use of the key.
    #[inline]
    pub fn read(&mut self, arg: usize) -> Option<EntryRef<'_>> {
        self.read_as(arg, Lookup::Use)
    }

    /// Finds the key in argument `arg` for reading; `lookup` determines how this counts. An expired key is not found;
    /// it is removed unless [`Turn::keeps_expired`].
    #[inline(always)]
    pub fn read_as(&mut self, arg: usize, lookup: Lookup) -> Option<EntryRef<'_>> {
        let hash = self.hash(arg);
        let shard = self.guards.shard_mut(hash.shard());
        let (database, keeps_expired) = (self.database, self.turn.keeps_expired);
        let mut key = Key::find(shard, self.turn, database, hash, self.args.at(arg), keeps_expired);
        if lookup == Lookup::Use {
            key.touch();
        }
        if lookup != Lookup::Peek {
            if key.exists() {
                key.turn.counters.hits += 1;
            } else {
                key.turn.counters.misses += 1;
                key.notify(Event::KEY_MISS);
            }
        }
        key.into_entry()
    }

    /// Finds the value of the key in argument `arg` for reading, and counts as a use of the key.
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    #[inline]
    pub fn read_value<T: Variant>(&mut self, arg: usize) -> Result<Option<&T>, CommandError> {
        typed(self.read(arg))
    }

    /// Returns the value of the key in argument `arg` without counting a lookup, like [`Keys::entry`].
    ///
    /// # Errors
    /// Returns `WrongType` if the key holds another type.
    pub fn value<T: Variant>(&self, arg: usize) -> Result<Option<&T>, CommandError> {
        typed(self.entry(arg))
    }

    /// Notifies the subscribers of `event` of the key in argument `arg`.
    pub fn notify(&mut self, event: Event, arg: usize) {
        self.turn.notices.notify(event, self.database, self.args.at(arg));
    }

    /// Records a command that replaces the current command in the journal
    /// ([`crate::effects::journal::Journal::record`]).
    pub fn journal(&mut self, write: impl FnOnce(&mut Words<'_>)) {
        self.turn.journal.record(self.database, write);
    }

    /// Adds a watch of the key in argument `arg`; returns whether the key exists. An expired key counts as missing; it
    /// is removed unless [`Turn::keeps_expired`].
    pub fn watch(&mut self, arg: usize, watch: &Arc<Watch>) -> bool {
        let (hash, keeps_expired) = (self.hash(arg), self.turn.keeps_expired);
        let shard = self.guards.shard_mut(hash.shard());
        let key = Key::find(shard, self.turn, self.database, hash, self.args.at(arg), keeps_expired);
        key.shard.edit_observers(|observers| observers.watch(key.database, key.name, watch));
        key.exists()
    }

    /// Removes the key in argument `arg`, which is watched since Unix time `since_ms`, if it has expired; its removal
    /// breaks the watch. If expired keys are kept ([`Turn::keeps_expired`]), returns instead whether the key has
    /// expired since `since_ms`.
    pub fn has_expired_since(&mut self, arg: usize, since_ms: i64) -> bool {
        if !self.turn.keeps_expired {
            self.key(arg);
            return false;
        }
        let hash = self.hash(arg);
        let shard = self.guards.data(hash.shard());
        let Some(at) = shard.find(self.database, hash, self.args.at(arg)) else { return false };
        let expire_at_ms = shard.entry(self.database, at).expire_at_ms();
        expire_at_ms.is_some_and(|at_ms| since_ms < at_ms && at_ms <= self.turn.expired_ms())
    }

    /// Removes a watch of the key in argument `arg` of the given database.
    pub fn unwatch(&mut self, database: usize, arg: usize, watch: &Arc<Watch>) {
        let shard = self.guards.shard_mut(self.hash(arg).shard());
        shard.edit_observers(|observers| observers.unwatch(database, self.args.at(arg), watch));
    }

    /// Removes the key in argument `arg` if it has expired, and otherwise the expired elements of its value, unless
    /// [`Turn::keeps_expired`]. A reader then sees the same state as a replay of the journal. O(removed elements).
    pub fn expire(&mut self, arg: usize) {
        let hash = self.hash(arg);
        let shard = self.guards.shard_mut(hash.shard());
        shard.expire_all_of(self.database, hash, self.args.at(arg), self.turn);
    }

    /// Returns the live query of this call in the given protocol, if the key in argument `arg` has such a query.
    pub fn find_query(&self, arg: usize, protocol: Protocol) -> Option<Arc<LiveQuery>> {
        let hash = self.hash(arg);
        let observers = self.guards.data(hash.shard()).observers()?;
        observers.find_query(hash.tag(), self.args, self.database, protocol).cloned()
    }

    /// Adds a live query to the key in argument `arg`; returns the growth in bytes of the live queries' memory in the
    /// key's shard.
    pub fn enter_query(&mut self, arg: usize, query: &Arc<LiveQuery>) -> isize {
        let hash = self.hash(arg);
        self.guards.shard_mut(hash.shard()).enter_query(hash.tag(), query)
    }

    /// Removes a live query from the key in argument `arg`; returns the same as [`Keys::enter_query`].
    pub fn leave_query(&mut self, arg: usize, query: &Arc<LiveQuery>) -> isize {
        let hash = self.hash(arg);
        self.guards.shard_mut(hash.shard()).leave_query(hash.tag(), query)
    }

    /// Adds a waiter to the queue of the key in argument `arg`.
    pub fn enqueue(&mut self, arg: usize, waiter: &Arc<Waiter>) {
        let shard = self.guards.shard_mut(self.hash(arg).shard());
        shard.edit_observers(|observers| observers.enqueue(self.database, self.args.at(arg), waiter));
    }

    /// Records that a client may have a copy of the value of the key in argument `arg` ([`Observers::track`]).
    ///
    /// [`Observers::track`]: crate::effects::observers::Observers::track
    pub fn track(&mut self, arg: usize, client_id: u64, keys_max: usize) {
        let shard = self.guards.shard_mut(self.hash(arg).shard());
        let notices = &mut self.turn.notices;
        shard.edit_observers(|observers| observers.track(self.args.at(arg), client_id, keys_max, notices));
    }

    /// Removes a waiter from the queue of the key in argument `arg`.
    pub fn dequeue(&mut self, arg: usize, waiter: &Arc<Waiter>) {
        let shard = self.guards.shard_mut(self.hash(arg).shard());
        shard.edit_observers(|observers| observers.dequeue(self.database, self.args.at(arg), waiter));
    }

    /// Returns the entry of the key in argument `arg`, if it exists and is not expired, without counting a lookup. A
    /// command may use several entries at the same time; it calls [`Keys::read`] for the keys first if the lookups must
    /// count.
    pub fn entry(&self, arg: usize) -> Option<EntryRef<'_>> {
        let hash = self.hash(arg);
        let shard = self.guards.data(hash.shard());
        let at = shard.find(self.database, hash, self.args.at(arg))?;
        let entry = shard.entry(self.database, at);
        entry.expire_at_ms().is_none_or(|expire_at_ms| expire_at_ms > self.turn.expired_ms()).then_some(entry)
    }

    /// Like [`Keys::entry`], for a key that need not be an argument. The caller holds the lock of its shard.
    pub fn entry_named(&self, key: &[u8]) -> Option<EntryRef<'_>> {
        let hash = self.keyspace.hash(key);
        let shard = self.guards.data(hash.shard());
        let entry = shard.entry(self.database, shard.find(self.database, hash, key)?);
        entry.expire_at_ms().is_none_or(|expire_at_ms| expire_at_ms > self.turn.expired_ms()).then_some(entry)
    }

    /// Records the keys in `names` with cold values as missing ([`Turn::missing`]); returns whether there are such
    /// keys. The keys need not be arguments; the caller holds the locks of their shards.
    ///
    /// # Errors
    /// Returns an error if values are missing and the values of all keys together exceed [`Turn::values_bytes_max`].
    pub fn record_missing(&mut self, names: impl Iterator<Item = Vec<u8>>) -> Result<bool, CommandError> {
        self.turn.missing.clear();
        let mut bytes = 0;
        for name in names {
            let hash = self.keyspace.hash(&name);
            let shard = self.guards.data(hash.shard());
            let found = shard.find(self.database, hash, &name);
            bytes += found.map_or(0, |at| shard.entry(self.database, at).resident_bytes());
            if shard.is_missing(self.database, hash, &name, self.turn.expired_ms()) {
                self.turn.missing.push((self.database, name.into()));
            }
        }
        if !self.turn.missing.is_empty() && bytes > self.turn.values_bytes_max {
            return Err(CommandError::OutOfMemory);
        }
        Ok(!self.turn.missing.is_empty())
    }

    /// Finds the key in argument `arg` for a change. An expired key is removed first. This does not update the eviction
    /// clock; the caller calls [`Key::touch`] to count a use.
    #[inline]
    pub fn key(&mut self, arg: usize) -> Key<'_> {
        self.key_in(self.database, arg)
    }

    /// Like [`Keys::key`], in another database.
    #[inline]
    pub fn key_in(&mut self, database: usize, arg: usize) -> Key<'_> {
        let hash = self.hash(arg);
        let name = self.args.at(arg);
        let shard = self.guards.shard_mut(hash.shard());
        Key::find(shard, self.turn, database, hash, name, false)
    }
}
