//! Zipmaps: small hashes of Redis before 2.6. They are read, but never written.
//!
//! ```text
//! fields, or 254 and more: unknown, 1 byte | field … | 0xFF
//! field    length | name | length | unused bytes, 1 | value | unused bytes
//! length   1 byte, or 0xFE and 4, little-endian
//! ```
//!
//! The format: Redis, `zipmap.c` by S. Sanfilippo.

use super::format::LoadError;
use crate::types::listpack::Listpack;

const END: u8 = 0xFF;
const WIDE: u8 = 0xFE;

/// Converts a zipmap to a listpack of alternating names and values. O(bytes).
///
/// # Errors
/// Returns an error if the bytes are not a zipmap.
pub(super) fn to_listpack(bytes: &[u8]) -> Result<Listpack, LoadError> {
    const ERROR: LoadError = LoadError::Corrupt("a zipmap is inconsistent");
    let (&count, mut rest) = bytes.split_first().ok_or(ERROR)?;
    let mut listpack = Listpack::new();
    while rest != [END] {
        rest = push_field(&mut listpack, rest).ok_or(ERROR)?;
    }
    if count < WIDE && listpack.len() != 2 * usize::from(count) {
        return Err(ERROR);
    }
    Ok(listpack)
}

/// Appends the first field of `bytes`; returns the bytes after it.
fn push_field<'a>(listpack: &mut Listpack, bytes: &'a [u8]) -> Option<&'a [u8]> {
    let (len, rest) = length(bytes)?;
    let (name, rest) = rest.split_at_checked(len)?;
    let (len, rest) = length(rest)?;
    let (&unused, rest) = rest.split_first()?;
    let (value, rest) = rest.split_at_checked(len)?;
    let (_, rest) = rest.split_at_checked(unused.into())?;
    listpack.push_back(name);
    listpack.push_back(value);
    Some(rest)
}

fn length(bytes: &[u8]) -> Option<(usize, &[u8])> {
    match bytes {
        [WIDE, rest @ ..] => {
            let (&len, rest) = rest.split_first_chunk::<4>()?;
            Some((u32::from_le_bytes(len) as usize, rest))
        }
        [END, ..] | [] => None,
        [len, rest @ ..] => Some((usize::from(*len), rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::listpack::Element;

    #[test]
    fn fields_are_read_past_unused_bytes() {
        let bytes = b"\x02\x03foo\x03\x00bar\x05hello\xFE\x05\x00\x00\x00\x02world..\xFF";
        let read: Vec<Vec<u8>> = to_listpack(bytes).unwrap().iter().map(Element::to_vec).collect();
        assert_eq!(read, [&b"foo"[..], b"bar", b"hello", b"world"]);
        for index in 0..bytes.len() {
            to_listpack(&bytes[..index]).unwrap_err();
        }
        to_listpack(b"\x01\xFF").unwrap_err();
    }
}
