//! A string value as the bytes a client sees: typed look-up, bytes to read, bytes to edit.

use std::sync::Arc;

use ember_protocol::{Args, Reply};

use super::options::Expiry;
use crate::effects::events::Event;
use crate::entries::entry::{EntryRef, NewValue};
use crate::error::CommandError;
use crate::keys::Key;
use crate::turn::Turn;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue};

/// Bytes that are copied to new pages of memory in one step of a call, about.
pub(super) const BYTES_PER_STEP: usize = 128;

/// A string was stored.
pub(crate) const SET: Event = Event::string("set");

/// The string value of an entry, if there is one.
///
/// # Errors
/// `WrongType` if the entry holds another type.
#[inline]
pub(crate) fn string(entry: Option<EntryRef<'_>>) -> Result<Option<StringValue<'_>>, CommandError> {
    let Some(entry) = entry else { return Ok(None) };
    match entry.aggregate() {
        None => Ok(Some(entry.string())),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Whether an entry is there and holds the string `bytes`.
///
/// # Errors
/// `WrongType` if the entry holds another type.
pub(crate) fn equals(entry: Option<EntryRef<'_>>, expected: &[u8]) -> Result<bool, CommandError> {
    Ok(string(entry)?.is_some_and(|value| value.bytes(&mut itoa::Buffer::new()) == expected))
}

/// The bytes of a value that may be missing, which is as good as empty.
#[inline]
pub(crate) fn bytes_or_empty<'a>(value: Option<StringValue<'a>>, digits: &'a mut itoa::Buffer) -> &'a [u8] {
    value.map_or(b"", |value| value.bytes(digits))
}

/// The number of bytes of a value that may be missing.
#[inline]
pub(crate) fn len(value: Option<StringValue<'_>>) -> usize {
    bytes_or_empty(value, &mut itoa::Buffer::new()).len()
}

/// Writes a value as a bulk string, or null. A large value is shared with the reply, not copied.
#[inline]
pub(crate) fn reply(reply: &mut Reply, value: Option<StringValue<'_>>) {
    match value {
        None => reply.null(),
        Some(StringValue::Inline(bytes)) => reply.bulk(bytes),
        Some(StringValue::Int(number)) => reply.bulk_integer(number),
        Some(StringValue::Large(large)) => reply.bulk_shared(&large.share()),
    }
}

/// The value in argument `arg` in the form to store.
#[inline]
pub(crate) fn of_argument(args: Args<'_>, arg: usize) -> NewValue<'_> {
    match args.shared(arg) {
        Some(large) => NewValue::Large(Arc::clone(large)),
        None => NewValue::from_bytes(args.at(arg)),
    }
}

/// Stores a value and an expiry and publishes both. An expiry that has passed removes the key, which is published too.
#[inline]
pub(crate) fn store(key: &mut Key<'_>, value: NewValue<'_>, expire_at_ms: Option<i64>) {
    key.set(value, expire_at_ms);
    key.notify(SET);
    if expire_at_ms.is_some() {
        key.notify(Event::EXPIRE);
        if !key.exists() {
            key.notify(Event::EXPIRED);
        }
    }
}

/// As [`store`]; a call that keeps the expiry is published as the value alone.
pub(super) fn store_as(key: &mut Key<'_>, value: NewValue<'_>, expiry: Expiry, expire_at_ms: Option<i64>) {
    if let Expiry::Keep = expiry {
        key.set_value(value);
        key.notify(SET);
    } else {
        store(key, value, expire_at_ms);
    }
}

/// Stores `bytes`, the product of an edit, and keeps the key's expiry as [`Key::set_value`] does.
pub(crate) fn set_raw(key: &mut Key<'_>, bytes: Vec<u8>, expire_at_ms: Option<i64>) {
    if bytes.len() >= LARGE_VALUE_MIN_BYTES {
        key.set(NewValue::Large(Arc::new(bytes)), expire_at_ms);
    } else {
        key.set(NewValue::Edited(&bytes), expire_at_ms);
    }
}

/// Lets `edit` change the bytes of the value, at least `len_min` of them (zeros are appended). A missing key is created,
/// an expiry kept. Amortised O(bytes added) beyond what `edit` does.
pub(crate) fn edit_bytes<R>(key: &mut Key<'_>, len_min: usize, edit: impl FnOnce(&mut [u8]) -> R) -> R {
    if key.exists() {
        let result = key.edit(|slot| edit(slot.bytes_mut_grown(len_min)));
        result.expect("the key is there")
    } else {
        let mut bytes = vec![0; len_min];
        let result = edit(&mut bytes);
        set_raw(key, bytes, None);
        result
    }
}

/// As [`edit_bytes`] for an edit that returns whether it was a change, which only then counts as one; a key that is created
/// counts in any case.
pub(crate) fn edit_bytes_maybe(
    key: &mut Key<'_>,
    len_min: usize,
    edit: impl FnOnce(&mut [u8]) -> bool,
) -> bool {
    if key.exists() {
        let is_change = key.edit_maybe(|slot| edit(slot.bytes_mut_grown(len_min)));
        is_change.expect("the key is there")
    } else {
        edit_bytes(key, len_min, edit)
    }
}

/// The length of a string that begins with `len` bytes and goes on with `added`.
///
/// # Errors
/// `StringTooLong` if it is more than `proto-max-bulk-len` allows.
#[inline]
pub(crate) fn len_with(turn: &Turn, len: usize, added: usize) -> Result<usize, CommandError> {
    let total = len.checked_add(added).filter(|&total| total <= turn.settings.string_bytes_max);
    total.ok_or(CommandError::StringTooLong)
}
