//! The records of states in the log.
//!
//! ```text
//! head    database name | kind of the value | name of the key                   (RecordHead)
//! value   length of the encoding's name, 1 byte | name | expiry, 8 bytes | value
//! ```
//!
//! The expiry is Unix time in ms, little-endian; [`NEVER`] means none.

use ember_storage::segments::{Record, RecordHead};
use emberkv_core::capture::{Image, State};

use super::index::Key;

/// The expiry of a key that does not expire.
const NEVER: i64 = i64::MAX;

/// Returns the head and the value of the record of an image.
pub(super) fn encode<'k>(key: &'k Key, image: &Image) -> (RecordHead<'k>, Vec<u8>) {
    let database = u32::try_from(key.0).expect("there are fewer databases than 2^32");
    let name = image.encoding_name.as_bytes();
    let mut value = Vec::with_capacity(image.bytes.len() + name.len() + 9);
    value.push(u8::try_from(name.len()).expect("the names of encodings are short"));
    value.extend_from_slice(name);
    value.extend_from_slice(&image.expire_at_ms.unwrap_or(NEVER).to_le_bytes());
    value.extend_from_slice(&image.bytes);
    (RecordHead { database, kind: image.kind, key: &key.1 }, value)
}

/// Returns the state in a record of a key; `None` if the record is not one of that key.
pub(super) fn decode(key: &[u8], record: &Record<'_>) -> Option<State> {
    if record.head.key != key {
        return None;
    }
    let (&length, rest) = record.value.split_first()?;
    let (name, rest) = rest.split_at_checked(length.into())?;
    let (expiry, bytes) = rest.split_first_chunk()?;
    let expiry = i64::from_le_bytes(*expiry);
    Some(State::Present(Image {
        kind: record.head.kind,
        encoding_name: std::str::from_utf8(name).ok()?.into(),
        expire_at_ms: (expiry != NEVER).then_some(expiry),
        bytes: bytes.into(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_contains_the_state() {
        for expire_at_ms in [None, Some(5)] {
            let image =
                Image { kind: 3, encoding_name: "embstr".into(), expire_at_ms, bytes: (*b"value").into() };
            let key = (2, Box::from(&b"k"[..]));
            let (head, value) = encode(&key, &image);
            let record = Record { head, value: &value };
            assert_eq!(decode(b"k", &record), Some(State::Present(image)));
            assert_eq!(decode(b"other", &record), None);
            for end in 0..15 {
                assert_eq!(decode(b"k", &Record { head, value: &value[..end] }), None, "{end} bytes");
            }
        }
    }
}
