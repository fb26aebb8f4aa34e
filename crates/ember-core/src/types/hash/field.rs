//! A field of a hash, as it is read and as it is set.

use std::sync::Arc;

use crate::types::value::StringValue;

/// A field of a hash.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    /// The name.
    pub name: StringValue<'a>,
    /// The value.
    pub value: StringValue<'a>,
    /// When it expires, Unix time in ms.
    pub expire_at_ms: Option<i64>,
}

impl Field<'_> {
    /// Whether its time has come at `now_ms`.
    #[inline]
    pub fn is_expired(&self, now_ms: i64) -> bool {
        self.expire_at_ms.is_some_and(|at_ms| at_ms <= now_ms)
    }
}

/// What a set field's expiry is to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NewExpiry {
    /// None.
    None,
    /// That which it had.
    Kept,
    /// This Unix time in ms, yet to come.
    At(i64),
}

impl NewExpiry {
    /// The expiry of a field that had this one before.
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
    /// The name.
    pub name: &'a [u8],
    /// The value.
    pub value: &'a [u8],
    /// The buffer that has the value, if it has one of its own: kept instead of copied, if it is large.
    pub shared: Option<&'a Arc<Vec<u8>>>,
    /// The expiry.
    pub expiry: NewExpiry,
}
