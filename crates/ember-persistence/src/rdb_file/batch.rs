//! Keys with their values as the bytes of the file, to be made values on any thread.

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use emberkv_core::rdb::{KeyFacts, Kind, Reader, Value, read_value};
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
    /// If its bytes are no value.
    ///
    /// # Panics
    /// If it was taken before.
    pub fn take(&mut self, index: usize, limits: &EncodingLimits) -> Result<Value, RdbError> {
        let key = &mut self.keys[index];
        let (kind, range) = match std::mem::replace(&mut key.value, Found::Taken) {
            Found::Bytes(kind, range) => (kind, range),
            Found::Built(value) => return Ok(value),
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

    /// The error that something is wrong with a key.
    pub fn error(&self, index: usize, problem: RdbProblem) -> RdbError {
        RdbError { file: self.file.to_path_buf(), offset: self.keys[index].offset, problem }
    }
}
