//! The contents of rows: the facts (metadata) of a key, and the position in the log.

use super::StoreError;
use super::engine::Table;
use super::protection::parse_name;

/// The metadata of a key, which is stored separately from its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts<'a> {
    /// The database of the key.
    pub database: u32,
    /// The key.
    pub key: &'a [u8],
    /// The format of the value, defined by the caller.
    pub kind: u8,
    /// The in-memory encoding of the value, defined by the caller.
    pub encoding: u8,
    /// Size of the key and its value in memory, in bytes.
    pub memory_bytes: u64,
    /// Size of the stored value, in bytes.
    pub stored_bytes: u64,
    /// The expiry of the key, in milliseconds of Unix time.
    pub expiry: Option<u64>,
    /// The expiry of the value's first element to expire, in milliseconds of Unix time.
    pub element_expiry: Option<u64>,
}

/// The progress of an import from other persistence files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Import {
    /// No import is in progress.
    #[default]
    None,
    /// The rows contain only a part of the imported files: the import must be restarted.
    UnderWay,
    /// The rows are complete, and no later checkpoint exists. A log among the imported files may be unchanged.
    Done,
}

/// The position of a checkpoint in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// The number of the last log record whose changes the rows contain.
    pub number: u64,
    /// The number of the first log file (increment) to replay after loading the rows.
    pub increment: u64,
    /// The state of an import.
    pub import: Import,
    /// Further data of the caller, returned with the position.
    pub notes: Vec<u8>,
}

const HAS_EXPIRY: u8 = 1;
const HAS_ELEMENT_EXPIRY: u8 = 2;
const HAS_KEY: u8 = 4;

fn put_leb128(mut number: u64, out: &mut Vec<u8>) {
    while number > 0x7F {
        out.push(number as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// The unread rest of a row.
struct Rest<'r>(&'r [u8]);

impl<'r> Rest<'r> {
    fn byte(&mut self) -> Option<u8> {
        let (&byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(byte)
    }

    fn eight(&mut self) -> Option<u64> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u64::from_le_bytes(*bytes))
    }

    fn leb128(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            number |= bits.checked_shl(shift).filter(|shifted| shifted >> shift == bits)?;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }
}

impl Facts<'_> {
    /// Encodes the row of `name` into `out`.
    pub fn encode(&self, name: &[u8], out: &mut Vec<u8>) {
        let is_named = parse_name(name).is_some_and(|(_, key)| key.is_some());
        let flag = |is_set: bool, flag| if is_set { flag } else { 0 };
        let flags = flag(self.expiry.is_some(), HAS_EXPIRY)
            | flag(self.element_expiry.is_some(), HAS_ELEMENT_EXPIRY)
            | flag(!is_named, HAS_KEY);
        out.clear();
        out.extend_from_slice(&[self.kind, self.encoding, flags]);
        put_leb128(self.memory_bytes, out);
        put_leb128(self.stored_bytes, out);
        for time in [self.expiry, self.element_expiry].into_iter().flatten() {
            out.extend_from_slice(&time.to_le_bytes());
        }
        if !is_named {
            out.extend_from_slice(self.key);
        }
    }

    /// Decodes the row of `name`.
    ///
    /// # Errors
    /// Returns an error if `row` is not a valid row of this name.
    pub fn decode<'r>(name: &'r [u8], row: &'r [u8]) -> Result<Facts<'r>, StoreError> {
        let read = || {
            let (database, named) = parse_name(name)?;
            let mut rest = Rest(row);
            let (kind, encoding, flags) = (rest.byte()?, rest.byte()?, rest.byte()?);
            let (memory_bytes, stored_bytes) = (rest.leb128()?, rest.leb128()?);
            let expiry = if flags & HAS_EXPIRY > 0 { Some(rest.eight()?) } else { None };
            let element_expiry = if flags & HAS_ELEMENT_EXPIRY > 0 { Some(rest.eight()?) } else { None };
            let key = match named {
                None if flags & HAS_KEY > 0 => rest.0,
                Some(key) if flags & HAS_KEY == 0 && rest.0.is_empty() => key,
                _ => return None,
            };
            Some(Facts { database, key, kind, encoding, memory_bytes, stored_bytes, expiry, element_expiry })
        };
        read().ok_or_else(|| StoreError::damaged(Table::Keys, name))
    }
}

impl Position {
    /// Encodes the position as a row.
    pub fn encode(&self) -> Vec<u8> {
        let mut row = Vec::with_capacity(17 + self.notes.len());
        row.extend_from_slice(&self.number.to_le_bytes());
        row.extend_from_slice(&self.increment.to_le_bytes());
        row.push(self.import as u8);
        row.extend_from_slice(&self.notes);
        row
    }

    /// Decodes the row of a position; `None` if the row is not a valid position.
    pub fn decode(row: &[u8]) -> Option<Position> {
        let mut rest = Rest(row);
        Some(Position {
            number: rest.eight()?,
            increment: rest.eight()?,
            import: match rest.byte()? {
                0 => Import::None,
                1 => Import::UnderWay,
                2 => Import::Done,
                _ => return None,
            },
            notes: rest.0.to_vec(),
        })
    }
}

/// The head of a value's row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ValueHead {
    /// The whole value follows.
    Whole,
    /// The value is stored in `count` parts, `len` bytes in total.
    Parts { count: u32, len: u64 },
}

impl ValueHead {
    pub(super) fn encode(self, kind: u8, out: &mut Vec<u8>) {
        out.clear();
        match self {
            ValueHead::Whole => out.extend_from_slice(&[kind, 0]),
            ValueHead::Parts { count, len } => {
                out.extend_from_slice(&[kind, 1]);
                out.extend_from_slice(&count.to_le_bytes());
                out.extend_from_slice(&len.to_le_bytes());
            }
        }
    }

    /// Decodes the kind of the value and the head, and returns both with their length in bytes.
    pub(super) fn decode(row: &[u8]) -> Option<(u8, ValueHead, usize)> {
        match *row {
            [kind, 0, ..] => Some((kind, ValueHead::Whole, 2)),
            [kind, 1, ref rest @ ..] if rest.len() == 12 => {
                let (count, len) = rest.split_first_chunk()?;
                let len = u64::from_le_bytes(len.try_into().ok()?);
                Some((kind, ValueHead::Parts { count: u32::from_le_bytes(*count), len }, row.len()))
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn facts_are_read_back(
            database: u32, key: Vec<u8>, kind: u8, encoding: u8, memory_bytes: u64, stored_bytes: u64,
            expiry: Option<u64>, element_expiry: Option<u64>, is_named: bool,
        ) {
            let facts =
                Facts { database, key: &key, kind, encoding, memory_bytes, stored_bytes, expiry, element_expiry };
            let mut name = database.to_be_bytes().to_vec();
            name.push(u8::from(!is_named));
            name.extend_from_slice(if is_named { &key } else { b"a hash" });
            let mut row = Vec::new();
            facts.encode(&name, &mut row);
            prop_assert_eq!(Facts::decode(&name, &row).unwrap(), facts);
        }

        #[test]
        fn any_bytes_are_facts_or_an_error(name: Vec<u8>, row: Vec<u8>) {
            let _ = Facts::decode(&name, &row);
            let _ = Position::decode(&row);
            let _ = ValueHead::decode(&row);
        }

        #[test]
        fn a_position_is_read_back(number: u64, increment: u64, notes: Vec<u8>) {
            for import in [Import::None, Import::UnderWay, Import::Done] {
                let position = Position { number, increment, import, notes: notes.clone() };
                prop_assert_eq!(Position::decode(&position.encode()), Some(position));
            }
        }
    }

    #[test]
    fn headers_of_values_survive_the_round_trip() {
        let mut row = Vec::new();
        for head in [ValueHead::Whole, ValueHead::Parts { count: 3, len: 1 << 40 }] {
            head.encode(9, &mut row);
            assert_eq!(ValueHead::decode(&row), Some((9, head, row.len())));
        }
    }
}
