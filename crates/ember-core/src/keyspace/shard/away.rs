//! Values that go away and come back. For those who look at the keys nothing changes by that: nobody is told, a
//! snapshot does not save for it, and neither clock nor expiry moves.

use super::ShardData;
use super::aside::{FetchOrder, Returned};
use crate::entries::entry::{EntryRef, NewValue, SharedValue, Slot, ValueRef};
use crate::entries::external::{External, Facts, Location, Record};
use crate::entries::hash::KeyHash;
use crate::entries::table::Position;
use crate::rdb::{self, Kind, Value};
use crate::types::limits::EncodingLimits;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue};
use crate::types::vector_set::VectorSet;
use crate::types::{Aggregate, Variant};

/// Values of up to so many bytes are encoded under the lock: some 10 µs.
pub const ENCODED_AT_ONCE_BYTES: usize = 16 * 1024;

/// Which values may go.
#[derive(Clone, Copy, Debug)]
pub struct DemotionRules {
    /// Bytes in memory, with the entry, below which a value stays.
    pub bytes_min: usize,
    /// Those above which it stays.
    pub bytes_max: usize,
    /// Expiries up to this Unix time in ms have passed.
    pub now_ms: i64,
}

impl DemotionRules {
    /// All that can go.
    pub const ANY: DemotionRules = DemotionRules { bytes_min: 0, bytes_max: usize::MAX, now_ms: i64::MIN };
}

/// A value encoded to be kept away.
#[derive(Debug)]
pub struct Encoded<'e> {
    /// What the shard calls the key's database.
    pub database_name: usize,
    /// The key.
    pub key: &'e [u8],
    /// How the bytes are to be read.
    pub kind: Kind,
    /// The value.
    pub bytes: &'e [u8],
}

/// What an attempt to send a value away has led to.
pub enum Demoted {
    /// It stays: it may not go, or there is no room for it.
    Stays,
    /// It is away. Its memory is free when what is returned is dropped, without the lock.
    Gone(Slot),
    /// The same, and nothing was written for it: its record was there still.
    Dropped(Slot),
    /// It is to be encoded without the lock, then to be put in its place by [`ShardData::demote_shared`].
    Shared(SharedDemotion),
}

/// A value that is shared with its entry, to be encoded.
pub struct SharedDemotion {
    database_name: usize,
    hash: KeyHash,
    key: Box<[u8]>,
    value: SharedValue,
    facts: Facts,
}

impl SharedDemotion {
    /// Encodes the value and gives it to `append`, without any lock. O(its bytes).
    pub fn append<R>(&self, append: impl FnOnce(&Encoded<'_>) -> R) -> R {
        let value = self.value.as_value();
        let (kind, bytes) = encode(value);
        append(&Encoded { database_name: self.database_name, key: &self.key, kind, bytes: &bytes })
    }

    /// The shard of its key.
    pub fn shard(&self) -> usize {
        self.hash.shard()
    }
}

fn encode<'v>(value: impl Into<ValueRef<'v>>) -> (Kind, Vec<u8>) {
    const NEVER_FAILS: &str = "a vector takes all bytes";
    let value = value.into();
    // Packing strings would take longer than the disk takes for what it saves.
    let mut writer = rdb::Writer::new(Vec::new()).with_packed_max_bytes(0);
    let kind = rdb::kind_of(value);
    rdb::write_value(&mut writer, value).expect(NEVER_FAILS);
    (kind, writer.into_inner())
}

/// What was read of a record.
pub struct Fetched(Value);

impl Fetched {
    /// The value that the bytes of a record are, with the encoding that it had. O(its bytes).
    ///
    /// # Errors
    /// If they are no value.
    pub fn decode(
        kind: Kind,
        bytes: &[u8],
        encoding_name: &str,
        limits: &EncodingLimits,
    ) -> Result<Fetched, rdb::LoadError> {
        let mut rest = bytes;
        let limits = limits.keeping(encoding_name);
        let value = rdb::read_value(&mut rdb::Reader::new(&mut rest), kind, &limits)?;
        if rest.is_empty() {
            Ok(Fetched(value))
        } else {
            Err(rdb::LoadError::Corrupt("a value has bytes behind its end"))
        }
    }

    /// The value in the form to be stored in an entry that says this encoding of it.
    fn into_new<'b>(self, encoding_name: &str, buffer: &'b mut Vec<u8>) -> NewValue<'b> {
        match self.0 {
            Value::String(bytes) if encoding_name != "int" && bytes.len() < LARGE_VALUE_MIN_BYTES => {
                *buffer = bytes;
                if encoding_name == "raw" { NewValue::Edited(buffer) } else { NewValue::Bytes(buffer) }
            }
            value => value.into_new(buffer),
        }
    }

    /// The value, to be read.
    pub fn as_value(&self) -> ValueRef<'_> {
        self.0.as_value()
    }
}

/// What a value that has come back has led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrived {
    /// It is in its place.
    InPlace,
    /// It is not wanted any more.
    Unwanted,
}

impl ShardData {
    /// Sends the value of an entry away: encodes it and gives it to `append`, which says where its record is, or that there
    /// is no room. A larger value is shared, to be encoded without the lock.
    pub fn demote(
        &mut self,
        database: usize,
        hash: KeyHash,
        key: &[u8],
        rules: &DemotionRules,
        append: impl FnOnce(&Encoded<'_>) -> Option<Record>,
    ) -> Demoted {
        let Some(at) = self.find(database, hash, key) else { return Demoted::Stays };
        let name = self.database_name(database);
        let entry = self.entry(database, at);
        let Some(facts) = facts_of(entry, rules) else { return Demoted::Stays };
        if self.is_pinned(database, key) {
            return Demoted::Stays;
        }
        // One that has been away is another index: what was begun for it would be for nothing.
        if entry.aggregate().and_then(VectorSet::of).is_some_and(VectorSet::is_training_near) {
            return Demoted::Stays;
        }
        let bytes = entry.footprint_bytes();
        if self.has_store() {
            // What the store has not been told of is nowhere else.
            return match entry.is_copied() {
                false => Demoted::Stays,
                true => match self.put_away(database, at, facts, Record::new(Location::STORE)) {
                    Demoted::Gone(old) => Demoted::Dropped(old),
                    stays => stays,
                },
            };
        }
        if entry.is_copied()
            && let Some(record) = self.aside.as_mut().and_then(|aside| aside.take_copy(name, key))
        {
            let Demoted::Gone(old) = self.put_away(database, at, facts, record) else {
                return Demoted::Stays;
            };
            return Demoted::Dropped(old);
        }
        if bytes > ENCODED_AT_ONCE_BYTES
            && let Some(value) = self.slot_mut(database, at).share()
        {
            return Demoted::Shared(SharedDemotion {
                database_name: name,
                hash,
                key: key.into(),
                value,
                facts,
            });
        }
        let (kind, bytes) = encode(self.entry(database, at));
        match append(&Encoded { database_name: name, key, kind, bytes: &bytes }) {
            Some(record) => self.put_away(database, at, facts, record),
            None => Demoted::Stays,
        }
    }

    /// Puts the record of a value that was encoded without the lock into its entry, if that has the very same value still.
    pub fn demote_shared(&mut self, demotion: &SharedDemotion, record: Record) -> Demoted {
        let Some(database) = self.database_of(demotion.database_name) else { return Demoted::Stays };
        let Some(at) = self.find(database, demotion.hash, &demotion.key) else { return Demoted::Stays };
        let is_same = match (&demotion.value, self.entry(database, at)) {
            (_, entry) if entry.is_away() => false,
            (SharedValue::Aggregate(shared), entry) => {
                entry.aggregate().is_some_and(|aggregate| std::ptr::eq(aggregate, &raw const **shared))
            }
            (SharedValue::String(shared), entry) if entry.aggregate().is_none() => {
                matches!(entry.string(), StringValue::Large(large) if std::ptr::eq(large.as_raw(), &raw const **shared))
            }
            (SharedValue::String(_), _) => false,
        };
        if is_same { self.put_away(database, at, demotion.facts, record) } else { Demoted::Stays }
    }

    /// The share of a database's values in memory of which it is known that they came back, and how many those are.
    pub fn returned(&self, database: usize) -> (f64, usize) {
        let name = self.database_name(database);
        let Some(aside) = &self.aside else { return (0.0, 0) };
        let returned = aside.returned_in(name);
        let here = self.database(database).table().len().saturating_sub(aside.away_in(name)).max(1);
        (returned as f64 / here as f64, returned)
    }

    /// Takes out what came back first, as far as an entry is there still: where it is, and the eviction clock that it had
    /// then.
    pub fn take_returned(&mut self, database: usize) -> Option<(Position, u32)> {
        let name = self.database_name(database);
        let ShardData { first, others, aside, .. } = self;
        let table = match database {
            0 => first.table(),
            _ => others[database - 1].table(),
        };
        let returned = aside.as_mut()?.returned_mut(name)?;
        loop {
            let Returned { at, clock } = returned.pop_front()?;
            if table.entry_once_at(at).is_some() {
                return Some((at, clock));
            }
        }
    }

    /// Notes that the value of an entry has come back, or counts as if it had now.
    pub fn note_returned(&mut self, database: usize, at: Position) {
        let (name, clock) = (self.database_name(database), self.entry(database, at).clock());
        let keys = self.database(database).table().len();
        let Some(returned) = self.aside.as_mut().and_then(|aside| aside.returned_mut(name)) else { return };
        // Some may be there for values that went otherwise, and came again.
        if returned.len() >= keys {
            returned.pop_front();
        }
        returned.push_back(Returned { at, clock });
    }

    fn put_away(&mut self, database: usize, at: Position, facts: Facts, record: Record) -> Demoted {
        let value_type = self.entry(database, at).value_type();
        let name = self.database_name(database);
        let external = NewValue::External(External { value_type, facts, record });
        let old = self.exchange_value(database, at, external);
        self.aside.get_or_insert_default().count_in(name, facts);
        Demoted::Gone(old)
    }

    /// Puts a value that was read in the place of its entry's, and tells those who wait for it.
    pub fn arrive(&mut self, order: &FetchOrder, fetched: Fetched) -> Arrived {
        let Some(waiting) = self.aside.as_mut().and_then(|aside| aside.take_ticket(order)) else {
            return Arrived::Unwanted;
        };
        let database = self.database_of(order.database_name);
        let found = database.and_then(|database| {
            let at = self.find(database, order.hash, &order.key)?;
            Some((database, at, self.entry(database, at).external()?.facts))
        });
        let arrived = match found {
            Some((database, at, facts)) => {
                let name = facts.encoding_name();
                let mut buffer = Vec::new();
                drop(self.exchange_value(database, at, fetched.into_new(name, &mut buffer)));
                self.note_returned(database, at);
                let has_store = self.has_store();
                if let Some(aside) = &mut self.aside {
                    aside.count_out(order.database_name, facts);
                    if has_store {
                        self.slot_mut(database, at).set_fetched();
                        self.tell_arrived(&waiting);
                        return Arrived::InPlace;
                    }
                    let is_kept = aside.add_copy(order.database_name, &order.key, order.record.clone());
                    if is_kept {
                        self.slot_mut(database, at).set_copied(true);
                    }
                }
                Arrived::InPlace
            }
            None => Arrived::Unwanted,
        };
        self.tell_arrived(&waiting);
        self.forget_aside_if_empty();
        arrived
    }

    /// Whether the value of a key is away, and its record is at `location`.
    pub fn refers_to(&self, name: usize, hash: KeyHash, key: &[u8], location: Location) -> bool {
        let found = self
            .database_of(name)
            .and_then(|database| self.entry(database, self.find(database, hash, key)?).external());
        found.is_some_and(|external| external.location == location)
    }

    /// Lets go of the record at `location` if the value of the key is here, too; whether it was.
    pub fn release_copy(&mut self, name: usize, hash: KeyHash, key: &[u8], location: Location) -> bool {
        let copy = self.aside.as_ref().and_then(|aside| aside.copy(name, key));
        if copy.is_none_or(|record| record.location() != location) {
            return false;
        }
        let Some(database) = self.database_of(name) else { return false };
        let Some(at) = self.find(database, hash, key) else { return false };
        self.is_changed = true;
        self.forget_away(database, at, None);
        true
    }

    /// Puts the record that a value was copied to in the place of the one that its entry refers to, if it still does.
    pub fn move_record(
        &mut self,
        name: usize,
        hash: KeyHash,
        key: &[u8],
        from: Location,
        to: Record,
    ) -> bool {
        let Some(database) = self.database_of(name) else { return false };
        let Some(at) = self.find(database, hash, key) else { return false };
        let entry = self.entry(database, at);
        let Some(external) = entry.external().filter(|external| external.location == from) else {
            return false;
        };
        let value_type = entry.value_type();
        let moved = External { value_type, facts: external.facts, record: to };
        drop(self.exchange_value(database, at, NewValue::External(moved)));
        true
    }

    /// Gives an entry another form of the same value; returns a slot with the old one.
    fn exchange_value(&mut self, database: usize, at: Position, value: NewValue<'_>) -> Slot {
        let has_store = self.has_store();
        let target = self.database_mut(database);
        let slot = target.table.slot_mut(at);
        let bytes_before = slot.entry().footprint_bytes();
        let old = slot.exchange(value);
        if has_store {
            slot.set_stored(old.entry().is_copied());
            slot.set_pending(old.entry().is_pending());
        }
        target.entry_bytes = target.entry_bytes + slot.entry().footprint_bytes() - bytes_before;
        old
    }
}

/// What an entry keeps of its value when that goes away; `None` if it may not go.
fn facts_of(entry: EntryRef<'_>, rules: &DemotionRules) -> Option<Facts> {
    let may_go = !entry.is_away()
        && (rules.bytes_min..=rules.bytes_max).contains(&entry.footprint_bytes())
        && !entry.is_expired(rules.now_ms);
    if may_go { facts_away(entry) } else { None }
}

/// What an entry keeps of its value when that is away; `None` if it has to be here.
pub(super) fn facts_away(entry: EntryRef<'_>) -> Option<Facts> {
    if let Some(external) = entry.external() {
        return Some(external.facts);
    }
    // Active expiry looks at the elements.
    if entry.aggregate().and_then(Aggregate::next_expiry_ms).is_some() {
        return None;
    }
    Facts::new(entry.encoding_name(), entry.footprint_bytes())
}
