//! The options of VSIM.

use ember_protocol::{Args, number};

use crate::commands::arguments::is_word;
use crate::error::{CommandError, quoted_up_to};
use crate::types::vector_set::{FILTER_BYTES_MAX, Filter, FilterError, PATH_NAMES_MAX, Search};

/// The default number of returned elements.
const COUNT_DEFAULT: usize = 10;

/// The default search width: the number of near elements that a search collects.
const WIDTH_DEFAULT: usize = 100;

/// The default of EPSILON, which is no limit: all distances are smaller.
const EPSILON_DEFAULT: f64 = f64::INFINITY;

/// The error for an attribute field whose path consists of too many names.
pub(crate) const LONG_PATH: &str = "ERR a field has more than 16 names separated by dots";
const _: () = assert!(PATH_NAMES_MAX == 16);

/// The options of a search.
pub(super) struct Options<'a> {
    /// The parameters of the search, except the filter.
    search: Search,
    /// The text of the filter.
    pub(super) filter: Option<&'a [u8]>,
    /// The maximum distance of returned elements; with the cosine metric, half the distance is compared.
    pub(super) epsilon: f32,
    pub(super) with_scores: bool,
    pub(super) with_attributes: bool,
}

impl<'a> Options<'a> {
    /// Parses the options from argument `first` on. Does not compile the filter yet.
    pub(super) fn parse(args: Args<'a>, first: usize) -> Result<Options<'a>, CommandError> {
        let (mut count, mut width, mut filter_effort) = (COUNT_DEFAULT, WIDTH_DEFAULT, None);
        let (mut is_exact, mut filter, mut epsilon) = (false, None, EPSILON_DEFAULT);
        let (mut with_scores, mut with_attributes) = (false, false);
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
                // NOTHREAD has no effect: a long-running search is offloaded in any case, because it would block other
                // clients.
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
                filter = Some(args.at(at + 1));
                2
            } else {
                return Err("ERR syntax error in VSIM command".into());
            };
        }
        let width = width.max(count);
        let search = Search { count, width, probes: None, is_exact, filter: None, filter_effort };
        Ok(Options { search, filter, epsilon: epsilon as f32, with_scores, with_attributes })
    }

    /// Returns the parameters of the search, with the compiled filter. O(length of the filter).
    pub(super) fn search(&self) -> Result<Search, CommandError> {
        let compile = |text| Filter::compile(text).map_err(|error| filter_error(text, error));
        Ok(Search { filter: self.filter.map(compile).transpose()?, ..self.search.clone() })
    }
}

/// Returns the error reply for an invalid filter.
pub(crate) fn filter_error(text: &[u8], error: FilterError) -> CommandError {
    let at = match error {
        FilterError::Syntax(at) => at,
        FilterError::TooLong => {
            let len = text.len();
            return format!("ERR FILTER has {len} bytes, more than {FILTER_BYTES_MAX}").into();
        }
        FilterError::TooDeep(most) => {
            return format!("ERR FILTER is nested more than {most} levels deep").into();
        }
        FilterError::LongPath => return LONG_PATH.into(),
    };
    // Limits the size of the reply, because a filter may be as large as the request.
    const SHOWN_BYTES_MAX: usize = 1024;
    let rest = quoted_up_to(&text[at..], SHOWN_BYTES_MAX);
    [&b"ERR syntax error in FILTER expression near: "[..], rest].concat().into()
}
