//! The type of a value, and strings in their stored form.

use crate::memory::{LargeRef, grows_by_zeros};

/// The size in bytes from which values are stored in a shared allocation instead of inside the entry.
///
/// From the same size on, the parser receives arguments into buffers of their own, so that such a buffer becomes the
/// value without a copy.
pub const LARGE_VALUE_MIN_BYTES: usize = 32 * 1024;

/// Declares [`ValueType`]: for each type, its bits in an entry and its name in the reply of `TYPE`.
macro_rules! value_types {
    ($($(#[$doc:meta])* $name:ident = $bits:literal, $text:literal;)*) => {
        /// The type of a value, as `TYPE` names it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum ValueType {
            $($(#[$doc])* $name = $bits,)*
        }

        impl ValueType {
            /// Returns the type's name in the reply of `TYPE`.
            pub fn name(self) -> &'static str {
                match self {
                    $(ValueType::$name => $text,)*
                }
            }

            /// Returns the type that an entry stores as `bits`.
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
    /// A JSON document.
    Json = 7, "ReJSON-RL";
    /// A Bloom filter.
    Bloom = 8, "MBbloom--";
    /// A cuckoo filter.
    Cuckoo = 9, "MBbloomCF";
    /// A count-min sketch.
    CountMin = 10, "CMSk-TYPE";
    /// A top-k sketch.
    TopK = 11, "TopK-TYPE";
    /// A t-digest.
    TDigest = 12, "TDIS-TYPE";
}

/// A string value in its stored form.
#[derive(Clone, Copy, Debug)]
pub enum StringValue<'a> {
    /// An integer, stored as such.
    Int(i64),
    /// Bytes inside the entry.
    Inline(&'a [u8]),
    /// Bytes in a shared allocation.
    Large(LargeRef<'a>),
}

impl<'a> StringValue<'a> {
    /// Returns the bytes of the value; `digits` is the buffer for those of an integer.
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

    /// Returns whether the value grows without writing the added zeros.
    pub(crate) fn grows_by_zeros(self) -> bool {
        matches!(self, StringValue::Large(large) if grows_by_zeros(large.capacity()))
    }
}
