//! Ziplists, which Redis before 7.0 used instead of listpacks. They are read, but never written.
//!
//! ```text
//! total bytes, 4 | offset of the last entry, 4 | entries, 2 | entry … | 0xFF          little-endian
//! entry    length of the previous entry: 1 byte, or 0xFE and 4 | encoding | data
//! ```
//!
//! The format: Redis, `ziplist.c` by S. Sanfilippo and P. Noordhuis.

use super::format::LoadError;
use crate::types::listpack::Listpack;

const HEADER_BYTES: usize = 10;
const END: u8 = 0xFF;
const COUNT_UNKNOWN: u16 = u16::MAX;

/// The first byte of a previous entry's length that takes five bytes.
const WIDE: u8 = 0xFE;

const CORRUPT: LoadError = LoadError::Corrupt("a ziplist is inconsistent");

enum Entry<'a> {
    Integer(i64),
    Bytes(&'a [u8]),
}

/// Converts a ziplist to a listpack. O(bytes).
///
/// # Errors
/// Returns an error if the bytes are not a ziplist.
pub(super) fn to_listpack(bytes: &[u8]) -> Result<Listpack, LoadError> {
    let Header { entries, last_at, count } = header(bytes).ok_or(CORRUPT)?;
    let mut listpack = Listpack::new();
    let mut rest = entries;
    let mut len_before = 0;
    let mut last_found_at = None;
    while !rest.is_empty() {
        last_found_at = Some(HEADER_BYTES + entries.len() - rest.len());
        let (entry, len) = first(rest, len_before).ok_or(CORRUPT)?;
        match entry {
            Entry::Integer(number) => listpack.push_back_integer(number),
            Entry::Bytes(bytes) => listpack.push_back(bytes),
        }
        (rest, len_before) = (&rest[len..], len);
    }
    let is_counted = count == COUNT_UNKNOWN || listpack.len() == usize::from(count);
    // Redis does not read the offset of a ziplist without entries either.
    if !is_counted || last_found_at.is_some_and(|found| found != last_at) {
        return Err(CORRUPT);
    }
    Ok(listpack)
}

/// The header of a ziplist, and the bytes of its entries.
struct Header<'a> {
    entries: &'a [u8],
    /// The offset of the last entry from the beginning of the ziplist.
    last_at: usize,
    count: u16,
}

fn header(bytes: &[u8]) -> Option<Header<'_>> {
    let (header, entries) = bytes.split_first_chunk::<HEADER_BYTES>()?;
    let (&total, rest) = header.split_first_chunk::<4>()?;
    let (&last_at, rest) = rest.split_first_chunk::<4>()?;
    let (&count, _) = rest.split_first_chunk::<2>()?;
    let (&end, entries) = entries.split_last()?;
    let (last_at, count) = (u32::from_le_bytes(last_at) as usize, u16::from_le_bytes(count));
    (u32::from_le_bytes(total) as usize == bytes.len() && end == END).then_some(Header {
        entries,
        last_at,
        count,
    })
}

/// Returns the first entry of `bytes` and its length. The entry must state that the previous one takes `len_before`
/// bytes.
fn first(bytes: &[u8], len_before: usize) -> Option<(Entry<'_>, usize)> {
    let (len_declared, rest) = match bytes {
        [WIDE, rest @ ..] => {
            let (&len, rest) = rest.split_first_chunk::<4>()?;
            (u32::from_le_bytes(len) as usize, rest)
        }
        [END, ..] | [] => return None,
        [len, rest @ ..] => (usize::from(*len), rest),
    };
    let (entry, rest) = body(rest)?;
    (len_declared == len_before).then_some((entry, bytes.len() - rest.len()))
}

/// Returns the entry in `bytes`, which begin after its length of the previous entry, and the bytes after it.
fn body(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (&encoding, rest) = bytes.split_first()?;
    match encoding {
        0x00..=0x3F => text(rest, encoding.into()),
        0x40..=0x7F => {
            let (&low, rest) = rest.split_first()?;
            text(rest, usize::from(encoding & 0x3F) << 8 | usize::from(low))
        }
        0x80 => {
            let (&len, rest) = rest.split_first_chunk::<4>()?;
            text(rest, u32::from_be_bytes(len) as usize)
        }
        0xC0 => integer::<2>(rest),
        0xD0 => integer::<4>(rest),
        0xE0 => integer::<8>(rest),
        0xF0 => integer::<3>(rest),
        0xFE => integer::<1>(rest),
        0xF1..=0xFD => Some((Entry::Integer(i64::from(encoding & 0x0F) - 1), rest)),
        _ => None,
    }
}

fn text(bytes: &[u8], len: usize) -> Option<(Entry<'_>, &[u8])> {
    let (text, rest) = bytes.split_at_checked(len)?;
    Some((Entry::Bytes(text), rest))
}

/// Reads a signed little-endian integer of `N` bytes.
fn integer<const N: usize>(bytes: &[u8]) -> Option<(Entry<'_>, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<N>()?;
    let mut wide = [0; 8];
    wide[8 - N..].copy_from_slice(number);
    Some((Entry::Integer(i64::from_le_bytes(wide) >> (64 - 8 * N)), rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::listpack::Element;

    fn ziplist(entries: &[&[u8]], count: u16) -> Vec<u8> {
        let all = entries.concat();
        let last_at = HEADER_BYTES + all.len() - entries.last().map_or(0, |last| last.len());
        with_last_at(&all, last_at, count)
    }

    fn with_last_at(entries: &[u8], last_at: usize, count: u16) -> Vec<u8> {
        let total = (HEADER_BYTES + entries.len() + 1) as u32;
        let last_at = last_at as u32;
        [&total.to_le_bytes()[..], &last_at.to_le_bytes(), &count.to_le_bytes(), entries, &[END]].concat()
    }

    #[test]
    fn every_encoding_is_read() {
        let long = [b'x'; 300];
        let long_entry = [&b"\x0A\x41\x2C"[..], &long].concat();
        let entries = [
            &b"\x00\x03abc"[..],
            b"\x05\xF1",
            b"\x02\xFD",
            b"\x02\xFE\x80",
            b"\x03\xC0\x00\x80",
            b"\x04\xF0\xFF\xFF\x7F",
            b"\x05\xD0\x00\x00\x00\x80",
            b"\x06\xE0\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x7F",
            &long_entry,
            b"\xFE\x2F\x01\x00\x00\x80\x00\x00\x00\x02hi",
        ];
        let listpack = to_listpack(&ziplist(&entries, 10)).unwrap();
        let read: Vec<Vec<u8>> = listpack.iter().map(Element::to_vec).collect();
        let expected: [&[u8]; 10] = [
            b"abc",
            b"0",
            b"12",
            b"-128",
            b"-32768",
            b"8388607",
            b"-2147483648",
            b"9223372036854775807",
            &long,
            b"hi",
        ];
        assert_eq!(read, expected);
    }

    #[test]
    fn inconsistent_ziplists_are_rejected() {
        let good = ziplist(&[b"\x00\x03abc", b"\x05\xF1"], 2);
        to_listpack(&good).unwrap();
        for index in 0..good.len() {
            to_listpack(&good[..index]).unwrap_err();
        }
        for last_at in [0, HEADER_BYTES, HEADER_BYTES + 4, HEADER_BYTES + 6, HEADER_BYTES + 7, 1 << 20] {
            to_listpack(&with_last_at(b"\x00\x03abc\x05\xF1", last_at, 2)).unwrap_err();
        }
        to_listpack(&ziplist(&[b"\x00\x03abc", b"\x05\xF1"], 3)).unwrap_err();
        to_listpack(&ziplist(&[b"\x00\x03abc", b"\x06\xF1"], 2)).unwrap_err();
        to_listpack(&ziplist(&[b"\x00\x80\xFF\xFF\xFF\xFFabc"], 1)).unwrap_err();
        to_listpack(&ziplist(&[b"\x00\xFF"], 1)).unwrap_err();
        to_listpack(&ziplist(&[b"\x00\x90"], 1)).unwrap_err();
        assert_eq!(to_listpack(&with_last_at(b"", 0, 0)).unwrap().len(), 0);
    }
}
