//! The patterns of BY and GET, which determine the value that is read for an element.

use crate::keys::Keys;
use crate::types::Aggregate;
use crate::types::value::StringValue;

/// A pattern: `#`, or the name of a key in which the element replaces the first `*`; if the key holds a hash, `->` and
/// the name of a field follow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Pattern<'a> {
    /// The pattern means the element itself.
    Element,
    /// The pattern finds no value: without a `*`, no key is read.
    Nothing,
    /// The pattern means the string at a key, or a field of the hash at a key.
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

    /// Returns whether the pattern refers to keys.
    pub(super) fn names_keys(self) -> bool {
        matches!(self, Pattern::Key { .. })
    }

    /// Returns the key that the pattern forms from an element, if the pattern refers to keys.
    pub(super) fn key(self, element: &[u8]) -> Option<Vec<u8>> {
        let mut key = Vec::new();
        self.write_key(element, &mut key).then_some(key)
    }

    /// Writes the key that the pattern forms from an element to `key`. Returns false if the pattern does not refer to
    /// keys.
    fn write_key(self, element: &[u8], key: &mut Vec<u8>) -> bool {
        let Pattern::Key { prefix, suffix, .. } = self else { return false };
        key.clear();
        for part in [prefix, element, suffix] {
            key.extend_from_slice(part);
        }
        true
    }

    /// Calls `see` with the value that the pattern finds for an element, if any. `key` is a buffer for the name of the
    /// key.
    pub(super) fn with_value<R>(
        self,
        keys: &Keys<'_, '_>,
        element: &[u8],
        key: &mut Vec<u8>,
        see: impl FnOnce(Option<StringValue<'_>>) -> R,
    ) -> R {
        let Pattern::Key { field, .. } = self else {
            return see(matches!(self, Pattern::Element).then_some(StringValue::Inline(element)));
        };
        self.write_key(element, key);
        let entry = keys.entry_named(key);
        see(entry.and_then(|entry| match (field, entry.aggregate()) {
            (None, None) => Some(entry.string()),
            (Some(field), Some(Aggregate::Hash(hash))) => {
                hash.get(field, keys.turn.expired_ms()).map(|field| field.value)
            }
            _ => None,
        }))
    }
}

/// Returns a copy of the bytes of a value.
pub(super) fn bytes_of(value: StringValue<'_>) -> Vec<u8> {
    value.bytes(&mut itoa::Buffer::new()).to_vec()
}
