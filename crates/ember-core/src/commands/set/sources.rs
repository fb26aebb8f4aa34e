//! The sets that a command reads, from several keys.

use std::ops::Range;

use crate::error::CommandError;
use crate::keys::Keys;
use crate::types::set::Set;

/// Looks up the keys in the arguments of a range, as uses. Whether all are there.
///
/// # Errors
/// `WrongType` if one of them holds another type, wherever it stands.
pub(super) fn look_up(keys: &mut Keys<'_, '_>, range: Range<usize>) -> Result<bool, CommandError> {
    let mut are_there = true;
    for arg in range {
        are_there &= keys.read_value::<Set>(arg)?.is_some();
    }
    Ok(are_there)
}

/// The sets of those keys in the arguments of a range that are there, after [`look_up`].
pub(super) fn sets<'a>(keys: &'a Keys<'_, '_>, range: Range<usize>) -> Vec<&'a Set> {
    range.filter_map(|arg| keys.value::<Set>(arg).ok().flatten()).collect()
}
