//! Key events: the contents of keyspace notifications about commands, expiry and eviction.

use std::sync::Arc;

use bitflags::bitflags;

use crate::effects::live_query::LiveQuery;

bitflags! {
    /// Classes of key events; the letters are those of `notify-keyspace-events`.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EventClass: u32 {
        /// `K`: publish on the channel of the key.
        const KEYSPACE = 1;
        /// `E`: publish on the channel of the event.
        const KEYEVENT = 1 << 1;
        /// `g`: events of commands on keys of any type.
        const GENERIC = 1 << 2;
        /// `$`: events of string commands.
        const STRING = 1 << 3;
        /// `l`: events of list commands.
        const LIST = 1 << 4;
        /// `s`: events of set commands.
        const SET = 1 << 5;
        /// `h`: events of hash commands.
        const HASH = 1 << 6;
        /// `z`: events of sorted-set commands.
        const SORTED_SET = 1 << 7;
        /// `x`: expirations of keys.
        const EXPIRED = 1 << 8;
        /// `e`: evictions of keys.
        const EVICTED = 1 << 9;
        /// `t`: events of stream commands.
        const STREAM = 1 << 10;
        /// `m`: reads of missing keys.
        const KEY_MISS = 1 << 11;
        /// `d`: events of types that belong to a module in Redis.
        const MODULE = 1 << 12;
        /// `n`: creations of keys.
        const NEW = 1 << 13;
    }
}

impl EventClass {
    /// `A`: all classes except those of missing and new keys.
    pub const ALL: EventClass = EventClass::GENERIC
        .union(EventClass::STRING)
        .union(EventClass::LIST)
        .union(EventClass::SET)
        .union(EventClass::HASH)
        .union(EventClass::SORTED_SET)
        .union(EventClass::EXPIRED)
        .union(EventClass::EVICTED)
        .union(EventClass::STREAM)
        .union(EventClass::MODULE);
}

/// A kind of key event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// The class that clients subscribe to in order to receive the event.
    pub class: EventClass,
    /// The name of the event: usually that of the command.
    pub name: &'static str,
}

impl Event {
    /// A key was removed.
    pub const DEL: Event = Event::generic("del");
    /// An expiry was set for a key.
    pub const EXPIRE: Event = Event::generic("expire");
    /// A key's expiry was removed.
    pub const PERSIST: Event = Event::generic("persist");
    /// A key has expired.
    pub const EXPIRED: Event = Event { class: EventClass::EXPIRED, name: "expired" };
    /// Elements of a key's value have expired; these are fields of a hash.
    pub const ELEMENTS_EXPIRED: Event = Event::hash("hexpired");
    /// A key was evicted.
    pub const EVICTED: Event = Event { class: EventClass::EVICTED, name: "evicted" };
    /// A call created a key.
    pub const NEW: Event = Event { class: EventClass::NEW, name: "new" };
    /// A missing key was read.
    pub const KEY_MISS: Event = Event { class: EventClass::KEY_MISS, name: "keymiss" };

    /// Returns an event of keys of any type.
    pub const fn generic(name: &'static str) -> Event {
        Event { class: EventClass::GENERIC, name }
    }

    /// Returns an event of strings.
    pub const fn string(name: &'static str) -> Event {
        Event { class: EventClass::STRING, name }
    }

    /// Returns an event of lists.
    pub const fn list(name: &'static str) -> Event {
        Event { class: EventClass::LIST, name }
    }

    /// Returns an event of sets.
    pub const fn set(name: &'static str) -> Event {
        Event { class: EventClass::SET, name }
    }

    /// Returns an event of hashes.
    pub const fn hash(name: &'static str) -> Event {
        Event { class: EventClass::HASH, name }
    }

    /// Returns an event of sorted sets.
    pub const fn sorted_set(name: &'static str) -> Event {
        Event { class: EventClass::SORTED_SET, name }
    }

    /// Returns an event of types that belong to a module in Redis.
    pub const fn module(name: &'static str) -> Event {
        Event { class: EventClass::MODULE, name }
    }

    /// Returns an event of streams.
    pub const fn stream(name: &'static str) -> Event {
        Event { class: EventClass::STREAM, name }
    }
}

/// An event that has happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind of the event.
    pub event: Event,
    /// The number of the key's database.
    pub database: usize,
    /// The name of the key.
    pub key: Box<[u8]>,
}

/// A changed key, for the invalidation messages of client-side caching.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    /// The name of the key.
    pub name: Box<[u8]>,
    /// Whether expiry or eviction has changed the key, rather than a command.
    pub is_server_change: bool,
}

/// Work on a key that another thread does after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Link the vectors that were added to the key.
    Link,
    /// Demote the value of the key.
    Demote,
}

/// Notifications for other clients, collected while locks are held and delivered after each command.
#[derive(Debug, Default)]
pub struct Notices {
    /// The classes of events that have a subscriber.
    pub classes: EventClass,
    /// Whether every change of a key is collected in `changed`.
    pub collects_changes: bool,
    /// The events, in the order in which they happened.
    pub events: Vec<Notice>,
    /// The keys that have changed, in any database, in the order of the changes.
    pub changed: Vec<ChangedKey>,
    /// The changed keys of which clients may have copies, in any database, with the ids of these clients.
    pub invalidated: Vec<(ChangedKey, Vec<u64>)>,
    /// Whether expiry or eviction makes the current changes, rather than the command.
    pub is_server_change: bool,
    /// Whether a whole database was emptied.
    pub is_flushed: bool,
    /// Whether a command has emptied all databases, so that no file may be used to restore their keys.
    pub is_emptied: bool,
    /// The size in bytes of each key that has become large ([`Settings::large_key_bytes`]).
    ///
    /// [`Settings::large_key_bytes`]: crate::turn::Settings::large_key_bytes
    pub large_keys: Vec<usize>,
    /// The changed keys that blocked clients wait for, with the numbers of their databases, in the order of the
    /// changes.
    pub ready: Vec<(usize, Box<[u8]>)>,
    /// The live queries to evaluate again, without duplicates.
    pub queries: Vec<Arc<LiveQuery>>,
    /// Work for other threads, with the number of the database and the key; the worker passes it on when it holds no
    /// lock.
    pub errands: Vec<(Errand, usize, Box<[u8]>)>,
}

impl Notices {
    /// Returns whether there are no notifications to deliver.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.events.is_empty()
            && self.changed.is_empty()
            && self.ready.is_empty()
            && self.invalidated.is_empty()
            && !self.is_flushed
            && !self.is_emptied
            && self.queries.is_empty()
            && self.errands.is_empty()
    }

    /// Collects an event of a key if its class has a subscriber.
    #[inline]
    pub fn notify(&mut self, event: Event, database: usize, key: &[u8]) {
        if self.classes.contains(event.class) {
            self.events.push(Notice { event, database, key: key.into() });
        }
    }
}
