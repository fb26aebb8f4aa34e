//! A field of a hash, in its forms for reading and for setting.

use std::sync::Arc;

use crate::types::value::StringValue;

/// A field of a hash.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The name of the field.
    pub name: StringValue<'a>,
    /// The value of the field.
    pub value: StringValue<'a>,
    /// The expiry of the field, Unix time in ms; `None` if it never expires.
    pub expire_at_ms: Option<i64>,
}

impl Field<'_> {
    /// Returns whether the field has expired at `now_ms`.
    #[inline]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }
}

/// The new expiry of a field that is set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewExpiry {
    /// No expiry.
    None,
    /// The previous expiry of the field.
    Kept,
    /// This time, Unix time in ms, which must be in the future.
    At(i64),
}

impl NewExpiry {
    /// Returns the new expiry of a field whose expiry was `old`.
    pub(super) fn instead_of(self, old: Option<i64>) -> Option<i64> {
        match self {
            NewExpiry::None => None,
            NewExpiry::Kept => old,
            NewExpiry::At(at_ms) => Some(at_ms),
        }
    }
}

/// A field about to be set.
#[derive(Clone, Copy, Debug)]
pub struct NewField<'a> {
    /// The name of the field to set.
    pub name: &'a [u8],
    /// The value to set.
    pub value: &'a [u8],
    /// The value's own buffer, if it has one: a large value shares it instead of being copied.
    pub shared: Option<&'a Arc<Vec<u8>>>,
    /// The new expiry of the field.
    pub expiry: NewExpiry,
}
