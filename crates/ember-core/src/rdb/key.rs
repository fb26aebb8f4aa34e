//! Keys in files: the facts about each key, its name and its value.

use std::io::{self, Write};

use super::format::{LoadError, Reader, Writer};
use super::kind::Kind;
use super::read::read_value;
use super::rows::push_row;
use super::target::Features;
use super::write::{kind_for, write_value_as};
use crate::entries::entry::ValueRef;
use crate::entries::external::Facts;
use crate::rebuild::write_commands;
use crate::types::limits::EncodingLimits;

/// The byte before the seconds since a key's last use.
pub const IDLE: u8 = 248;
/// The byte before a key's counter of uses.
pub const FREQUENCY: u8 = 249;
/// The byte before a key's expiry.
pub const EXPIRY_MS: u8 = 252;

/// The maximum length in bytes of strings that are packed in files, because packing needs a copy as long as its result.
pub const PACKED_MAX_BYTES: usize = 4 * 1024 * 1024;

/// The facts in a file about a key, without its name and value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyFacts {
    /// The number of the key's database.
    pub database: usize,
    /// The key's expiry, Unix time in ms.
    pub expire_at_ms: Option<i64>,
    /// Seconds since the key's last use.
    pub idle_s: Option<u64>,
    /// The key's logarithmic counter of accesses, as in the LFU policies.
    pub frequency: Option<u8>,
    /// The facts in its entry while the value is cold, for [`KeyForm::Rows`]; `None` for a value that must be resident.
    pub cold_facts: Option<Facts>,
}

/// Writes a key for readers of `version` of the format, with its facts except for its database. Returns the kind of its
/// value. O(the bytes of its value).
///
/// # Errors
/// Returns the errors of the sink.
pub fn write_key<W: Write>(
    writer: &mut Writer<W>,
    facts: &KeyFacts,
    name: &[u8],
    value: ValueRef<'_>,
    version: u16,
) -> io::Result<Kind> {
    write_facts(writer, facts)?;
    let kind = kind_for(value, version);
    writer.byte(kind.file_byte())?;
    writer.string(name)?;
    write_value_as(writer, value, kind)?;
    Ok(kind)
}

fn write_facts<W: Write>(writer: &mut Writer<W>, facts: &KeyFacts) -> io::Result<()> {
    if let Some(at_ms) = facts.expire_at_ms {
        writer.byte(EXPIRY_MS)?;
        writer.time_ms(at_ms)?;
    }
    if let Some(idle_s) = facts.idle_s {
        writer.byte(IDLE)?;
        writer.length(idle_s)?;
    }
    if let Some(frequency) = facts.frequency {
        writer.raw(&[FREQUENCY, frequency])?;
    }
    Ok(())
}

/// The form in which keys are written to a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyForm {
    /// RDB.
    Rdb {
        /// The version of the format that readers must understand.
        version: u16,
        /// Whether strings are packed if LZF shortens them.
        is_packed: bool,
    },
    /// The commands that create the keys.
    Commands,
    /// Rows of a store ([`super::rows()`]).
    Rows,
}

impl KeyForm {
    /// Returns the version of RDB; 0 for commands and rows.
    fn version(self) -> u16 {
        match self {
            KeyForm::Rdb { version, .. } => version,
            KeyForm::Commands | KeyForm::Rows => 0,
        }
    }

    /// Returns the same form without packing.
    pub(crate) fn unpacked(self) -> KeyForm {
        match self {
            KeyForm::Rdb { version, .. } => KeyForm::Rdb { version, is_packed: false },
            KeyForm::Commands | KeyForm::Rows => self,
        }
    }
}

/// Keys of one database as the bytes of a file. They can be encoded outside of the thread that writes the file.
#[derive(Debug)]
pub struct Encoded {
    writer: Writer<Vec<u8>>,
    form: KeyForm,
    needed: u16,
    features: Features,
    keys: u64,
}

impl Encoded {
    /// Returns an empty collection in this form.
    pub fn new(form: KeyForm) -> Encoded {
        Encoded::with_capacity(form, 0)
    }

    /// Returns an empty collection with capacity for this many bytes.
    pub(crate) fn with_capacity(form: KeyForm, bytes: usize) -> Encoded {
        let packed_max_bytes = match form {
            KeyForm::Rdb { is_packed: true, .. } => PACKED_MAX_BYTES,
            KeyForm::Rdb { is_packed: false, .. } | KeyForm::Commands | KeyForm::Rows => 0,
        };
        let writer = Writer::new(Vec::with_capacity(bytes)).with_packed_max_bytes(packed_max_bytes);
        Encoded { writer, form, needed: form.version(), features: Features::NONE, keys: 0 }
    }

    /// Adds a key. `facts.database` is not written: the writer of the file selects the database. O(the bytes of its
    /// value).
    pub fn push<'v>(&mut self, facts: &KeyFacts, name: &[u8], value: impl Into<ValueRef<'v>>) {
        const TAKES_ALL: &str = "a vector takes all bytes";
        let value = value.into();
        match self.form {
            KeyForm::Rdb { version, .. } => {
                self.features = self.features.and(Features::of(value));
                let kind = write_key(&mut self.writer, facts, name, value, version);
                self.needed = self.needed.max(kind.expect(TAKES_ALL).version());
            }
            KeyForm::Commands => {
                let written = write_commands(self.writer.sink_mut(), name, value, facts.expire_at_ms);
                written.expect(TAKES_ALL);
            }
            KeyForm::Rows => push_row(&mut self.writer, facts, name, value),
        }
        self.keys += 1;
    }

    /// Adds a key whose value is already encoded as `kind`. O(the bytes of its value).
    ///
    /// # Errors
    /// Returns an error if the value must be decoded for this form and is invalid.
    pub fn push_encoded(
        &mut self,
        facts: &KeyFacts,
        name: &[u8],
        (kind, value): (Kind, &[u8]),
    ) -> Result<(), LoadError> {
        const TAKES_ALL: &str = "a vector takes all bytes";
        match self.form {
            KeyForm::Rdb { version, .. } if kind.is_written_for(version) => {
                write_facts(&mut self.writer, facts)
                    .and_then(|()| self.writer.byte(kind.file_byte()))
                    .and_then(|()| self.writer.string(name))
                    .and_then(|()| self.writer.raw(value))
                    .expect(TAKES_ALL);
                self.needed = self.needed.max(kind.version());
                self.features = self.features.and(Features::of_encoded(kind, value));
                self.keys += 1;
            }
            _ => {
                let read = read_value(&mut Reader::new(value), kind, &EncodingLimits::DEFAULT)?;
                self.push(facts, name, read.as_value());
            }
        }
        Ok(())
    }

    /// Returns the bytes of all keys.
    pub fn bytes(&self) -> &[u8] {
        self.writer.sink()
    }

    /// Returns the number of keys.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the form of the keys.
    pub(crate) fn form(&self) -> KeyForm {
        self.form
    }

    /// Returns the capacity in bytes.
    pub(crate) fn capacity_bytes(&self) -> usize {
        self.writer.sink().capacity()
    }

    /// Releases unused capacity if it is more than an eighth of the bytes in use.
    pub(crate) fn release_capacity(&mut self) {
        let sink = self.writer.sink_mut();
        if sink.capacity() - sink.len() > sink.len() / 8 {
            sink.shrink_to_fit();
        }
    }

    /// Returns the lowest version of RDB that supports the kinds of all values; meaningful only in RDB form.
    pub fn version_needed(&self) -> u16 {
        self.needed
    }

    /// Returns the features of the values that only some readers support; meaningful only in RDB form.
    pub fn features(&self) -> Features {
        self.features
    }

    /// Removes all keys without releasing capacity.
    pub fn clear(&mut self) {
        self.writer.sink_mut().clear();
        (self.needed, self.features, self.keys) = (self.form.version(), Features::NONE, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kind::VALKEY_VERSION;
    use super::super::{Value, kind_of};
    use super::*;

    /// Returns a hash with a field that expires.
    fn expiring_hash() -> Value {
        let value = [&b"\x02\x01f\x01v"[..], &4_000_000_000_000_i64.to_le_bytes(), b"\x01g\x01w", &[0xFF; 8]];
        read_value(&mut Reader::new(&*value.concat()), Kind::HashOfValkey, &EncodingLimits::DEFAULT)
            .expect("this is such a hash")
    }

    #[test]
    fn a_value_that_was_encoded_before_is_written_in_the_form_of_the_reader() {
        let value = expiring_hash();
        let kind = kind_of(value.as_value());
        assert_eq!(kind, Kind::HashTriplets);
        let mut stored = Writer::new(Vec::new());
        write_value_as(&mut stored, value.as_value(), kind).expect("a vector takes all bytes");
        for version in [12, VALKEY_VERSION] {
            let form = KeyForm::Rdb { version, is_packed: false };
            let (mut copied, mut built) = (Encoded::new(form), Encoded::new(form));
            let facts = KeyFacts::default();
            copied.push_encoded(&facts, b"h", (kind, stored.sink())).expect("it is a value");
            built.push(&facts, b"h", value.as_value());
            assert_eq!(copied.bytes(), built.bytes());
            assert_eq!(copied.version_needed(), version);
            assert_eq!(copied.bytes()[0], if version == 12 { 25 } else { 22 });
        }
    }
}
