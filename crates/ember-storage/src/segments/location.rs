//! The location of a record: eight bytes that an entry contains instead of its value.
//!
//! ```text
//! 20 bits segment | 22 bits offset in units of 16 bytes | 22 bits stored length in such units
//! ```
//!
//! A length of 0 means the whole segment after its head: a record that exceeds the maximum size of a segment has a
//! segment of its own.

use std::fmt;

use super::{HEAD_BYTES, SEGMENT_BYTES, UNIT_BYTES};

const SEGMENT_BITS: u32 = 20;
const PLACE_BITS: u32 = 22;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;

const _: () = assert!(SEGMENT_BITS + 2 * PLACE_BITS == 64);
const _: () = assert!(SEGMENT_BYTES == UNIT_BYTES << PLACE_BITS);

/// The number of a segment. Numbers are reused once all have been used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SegmentNumber(u32);

impl SegmentNumber {
    /// The number of different segment numbers.
    pub(super) const COUNT: u32 = 1 << SEGMENT_BITS;

    pub(super) fn new(number: u32) -> SegmentNumber {
        SegmentNumber(number % SegmentNumber::COUNT)
    }

    /// Returns the segment number as an integer.
    pub fn get(self) -> u32 {
        self.0
    }
}

impl fmt::Display for SegmentNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The location of a record.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Location(u64);

impl Location {
    /// Creates the location of a record of `stored` bytes at `offset`, both multiples of the unit. A record longer than
    /// a segment is alone in its segment.
    pub(super) fn new(segment: SegmentNumber, offset: u64, stored: u64) -> Location {
        debug_assert!(offset.is_multiple_of(UNIT_BYTES) && stored.is_multiple_of(UNIT_BYTES));
        let units = if stored > SEGMENT_BYTES - HEAD_BYTES { 0 } else { stored / UNIT_BYTES };
        let place = ((offset / UNIT_BYTES) << PLACE_BITS) | units;
        Location((u64::from(segment.get()) << (2 * PLACE_BITS)) | place)
    }

    /// Restores a location from [`Location::to_bits`]. With any other bits, reading returns an error or a record of
    /// another key.
    pub fn from_bits(bits: u64) -> Location {
        Location(bits)
    }

    /// Returns the location as 64 bits.
    pub fn to_bits(self) -> u64 {
        self.0
    }

    /// Returns the segment.
    pub fn segment(self) -> SegmentNumber {
        SegmentNumber::new((self.0 >> (2 * PLACE_BITS)) as u32)
    }

    /// Returns the offset in the segment's file.
    pub fn offset(self) -> u64 {
        ((self.0 >> PLACE_BITS) & PLACE_MASK) * UNIT_BYTES
    }

    /// Returns the stored size of the record in bytes; None if the record is all of the segment after its head.
    pub fn stored_bytes(self) -> Option<u64> {
        let units = self.0 & PLACE_MASK;
        (units > 0).then_some(units * UNIT_BYTES)
    }
}

impl fmt::Debug for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}+{:?}", self.segment(), self.offset(), self.stored_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_location_stores_segment_and_offset() {
        let last = SEGMENT_BYTES - UNIT_BYTES;
        for segment in [0, 1, SegmentNumber::COUNT - 1] {
            for (offset, stored) in
                [(64, 16), (last, 16), (HEAD_BYTES, SEGMENT_BYTES - HEAD_BYTES), (128, 4096)]
            {
                let at = Location::new(SegmentNumber::new(segment), offset, stored);
                assert_eq!(at, Location::from_bits(at.to_bits()));
                assert_eq!((at.segment().get(), at.offset()), (segment, offset));
                assert_eq!(at.stored_bytes(), Some(stored));
            }
        }
        let alone = Location::new(SegmentNumber::new(3), HEAD_BYTES, 1 << 30);
        assert_eq!((alone.offset(), alone.stored_bytes()), (HEAD_BYTES, None));
    }
}
