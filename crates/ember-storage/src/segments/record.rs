//! The encoding of records: a record is encoded for one place, and decoding accepts it only at that place.

use crc_fast::{CrcAlgorithm, Digest};

/// Length of a record's prefix in bytes: the length field and the two checksums.
pub(super) const PREFIX_BYTES: usize = 12;

/// Minimum size of the fields after the prefix, in bytes: the database number, the kind and the key length.
const FIXED_BYTES: usize = 6;

/// The maximum size of an encoded key length in bytes: 32 bits as LEB128.
const KEY_LEN_BYTES_MAX: usize = 5;

/// The fields of a record other than its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RecordHead<'a> {
    /// The database of the key.
    pub database: u32,
    /// The format of the value, defined by the appender.
    pub kind: u8,
    /// The key.
    pub key: &'a [u8],
}

/// A record that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record<'a> {
    /// The fields other than its value.
    pub head: RecordHead<'a>,
    /// The value.
    pub value: &'a [u8],
}

/// The place of a record: the offset in its segment, and the sequence number of the segment, which unlike a segment
/// number is never reused.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    pub(super) sequence: u64,
    pub(super) offset: u64,
}

impl Place {
    fn digest(self) -> Digest {
        let mut digest = Digest::new(CrcAlgorithm::Crc32Iscsi);
        digest.update(&self.sequence.to_le_bytes());
        digest.update(&self.offset.to_le_bytes());
        digest
    }

    fn check_of_len(self, len: [u8; 4]) -> [u8; 4] {
        let mut digest = self.digest();
        digest.update(&len);
        (digest.finalize() as u32).to_le_bytes()
    }

    fn check_of(self, bytes: &[u8]) -> [u8; 4] {
        let mut digest = self.digest();
        digest.update(bytes);
        (digest.finalize() as u32).to_le_bytes()
    }
}

fn leb128(mut number: u32, out: &mut [u8; KEY_LEN_BYTES_MAX]) -> &[u8] {
    let mut len = 0;
    loop {
        let rest = number >> 7;
        out[len] = (number & 0x7F) as u8 | if rest > 0 { 0x80 } else { 0 };
        len += 1;
        number = rest;
        if rest == 0 {
            return &out[..len];
        }
    }
}

/// Decodes the LEB128 number at the beginning of `bytes`; returns the number and the remaining bytes.
fn read_leb128(bytes: &[u8]) -> Option<(u32, &[u8])> {
    let mut number = 0_u64;
    for (index, &byte) in bytes.iter().take(KEY_LEN_BYTES_MAX).enumerate() {
        number |= u64::from(byte & 0x7F) << (7 * index);
        if byte & 0x80 == 0 {
            return Some((u32::try_from(number).ok()?, &bytes[index + 1..]));
        }
    }
    None
}

/// Returns the length of an encoded record in bytes; None if it exceeds the maximum.
pub(super) fn record_bytes(head: &RecordHead<'_>, value: &[u8]) -> Option<usize> {
    let key_len = u32::try_from(head.key.len()).ok()?;
    let body_bytes = FIXED_BYTES - 1 + leb128(key_len, &mut [0; KEY_LEN_BYTES_MAX]).len();
    let body_bytes = body_bytes.checked_add(head.key.len())?.checked_add(value.len())?;
    // The length field has 32 bits, and live bytes are counted in units with 32 bits.
    u32::try_from(body_bytes + PREFIX_BYTES + super::HEAD_BYTES as usize).ok()?;
    Some(body_bytes + PREFIX_BYTES)
}

/// Appends a record to `out`, whose length [`record_bytes`] has returned.
pub(super) fn encode(place: Place, head: &RecordHead<'_>, value: &[u8], out: &mut Vec<u8>) {
    let begin = out.len();
    out.extend_from_slice(&[0; PREFIX_BYTES]);
    out.extend_from_slice(&head.database.to_le_bytes());
    out.push(head.kind);
    out.extend_from_slice(leb128(head.key.len() as u32, &mut [0; KEY_LEN_BYTES_MAX]));
    out.extend_from_slice(head.key);
    out.extend_from_slice(value);
    let len = ((out.len() - begin - PREFIX_BYTES) as u32).to_le_bytes();
    let check = place.check_of(&out[begin + PREFIX_BYTES..]);
    let prefix = [len, place.check_of_len(len), check].concat();
    out[begin..begin + PREFIX_BYTES].copy_from_slice(&prefix);
}

/// Returns the length of the record that begins with `bytes`; None if no record begins there.
pub(super) fn len_at(place: Place, bytes: &[u8]) -> Option<usize> {
    let (len, rest) = bytes.split_first_chunk::<4>()?;
    let (check, _) = rest.split_first_chunk::<4>()?;
    let body_bytes = u32::from_le_bytes(*len) as usize;
    (body_bytes >= FIXED_BYTES && *check == place.check_of_len(*len)).then_some(PREFIX_BYTES + body_bytes)
}

/// Returns the length of the record at the beginning of `bytes`; None if there is no record, or the record differs from
/// the written one.
pub(super) fn intact_len(place: Place, bytes: &[u8]) -> Option<usize> {
    let len = len_at(place, bytes)?;
    let body = bytes.get(PREFIX_BYTES..len)?;
    (bytes[8..PREFIX_BYTES] == place.check_of(body)).then_some(len)
}

/// Parses a record of [`intact_len`] bytes; None if it cannot be the output of [`encode`].
pub(super) fn parse(bytes: &[u8]) -> Option<Record<'_>> {
    let body = bytes.get(PREFIX_BYTES..)?;
    let (database, rest) = body.split_first_chunk::<4>()?;
    let (&kind, rest) = rest.split_first()?;
    let (key_len, rest) = read_leb128(rest)?;
    let (key, value) = rest.split_at_checked(key_len as usize)?;
    Some(Record { head: RecordHead { database: u32::from_le_bytes(*database), kind, key }, value })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn decode(place: Place, bytes: &[u8]) -> Option<Record<'_>> {
        parse(&bytes[..intact_len(place, bytes)?])
    }

    const PLACE: Place = Place { sequence: 7, offset: 4096 };

    fn encoded(head: &RecordHead<'_>, value: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(PLACE, head, value, &mut bytes);
        assert_eq!(Some(bytes.len()), record_bytes(head, value));
        bytes
    }

    proptest! {
        #[test]
        fn a_record_is_valid_only_at_its_offset(
            database: u32, kind: u8, key: Vec<u8>, value: Vec<u8>, body_bytes: Vec<u8>,
        ) {
            let head = RecordHead { database, kind, key: &key };
            let mut bytes = encoded(&head, &value);
            let len = bytes.len();
            bytes.extend_from_slice(&body_bytes);
            prop_assert_eq!(len_at(PLACE, &bytes), Some(len));
            prop_assert_eq!(decode(PLACE, &bytes), Some(Record { head, value: &value }));
            prop_assert_eq!(decode(Place { offset: 4112, ..PLACE }, &bytes), None);
            prop_assert_eq!(decode(Place { sequence: 8, ..PLACE }, &bytes), None);
        }

        #[test]
        fn arbitrary_bytes_are_no_record(bytes: Vec<u8>) {
            prop_assert_eq!(decode(PLACE, &bytes), None);
        }
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let bytes = encoded(&RecordHead { database: 1, kind: 2, key: b"key" }, b"the value");
        for bit in 0..bytes.len() * 8 {
            let mut damaged = bytes.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(decode(PLACE, &damaged), None, "bit {bit}");
        }
        for len in 0..bytes.len() {
            assert_eq!(decode(PLACE, &bytes[..len]), None, "{len} bytes");
        }
    }

    #[test]
    fn lengths_of_keys_are_read_back() {
        for number in [0, 1, 127, 128, 16_383, 16_384, u32::MAX] {
            let mut bytes = [0; KEY_LEN_BYTES_MAX];
            let written = leb128(number, &mut bytes).to_vec();
            assert_eq!(read_leb128(&written), Some((number, &[][..])));
        }
        assert_eq!(read_leb128(&[0xFF; 5]), None);
        assert_eq!(read_leb128(&[0x80]), None);
    }
}
