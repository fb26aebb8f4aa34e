//! Events of keys: what keyspace notifications report about commands and removals.

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
        /// `x`: keys whose time has come.
        const EXPIRED = 1 << 8;
        /// `e`: keys removed to make room.
        const EVICTED = 1 << 9;
        /// `t`: streams.
        const STREAM = 1 << 10;
        /// `m`: reads of missing keys.
        const KEY_MISS = 1 << 11;
        /// `d`: types of modules.
        const MODULE = 1 << 12;
        /// `n`: keys created that were not there before.
        const NEW = 1 << 13;
    }
}

impl EventClass {
    /// `A`: all classes but those of missing and new keys.
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
    /// A key's expiry was taken off.
    pub const PERSIST: Event = Event::generic("persist");
    /// A key's time had come.
    pub const EXPIRED: Event = Event { class: EventClass::EXPIRED, name: "expired" };
    /// The time of elements of a key's value had come: fields of a hash.
    pub const ELEMENTS_EXPIRED: Event = Event::hash("hexpired");
    /// A key was removed to make room.
    pub const EVICTED: Event = Event { class: EventClass::EVICTED, name: "evicted" };
    /// A key was created that was not there before the call.
    pub const NEW: Event = Event { class: EventClass::NEW, name: "new" };
    /// A missing key was read.
    pub const KEY_MISS: Event = Event { class: EventClass::KEY_MISS, name: "keymiss" };

    /// An event of keys of any type.
    pub const fn generic(name: &'static str) -> Event {
        Event { class: EventClass::GENERIC, name }
    }

    /// An event of strings.
    pub const fn string(name: &'static str) -> Event {
        Event { class: EventClass::STRING, name }
    }

    /// An event of lists.
    pub const fn list(name: &'static str) -> Event {
        Event { class: EventClass::LIST, name }
    }

    /// An event of sets.
    pub const fn set(name: &'static str) -> Event {
        Event { class: EventClass::SET, name }
    }

    /// An event of hashes.
    pub const fn hash(name: &'static str) -> Event {
        Event { class: EventClass::HASH, name }
    }

    /// An event of sorted sets.
    pub const fn sorted_set(name: &'static str) -> Event {
        Event { class: EventClass::SORTED_SET, name }
    }

    /// An event of types that are a module's in Redis.
    pub const fn module(name: &'static str) -> Event {
        Event { class: EventClass::MODULE, name }
    }

    /// An event of streams.
    pub const fn stream(name: &'static str) -> Event {
        Event { class: EventClass::STREAM, name }
    }
}

/// Something that happened to a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// What.
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
    /// Whether expiry or eviction has changed it, and no command.
    pub is_server_change: bool,
}

/// What is done with a key after the command, by somebody else.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Errand {
    /// The vectors that were added to it are linked.
    Link,
    /// Its value goes away from memory.
    Demote,
}

/// Notices for other clients, gathered while locks are held and delivered after each command.
#[derive(Debug, Default)]
pub struct Notices {
    /// Classes of events with a subscriber.
    pub classes: EventClass,
    /// Whether every change of a key is to be gathered in `changed`.
    pub collects_changes: bool,
    /// Events, in order.
    pub events: Vec<Notice>,
    /// Keys that were changed, in any database, in order.
    pub changed: Vec<ChangedKey>,
    /// Changed keys that clients may have copies of, in any database, with the clients' ids.
    pub invalidated: Vec<(ChangedKey, Vec<u64>)>,
    /// What changes now is changed by expiry or eviction, not by the command.
    pub is_server_change: bool,
    /// Whether a whole database was emptied.
    pub is_flushed: bool,
    /// Whether a command has emptied all databases: no file is to bring the keys back.
    pub is_emptied: bool,
    /// What keys take in bytes that have become large ([`Settings::large_key_bytes`]).
    ///
    /// [`Settings::large_key_bytes`]: crate::turn::Settings::large_key_bytes
    pub large_keys: Vec<usize>,
    /// Changed keys that clients wait for, with their databases, in order.
    pub ready: Vec<(usize, Box<[u8]>)>,
    /// Live queries that are to be run again: those who look for them find each of them here once.
    pub queries: Vec<Arc<LiveQuery>>,
    /// What others are to do with keys, with their databases, once no lock is held.
    pub errands: Vec<(Errand, usize, Box<[u8]>)>,
}

impl Notices {
    /// Whether there is nothing to deliver.
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

    /// Gathers an event of a key, if its class has a subscriber.
    #[inline]
    pub fn notify(&mut self, event: Event, database: usize, key: &[u8]) {
        if self.classes.contains(event.class) {
            self.events.push(Notice { event, database, key: key.into() });
        }
    }
}
