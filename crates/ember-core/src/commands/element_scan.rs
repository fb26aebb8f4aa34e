//! What the commands that iterate over the elements of one value have in common: options and reply.

use ember_protocol::{Args, Mark, Reply, number};

use super::arguments::{integer, is_word};
use crate::algorithms::glob::{self, Case};
use crate::call::Call;
use crate::error::CommandError;
use crate::types::Variant;

/// `COUNT` when it is not given.
const COUNT_DEFAULT: usize = 10;

/// A call that looks at no more elements is short.
pub(crate) const FEW_ELEMENTS: usize = 1024;

/// The options behind key and cursor.
pub(crate) struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    /// How many elements to look at, about.
    pub(crate) count: usize,
}

impl<'a> ScanOptions<'a> {
    /// Reads `MATCH` and `COUNT` from argument `first` on.
    pub(crate) fn parse(args: Args<'a>, first: usize) -> Result<ScanOptions<'a>, CommandError> {
        ScanOptions::parse_with(args, first, None).map(|(options, _)| options)
    }

    /// As [`ScanOptions::parse`] with another option, which is a word alone; returns whether it is there.
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

    /// Whether an element's name is one that is asked for.
    pub(crate) fn accept(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| glob::matches(pattern, name, Case::Sensitive))
    }
}

/// Whether a call on the value of the key in argument 1 looks at more of its elements than it may. It counts as a use then.
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

/// What a call gives as COUNT, if it can be read.
pub(crate) fn count_of(args: Args<'_>) -> usize {
    let given = (3..args.len()).rev().find(|&arg| is_word(args, arg, "COUNT"));
    let count = given.and_then(|arg| number::parse_i64(args.get(arg + 1)?));
    count.and_then(|count| usize::try_from(count).ok()).unwrap_or(COUNT_DEFAULT)
}

/// Writes the reply: the cursor to go on from and the `count` replies that `elements` holds.
pub(crate) fn write_page(reply: &mut Reply, cursor: u64, elements: &Reply, count: usize) {
    reply.array(2);
    reply.bulk(itoa::Buffer::new().format(cursor).as_bytes());
    reply.array(count);
    reply.append_from(elements, Mark::default(), elements.mark());
}

/// Writes the reply for a key that is not there.
pub(crate) fn write_nothing(reply: &mut Reply) {
    reply.array(2);
    reply.bulk(b"0");
    reply.array(0);
}
