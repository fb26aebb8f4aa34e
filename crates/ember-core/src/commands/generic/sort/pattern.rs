//! The patterns behind BY and GET: which value belongs to an element.

use crate::keys::Keys;
use crate::types::Aggregate;
use crate::types::value::StringValue;

/// A pattern: `#`, or a key with the element in the place of its first `*`, and behind `->` a field of the hash there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern<'a> {
    /// The element itself.
    Element,
    /// Nothing: without a `*` no key is looked at.
    Nothing,
    /// A key.
    Key { prefix: &'a [u8], suffix: &'a [u8], field: Option<&'a [u8]> },
}

impl<'a> Pattern<'a> {
    pub(super) fn new(text: &'a [u8]) -> Pattern<'a> {
        if text == b"#" {
            return Pattern::Element;
        }
        let Some(star) = text.iter().position(|&byte| byte == b'*') else { return Pattern::Nothing };
        let (prefix, rest) = (&text[..star], &text[star + 1..]);
        let arrow = rest.windows(2).position(|bytes| bytes == b"->");
        match arrow.filter(|at| at + 2 < rest.len()) {
            Some(at) => Pattern::Key { prefix, suffix: &rest[..at], field: Some(&rest[at + 2..]) },
            None => Pattern::Key { prefix, suffix: rest, field: None },
        }
    }

    /// Whether it looks at keys.
    pub(super) fn names_keys(self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// The key that belongs to an element, if there is one.
    pub(super) fn key(self, element: &[u8]) -> Option<Vec<u8>> {
        match self {
            Pattern::Element | Pattern::Nothing => None,
            Pattern::Key { prefix, suffix, .. } => Some([prefix, element, suffix].concat()),
        }
    }

    /// The value that belongs to an element, if there is one.
    pub(super) fn value(self, keys: &Keys<'_, '_>, element: &[u8]) -> Option<Vec<u8>> {
        let field = match self {
            Pattern::Element => return Some(element.to_vec()),
            Pattern::Nothing => return None,
            Pattern::Key { field, .. } => field,
        };
        let entry = keys.entry_named(&self.key(element)?)?;
        let value = match (field, entry.aggregate()) {
            (None, None) => entry.string(),
            (Some(field), Some(Aggregate::Hash(hash))) => hash.get(field, keys.turn.expired_ms())?.value,
            _ => return None,
        };
        Some(bytes_of(value))
    }
}

fn bytes_of(value: StringValue<'_>) -> Vec<u8> {
    match value {
        StringValue::Int(number) => itoa::Buffer::new().format(number).as_bytes().to_vec(),
        StringValue::Inline(bytes) => bytes.to_vec(),
        StringValue::Large(large) => large.bytes().to_vec(),
    }
}
