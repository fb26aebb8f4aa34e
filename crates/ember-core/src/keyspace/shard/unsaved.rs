//! What a store that has the data set has still to learn of a shard, and what it has learnt.
//!
//! ```text
//! COPIED    the store has this very key: the value, its expiry, and what is said of it while it is away
//! neither   the key has changed since the last checkpoint: its value stays, or if that is away, what is said of it is new
//! PENDING   a checkpoint has saved the key as it is now; COPIED once that has succeeded
//! ```
//!
//! Keys that are gone have no entry that could say so: their names are kept until a checkpoint takes them.

use std::collections::HashSet;

use super::saving::table_named;
use super::{Cursor, ShardData};
use crate::entries::entry::NewValue;
use crate::entries::external::{External, Facts, Location, Record};
use crate::entries::table::Position;
use crate::keyspace::{Keyspace, SHARDS};
use crate::memory::size_class;
use crate::types::value::ValueType;

/// Groups of entries that are settled in one go under the lock: some 50 µs.
const STEP_GROUPS: usize = 64;

/// What a store has still to be told of a shard, beside the entries that have changed.
#[derive(Default)]
pub(super) struct Unsaved {
    /// Keys that it may have and that are gone, or were once, with the names of their databases.
    removed: HashSet<(usize, Box<[u8]>)>,
    removed_bytes: usize,
    /// The names of databases that were emptied.
    emptied: Vec<usize>,
}

/// About the bytes that the name of a removed key takes: a slot of a table that is three quarters full, and the name.
fn name_bytes(key: &[u8]) -> usize {
    size_class(key.len().max(1)) + size_of::<(usize, Box<[u8]>)>() * 4 / 3
}

impl Unsaved {
    pub(super) fn bytes(&self) -> usize {
        self.removed_bytes
    }

    fn note_removed(&mut self, name: usize, key: Box<[u8]>) {
        let bytes = name_bytes(&key);
        if self.removed.insert((name, key)) {
            self.removed_bytes += bytes;
        }
    }

    /// A database is emptied.
    pub(super) fn note_emptied(&mut self, name: usize) {
        if !self.emptied.contains(&name) {
            self.emptied.push(name);
        }
        let bytes = &mut self.removed_bytes;
        self.removed.retain(|(other, key)| {
            *bytes -= if *other == name { name_bytes(key) } else { 0 };
            *other != name
        });
    }
}

/// Keys that are gone since the last checkpoint.
#[derive(Debug, Default)]
pub struct Gone {
    /// The names of databases that were emptied, before anything else of this.
    pub emptied: Vec<usize>,
    /// The names of databases and keys; some of them may be there again.
    pub removed: Vec<(usize, Box<[u8]>)>,
}

impl ShardData {
    /// Whether a store has the data set.
    pub(super) fn has_store(&self) -> bool {
        self.aside.as_ref().is_some_and(|aside| aside.unsaved.is_some())
    }

    /// An entry is about to be removed.
    pub(super) fn note_unsaved_removal(&mut self, database: usize, at: Position) {
        let name = self.database_name(database);
        if self.has_store() {
            let key = self.entry(database, at).key().into();
            self.is_changed = true;
            if let Some(unsaved) = self.aside.as_mut().and_then(|aside| aside.unsaved.as_mut()) {
                unsaved.note_removed(name, key);
            }
        }
    }

    fn take_gone(&mut self, gone: &mut Gone) {
        let Some(unsaved) = self.aside.as_mut().and_then(|aside| aside.unsaved.as_mut()) else { return };
        let Unsaved { removed, emptied, .. } = std::mem::take(&mut **unsaved);
        gone.removed.extend(removed);
        gone.emptied.extend(emptied);
        gone.emptied.sort_unstable();
        gone.emptied.dedup();
        self.is_changed = true;
    }

    /// Ends what a checkpoint has begun for some entries. False at the end of the shard.
    fn settle_step(&mut self, cursor: &mut Cursor, has_succeeded: bool) -> bool {
        let databases = self.databases_used();
        for _ in 0..STEP_GROUPS {
            if cursor.name >= databases {
                return false;
            }
            let table = table_named(&mut self.first, &mut self.others, cursor.name);
            let next = table.scan_mut(cursor.tag, |slot| {
                if slot.entry().is_pending() {
                    slot.set_pending(false);
                    slot.set_stored(has_succeeded);
                }
            });
            match next {
                Some(tag) => cursor.tag = tag,
                None => (cursor.name, cursor.tag) = (cursor.name + 1, 0),
            }
        }
        true
    }
}

/// A key that a store has.
#[derive(Debug)]
pub struct StoredKey<'k> {
    /// The number of its database.
    pub database: usize,
    /// The key.
    pub key: &'k [u8],
    /// Its type.
    pub value_type: ValueType,
    /// When it expires: Unix time in ms.
    pub expire_at_ms: Option<i64>,
    /// Its eviction clock.
    pub clock: u32,
}

impl Keyspace {
    /// From now on a store has the data set. No key is there yet.
    pub fn keep_in_store(&self) {
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.aside.get_or_insert_default().unsaved.get_or_insert_default();
        }
    }

    /// What the shards call the databases, by number. The caller has exclusive access.
    pub fn database_names(&self) -> Vec<usize> {
        // SWAPDB does the same in all shards.
        let data = self.lock(0);
        (0..self.databases()).map(|database| data.database_name(database)).collect()
    }

    /// Lets the shards call the databases so. No key is there yet. False if these are no such names.
    pub fn set_database_names(&self, names: &[usize]) -> bool {
        let mut is_known = vec![false; names.len()];
        for &name in names {
            match is_known.get_mut(name) {
                Some(known) if !*known => *known = true,
                _ => return false,
            }
        }
        if names.len() > self.databases() {
            return false;
        }
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            for (number, &name) in names.iter().enumerate() {
                if data.database_name(number) != name
                    && let Some(other) =
                        (number..names.len()).find(|&other| data.database_name(other) == name)
                {
                    data.swap_databases(number, other);
                }
            }
            self.publish_bytes(self.release(shard, data));
        }
        true
    }

    /// Adds a key of the store whose value is away. False if there is one.
    pub fn insert_away(&self, key: &StoredKey<'_>, facts: Facts) -> bool {
        let record = Record::new(Location::STORE);
        let value = External { value_type: key.value_type, facts, record };
        self.insert_stored(key, NewValue::External(value))
    }

    /// Adds a key of the store with its value. False if there is one.
    pub fn insert_stored(&self, key: &StoredKey<'_>, value: NewValue<'_>) -> bool {
        let hash = self.hash(key.key);
        let mut data = self.lock(hash.shard());
        if data.find(key.database, hash, key.key).is_some() {
            return false;
        }
        let at = data.insert(key.database, hash, key.key, value, key.expire_at_ms, key.clock);
        data.slot_mut(key.database, at).set_stored(true);
        self.publish_bytes(self.release(hash.shard(), data));
        true
    }

    /// Takes what is gone since the last checkpoint. The caller has exclusive access. O(that, and shards).
    pub fn take_gone(&self) -> Gone {
        let mut gone = Gone::default();
        for shard in 0..SHARDS {
            let mut data = self.lock(shard);
            data.take_gone(&mut gone);
            self.publish_bytes(self.release(shard, data));
        }
        gone
    }

    /// Gives back what a checkpoint could not tell the store.
    pub fn put_gone_back(&self, gone: Gone) {
        for (name, key) in gone.removed {
            let shard = self.hash(&key).shard();
            let mut data = self.lock(shard);
            if let Some(unsaved) = data.aside.as_mut().and_then(|aside| aside.unsaved.as_mut()) {
                unsaved.note_removed(name, key);
                data.is_changed = true;
            }
            self.publish_bytes(self.release(shard, data));
        }
        // Of the names one shard is enough.
        if let Some(unsaved) = self.lock(0).aside.as_mut().and_then(|aside| aside.unsaved.as_mut()) {
            for name in gone.emptied {
                if !unsaved.emptied.contains(&name) {
                    unsaved.emptied.push(name);
                }
            }
        }
    }

    /// Ends a checkpoint: the store has what it has saved, or has it not. O(entries), in steps.
    pub fn settle_checkpoint(&self, has_succeeded: bool) {
        for shard in 0..SHARDS {
            let mut cursor = Cursor::default();
            while self.lock(shard).settle_step(&mut cursor, has_succeeded) {}
        }
    }
}
