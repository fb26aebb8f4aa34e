//! Access to string values as the bytes that a client sees: typed lookup, reading and editing.

use std::sync::Arc;

use ember_protocol::{Args, Reply};

use super::options::Expiry;
use crate::effects::events::Event;
use crate::entries::entry::{EntryRef, NewValue};
use crate::error::CommandError;
use crate::keys::Key;
use crate::turn::Turn;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue};

/// The approximate number of bytes that are copied to new memory pages in one step of a call.
pub(super) const BYTES_PER_STEP: usize = 128;

/// The event for storing a string.
pub(crate) const SET: Event = Event::string("set");

/// Returns the string value of an entry; `None` if there is no entry.
///
/// # Errors
/// Returns `WrongType` if the entry holds another type.
#[inline]
pub(crate) fn string(entry: Option<EntryRef<'_>>) -> Result<Option<StringValue<'_>>, CommandError> {
    let Some(entry) = entry else { return Ok(None) };
    match entry.aggregate() {
        None => Ok(Some(entry.string())),
        Some(_) => Err(CommandError::WrongType),
    }
}

/// Returns whether there is an entry and its string equals `expected`.
///
/// # Errors
/// Returns `WrongType` if the entry holds another type.
pub(crate) fn equals(entry: Option<EntryRef<'_>>, expected: &[u8]) -> Result<bool, CommandError> {
    Ok(string(entry)?.is_some_and(|value| value.bytes(&mut itoa::Buffer::new()) == expected))
}

/// Returns the bytes of a value; a missing value is empty.
#[inline]
pub(crate) fn bytes_or_empty<'a>(value: Option<StringValue<'a>>, digits: &'a mut itoa::Buffer) -> &'a [u8] {
    value.map_or(b"", |value| value.bytes(digits))
}

/// Returns the number of bytes of a value that may be missing.
#[inline]
pub(crate) fn len(value: Option<StringValue<'_>>) -> usize {
    bytes_or_empty(value, &mut itoa::Buffer::new()).len()
}

/// Writes a value as a bulk string, or null. A large value is shared with the reply, not copied.
#[inline(always)]
pub(crate) fn reply(reply: &mut Reply, value: Option<StringValue<'_>>) {
    match value {
        None => reply.null(),
        Some(StringValue::Inline(bytes)) => reply.bulk(bytes),
        Some(StringValue::Int(number)) => reply.bulk_integer(number),
        Some(StringValue::Large(large)) => reply.bulk_shared(&large.share()),
    }
}

/// Returns the value in argument `arg` in the form in which an entry stores it.
#[inline]
pub(crate) fn of_argument(args: Args<'_>, arg: usize) -> NewValue<'_> {
    match args.shared(arg) {
        Some(large) => NewValue::Large(Arc::clone(large)),
        None => NewValue::from_bytes(args.at(arg)),
    }
}

/// Stores a value and an expiry, and publishes an event for each. An expiry in the past removes the key, which is
/// published as a third event.
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

/// Like [`store`], but if the expiry is kept, publishes only the event for the value.
pub(super) fn store_as(key: &mut Key<'_>, value: NewValue<'_>, expiry: Expiry, expire_at_ms: Option<i64>) {
    if let Expiry::Keep = expiry {
        key.set_value(value);
        key.notify(SET);
    } else {
        store(key, value, expire_at_ms);
    }
}

/// Stores `bytes`, the result of an edit, as the value of the key, with the expiry `expire_at_ms`.
pub(crate) fn set_raw(key: &mut Key<'_>, bytes: Vec<u8>, expire_at_ms: Option<i64>) {
    if bytes.len() >= LARGE_VALUE_MIN_BYTES {
        key.set(NewValue::Large(Arc::new(bytes)), expire_at_ms);
    } else {
        key.set(NewValue::Edited(&bytes), expire_at_ms);
    }
}

/// Calls `edit` on the bytes of the value, padded with zeros to at least `len_min` bytes. Creates a missing key, and
/// keeps the expiry of an existing key. Amortised O(bytes added) beyond the cost of `edit`.
pub(crate) fn edit_bytes<R>(key: &mut Key<'_>, len_min: usize, edit: impl FnOnce(&mut [u8]) -> R) -> R {
    if key.exists() {
        let result = key.edit(|slot| edit(slot.bytes_mut_grown(len_min)));
        result.expect("the key exists")
    } else {
        let mut bytes = vec![0; len_min];
        let result = edit(&mut bytes);
        set_raw(key, bytes, None);
        result
    }
}

/// Like [`edit_bytes`], for an `edit` that returns whether it has changed the bytes. Counts as a change only if it has,
/// or if the key was created.
pub(crate) fn edit_bytes_maybe(
    key: &mut Key<'_>,
    len_min: usize,
    edit: impl FnOnce(&mut [u8]) -> bool,
) -> bool {
    if key.exists() {
        let is_change = key.edit_maybe(|slot| edit(slot.bytes_mut_grown(len_min)));
        is_change.expect("the key exists")
    } else {
        edit_bytes(key, len_min, edit)
    }
}

/// Returns the length of a string of `len` bytes after `added` bytes were appended.
///
/// # Errors
/// Returns `StringTooLong` if the length exceeds `proto-max-bulk-len`.
#[inline]
pub(crate) fn len_with(turn: &Turn, len: usize, added: usize) -> Result<usize, CommandError> {
    let total = len.checked_add(added).filter(|&total| total <= turn.settings.string_bytes_max);
    total.ok_or(CommandError::StringTooLong)
}
