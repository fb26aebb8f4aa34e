//! The sets at several keys that a command reads.

use std::ops::Range;

use crate::error::CommandError;
use crate::keys::Keys;
use crate::types::Collection;
use crate::types::set::Set;

/// Looks up the keys in a range of arguments, counted as uses; returns whether all keys exist.
///
/// # Errors
/// Returns `WrongType` if any key holds another type.
pub(super) fn look_up(keys: &mut Keys<'_, '_>, range: Range<usize>) -> Result<bool, CommandError> {
    let mut are_there = true;
    for arg in range {
        are_there &= keys.read_value::<Set>(arg)?.is_some();
    }
    Ok(are_there)
}

/// Returns the sets of the existing keys in a range of arguments; called after [`look_up`].
pub(super) fn sets<'a>(keys: &'a Keys<'_, '_>, range: Range<usize>) -> Vec<&'a Set> {
    range.filter_map(|arg| keys.value::<Set>(arg).ok().flatten()).collect()
}

/// Returns the maximum number of members that an intersection reads or looks up; all sets exist.
pub(super) fn common_steps(keys: &Keys<'_, '_>, range: Range<usize>) -> usize {
    let count = range.len();
    sets(keys, range).iter().map(|set| set.len()).min().unwrap_or(0).saturating_mul(count)
}

/// Returns the total number of members of the sets.
pub(super) fn all_steps(keys: &Keys<'_, '_>, range: Range<usize>) -> usize {
    sets(keys, range).iter().map(|set| set.len()).sum()
}
