//! The common arguments of commands on the expiries of hash fields: `FIELDS numfields field …`, and times.

use std::ops::Range;

use ember_protocol::Args;

use crate::commands::arguments::{ExpiryUnit, integer, is_word};
use crate::effects::journal::Names;
use crate::error::CommandError;
use crate::keys::Key;

/// The maximum expiry of a field, as Unix time in ms; the limit is that of Redis.
const EXPIRE_AT_MAX_MS: i64 = (1 << 46) - 1;

/// The error of most commands for a number of fields that is not positive.
pub(super) const NOT_POSITIVE: &str = "ERR Number of fields must be a positive integer";

/// Returns the arguments with the names of fields, which follow the word `FIELDS` in argument `at` and the number of
/// fields. `not_positive` is the error for a number that is not positive.
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

/// Parses the expiry of fields in argument `arg` and returns it as Unix time in ms, which may be in the past. An error
/// contains the name `command`.
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
    /// The expiry is always changed.
    Always,
    /// The expiry is changed only if the field has no expiry.
    IfNone,
    /// The expiry is changed only if the field has an expiry.
    IfSome,
    /// The expiry is changed only to a later time; no expiry counts as the latest time.
    IfGreater,
    /// The expiry is changed only to an earlier time.
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

    /// Returns whether the condition allows changing the expiry from `old` to `new`.
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

/// Records that the only effect of the command is the new expiry of these fields, or their removal if that expiry has
/// passed.
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
