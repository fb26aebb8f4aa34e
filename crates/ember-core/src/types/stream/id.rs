//! The ID of a stream's entry: a time in ms and a sequence number within it.

use std::fmt;

/// An entry ID. IDs are ordered by time, then by sequence number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId {
    /// The time in ms; mostly a Unix time, if the server generated the ID.
    pub ms: u64,
    /// The sequence number, which distinguishes entries of the same time.
    pub sequence: u64,
}

impl StreamId {
    /// The smallest ID; no entry has it.
    pub const MIN: StreamId = StreamId { ms: 0, sequence: 0 };
    /// The largest ID.
    pub const MAX: StreamId = StreamId { ms: u64::MAX, sequence: u64::MAX };
    /// The longest text of an ID in bytes.
    pub const TEXT_BYTES_MAX: usize = 41;

    /// Returns the ID with these parts.
    pub const fn new(ms: u64, sequence: u64) -> StreamId {
        StreamId { ms, sequence }
    }

    /// Returns the next larger ID, if there is one.
    pub fn next(self) -> Option<StreamId> {
        match (self.ms, self.sequence.checked_add(1)) {
            (ms, Some(sequence)) => Some(StreamId { ms, sequence }),
            (ms, None) => Some(StreamId { ms: ms.checked_add(1)?, sequence: 0 }),
        }
    }

    /// Returns the next smaller ID, if there is one.
    pub fn previous(self) -> Option<StreamId> {
        match (self.ms, self.sequence.checked_sub(1)) {
            (ms, Some(sequence)) => Some(StreamId { ms, sequence }),
            (ms, None) => Some(StreamId { ms: ms.checked_sub(1)?, sequence: u64::MAX }),
        }
    }

    /// Returns the ID whose parts are those of `self` plus two numbers, modulo 2^64: blocks store the IDs of entries as
    /// such numbers.
    pub(super) fn plus(self, ms: i64, sequence: i64) -> StreamId {
        StreamId {
            ms: self.ms.wrapping_add(ms as u64),
            sequence: self.sequence.wrapping_add(sequence as u64),
        }
    }

    /// Returns the two numbers with which [`StreamId::plus`] turns `base` into `self`.
    pub(super) fn minus(self, base: StreamId) -> (i64, i64) {
        (self.ms.wrapping_sub(base.ms) as i64, self.sequence.wrapping_sub(base.sequence) as i64)
    }

    /// Returns the ID as text, `ms-sequence`, written into `buffer`.
    pub fn text(self, buffer: &mut [u8; StreamId::TEXT_BYTES_MAX]) -> &[u8] {
        let mut digits = itoa::Buffer::new();
        let ms = digits.format(self.ms).as_bytes();
        let mut len = ms.len();
        buffer[..len].copy_from_slice(ms);
        buffer[len] = b'-';
        len += 1;
        let sequence = digits.format(self.sequence).as_bytes();
        buffer[len..len + sequence.len()].copy_from_slice(sequence);
        &buffer[..len + sequence.len()]
    }
}

impl fmt::Display for StreamId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.ms, self.sequence)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn next_and_previous_ids_carry_into_the_time_and_stop_at_the_limits() {
        let max = u64::MAX;
        assert_eq!(StreamId::new(5, 1).next(), Some(StreamId::new(5, 2)));
        assert_eq!(StreamId::new(5, max).next(), Some(StreamId::new(6, 0)));
        assert_eq!(StreamId::MAX.next(), None);
        assert_eq!(StreamId::new(5, 1).previous(), Some(StreamId::new(5, 0)));
        assert_eq!(StreamId::new(5, 0).previous(), Some(StreamId::new(4, max)));
        assert_eq!(StreamId::MIN.previous(), None);
    }

    #[test]
    fn wrapping_differences_survive_the_round_trip() {
        for (id, base) in [
            (StreamId::new(7, 3), StreamId::new(5, 9)),
            (StreamId::MAX, StreamId::new(0, 1)),
            (StreamId::new(1 << 63, 0), StreamId::new(1, u64::MAX)),
        ] {
            let (ms, sequence) = id.minus(base);
            assert_eq!(base.plus(ms, sequence), id);
        }
    }

    #[test]
    fn the_longest_text_fits() {
        let mut buffer = [0; StreamId::TEXT_BYTES_MAX];
        assert_eq!(StreamId::MAX.text(&mut buffer), b"18446744073709551615-18446744073709551615");
        assert_eq!(StreamId::new(1, 0).text(&mut buffer), b"1-0");
        assert_eq!(StreamId::new(12, 34).to_string(), "12-34");
    }
}
