//! Keys as rows of a store: the facts about a key, its name and its value.
//!
//! ```text
//! row   facts while the value is cold, 2 (all ones: it must be resident) | kind, 1 | whether it expires, 1
//!       | expiry, 8 | length of the name, 8 | length of the value, 8 | name | value                    little-endian
//! ```
//!
//! This form is not used outside of the process.

use super::format::Writer;
use super::key::KeyFacts;
use super::kind::Kind;
use super::write::{kind_of, write_value};
use crate::entries::entry::ValueRef;
use crate::entries::external::Facts;

const HEAD_BYTES: usize = 28;

/// The stored facts of a value that must be resident; a cold value never has these.
const RESIDENT: u16 = u16::MAX;

/// A key and its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Row<'r> {
    /// The facts in its entry while the value is cold; `None` for a value that must be resident.
    pub cold_facts: Option<Facts>,
    /// The kind as which the value is encoded.
    pub kind: Kind,
    /// The key's expiry, Unix time in ms.
    pub expire_at_ms: Option<i64>,
    /// The key.
    pub name: &'r [u8],
    /// The value.
    pub value: &'r [u8],
}

/// Adds a row. O(the bytes of the value).
pub(super) fn push_row(writer: &mut Writer<Vec<u8>>, facts: &KeyFacts, name: &[u8], value: ValueRef<'_>) {
    let kind = kind_of(value);
    let bytes = writer.sink_mut();
    let start = bytes.len();
    bytes.extend_from_slice(&facts.cold_facts.map_or(RESIDENT, Facts::bits).to_le_bytes());
    bytes.extend_from_slice(&[kind as u8, u8::from(facts.expire_at_ms.is_some())]);
    bytes.extend_from_slice(&facts.expire_at_ms.unwrap_or(0).to_le_bytes());
    bytes.extend_from_slice(&(name.len() as u64).to_le_bytes());
    bytes.extend_from_slice(&[0; 8]);
    bytes.extend_from_slice(name);
    let value_start = bytes.len();
    write_value(writer, value).expect("a vector takes all bytes");
    let bytes = writer.sink_mut();
    let value_len = (bytes.len() - value_start) as u64;
    bytes[start + HEAD_BYTES - 8..start + HEAD_BYTES].copy_from_slice(&value_len.to_le_bytes());
}

/// Returns the rows in the bytes of an [`super::Encoded`] of the form [`super::KeyForm::Rows`].
pub fn rows(bytes: &[u8]) -> impl Iterator<Item = Row<'_>> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (row, after) = split_row(rest)?;
        rest = after;
        Some(row)
    })
}

fn split_row(bytes: &[u8]) -> Option<(Row<'_>, &[u8])> {
    let (cold_facts, rest) = bytes.split_first_chunk()?;
    let ([kind, expires], rest) = rest.split_first_chunk()?;
    let (expiry, rest) = rest.split_first_chunk()?;
    let (name_len, rest) = rest.split_first_chunk()?;
    let (value_len, rest) = rest.split_first_chunk()?;
    let (name, rest) = rest.split_at_checked(u64::from_le_bytes(*name_len) as usize)?;
    let (value, rest) = rest.split_at_checked(u64::from_le_bytes(*value_len) as usize)?;
    let cold_facts = u16::from_le_bytes(*cold_facts);
    let row = Row {
        cold_facts: (cold_facts != RESIDENT).then(|| Facts::from_bits(cold_facts)),
        kind: Kind::from_byte(*kind)?,
        expire_at_ms: (*expires != 0).then(|| i64::from_le_bytes(*expiry)),
        name,
        value,
    };
    Some((row, rest))
}

#[cfg(test)]
mod tests {
    use super::super::{Encoded, KeyForm};
    use super::*;

    #[test]
    fn rows_are_read_as_they_were_pushed() {
        let mut encoded = Encoded::new(KeyForm::Rows);
        let facts = [
            KeyFacts { cold_facts: Facts::new("raw", 88), expire_at_ms: Some(-5), ..KeyFacts::default() },
            KeyFacts::default(),
        ];
        for (facts, name) in facts.iter().zip(["a name", ""]) {
            encoded.push(facts, name.as_bytes(), ValueRef::String(crate::types::value::StringValue::Int(7)));
        }
        let read: Vec<Row<'_>> = rows(encoded.bytes()).collect();
        assert_eq!((read.len(), encoded.keys()), (2, 2));
        for ((row, facts), name) in read.iter().zip(facts).zip(["a name", ""]) {
            assert_eq!((row.cold_facts, row.expire_at_ms), (facts.cold_facts, facts.expire_at_ms));
            assert_eq!((row.kind, row.name), (Kind::String, name.as_bytes()));
            assert!(!row.value.is_empty());
        }
        for len in 0..encoded.bytes().len() {
            assert!(rows(&encoded.bytes()[..len]).count() < 2);
        }
    }
}
