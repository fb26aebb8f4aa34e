//! The type of a value, and strings as they are kept: what everything says that speaks of values.

use crate::memory::{LargeRef, grows_by_zeros};

/// Values of at least this many bytes live behind a shared pointer instead of inside the entry.
///
/// It equals the size from which the parser receives arguments into buffers of their own, so that such a buffer
/// becomes the value without a copy.
pub const LARGE_VALUE_MIN_BYTES: usize = 32 * 1024;

/// Declares [`ValueType`]: for each type the bits that an entry keeps and the name that `TYPE` answers.
macro_rules! value_types {
    ($($(#[$doc:meta])* $name:ident = $bits:literal, $text:literal;)*) => {
        /// The type of a value, as `TYPE` names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ValueType {
            $($(#[$doc])* $name = $bits,)*
        }

        impl ValueType {
            /// The name that `TYPE` answers.
            pub fn name(self) -> &'static str {
                match self {
                    $(ValueType::$name => $text,)*
                }
            }

            /// The type that an entry keeps as `bits`.
            #[inline]
            pub(crate) fn from_bits(bits: u8) -> ValueType {
                match bits {
                    $($bits => ValueType::$name,)*
                    _ => unreachable!("entries are written with the bits of a type"),
                }
            }
        }
    };
}

value_types! {
    /// A byte string or an integer.
    String = 0, "string";
    /// A list.
    List = 1, "list";
    /// A set.
    Set = 2, "set";
    /// A sorted set.
    SortedSet = 3, "zset";
    /// A hash.
    Hash = 4, "hash";
    /// A stream.
    Stream = 5, "stream";
    /// A vector set.
    VectorSet = 6, "vectorset";
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

    /// Whether the value grows without a write to the zeros that it grows by.
    pub(crate) fn grows_by_zeros(self) -> bool {
        matches!(self, StringValue::Large(large) if grows_by_zeros(large.capacity()))
    }
}
