//! The sets that a command reads, from several keys.

use std::ops::Range;

use crate::error::CommandError;
use crate::keys::Keys;
use crate::types::Collection;
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

/// How many members are looked for or at to find what the sets have in common, at most; all are there.
pub(super) fn common_steps(keys: &Keys<'_, '_>, range: Range<usize>) -> usize {
    let count = range.len();
    sets(keys, range).iter().map(|set| set.len()).min().unwrap_or(0).saturating_mul(count)
}

/// How many members the sets have.
pub(super) fn all_steps(keys: &Keys<'_, '_>, range: Range<usize>) -> usize {
    sets(keys, range).iter().map(|set| set.len()).sum()
}
