//! Access of hash commands to the value of their key, after removing its expired fields.

use ember_protocol::{Args, Reply};

use crate::call::Call;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::{Key, Keys};
use crate::types::Collection;
use crate::types::hash::{Hash, NewExpiry, NewField};

/// The maximum number of expired fields that a command removes before it accesses a hash. If more fields have expired,
/// commands ignore the remaining ones until active expiry removes them, so that no command takes the time of millions
/// of removals.
const EXPIRED_MAX: usize = 1024;

/// Calls `inspect` with the hash of the key in argument 1 and the Unix time in ms up to which fields have expired.
/// Counts as a use of the key.
///
/// # Errors
/// Returns `WrongType` if the key holds another type.
#[inline]
pub(super) fn read<R>(
    call: &mut Call<'_, '_>,
    inspect: impl FnOnce(Option<&Hash>, &mut Reply, i64) -> R,
) -> Result<R, CommandError> {
    let (expired_ms, keeps_expired) = (call.keys.turn.expired_ms(), call.keys.turn.keeps_expired);
    match call.keys.read_value::<Hash>(1)? {
        Some(hash) if hash.is_due(expired_ms) && !keeps_expired => {}
        hash => return Ok(inspect(hash, call.reply, expired_ms)),
    }
    remove_expired(&mut call.keys.key(1), EXPIRED_MAX)?;
    Ok(inspect(call.keys.value::<Hash>(1)?, call.reply, expired_ms))
}

/// Returns the key in argument 1, which holds a hash if it exists, for a change.
///
/// # Errors
/// Returns `WrongType` if the key holds another type.
#[inline]
pub(super) fn key<'x>(keys: &'x mut Keys<'_, '_>) -> Result<Key<'x>, CommandError> {
    let mut key = keys.key(1);
    remove_expired(&mut key, EXPIRED_MAX)?;
    Ok(key)
}

/// Removes expired fields of a hash, and the key if no fields remain. Checks at most `max` fields.
///
/// # Errors
/// Returns `WrongType` if the key holds another type.
#[inline]
pub(super) fn remove_expired(key: &mut Key<'_>, max: usize) -> Result<(), CommandError> {
    let expired_ms = key.expired_ms();
    if key.value::<Hash>()?.is_some_and(|hash| hash.is_due(expired_ms)) {
        let mut names = key.names();
        let expired = key.edit_value::<Hash, usize>(Event::ELEMENTS_EXPIRED, |hash| {
            hash.remove_expired(expired_ms, max, &mut names)
        })?;
        key.count_expired_fields(expired.unwrap_or(0) as u64, &names);
    }
    Ok(())
}

/// Returns the field whose name is in argument `arg` and whose value is in the next argument.
#[inline]
pub(super) fn new_field(args: Args<'_>, arg: usize, expiry: NewExpiry) -> NewField<'_> {
    NewField { name: args.at(arg), value: args.at(arg + 1), shared: args.shared(arg + 1), expiry }
}
