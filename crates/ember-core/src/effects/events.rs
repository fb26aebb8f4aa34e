//! Events of keys: the contents of keyspace notifications about commands and removals.

use std::sync::Arc;

use bitflags::bitflags;

use crate::effects::live_query::LiveQuery;

bitflags! {
    /// Classes of events, as `notify-keyspace-events` names them by letters.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub struct EventClass: u32 {
        /// `K`: publish on the channel of the key.
        const KEYSPACE = 1;
        /// `E`: publish on the channel of the event.
        const KEYEVENT = 1 << 1;
        /// `g`: commands on keys of any type.
        const GENERIC = 1 << 2;
        /// `$`: strings.
        const STRING = 1 << 3;
        /// `l`: lists.
        const LIST = 1 << 4;
        /// `s`: sets.
        const SET = 1 << 5;
        /// `h`: hashes.
        const HASH = 1 << 6;
        /// `z`: sorted sets.
        const SORTED_SET = 1 << 7;
        /// `x`: expired keys.
        const EXPIRED = 1 << 8;
        /// `e`: evicted keys.
        const EVICTED = 1 << 9;
        /// `t`: streams.
        const STREAM = 1 << 10;
        /// `m`: reads of missing keys.
        const KEY_MISS = 1 << 11;
        /// `d`: types of modules.
        const MODULE = 1 << 12;
        /// `n`: new keys.
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

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its class.
    pub class: EventClass,
    /// Its name: mostly the command's.
    pub name: &'static str,
}

impl Event {
    /// A key was removed.
    pub const DEL: Event = Event::generic("del");
    /// A key was given an expiry.
    pub const EXPIRE: Event = Event::generic("expire");
    /// A key's expiry was removed.
    pub const PERSIST: Event = Event::generic("persist");
    /// A key has expired.
    pub const EXPIRED: Event = Event { class: EventClass::EXPIRED, name: "expired" };
    /// Elements of a key's value have expired: fields of a hash.
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

/// An event of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// The kind of event.
    pub event: Event,
    /// The number of the key's database.
    pub database: usize,
    /// The key.
    pub key: Box<[u8]>,
}

/// A key that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedKey {
    /// Its name.
    pub name: Box<[u8]>,
    /// Whether expiry or eviction has changed it, not a command.
    pub is_server_change: bool,
}

/// Work on a key that another thread does after the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// Link the vectors that were added to it.
    Link,
    /// Demote its value.
    Demote,
}

/// Notifications for other clients, collected while locks are held and delivered after each command.
#[derive(Debug, Default)]
pub struct Notices {
    /// Classes of events with a subscriber.
    pub classes: EventClass,
    /// Whether every change of a key is collected in `changed`.
    pub collects_changes: bool,
    /// Events, in order.
    pub events: Vec<Notice>,
    /// Keys that were changed, in any database, in order.
    pub changed: Vec<ChangedKey>,
    /// Changed keys that clients may have copies of, in any database, with the clients' ids.
    pub invalidated: Vec<(ChangedKey, Vec<u64>)>,
    /// Whether current changes come from expiry or eviction, not from the command.
    pub is_server_change: bool,
    /// Whether a whole database was emptied.
    pub is_flushed: bool,
    /// Whether a command has emptied all databases, so that no file may restore their keys.
    pub is_emptied: bool,
    /// Bytes of each key that has become large ([`Settings::large_key_bytes`]).
    ///
    /// [`Settings::large_key_bytes`]: crate::turn::Settings::large_key_bytes
    pub large_keys: Vec<usize>,
    /// Changed keys that blocked clients wait for, with their databases, in order.
    pub ready: Vec<(usize, Box<[u8]>)>,
    /// Live queries to be evaluated again, each once.
    pub queries: Vec<Arc<LiveQuery>>,
    /// Work for other threads, with the databases and keys, to be passed on once no lock is held.
    pub errands: Vec<(Errand, usize, Box<[u8]>)>,
}

impl Notices {
    /// Returns whether there is nothing to deliver.
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
