//! Values of entries: their types and encodings, and the forms in which they are read and stored.

use std::sync::Arc;

use super::EntryRef;
use crate::memory::LargeRef;
use crate::types::Aggregate;

/// Values of at least this many bytes live behind a shared pointer instead of inside the entry.
///
/// It equals the size from which the parser receives arguments into buffers of their own, so that such a buffer
/// becomes the value without a copy.
pub const LARGE_VALUE_MIN_BYTES: usize = 32 * 1024;

/// Strings up to this length report the encoding `embstr`, as in Redis.
const EMBSTR_MAX_BYTES: usize = 44;

/// The type of a value, as `TYPE` names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ValueType {
    /// A byte string or an integer.
    String = 0,
    /// A list.
    List = 1,
    /// A set.
    Set = 2,
    /// A sorted set.
    SortedSet = 3,
    /// A hash.
    Hash = 4,
    /// A stream.
    Stream = 5,
}

impl ValueType {
    /// The name that `TYPE` answers.
    pub fn name(self) -> &'static str {
        match self {
            ValueType::String => "string",
            ValueType::List => "list",
            ValueType::Set => "set",
            ValueType::SortedSet => "zset",
            ValueType::Hash => "hash",
            ValueType::Stream => "stream",
        }
    }

    pub(super) fn from_bits(bits: u8) -> ValueType {
        match bits {
            0 => ValueType::String,
            1 => ValueType::List,
            2 => ValueType::Set,
            3 => ValueType::SortedSet,
            4 => ValueType::Hash,
            _ => ValueType::Stream,
        }
    }
}

/// How a value is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Encoding {
    Int = 0,
    Embstr = 1,
    Raw = 2,
    Large = 3,
    Aggregate = 4,
    Shared = 5,
}

impl Encoding {
    pub(super) fn from_bits(bits: u8) -> Encoding {
        match bits {
            0 => Encoding::Int,
            1 => Encoding::Embstr,
            2 => Encoding::Raw,
            3 => Encoding::Large,
            4 => Encoding::Aggregate,
            _ => Encoding::Shared,
        }
    }
}

/// A string value as it is kept.
#[derive(Clone, Copy, Debug)]
pub enum StringValue<'a> {
    /// An integer, kept as such.
    Int(i64),
    /// Bytes inside the entry.
    Inline(&'a [u8]),
    /// Bytes behind a shared pointer.
    Large(LargeRef<'a>),
}

impl<'a> StringValue<'a> {
    /// The bytes of the value; `digits` is room for those of an integer.
    #[inline]
    pub fn bytes<'b>(self, digits: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            StringValue::Int(number) => digits.format(number).as_bytes(),
            StringValue::Inline(bytes) => bytes,
            StringValue::Large(large) => large.bytes(),
        }
    }
}

/// A value as it is kept.
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

/// A value that its entry and somebody else own together: it stays as it is, whatever becomes of the entry.
#[derive(Clone, Debug)]
pub enum SharedValue {
    /// A large string.
    String(Arc<Vec<u8>>),
    /// A value with elements.
    Aggregate(Arc<Aggregate>),
}

impl SharedValue {
    /// The value, to be read.
    pub fn as_value(&self) -> ValueRef<'_> {
        match self {
            SharedValue::String(bytes) => ValueRef::String(StringValue::Inline(bytes)),
            SharedValue::Aggregate(aggregate) => ValueRef::Aggregate(aggregate),
        }
    }
}

/// A value about to be stored.
#[derive(Clone, Debug)]
pub enum NewValue<'a> {
    /// An integer.
    Int(i64),
    /// Bytes as a client sent them: `embstr` when short.
    Bytes(&'a [u8]),
    /// Bytes that were edited in place once: always `raw`.
    Edited(&'a [u8]),
    /// Bytes already in a buffer of their own.
    Large(Arc<Vec<u8>>),
    /// A value with elements.
    Aggregate(Box<Aggregate>),
}

impl<'a> NewValue<'a> {
    /// The value for `bytes` in the form that takes least memory: integers as integers, long values apart.
    pub fn from_bytes(bytes: &'a [u8]) -> NewValue<'a> {
        match ember_protocol::number::parse_i64(bytes) {
            Some(number) => NewValue::Int(number),
            None => NewValue::from_opaque(bytes),
        }
    }

    /// As [`NewValue::from_bytes`] without the attempt to read an integer.
    pub fn from_opaque(bytes: &'a [u8]) -> NewValue<'a> {
        if bytes.len() >= LARGE_VALUE_MIN_BYTES {
            NewValue::Large(Arc::new(bytes.to_vec()))
        } else {
            NewValue::Bytes(bytes)
        }
    }

    pub(super) fn encoding(&self) -> Encoding {
        match self {
            NewValue::Int(_) => Encoding::Int,
            NewValue::Bytes(bytes) if bytes.len() <= EMBSTR_MAX_BYTES => Encoding::Embstr,
            NewValue::Bytes(_) | NewValue::Edited(_) => Encoding::Raw,
            NewValue::Large(_) => Encoding::Large,
            NewValue::Aggregate(_) => Encoding::Aggregate,
        }
    }

    pub(super) fn value_type(&self) -> ValueType {
        match self {
            NewValue::Aggregate(aggregate) => aggregate.value_type(),
            _ => ValueType::String,
        }
    }

    pub(super) fn stored_bytes(&self) -> usize {
        match self {
            NewValue::Int(_) | NewValue::Large(_) | NewValue::Aggregate(_) => 8,
            NewValue::Bytes(bytes) | NewValue::Edited(bytes) => bytes.len(),
        }
    }
}
