//! Demotion and fetching of values. Observers see no change of the key: no client is notified, a snapshot does not save
//! the value, and neither the eviction clock nor the expiry changes.

use super::ShardData;
use super::fetch_tickets::{FetchOrder, Returned};
use crate::entries::entry::{EntryRef, NewValue, SharedValue, Slot, ValueRef};
use crate::entries::external::{External, Facts, Location, Record};
use crate::entries::hash::KeyHash;
use crate::entries::table::Position;
use crate::rdb::{self, Kind, Value};
use crate::types::limits::EncodingLimits;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue};
use crate::types::vector_set::VectorSet;
use crate::types::{Aggregate, Variant};

/// The maximum size of values that are encoded under the lock, which takes up to about 10 µs.
pub const ENCODED_AT_ONCE_BYTES: usize = 16 * 1024;

/// The rules that determine which values may be demoted.
#[derive(Clone, Copy, Debug)]
pub struct DemotionRules {
    /// The minimum memory in bytes, including the entry, of a value that may be demoted.
    pub bytes_min: usize,
    /// The maximum memory in bytes, including the entry, of a value that may be demoted.
    pub bytes_max: usize,
    /// The current Unix time in ms: keys with an expiry up to this time have expired.
    pub now_ms: i64,
}

impl DemotionRules {
    /// Rules that allow every value to be demoted, whatever its size and expiry.
    pub const ANY: DemotionRules = DemotionRules { bytes_min: 0, bytes_max: usize::MAX, now_ms: i64::MIN };
}

/// The encoded value of a key, to be written as a record.
#[derive(Debug)]
pub struct Encoded<'e> {
    /// The shard's name of the key's database.
    pub database_name: usize,
    /// The key.
    pub key: &'e [u8],
    /// The format of `bytes`.
    pub kind: Kind,
    /// The value, in that format.
    pub bytes: &'e [u8],
}

/// The result of demoting a value.
pub enum Demoted {
    /// The value remains resident: it must not be demoted, or the log has no space for it.
    Stays,
    /// The value is cold now. Dropping the returned slot frees its memory; the caller drops it without the lock.
    Cold(Slot),
    /// The value is cold now, as in `Cold`, and was not written, because its record still existed.
    Dropped(Slot),
    /// The caller must encode the value without the lock, then pass it to [`ShardData::demote_shared`].
    Shared(SharedDemotion),
}

/// The demotion of a value that is shared with its entry, so that it can be encoded without the lock.
pub struct SharedDemotion {
    database_name: usize,
    hash: KeyHash,
    key: Box<[u8]>,
    value: SharedValue,
    facts: Facts,
}

impl SharedDemotion {
    /// Encodes the value and passes it to `append`. The caller holds no lock. O(bytes of the value).
    pub fn append<R>(&self, append: impl FnOnce(&Encoded<'_>) -> R) -> R {
        let value = self.value.as_value();
        let (kind, bytes) = encode(value);
        append(&Encoded { database_name: self.database_name, key: &self.key, kind, bytes: &bytes })
    }

    /// Returns the index of the shard that contains the key.
    pub fn shard(&self) -> usize {
        self.hash.shard()
    }
}

pub(in crate::keyspace) fn encode<'v>(value: impl Into<ValueRef<'v>>) -> (Kind, Vec<u8>) {
    const NEVER_FAILS: &str = "a vector takes all bytes";
    let value = value.into();
    // Compressing strings would take longer than the disk needs for the bytes that compression saves.
    let mut writer = rdb::Writer::new(Vec::new()).with_packed_max_bytes(0);
    let kind = rdb::kind_of(value);
    rdb::write_value(&mut writer, value).expect(NEVER_FAILS);
    (kind, writer.into_inner())
}

/// A value that was read from its record.
pub struct Fetched(Value);

impl Fetched {
    /// Decodes the bytes of a record into a value that has the same encoding as before its demotion. O(bytes).
    ///
    /// # Errors
    /// Returns an error if the bytes do not contain a value in this format.
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
            Err(rdb::LoadError::Corrupt("a value has bytes after its end"))
        }
    }

    /// Returns the value in the form in which an entry stores a value of this encoding.
    pub(in crate::keyspace) fn into_new<'b>(
        self,
        encoding_name: &str,
        buffer: &'b mut Vec<u8>,
    ) -> NewValue<'b> {
        match self.0 {
            Value::String(bytes) if encoding_name != "int" && bytes.len() < LARGE_VALUE_MIN_BYTES => {
                *buffer = bytes;
                if encoding_name == "raw" { NewValue::Edited(buffer) } else { NewValue::Bytes(buffer) }
            }
            value => value.into_new(buffer),
        }
    }

    /// Returns the value for reading.
    pub fn as_value(&self) -> ValueRef<'_> {
        self.0.as_value()
    }
}

/// The result of storing a fetched value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The value is stored in its entry.
    InPlace,
    /// The value is dropped, because it is no longer needed.
    Unwanted,
}

impl ShardData {
    /// Demotes the value of an entry: encodes it and passes it to `append`, which returns its record, or `None` if
    /// there is no space. A value larger than [`ENCODED_AT_ONCE_BYTES`] is shared instead, so that the caller encodes
    /// it without the lock.
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
        // A fetched vector set has a new index, so demotion would lose the preparation of its training.
        if entry.aggregate().and_then(VectorSet::of).is_some_and(VectorSet::is_training_near) {
            return Demoted::Stays;
        }
        let bytes = entry.footprint_bytes();
        if self.has_store() {
            // With a store, only a value that the store contains may be demoted.
            return match entry.is_copied() {
                false => Demoted::Stays,
                true => match self.replace_with_record(database, at, facts, Record::new(Location::STORE)) {
                    Demoted::Cold(old) => Demoted::Dropped(old),
                    stays => stays,
                },
            };
        }
        if entry.is_copied()
            && let Some(record) =
                self.cold_state.as_mut().and_then(|cold_state| cold_state.take_copy(name, key))
        {
            let Demoted::Cold(old) = self.replace_with_record(database, at, facts, record) else {
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
            Some(record) => self.replace_with_record(database, at, facts, record),
            None => Demoted::Stays,
        }
    }

    /// Stores the record of a value that was encoded without the lock in its entry, if the value of the entry has not
    /// been changed or replaced since.
    pub fn demote_shared(&mut self, demotion: &SharedDemotion, record: Record) -> Demoted {
        let Some(database) = self.database_of(demotion.database_name) else { return Demoted::Stays };
        let Some(at) = self.find(database, demotion.hash, &demotion.key) else { return Demoted::Stays };
        let is_same = match (&demotion.value, self.entry(database, at)) {
            (_, entry) if entry.is_cold() => false,
            (SharedValue::Aggregate(shared), entry) => {
                entry.aggregate().is_some_and(|aggregate| std::ptr::eq(aggregate, &raw const **shared))
            }
            (SharedValue::String(shared), entry) if entry.aggregate().is_none() => {
                matches!(entry.string(), StringValue::Large(large) if std::ptr::eq(large.as_raw(), &raw const **shared))
            }
            (SharedValue::String(_), _) => false,
        };
        if is_same { self.replace_with_record(database, at, demotion.facts, record) } else { Demoted::Stays }
    }

    /// Returns the number of queued fetched values of a database divided by the number of its resident values, and the
    /// number of queued values.
    pub fn returned(&self, database: usize) -> (f64, usize) {
        let name = self.database_name(database);
        let Some(cold_state) = &self.cold_state else { return (0.0, 0) };
        let returned = cold_state.returned_in(name);
        let here = self.database(database).table().len().saturating_sub(cold_state.cold_in(name)).max(1);
        (returned as f64 / here as f64, returned)
    }

    /// Removes the oldest value from a database's queue of fetched values, skipping values whose entry no longer
    /// exists. Returns the position of its entry, and the eviction clock when the value was queued.
    pub fn take_returned(&mut self, database: usize) -> Option<(Position, u32)> {
        let name = self.database_name(database);
        let ShardData { first, others, cold_state, .. } = self;
        let table = match database {
            0 => first.table(),
            _ => others[database - 1].table(),
        };
        let returned = cold_state.as_mut()?.returned_mut(name)?;
        loop {
            let Returned { at, clock } = returned.pop_front()?;
            if table.entry_once_at(at).is_some() {
                return Some((at, clock));
            }
        }
    }

    /// Adds the value of an entry to the queue of fetched values, because it was fetched or is treated like a value
    /// fetched now.
    pub fn record_fetched(&mut self, database: usize, at: Position) {
        let (name, clock) = (self.database_name(database), self.entry(database, at).clock());
        let keys = self.database(database).table().len();
        let Some(returned) = self.cold_state.as_mut().and_then(|cold_state| cold_state.returned_mut(name))
        else {
            return;
        };
        // The queue may contain stale elements, of values that were demoted by sampling and fetched again.
        if returned.len() >= keys {
            returned.pop_front();
        }
        returned.push_back(Returned { at, clock });
    }

    fn replace_with_record(
        &mut self,
        database: usize,
        at: Position,
        facts: Facts,
        record: Record,
    ) -> Demoted {
        let value_type = self.entry(database, at).value_type();
        let name = self.database_name(database);
        let external = NewValue::External(External { value_type, facts, record });
        let old = self.exchange_value(database, at, external);
        self.cold_state.get_or_insert_default().count_in(name, facts);
        Demoted::Cold(old)
    }

    /// Stores a value that was read from its record in its entry, and notifies the calls that wait for the value.
    pub fn store_fetched(&mut self, order: &FetchOrder, fetched: Fetched) -> FetchOutcome {
        let Some(waiting) = self.cold_state.as_mut().and_then(|cold_state| cold_state.take_ticket(order))
        else {
            return FetchOutcome::Unwanted;
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
                self.record_fetched(database, at);
                let has_store = self.has_store();
                if let Some(cold_state) = &mut self.cold_state {
                    cold_state.count_out(order.database_name, facts);
                    if has_store {
                        self.slot_mut(database, at).set_fetched();
                        self.notify_arrivals(&waiting);
                        return FetchOutcome::InPlace;
                    }
                    let is_kept = cold_state.add_copy(order.database_name, &order.key, order.record.clone());
                    if is_kept {
                        self.slot_mut(database, at).set_copied(true);
                    }
                }
                FetchOutcome::InPlace
            }
            None => FetchOutcome::Unwanted,
        };
        self.notify_arrivals(&waiting);
        self.drop_cold_state_if_empty();
        arrived
    }

    /// Returns whether the value of a key is cold and its record is at `location`.
    pub fn refers_to(&self, name: usize, hash: KeyHash, key: &[u8], location: Location) -> bool {
        let found = self
            .database_of(name)
            .and_then(|database| self.entry(database, self.find(database, hash, key)?).external());
        found.is_some_and(|external| external.location == location)
    }

    /// Releases the record at `location` if it is the record of a resident value of the key; returns whether it is.
    pub fn release_copy(&mut self, name: usize, hash: KeyHash, key: &[u8], location: Location) -> bool {
        let copy = self.cold_state.as_ref().and_then(|cold_state| cold_state.copy(name, key));
        if copy.is_none_or(|record| record.location() != location) {
            return false;
        }
        let Some(database) = self.database_of(name) else { return false };
        let Some(at) = self.find(database, hash, key) else { return false };
        self.is_changed = true;
        self.forget_record(database, at, None);
        true
    }

    /// Replaces the record at `from` in a key's entry with `to`, to which the value was copied. Returns false if the
    /// entry no longer refers to `from`.
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

    /// Replaces an entry's value with another form of the same value; returns a slot with the old form.
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

/// Returns the facts that an entry keeps in memory when its value is demoted; `None` if `rules` do not allow the
/// demotion.
fn facts_of(entry: EntryRef<'_>, rules: &DemotionRules) -> Option<Facts> {
    let is_demotable = !entry.is_cold()
        && (rules.bytes_min..=rules.bytes_max).contains(&entry.footprint_bytes())
        && !entry.is_expired(rules.now_ms);
    if is_demotable { demotable_facts(entry) } else { None }
}

/// Returns the facts that an entry keeps in memory while its value is cold; `None` if the value must remain resident.
pub(super) fn demotable_facts(entry: EntryRef<'_>) -> Option<Facts> {
    if let Some(external) = entry.external() {
        return Some(external.facts);
    }
    // A value with expiring elements remains resident, because active expiry reads its elements.
    if entry.aggregate().and_then(Aggregate::next_expiry_ms).is_some() {
        return None;
    }
    Facts::new(entry.encoding_name(), entry.footprint_bytes())
}
