//! A value that is kept away from memory: where its record is, and what is answered without reading it.
//!
//! ```text
//! location   20 bits segment | 22 bits offset / 16 | 22 bits length / 16
//! facts      12 bits size in memory | 4 bits name of the encoding
//! ```
//!
//! Whoever refers to a record has a [`Record`], which counts the record's bytes as live in its segment: an entry, a read
//! under way, a snapshot that has still to copy it. A segment without live bytes can be removed.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::types::value::ValueType;

const SEGMENT_BITS: u32 = 20;
const LENGTH_BITS: u32 = 22;
const LG_UNIT: u32 = 4;

/// Segments that can be told apart.
pub const SEGMENTS_MAX: usize = 1 << SEGMENT_BITS;

/// Bytes of records that somebody refers to, by segment. One process has one set of segments. Memory of segments that were
/// never used is never touched.
static LIVE_BYTES: [AtomicU64; SEGMENTS_MAX] = [const { AtomicU64::new(0) }; SEGMENTS_MAX];

/// The segment of records that are in no segment: those of a store, where the row of a value is found by its key.
const IN_STORE: usize = SEGMENTS_MAX - 1;

/// Where a record is; never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location(u64);

impl Location {
    /// The location that `bits` stand for.
    pub fn from_bits(bits: u64) -> Location {
        Location(bits)
    }

    /// The same as bits.
    pub fn bits(self) -> u64 {
        self.0
    }

    /// That of each value which is a row of a store.
    pub const STORE: Location = Location((IN_STORE as u64) << (64 - SEGMENT_BITS));

    /// The number of its segment.
    pub fn segment(self) -> usize {
        (self.0 >> (64 - SEGMENT_BITS)) as usize
    }

    /// The bytes that the record takes in its segment.
    pub fn len_bytes(self) -> u64 {
        (self.0 & ((1 << LENGTH_BITS) - 1)) << LG_UNIT
    }
}

/// Bytes of a segment's records that somebody refers to.
pub fn live_bytes(segment: usize) -> u64 {
    LIVE_BYTES[segment].load(Ordering::Acquire)
}

/// A reference to a record, which stays where it is as long as the reference lives.
#[derive(Debug, PartialEq, Eq)]
pub struct Record(Location);

impl Record {
    /// A first reference to the record at `location`.
    pub fn new(location: Location) -> Record {
        // All values of a store would count in one place.
        if location != Location::STORE {
            LIVE_BYTES[location.segment()].fetch_add(location.len_bytes(), Ordering::Relaxed);
        }
        Record(location)
    }

    /// Where it is.
    pub fn location(&self) -> Location {
        self.0
    }

    /// The reference as bits, to be kept in an entry; [`Record::from_raw`] takes it back.
    pub(crate) fn into_raw(self) -> u64 {
        let bits = self.0.0;
        std::mem::forget(self);
        bits
    }

    /// Takes a reference back that [`Record::into_raw`] has given; once.
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
            // Release pairs with the acquire of `live_bytes`: what the holder has read of the segment is read by then.
            LIVE_BYTES[self.0.segment()].fetch_sub(self.0.len_bytes(), Ordering::Release);
        }
    }
}

/// All names that `OBJECT ENCODING` answers, by the number that an entry keeps, and a store: none ever changes its place.
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
/// Sizes are multiples of these bytes.
const SIZE_UNIT: usize = 8;
const MANTISSA_BITS: u32 = 8;
const EXPONENT_MAX: u32 = 15;

/// The largest size in memory that an entry can keep of a value that is away.
pub const MEMORY_BYTES_MAX: usize = SIZE_UNIT * (((2 << MANTISSA_BITS) - 1) << (EXPONENT_MAX - 1));

/// What an entry says of a value that is away.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts(u16);

impl Facts {
    /// Those of a value whose encoding has this name, and that takes so many bytes with its entry; `None` if an entry has no
    /// room for one of the two.
    pub fn new(encoding_name: &str, memory_bytes: usize) -> Option<Facts> {
        let name = ENCODINGS.iter().position(|name| *name == encoding_name)?;
        let size = Facts::packed(memory_bytes)?;
        Some(Facts(size << ENCODING_BITS | name as u16))
    }

    /// A floating point number: exact up to 4 KiB, rounded up beyond.
    fn packed(bytes: usize) -> Option<u16> {
        let mut units = bytes.div_ceil(SIZE_UNIT);
        let mut exponent = 0;
        while units >= 2 << MANTISSA_BITS {
            units = units.div_ceil(2);
            exponent += 1;
        }
        // Numbers with the leading bit keep the exponent one higher, as those without have 0.
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

    /// The number of the encoding's name, which stays the same from version to version.
    pub fn encoding_number(self) -> u8 {
        (self.0 & ((1 << ENCODING_BITS) - 1)) as u8
    }

    /// Those of a value whose encoding's name has this number, as [`Facts::new`].
    pub fn of_number(encoding: u8, memory_bytes: usize) -> Option<Facts> {
        Facts::new(ENCODINGS.get(usize::from(encoding))?, memory_bytes)
    }

    /// The name that `OBJECT ENCODING` answers.
    pub fn encoding_name(self) -> &'static str {
        ENCODINGS.get(usize::from(self.0) & ((1 << ENCODING_BITS) - 1)).copied().unwrap_or("")
    }

    /// Bytes that entry and value take while the value is here, to within half of a per cent.
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

/// A value that is away, to be kept in an entry.
#[derive(Clone, Debug)]
pub struct External {
    /// Its type.
    pub value_type: ValueType,
    /// What is known of it.
    pub facts: Facts,
    /// Its record.
    pub record: Record,
}

/// A value that is away, as an entry has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExternalRef {
    /// Where its record is, which the entry refers to.
    pub location: Location,
    /// What is known of it.
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
