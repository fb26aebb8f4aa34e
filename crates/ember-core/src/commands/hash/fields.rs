//! The common arguments of commands on the expiries of fields: `FIELDS numfields field …` and times.

use std::ops::Range;

use ember_protocol::Args;

use crate::commands::arguments::{ExpiryUnit, integer, is_word};
use crate::effects::journal::Names;
use crate::error::CommandError;
use crate::keys::Key;

/// The last Unix time in ms at which a field may expire, as in Redis.
const EXPIRE_AT_MAX_MS: i64 = (1 << 46) - 1;

/// The usual error for a number of fields that is not positive.
pub(super) const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// Returns the arguments with names of fields, after `FIELDS` in argument `at` and their number. `not_positive` is the
/// error if the number is not positive.
pub(super) fn named(
    args: Args<'_>,
    at: usize,
    not_positive: &'static str,
) -> Result<Range<usize>, CommandError> {
    if !args.get(at).is_some_and(|word| word.eq_ignore_ascii_case(b"FIELDS")) {
        return Err("ERR Mandatory argument FIELDS is missing or not at the right position".into());
    }
    let first = at + 2;
    let count = if first > args.len() { None } else { integer(args, at + 1).ok() };
    let count = count.filter(|&count| count > 0).ok_or(not_positive)?;
    let given = first..args.len();
    if count as usize != given.len() {
        return Err("ERR The `numfields` parameter must match the number of arguments".into());
    }
    Ok(given)
}

/// Returns the expiry of fields in argument `arg`, as Unix time in ms; it may have passed. `command` is named in an
/// error.
pub(super) fn expiry(
    args: Args<'_>,
    arg: usize,
    unit: ExpiryUnit,
    now_ms: i64,
    command: &'static str,
) -> Result<i64, CommandError> {
    let amount = integer(args, arg)?;
    if amount < 0 {
        return Err("ERR invalid expire time, must be >= 0".into());
    }
    let expire_at_ms = unit.resolve(amount, now_ms).filter(|&at_ms| at_ms <= EXPIRE_AT_MAX_MS);
    expire_at_ms.ok_or(CommandError::InvalidExpire(command))
}

/// The condition for changing the expiry of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// No condition.
    Always,
    /// Only if the field has no expiry.
    IfNone,
    /// Only if the field has an expiry.
    IfSome,
    /// Only to a later expiry; a missing expiry is the latest.
    IfGreater,
    /// Only to an earlier expiry.
    IfLess,
}

impl Condition {
    /// Parses the condition in argument `arg`.
    pub(super) fn parse(args: Args<'_>, arg: usize) -> Option<Condition> {
        const CONDITIONS: [(&str, Condition); 4] = [
            ("NX", Condition::IfNone),
            ("XX", Condition::IfSome),
            ("GT", Condition::IfGreater),
            ("LT", Condition::IfLess),
        ];
        CONDITIONS.iter().find(|(word, _)| is_word(args, arg, word)).map(|&(_, condition)| condition)
    }

    /// Returns whether a change from `old` to `new` is allowed.
    pub(super) fn allows(self, old: Option<i64>, new: i64) -> bool {
        match self {
            Condition::Always => true,
            Condition::IfNone => old.is_none(),
            Condition::IfSome => old.is_some(),
            Condition::IfGreater => old.is_some_and(|old| new > old),
            Condition::IfLess => old.is_none_or(|old| new < old),
        }
    }
}

/// Records that only the expiry of fields was changed; fields whose new expiry has passed were removed.
pub(super) fn journal_expiry(key: &mut Key<'_>, names: &Names, expire_at_ms: Option<i64>) {
    if names.is_empty() {
        return;
    }
    let past_ms = key.past_ms();
    match expire_at_ms {
        Some(at_ms) if at_ms <= past_ms => {
            key.journal("HDEL", |words| names.write(words));
        }
        _ => key.journal(if expire_at_ms.is_some() { "HPEXPIREAT" } else { "HPERSIST" }, |words| {
            if let Some(at_ms) = expire_at_ms {
                words.integer(at_ms);
            }
            words.word(b"FIELDS").integer(names.len());
            names.write(words);
        }),
    }
}
