//! A cold value: the location of its record, and the facts for replies that do not need the record.
//!
//! ```text
//! location   20 bits segment | 22 bits offset / 16 | 22 bits length / 16
//! facts      12 bits size in memory | 4 bits name of the encoding
//! ```
//!
//! Each reference to a record is a [`Record`], which counts the record's bytes as live in its segment: the reference of
//! an entry, of a read in progress, or of a snapshot that has yet to copy the record. A segment without live bytes can
//! be removed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::value::ValueType;

const SEGMENT_BITS: u32 = 20;
const LENGTH_BITS: u32 = 22;
const LG_UNIT: u32 = 4;

/// The number of segments that can be distinguished.
pub const SEGMENTS_MAX: usize = 1 << SEGMENT_BITS;

/// Bytes of referenced records, by segment. One process has one set of segments. The counters of segments that were
/// never used are never touched.
static LIVE_BYTES: [AtomicU64; SEGMENTS_MAX] = [const { AtomicU64::new(0) }; SEGMENTS_MAX];

/// The segment number of records outside of segments: the rows of a store, where a value is found by its key.
const IN_STORE: usize = SEGMENTS_MAX - 1;

/// The location of a record; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u64);

impl Location {
    /// Returns the location that `bits` represent.
    pub fn from_bits(bits: u64) -> Location {
        Location(bits)
    }

    /// Returns the location as bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// The location of every value that is a row of a store.
    pub const STORE: Location = Location((IN_STORE as u64) << (64 - SEGMENT_BITS));

    /// Returns the number of the record's segment.
    pub fn segment(self) -> usize {
        (self.0 >> (64 - SEGMENT_BITS)) as usize
    }

    /// Returns the bytes that the record takes in its segment.
    pub fn len_bytes(self) -> u64 {
        (self.0 & ((1 << LENGTH_BITS) - 1)) << LG_UNIT
    }
}

/// Returns the bytes of a segment's referenced records.
pub fn live_bytes(segment: usize) -> u64 {
    LIVE_BYTES[segment].load(Ordering::Acquire)
}

/// A reference to a record, which stays in place as long as the reference lives.
#[derive(Debug, PartialEq, Eq)]
pub struct Record(Location);

impl Record {
    /// Creates a reference to the record at `location`.
    pub fn new(location: Location) -> Record {
        // All values of a store have this location, so one counter would count all of them.
        if location != Location::STORE {
            LIVE_BYTES[location.segment()].fetch_add(location.len_bytes(), Ordering::Relaxed);
        }
        Record(location)
    }

    /// Returns the location of the record.
    pub fn location(&self) -> Location {
        self.0
    }

    /// Returns the reference as bits, to be stored in an entry; [`Record::from_raw`] converts them back.
    pub(crate) fn into_raw(self) -> u64 {
        let bits = self.0.0;
        std::mem::forget(self);
        bits
    }

    /// Returns the reference that [`Record::into_raw`] converted to bits; must be called exactly once for it.
    pub(crate) fn from_raw(bits: u64) -> Record {
        Record(Location(bits))
    }
}

impl Clone for Record {
    fn clone(&self) -> Record {
        Record::new(self.0)
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        if self.0 != Location::STORE {
            // Release pairs with the acquire of `live_bytes`: by then, the holder has finished its reads of the
            // segment.
            LIVE_BYTES[self.0.segment()].fetch_sub(self.0.len_bytes(), Ordering::Release);
        }
    }
}

/// All names in replies of `OBJECT ENCODING`, indexed by the numbers that entries and stores contain: the number of a
/// name never changes.
const ENCODINGS: [&str; 10] = [
    "raw",
    "embstr",
    "int",
    "listpack",
    "listpackex",
    "quicklist",
    "intset",
    "hashtable",
    "skiplist",
    "stream",
];

const ENCODING_BITS: u32 = 4;
/// The unit of stored sizes in bytes.
const SIZE_UNIT: usize = 8;
const MANTISSA_BITS: u32 = 8;
const EXPONENT_MAX: u32 = 15;

/// The largest size in memory that an entry can store for a cold value.
pub const MEMORY_BYTES_MAX: usize = SIZE_UNIT * (((2 << MANTISSA_BITS) - 1) << (EXPONENT_MAX - 1));

/// The facts about a cold value that its entry stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts(u16);

impl Facts {
    /// Returns the facts of a value with an encoding of this name that takes `memory_bytes` bytes including its entry;
    /// `None` if the facts cannot represent the name or the size.
    pub fn new(encoding_name: &str, memory_bytes: usize) -> Option<Facts> {
        let name = ENCODINGS.iter().position(|name| *name == encoding_name)?;
        let size = Facts::packed(memory_bytes)?;
        Some(Facts(size << ENCODING_BITS | name as u16))
    }

    /// Encodes a size as a floating point number: exact up to 4 KiB, rounded up beyond.
    fn packed(bytes: usize) -> Option<u16> {
        let mut units = bytes.div_ceil(SIZE_UNIT);
        let mut exponent = 0;
        while units >= 2 << MANTISSA_BITS {
            units = units.div_ceil(2);
            exponent += 1;
        }
        // Normal numbers (with the leading bit) store the exponent plus one, because subnormal ones store 0.
        let number = match units >> MANTISSA_BITS {
            0 => units,
            _ => (exponent + 1) << MANTISSA_BITS | units & ((1 << MANTISSA_BITS) - 1),
        };
        if exponent < EXPONENT_MAX as usize { Some(number as u16) } else { None }
    }

    pub(crate) fn from_bits(bits: u16) -> Facts {
        Facts(bits)
    }

    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// Returns the number of the encoding's name, which is the same in every version.
    pub fn encoding_number(self) -> u8 {
        (self.0 & ((1 << ENCODING_BITS) - 1)) as u8
    }

    /// Returns the facts of a value with an encoding of this number; otherwise like [`Facts::new`].
    pub fn of_number(encoding: u8, memory_bytes: usize) -> Option<Facts> {
        Facts::new(ENCODINGS.get(usize::from(encoding))?, memory_bytes)
    }

    /// Returns the name in the reply of `OBJECT ENCODING`.
    pub fn encoding_name(self) -> &'static str {
        ENCODINGS.get(usize::from(self.0) & ((1 << ENCODING_BITS) - 1)).copied().unwrap_or("")
    }

    /// Returns the bytes that entry and value take while the value is resident, to within half a per cent.
    pub fn memory_bytes(self) -> usize {
        let number = usize::from(self.0 >> ENCODING_BITS);
        let mantissa = number & ((1 << MANTISSA_BITS) - 1);
        let units = match number >> MANTISSA_BITS {
            0 => mantissa,
            exponent => (mantissa | 1 << MANTISSA_BITS) << (exponent - 1),
        };
        units * SIZE_UNIT
    }
}

/// A cold value to be stored in an entry.
#[derive(Clone, Debug)]
pub struct External {
    /// The type of the value.
    pub value_type: ValueType,
    /// The facts that the entry stores.
    pub facts: Facts,
    /// The reference to the record, which the entry will own.
    pub record: Record,
}

/// A cold value in its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalRef {
    /// The location of the record, to which the entry has a reference.
    pub location: Location,
    /// The facts for replies that do not need the record.
    pub facts: Facts,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_up_to_4_kib_and_hardly_larger_beyond() {
        for bytes in (0..200_000).step_by(8).chain([1 << 20, 3 << 20, MEMORY_BYTES_MAX]) {
            let kept = Facts::new("skiplist", bytes).unwrap();
            assert_eq!(kept.encoding_name(), "skiplist");
            let wanted = if bytes <= 4088 { bytes..=bytes } else { bytes..=bytes + bytes / 128 };
            assert!(wanted.contains(&kept.memory_bytes()), "{bytes}: {}", kept.memory_bytes());
        }
        assert_eq!(Facts::new("raw", MEMORY_BYTES_MAX + 1), None);
        assert_eq!(Facts::new("none of ours", 8), None);
    }

    #[test]
    fn a_segment_has_the_bytes_of_the_records_that_are_referred_to() {
        // No other test uses this segment.
        let segment = SEGMENTS_MAX - 7;
        let location = Location::from_bits((segment as u64) << 44 | 3 << 22 | 5);
        let record = Record::new(location);
        let other = record.clone();
        assert_eq!((location.len_bytes(), live_bytes(segment)), (80, 160));
        drop(record);
        assert_eq!(live_bytes(segment), 80);
        let kept = Record::from_raw(other.into_raw());
        assert_eq!(live_bytes(segment), 80);
        drop(kept);
        assert_eq!(live_bytes(segment), 0);
    }
}
