//! The options of SORT.

use ember_protocol::Args;

use super::order::Order;
use super::pattern::Pattern;
use crate::commands::arguments::{integer, is_word};
use crate::error::CommandError;

/// The weights by which elements are sorted.
#[derive(Clone, Copy, Debug)]
pub(super) enum By<'a> {
    /// Elements are sorted by themselves.
    Elements,
    /// Elements are not sorted, because the pattern finds the same value for all elements.
    Nothing,
    /// Elements are sorted by the values that a pattern finds.
    Pattern(Pattern<'a>),
}

/// The options of a call.
pub(super) struct Options<'a> {
    pub(super) order: Order,
    pub(super) by: By<'a>,
    pub(super) get: Vec<Pattern<'a>>,
    pub(super) offset: i64,
    /// The maximum number of results; a negative number means no limit.
    pub(super) count: i64,
    /// The index of the argument with the destination key.
    pub(super) store: Option<usize>,
}

impl<'a> Options<'a> {
    /// Parses the options of a call. `denial` is the reason why the call must not read keys that are not in its arguments,
    /// if there is one.
    pub(super) fn parse(
        args: Args<'a>,
        may_store: bool,
        denial: Option<&str>,
    ) -> Result<Options<'a>, CommandError> {
        let check = |option: &str| match denial {
            None => Ok(()),
            Some(why) => Err(CommandError::from(format!("ERR {option} option of SORT denied {why}"))),
        };
        let order = Order { is_descending: false, is_text: false };
        let mut options =
            Options { order, by: By::Elements, get: Vec::new(), offset: 0, count: -1, store: None };
        let mut arg = 2;
        while arg < args.len() {
            let following = args.len() - arg - 1;
            if is_word(args, arg, "ASC") {
                options.order.is_descending = false;
            } else if is_word(args, arg, "DESC") {
                options.order.is_descending = true;
            } else if is_word(args, arg, "ALPHA") {
                options.order.is_text = true;
            } else if is_word(args, arg, "LIMIT") && following >= 2 {
                options.offset = integer(args, arg + 1)?;
                options.count = integer(args, arg + 2)?;
                arg += 2;
            } else if may_store && is_word(args, arg, "STORE") && following >= 1 {
                arg += 1;
                options.store = Some(arg);
            } else if is_word(args, arg, "BY") && following >= 1 {
                arg += 1;
                let pattern = Pattern::new(args.at(arg));
                options.by = if pattern.names_keys() {
                    check("BY")?;
                    By::Pattern(pattern)
                } else {
                    By::Nothing
                };
            } else if is_word(args, arg, "GET") && following >= 1 {
                check("GET")?;
                arg += 1;
                options.get.push(Pattern::new(args.at(arg)));
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 1;
        }
        Ok(options)
    }
}

/// Returns the index and the name of each option that has arguments; other words are skipped.
fn options_of(args: Args<'_>) -> impl Iterator<Item = (usize, &'static str)> {
    const OPTIONS: [(&str, usize); 4] = [("LIMIT", 2), ("GET", 1), ("BY", 1), ("STORE", 1)];
    let mut arg = 2;
    std::iter::from_fn(move || {
        while arg < args.len() {
            let at = arg;
            let found = OPTIONS.into_iter().find(|(word, _)| is_word(args, at, word));
            arg += 1 + found.map_or(0, |(_, arguments)| arguments);
            if let Some((word, arguments)) = found
                && at + arguments < args.len()
            {
                return Some((at, word));
            }
        }
        None
    })
}

/// Returns the argument indexes of the keys; among several STORE options, only the last one counts.
pub(super) fn keys_of(args: Args<'_>) -> Vec<usize> {
    let store = options_of(args).filter(|&(_, word)| word == "STORE").last();
    std::iter::once(1).chain(store.map(|(at, _)| at + 1)).collect()
}

/// Returns whether a call reads keys that are not among its arguments.
pub(super) fn reach_other_keys(args: Args<'_>) -> bool {
    options_of(args)
        .filter(|&(_, word)| word == "BY" || word == "GET")
        .any(|(at, _)| Pattern::new(args.at(at + 1)).names_keys())
}
