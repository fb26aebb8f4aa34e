//! Access to the HyperLogLog in a string value: typed lookup and errors.

use crate::commands::string::value;
use crate::entries::entry::EntryRef;
use crate::error::CommandError;
use crate::types::hyperloglog::{self, Corrupt};
use crate::types::value::StringValue;

/// Returns the bytes of the HyperLogLog in an entry; `None` if there is no entry.
///
/// # Errors
/// Returns `WrongType` if the entry holds another type, and another error if the string is not a HyperLogLog.
pub(super) fn bytes<'e>(entry: Option<EntryRef<'e>>) -> Result<Option<&'e [u8]>, CommandError> {
    let bytes = match value::string(entry)? {
        None => return Ok(None),
        Some(StringValue::Int(_)) => b"",
        Some(StringValue::Inline(bytes)) => bytes,
        Some(StringValue::Large(large)) => large.bytes(),
    };
    match hyperloglog::encoding(bytes) {
        Some(_) => Ok(Some(bytes)),
        None => Err("WRONGTYPE Key is not a valid HyperLogLog string value.".into()),
    }
}

impl From<Corrupt> for CommandError {
    fn from(_: Corrupt) -> CommandError {
        "INVALIDOBJ Corrupted HLL object detected".into()
    }
}
