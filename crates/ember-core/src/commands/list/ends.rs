//! What the list commands read alike: ends, positions, the limit of a node.

use std::ops::Range;

use ember_protocol::Args;

use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;
use crate::turn::Turn;
use crate::types::list::{End, NodeLimit};

/// The end that argument `arg` names: `LEFT` or `RIGHT`.
pub(super) fn end(args: Args<'_>, arg: usize) -> Result<End, CommandError> {
    if is_word(args, arg, "LEFT") {
        Ok(End::Front)
    } else if is_word(args, arg, "RIGHT") {
        Ok(End::Back)
    } else {
        Err(CommandError::Syntax)
    }
}

/// The number in argument `arg`, which is at least `min`; `error` is the text for anything else.
pub(super) fn at_least(
    min: i64,
    args: Args<'_>,
    arg: usize,
    error: &'static str,
) -> Result<usize, CommandError> {
    let number = integer(args, arg).ok().filter(|&number| number >= min);
    number.and_then(|number| usize::try_from(number).ok()).ok_or_else(|| error.into())
}

/// The index of the element that `index` means, a negative one from the end; beyond any list if there can be none.
pub(super) fn position(index: i64, len: usize) -> usize {
    let index = if index < 0 { len as i64 + index } else { index };
    usize::try_from(index).unwrap_or(usize::MAX)
}

/// The indexes from `start` to `stop`, both included, of a list of `len` elements. Negative ones count from the end; what
/// lies outside is cut off.
pub(super) fn range(start: i64, stop: i64, len: usize) -> Range<usize> {
    let absolute = |index: i64| if index < 0 { len as i64 + index } else { index };
    let (start, stop) = (absolute(start).max(0), absolute(stop).min(len as i64 - 1));
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}

/// How much a node of a list may hold.
pub(super) fn limit(turn: &Turn) -> NodeLimit {
    NodeLimit::of(&turn.settings.encoding)
}
