//! Keys with their values as the bytes of the file, to be made values on any thread.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use emberkv_core::keyspace::entry::NewValue;
use emberkv_core::rdb::{KeyFacts, Kind, Reader, Value, read_string, read_value};
use emberkv_core::types::limits::EncodingLimits;

use super::{RdbError, RdbProblem};

/// How many bytes a batch has at least before it is full: enough that handing it over costs nothing beside the work.
pub const BATCH_BYTES: usize = 256 * 1024;

/// How many keys a batch has at most.
pub const BATCH_KEYS: usize = 4096;

/// Longer values are built while they are read.
pub const VALUE_BYTES_MAX: usize = 8 * 1024 * 1024;

/// A value that was found.
#[derive(Debug)]
pub(super) enum Found {
    /// Its bytes.
    Bytes(Kind, Range<usize>),
    /// Itself, as it was too long for its bytes to be kept.
    Built(Value),
    /// It has no elements, so its key is skipped.
    Empty,
    /// It was taken.
    Taken,
}

#[derive(Debug)]
pub(super) struct BatchKey {
    pub(super) facts: KeyFacts,
    pub(super) name: Range<usize>,
    pub(super) value: Found,
    /// Where the value is in the file.
    pub(super) offset: u64,
}

/// Some keys of a file.
#[derive(Debug, Default)]
pub struct Batch {
    pub(super) file: Arc<PathBuf>,
    pub(super) bytes: Vec<u8>,
    pub(super) keys: Vec<BatchKey>,
}

/// What a key of a batch is to become.
pub(super) enum Opened<'b> {
    Key(OpenKey<'b>),
    /// Nothing: its time has come, or that of all its elements.
    Expired,
    /// Nothing: its value has no elements.
    Empty,
}

/// A key in the form to be inserted.
pub(super) struct OpenKey<'b> {
    pub(super) name: &'b [u8],
    pub(super) facts: KeyFacts,
    pub(super) value: NewValue<'b>,
}

impl Batch {
    /// An empty one, to be filled.
    pub fn new() -> Batch {
        Batch::default()
    }

    /// How many keys it has.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.bytes.len() >= BATCH_BYTES || self.keys.len() >= BATCH_KEYS
    }

    pub(super) fn clear(&mut self) {
        self.keys.clear();
        self.bytes.clear();
        // One with a long value is not kept as large as that.
        self.bytes.shrink_to(2 * BATCH_BYTES);
    }

    /// The name of a key, and what is said of it.
    pub fn key(&self, index: usize) -> (&[u8], KeyFacts) {
        let key = &self.keys[index];
        (&self.bytes[key.name.clone()], key.facts)
    }

    /// The value of a key, which is built now, in the encoding that `limits` ask for. O(its bytes).
    ///
    /// # Errors
    /// If its bytes are no value; [`RdbProblem::EmptyValue`] if they are one without elements.
    ///
    /// # Panics
    /// If it was taken before.
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

    /// Builds all values but strings, which are made as they are inserted ([`Batch::open`]).
    ///
    /// # Errors
    /// If bytes are no value.
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

    /// A key of a batch that is built, in the form to be inserted at `now_ms`. `buffer` is where the bytes of its value may
    /// go.
    ///
    /// # Errors
    /// If its bytes are no string.
    ///
    /// # Panics
    /// If it was taken before, or is not built.
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
            // One that has expired is read all the same: damage is an error.
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

    /// The error that something is wrong with a key.
    pub fn error(&self, index: usize, problem: RdbProblem) -> RdbError {
        RdbError { file: self.file.to_path_buf(), offset: self.keys[index].offset, problem }
    }
}
