//! What VSIM asks for.

use ember_protocol::{Args, number};

use crate::commands::arguments::is_word;
use crate::error::{CommandError, quoted_up_to};
use crate::types::vector_set::{Filter, Search, SyntaxError};

/// Elements returned, unless told otherwise.
const COUNT_DEFAULT: usize = 10;

/// Near elements looked for, unless told otherwise.
const WIDTH_DEFAULT: usize = 100;

/// All distances are less.
const EPSILON_DEFAULT: f64 = f64::INFINITY;

/// Options of a search.
pub(super) struct Options {
    pub(super) search: Search,
    /// Elements farther away than this, as half the distance, are not returned.
    pub(super) epsilon: f32,
    pub(super) with_scores: bool,
    pub(super) with_attributes: bool,
    /// Whether the search is to run here, however long it takes.
    pub(super) is_in_place: bool,
}

impl Options {
    /// The options from argument `first` on.
    pub(super) fn parse(args: Args<'_>, first: usize) -> Result<Options, CommandError> {
        let (mut count, mut width, mut filter_effort) = (COUNT_DEFAULT, WIDTH_DEFAULT, None);
        let (mut is_exact, mut filter, mut epsilon) = (false, None, EPSILON_DEFAULT);
        let (mut with_scores, mut with_attributes, mut is_in_place) = (false, false, false);
        let mut at = first;
        while at < args.len() {
            let has_value = at + 1 < args.len();
            let positive = || {
                let number = number::parse_i64(args.at(at + 1)).filter(|&number| number > 0)?;
                Some(usize::try_from(number).unwrap_or(usize::MAX))
            };
            at += if is_word(args, at, "WITHSCORES") {
                with_scores = true;
                1
            } else if is_word(args, at, "WITHATTRIBS") {
                with_attributes = true;
                1
            } else if is_word(args, at, "TRUTH") {
                is_exact = true;
                1
            } else if is_word(args, at, "NOTHREAD") {
                is_in_place = true;
                1
            } else if is_word(args, at, "COUNT") && has_value {
                count = positive().ok_or("ERR invalid COUNT")?;
                2
            } else if is_word(args, at, "EPSILON") && has_value {
                let given = number::parse_f64(args.at(at + 1)).filter(|&number| number > 0.0);
                epsilon = given.ok_or("ERR invalid EPSILON")?;
                2
            } else if is_word(args, at, "EF") && has_value {
                width = positive().ok_or("ERR invalid EF")?;
                2
            } else if is_word(args, at, "FILTER-EF") && has_value {
                filter_effort = Some(positive().ok_or("ERR invalid FILTER-EF")?);
                2
            } else if is_word(args, at, "FILTER") && has_value {
                let text = args.at(at + 1);
                filter = Some(Filter::compile(text).map_err(|error| syntax_error(text, error))?);
                2
            } else {
                return Err("ERR syntax error in VSIM command".into());
            };
        }
        let width = width.max(count);
        let search = Search { count, width, probes: None, is_exact, filter, filter_effort };
        Ok(Options { search, epsilon: epsilon as f32, with_scores, with_attributes, is_in_place })
    }
}

pub(crate) fn syntax_error(text: &[u8], SyntaxError(at): SyntaxError) -> CommandError {
    // No reply to a mistake is as large as the request may be.
    const SHOWN_BYTES_MAX: usize = 1024;
    let rest = quoted_up_to(&text[at..], SHOWN_BYTES_MAX);
    [&b"ERR syntax error in FILTER expression near: "[..], rest].concat().into()
}
