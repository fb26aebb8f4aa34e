//! The options and the reply of commands that iterate over the elements of one value.

use ember_protocol::{Args, Mark, Reply, number};

use super::arguments::{integer, is_word};
use crate::algorithms::glob::{self, Case};
use crate::call::Call;
use crate::error::CommandError;
use crate::types::Variant;

/// The default value of `COUNT`.
const COUNT_DEFAULT: usize = 10;

/// The maximum number of elements for which a call is always short.
pub(crate) const FEW_ELEMENTS: usize = 1024;

/// The options that follow the key and the cursor.
pub(crate) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// The approximate number of elements to visit.
    pub(crate) count: usize,
}

impl<'a> ScanOptions<'a> {
    /// Parses the options `MATCH` and `COUNT` from argument `first` on.
    pub(crate) fn parse(args: Args<'a>, first: usize) -> Result<ScanOptions<'a>, CommandError> {
        ScanOptions::parse_with(args, first, None).map(|(options, _)| options)
    }

    /// Like [`ScanOptions::parse`], for a command with an additional option of a single word; returns whether the call
    /// contains this option.
    pub(crate) fn parse_with(
        args: Args<'a>,
        first: usize,
        word: Option<&str>,
    ) -> Result<(ScanOptions<'a>, bool), CommandError> {
        let mut options = ScanOptions { pattern: None, count: COUNT_DEFAULT };
        let mut has_word = false;
        let mut arg = first;
        while arg < args.len() {
            if word.is_some_and(|word| is_word(args, arg, word)) {
                has_word = true;
                arg += 1;
                continue;
            }
            if arg + 1 == args.len() {
                return Err(CommandError::Syntax);
            } else if is_word(args, arg, "COUNT") {
                let count = usize::try_from(integer(args, arg + 1)?).unwrap_or(0);
                options.count = if count > 0 { count } else { return Err(CommandError::Syntax) };
            } else if is_word(args, arg, "MATCH") {
                options.pattern = Some(args.at(arg + 1)).filter(|pattern| !glob::matches_all(pattern));
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 2;
        }
        Ok((options, has_word))
    }

    /// Returns whether an element's name matches the pattern.
    pub(crate) fn accept(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive))
    }
}

/// Returns whether a call on the value of the key in argument 1 visits more elements than a short call may. If it does,
/// the call counts as a use of the key.
pub(crate) fn is_long<T: Variant>(call: &mut Call<'_, '_>, count: usize) -> bool {
    let steps_max = call.steps_max();
    if count <= steps_max {
        return false;
    }
    let is_long = matches!(call.keys.value::<T>(1), Ok(Some(value)) if value.len() > steps_max);
    if is_long {
        call.keys.read(1);
    }
    is_long
}

/// Returns the `COUNT` of a call; its default if the call contains no valid `COUNT`.
pub(crate) fn count_of(args: Args<'_>) -> usize {
    let given = (3..args.len()).rev().find(|&arg| is_word(args, arg, "COUNT"));
    let count = given.and_then(|arg| number::parse_i64(args.get(arg + 1)?));
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(COUNT_DEFAULT)
}

/// Writes the reply of one call of an iteration: the cursor at which to continue, and the `count` replies in
/// `elements`.
pub(crate) fn write_page(reply: &mut Reply, cursor: u64, elements: &Reply, count: usize) {
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(count);
    reply.append_from(elements, Mark::default(), elements.mark());
}

/// Writes the reply for a missing key.
pub(crate) fn write_nothing(reply: &mut Reply) {
    reply.array(2);
    reply.bulk(b"0");
    reply.array(0);
}
