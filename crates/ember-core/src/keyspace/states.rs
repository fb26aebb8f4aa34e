//! States of keys for the history: how they are captured under the locks, and stored in the shards of a read of the
//! past.

use super::entry::EntryRef;
use super::hash::KeyHash;
use super::shard::ShardData;
use super::shard::cold_values::{Fetched, encode};
use crate::effects::capture::{Image, State};
use crate::effects::journal::Journal;
use crate::rdb::{Kind, LoadError};
use crate::sync::MutexGuard;
use crate::types::limits::EncodingLimits;

/// The maximum number of covered keys that one FLUSHALL or FLUSHDB records one by one, which takes about a tenth of a
/// second under the locks of all shards. With more keys, the history starts again.
const FLUSHED_MAX: usize = 100_000;

/// Returns the state of an entry, if its value is in memory and takes at most `bytes_max` bytes. O(bytes).
pub fn state_of(entry: EntryRef<'_>, bytes_max: usize) -> State {
    if entry.is_cold() || entry.resident_bytes() > bytes_max {
        return State::Unknown;
    }
    let (kind, bytes) = encode(entry);
    State::Present(Image {
        kind: kind as u8,
        encoding_name: entry.encoding_name().into(),
        expire_at_ms: entry.expire_at_ms(),
        bytes: bytes.into(),
    })
}

impl ShardData {
    /// Returns the state of a key, as [`state_of`] does.
    pub fn state(&self, database: usize, hash: KeyHash, name: &[u8], bytes_max: usize) -> State {
        match self.find(database, hash, name) {
            None => State::Absent,
            Some(at) => state_of(self.entry(database, at), bytes_max),
        }
    }

    /// Stores the value of an image as a key that does not exist. O(bytes).
    ///
    /// # Errors
    /// Returns an error if the image does not contain a value in its format.
    pub(crate) fn insert_image(
        &mut self,
        database: usize,
        hash: KeyHash,
        name: &[u8],
        image: &Image,
        limits: &EncodingLimits,
    ) -> Result<(), LoadError> {
        let kind = Kind::from_byte(image.kind).ok_or(LoadError::Corrupt("the kind of a value is unknown"))?;
        let fetched = Fetched::decode(kind, &image.bytes, &image.encoding_name, limits)?;
        let mut buffer = Vec::new();
        let value = fetched.into_new(&image.encoding_name, &mut buffer);
        self.insert(database, hash, name, value, image.expire_at_ms, 0);
        Ok(())
    }
}

/// Captures the removal of all keys of the databases in `databases` for the history. The caller holds the locks of all
/// shards, and removes the keys and records the removal next.
pub fn capture_flush(
    shards: &[MutexGuard<'_, ShardData>],
    databases: std::ops::Range<usize>,
    operation: &'static str,
    journal: &mut Journal,
) {
    let used = |data: &ShardData| databases.start..databases.end.min(data.databases_used());
    let mut count = 0;
    for data in shards {
        for database in used(data) {
            let names = data.database(database).table().iter().map(EntryRef::key);
            count += names.filter(|name| journal.covers(name)).count();
        }
    }
    if count > FLUSHED_MAX {
        return journal.capture_restart();
    }
    for data in shards {
        for database in used(data) {
            for entry in data.database(database).table().iter() {
                journal.mark((database, entry.key()), None, |bytes_max| state_of(entry, bytes_max));
            }
        }
    }
    journal.settle_marks(operation, true, |_, _, _| State::Absent);
}
