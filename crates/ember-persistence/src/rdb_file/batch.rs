//! Batches of keys with their values in serialized form; any thread can build the values.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use emberkv_core::keyspace::entry::NewValue;
use emberkv_core::rdb::{KeyFacts, Kind, Reader, Value, read_string, read_value};
use emberkv_core::types::limits::EncodingLimits;

use super::{RdbError, RdbProblem};

/// The minimum length in bytes of a full batch: large enough that the cost of passing it to another thread is
/// negligible.
pub const BATCH_BYTES: usize = 256 * 1024;

/// The maximum number of keys in a batch.
pub const BATCH_KEYS: usize = 4096;

/// The maximum length in bytes of a value that is copied into a batch; longer values are built while they are read.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The value of a key in a batch.
#[derive(Debug)]
pub(super) enum Found {
    /// The kind of the value, and the range of its serialized bytes in the batch.
    Bytes(Kind, Range<usize>),
    /// The built value, because it was too long to be copied.
    Built(Value),
    /// The value has no elements, so its key is skipped.
    Empty,
    /// The value was taken from the batch.
    Taken,
}

#[derive(Debug)]
pub(super) struct BatchKey {
    pub(super) facts: KeyFacts,
    pub(super) name: Range<usize>,
    pub(super) value: Found,
    /// The offset of the value in the file.
    pub(super) offset: u64,
}

/// A sequence of keys that were read from a file.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) file: Arc<PathBuf>,
    pub(super) bytes: Vec<u8>,
    pub(super) keys: Vec<BatchKey>,
}

/// A key of a batch that is ready to be inserted, or why it is skipped.
pub(super) enum Opened<'b> {
    Key(OpenKey<'b>),
    /// The key is skipped, because it or all its elements have expired.
    Expired,
    /// The key is skipped, because its value has no elements.
    Empty,
}

/// A key ready to be inserted.
pub(super) struct OpenKey<'b> {
    pub(super) name: &'b [u8],
    pub(super) facts: KeyFacts,
    pub(super) value: NewValue<'b>,
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// Returns the number of keys.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether the batch contains no keys.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.keys.len() >= BATCH_KEYS
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.bytes.clear();
        // The memory of long values is released.
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }

    /// Returns the name and the metadata of a key.
    pub fn key(&self, index: usize) -> (&[u8], KeyFacts) {
        let key = &self.keys[index];
        (&self.bytes[key.name.clone()], key.facts)
    }

    /// Builds the value of a key in the encoding that `limits` select, and takes it from the batch. O(bytes of the
    /// value).
    ///
    /// # Errors
    /// Returns an error if the bytes are not a valid value, and [`RdbProblem::EmptyValue`] if the value has no
    /// elements.
    ///
    /// # Panics
    /// Panics if the value was taken before.
    pub fn take(&mut self, index: usize, limits: &EncodingLimits) -> Result<Value, RdbError> {
        let key = &mut self.keys[index];
        let (kind, range) = match std::mem::replace(&mut key.value, Found::Taken) {
            Found::Bytes(kind, range) => (kind, range),
            Found::Built(value) => return Ok(value),
            Found::Empty => return Err(self.error(index, RdbProblem::EmptyValue)),
            Found::Taken => panic!("a value is taken once"),
        };
        let mut rest = &self.bytes[range];
        let value = read_value(&mut Reader::new(&mut rest), kind, limits);
        let problem = match value {
            Ok(value) if rest.is_empty() => return Ok(value),
            Ok(_) => RdbProblem::Corrupt("a value is shorter than its parts say"),
            Err(error) => error.into(),
        };
        Err(self.error(index, problem))
    }

    /// Builds all values except strings: [`Batch::open`] builds those when they are inserted.
    ///
    /// # Errors
    /// Returns an error if the bytes of a value are not valid.
    pub(super) fn build(&mut self, limits: &EncodingLimits) -> Result<(), RdbError> {
        for index in 0..self.keys.len() {
            if !matches!(self.keys[index].value, Found::Bytes(Kind::String, _)) {
                let value = self.take(index, limits);
                self.keys[index].value = match value {
                    Err(RdbError { problem: RdbProblem::EmptyValue, .. }) => Found::Empty,
                    value => Found::Built(value?),
                };
            }
        }
        Ok(())
    }

    /// Returns a key of a batch whose values are built, ready to be inserted at time `now_ms`. `buffer` may be used for
    /// the bytes of the value.
    ///
    /// # Errors
    /// Returns an error if the bytes of the value are not a string.
    ///
    /// # Panics
    /// Panics if the value was taken before, or is not built.
    pub(super) fn open<'b>(
        &'b mut self,
        index: usize,
        now_ms: i64,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Opened<'b>, RdbError> {
        let key = &mut self.keys[index];
        let facts = key.facts;
        let is_expired = facts.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms);
        let value = match std::mem::replace(&mut key.value, Found::Taken) {
            Found::Built(mut value) => {
                if value.is_over(now_ms) {
                    return Ok(Opened::Expired);
                }
                Ok(value.into_new(buffer))
            }
            // Even an expired value is read, because damage in it is an error.
            Found::Bytes(Kind::String, range) => read_string(&self.bytes[range], buffer),
            Found::Empty => return Ok(Opened::Empty),
            Found::Bytes(..) | Found::Taken => panic!("values are built, and taken once"),
        };
        match value {
            Ok(_) if is_expired => Ok(Opened::Expired),
            Ok(value) => {
                Ok(Opened::Key(OpenKey { name: &self.bytes[self.keys[index].name.clone()], facts, value }))
            }
            Err(error) => Err(self.error(index, error.into())),
        }
    }

    /// Creates an error for the key at `index`.
    pub fn error(&self, index: usize, problem: RdbProblem) -> RdbError {
        RdbError { file: self.file.to_path_buf(), offset: self.keys[index].offset, problem }
    }
}
