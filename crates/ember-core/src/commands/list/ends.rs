//! The common arguments of list commands: ends, indexes, and the limit of a node.

use std::ops::Range;

use ember_protocol::Args;

use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::turn::Turn;
use crate::types::list::{End, NodeLimit};

/// Parses the end of a list in argument `arg`: `LEFT` or `RIGHT`.
pub(super) fn end(args: Args<'_>, arg: usize) -> Result<End, CommandError> {
    if is_word(args, arg, "LEFT") {
        Ok(End::Front)
    } else if is_word(args, arg, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

/// Parses the number in argument `arg`, which must be at least `min`; otherwise returns an error with the text `error`.
pub(super) fn at_least(
    min: i64,
    args: Args<'_>,
    arg: usize,
    error: &'static str,
) -> Result<usize, CommandError> {
    let number = integer(args, arg).ok().filter(|&number| number >= min);
    number.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| error.into())
}

/// Returns the position of the element with index `index`, which counts from the end if it is negative. If there is no
/// such element, returns a position beyond any list.
pub(super) fn position(index: i64, len: usize) -> usize {
    let index = if index < 0 { len as i64 + index } else { index };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// Returns the indexes from `start` to `stop`, both included, of a list of `len` elements. Negative indexes count from
/// the end; indexes out of range are clamped to the range.
pub(super) fn range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let absolute = |index: i64| if index < 0 { len as i64 + index } else { index };
    let (start, stop) = (absolute(start).max(0), absolute(stop).min(len as i64 - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// Returns the configured size limit of a list's node.
pub(super) fn limit(turn: &Turn) -> NodeLimit {
    NodeLimit::of(&turn.settings.encoding)
}
