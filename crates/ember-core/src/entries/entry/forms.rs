//! The forms in which an entry's value is stored, read and shared.

use std::sync::Arc;

use super::EntryRef;
use crate::entries::external::External;
use crate::types::aggregate::Aggregate;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue, ValueType};

/// The maximum length in bytes of strings that report the encoding `embstr`, as in Redis.
pub(super) const EMBSTR_MAX_BYTES: usize = 44;

/// The layout of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Encoding {
    Int = 0,
    Embstr = 1,
    Raw = 2,
    Large = 3,
    Aggregate = 4,
    Shared = 5,
    Apart = 6,
    External = 7,
}

impl Encoding {
    pub(super) fn from_bits(bits: u8) -> Encoding {
        match bits {
            0 => Encoding::Int,
            1 => Encoding::Embstr,
            2 => Encoding::Raw,
            3 => Encoding::Large,
            4 => Encoding::Aggregate,
            5 => Encoding::Shared,
            6 => Encoding::Apart,
            _ => Encoding::External,
        }
    }
}

/// A value in its stored form.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// A string.
    String(StringValue<'a>),
    /// A value with elements.
    Aggregate(&'a Aggregate),
}

impl<'a> From<EntryRef<'a>> for ValueRef<'a> {
    #[inline]
    fn from(entry: EntryRef<'a>) -> ValueRef<'a> {
        match entry.aggregate() {
            Some(aggregate) => ValueRef::Aggregate(aggregate),
            None => ValueRef::String(entry.string()),
        }
    }
}

impl EntryRef<'_> {
    /// Returns an equal value for another entry: large strings are shared, other values are copied. The copy of a short
    /// string is in `copy`.
    pub fn to_value(self, copy: &mut Vec<u8>) -> NewValue<'_> {
        if let Some(aggregate) = self.aggregate() {
            return NewValue::Aggregate(Box::new(aggregate.clone()));
        }
        if let Some(external) = self.duplicate_external() {
            return NewValue::External(external);
        }
        match self.string() {
            StringValue::Int(number) => NewValue::Int(number),
            StringValue::Large(large) => NewValue::Large(large.share()),
            StringValue::Inline(bytes) => {
                copy.clear();
                copy.extend_from_slice(bytes);
                if self.encoding_name() == "raw" { NewValue::Edited(copy) } else { NewValue::Bytes(copy) }
            }
        }
    }
}

/// A value that an entry shares with another owner: changes of the entry do not change it.
#[derive(Clone, Debug)]
pub enum SharedValue {
    /// A large string.
    String(Arc<Vec<u8>>),
    /// A value with elements.
    Aggregate(Arc<Aggregate>),
}

impl SharedValue {
    /// Returns the value for reading.
    pub fn as_value(&self) -> ValueRef<'_> {
        match self {
            SharedValue::String(bytes) => ValueRef::String(StringValue::Inline(bytes)),
            SharedValue::Aggregate(aggregate) => ValueRef::Aggregate(aggregate),
        }
    }
}

/// A value to be stored.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    /// An integer.
    Int(i64),
    /// Bytes as a client sent them: `embstr` when short.
    Bytes(&'a [u8]),
    /// Bytes that were once edited in place: always `raw`.
    Edited(&'a [u8]),
    /// Bytes in a buffer of their own, which becomes the value.
    Large(Arc<Vec<u8>>),
    /// A value with elements.
    Aggregate(Box<Aggregate>),
    /// A cold value.
    External(External),
}

impl<'a> NewValue<'a> {
    /// Returns the value for `bytes` in the form that takes the least memory: integers as integers, long values behind
    /// a shared pointer.
    pub fn from_bytes(bytes: &'a [u8]) -> NewValue<'a> {
        match ember_protocol::number::parse_i64(bytes) {
            Some(number) => NewValue::Int(number),
            None => NewValue::from_opaque(bytes),
        }
    }

    /// Like [`NewValue::from_bytes`], without trying to parse an integer.
    pub fn from_opaque(bytes: &'a [u8]) -> NewValue<'a> {
        if bytes.len() >= LARGE_VALUE_MIN_BYTES {
            NewValue::Large(Arc::new(bytes.to_vec()))
        } else {
            NewValue::Bytes(bytes)
        }
    }

    /// Returns the layout of the value in an entry; the bytes of a string may be stored apart instead.
    pub(super) fn encoding(&self) -> Encoding {
        match self {
            NewValue::Int(_) => Encoding::Int,
            NewValue::Bytes(bytes) if bytes.len() <= EMBSTR_MAX_BYTES => Encoding::Embstr,
            NewValue::Bytes(_) | NewValue::Edited(_) => Encoding::Raw,
            NewValue::Large(_) => Encoding::Large,
            NewValue::Aggregate(_) => Encoding::Aggregate,
            NewValue::External(_) => Encoding::External,
        }
    }

    pub(super) fn value_type(&self) -> ValueType {
        match self {
            NewValue::Aggregate(aggregate) => aggregate.value_type(),
            NewValue::External(external) => external.value_type,
            NewValue::Int(_) | NewValue::Bytes(_) | NewValue::Edited(_) | NewValue::Large(_) => {
                ValueType::String
            }
        }
    }
}
