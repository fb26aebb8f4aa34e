//! Parsing of arguments: numbers, expiry times, database numbers.

use ember_protocol::Args;
use ember_protocol::number;

use crate::algorithms::long_double::LongDouble;
use crate::error::CommandError;

/// Parses the integer in argument `arg`.
pub fn integer(args: Args<'_>, arg: usize) -> Result<i64, CommandError> {
    number::parse_i64(args.at(arg)).ok_or(CommandError::NotInteger)
}

/// Parses the cursor of an iteration in argument `arg`, like C's `strtoul`: digits with an optional sign; an argument
/// without digits means 0.
pub fn cursor(args: Args<'_>, arg: usize) -> Result<u64, CommandError> {
    let text = args.at(arg);
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] | digits => (false, digits),
    };
    let number = digits.iter().try_fold(0u64, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| u64::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    });
    let is_sign_alone = digits.is_empty() && !text.is_empty();
    let number = number.filter(|_| !is_sign_alone).ok_or("ERR invalid cursor")?;
    Ok(if negative { number.wrapping_neg() } else { number })
}

/// Parses the database number in argument `arg`, which must be below `databases`.
pub fn database(args: Args<'_>, arg: usize, databases: usize) -> Result<usize, CommandError> {
    let number = i32::try_from(integer(args, arg)?).map_err(|_| {
        CommandError::from("ERR value is out of range, value must between -2147483648 and 2147483647")
    })?;
    database_in_range(number, databases)
}

/// Returns `number` as a database number, which must be below `databases`.
pub fn database_in_range(number: i32, databases: usize) -> Result<usize, CommandError> {
    let number = usize::try_from(number).ok();
    number.filter(|&number| number < databases).ok_or(CommandError::DatabaseOutOfRange)
}

/// Parses the timeout in argument `arg`, in seconds with an optional fraction. Returns it in ms; `None` means no
/// timeout.
pub fn timeout_ms(args: Args<'_>, arg: usize, now_ms: i64) -> Result<Option<u64>, CommandError> {
    let text = args.at(arg);
    let seconds = LongDouble::parse(text).ok_or("ERR timeout is not a float or out of range")?;
    let is_negative = text.first() == Some(&b'-');
    match seconds.thousandfold_ceiling() {
        Some(0) => Ok(None),
        _ if is_negative => Err("ERR timeout is negative".into()),
        Some(ms) if now_ms.checked_add(ms).is_some() => Ok(Some(ms.unsigned_abs())),
        _ => Err("ERR timeout is out of range".into()),
    }
}

/// Parses the timeout in argument `arg`, in whole ms; 0 means no timeout.
pub fn timeout_in_ms(args: Args<'_>, arg: usize, now_ms: i64) -> Result<u64, CommandError> {
    let ms = number::parse_i64(args.at(arg)).ok_or("ERR timeout is not an integer or out of range")?;
    let whole = u64::try_from(ms).map_err(|_| CommandError::from("ERR timeout is negative"))?;
    now_ms.checked_add(ms).ok_or("ERR timeout is out of range")?;
    Ok(whole)
}

/// Returns whether argument `arg` is `word`, without regard to case.
pub fn is_word(args: Args<'_>, arg: usize, word: &str) -> bool {
    args.at(arg).eq_ignore_ascii_case(word.as_bytes())
}

/// The unit of an expiry time, and whether the time counts from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExpiryUnit {
    /// The time is in seconds from now.
    Seconds,
    /// The time is in milliseconds from now.
    Milliseconds,
    /// The time is a Unix time in seconds.
    UnixSeconds,
    /// The time is a Unix time in milliseconds.
    UnixMilliseconds,
}

impl ExpiryUnit {
    /// Returns the expiry of `amount` in this unit as Unix time in ms, at the current time `now_ms`; `None` if it
    /// cannot be represented.
    pub fn resolve(self, amount: i64, now_ms: i64) -> Option<i64> {
        match self {
            ExpiryUnit::Seconds => amount.checked_mul(1000)?.checked_add(now_ms),
            ExpiryUnit::Milliseconds => amount.checked_add(now_ms),
            ExpiryUnit::UnixSeconds => amount.checked_mul(1000),
            ExpiryUnit::UnixMilliseconds => Some(amount),
        }
    }
}

/// Parses the expiry in argument `arg`, which must be positive, and returns it as Unix time in ms. An error contains
/// the name `command`.
pub fn positive_expiry(
    args: Args<'_>,
    arg: usize,
    unit: ExpiryUnit,
    now_ms: i64,
    command: &'static str,
) -> Result<i64, CommandError> {
    let amount = integer(args, arg)?;
    if amount <= 0 {
        return Err(CommandError::InvalidExpire(command));
    }
    unit.resolve(amount, now_ms).ok_or(CommandError::InvalidExpire(command))
}

/// Returns the expiry unit in argument `arg`, if the argument is `EX`, `PX`, `EXAT` or `PXAT`, without regard to case.
pub fn expiry_unit(args: Args<'_>, arg: usize) -> Option<ExpiryUnit> {
    const UNITS: [(&str, ExpiryUnit); 4] = [
        ("EX", ExpiryUnit::Seconds),
        ("PX", ExpiryUnit::Milliseconds),
        ("EXAT", ExpiryUnit::UnixSeconds),
        ("PXAT", ExpiryUnit::UnixMilliseconds),
    ];
    UNITS.iter().find(|(word, _)| is_word(args, arg, word)).map(|&(_, unit)| unit)
}

/// Returns the indexes from `start` to `end`, both included, of a value with `len` elements. Negative indexes count
/// from the end; indexes out of range are clamped to the range. An `end` before the first element means the first
/// element, unless both indexes are negative and `start` is after `end`.
pub fn index_range(start: i64, end: i64, len: usize) -> std::ops::Range<usize> {
    let len = len as i64;
    if (start < 0 && end < 0 && start > end) || len == 0 {
        return 0..0;
    }
    let absolute = |index: i64| (if index < 0 { len + index } else { index }).max(0);
    let (start, end) = (absolute(start), absolute(end).min(len - 1));
    if start > end { 0..0 } else { start as usize..end as usize + 1 }
}

/// The maximum number of arguments for which a call is always short.
const FEW_ARGUMENTS: usize = 1024;

/// The maximum number of digits of a count of elements for which the call is always short.
const SMALL_COUNT_DIGITS: usize = 3;

/// Returns whether a call may be long-running because it has many arguments.
pub(crate) fn names_many(args: Args<'_>) -> bool {
    args.len() > FEW_ARGUMENTS
}

/// Returns whether argument `arg` exists and may be a count of elements that makes the call long-running.
pub(crate) fn is_large_count(args: Args<'_>, arg: usize) -> bool {
    args.get(arg).is_some_and(|count| count.len() > SMALL_COUNT_DIGITS)
}
