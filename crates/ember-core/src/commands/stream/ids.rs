//! The common arguments and replies of stream commands: IDs, intervals, entries, errors for missing groups.

use ember_protocol::{Args, Reply};

use crate::commands::arguments::is_word;
use crate::error::{CommandError, quoted, quoted_up_to};
use crate::types::stream::{Entry, References, StreamId};

/// The maximum length in bytes of an argument that is parsed as an ID.
const ID_BYTES_MAX: usize = 127;

/// The maximum number of bytes of a name that an error quotes.
const NAME_BYTES_MAX: usize = 16 * 1024;

/// The ID of a new entry, as the call specifies it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NewId {
    /// The call specifies the whole ID.
    Given(StreamId),
    /// The call specifies only the time, as `time-*`.
    At(u64),
}

fn invalid_id() -> CommandError {
    "ERR Invalid stream ID specified as stream command argument".into()
}

/// Parses a number like C's `strtoull`, because Redis parses IDs this way: leading white space and a sign are accepted,
/// and a negative number wraps. No other text may follow the number.
fn unsigned(text: &[u8]) -> Option<u64> {
    let start = text.iter().position(|byte| !matches!(byte, b' ' | b'\t'..=b'\r'))?;
    let (is_negative, digits) = match text[start..].split_first()? {
        (b'-', digits) => (true, digits),
        (b'+', digits) => (false, digits),
        _ => (false, &text[start..]),
    };
    // A negative number in its canonical form is refused, as in Redis.
    if digits.is_empty() || (is_negative && ember_protocol::number::parse_i64(text).is_some()) {
        return None;
    }
    let number = digits.iter().try_fold(0u64, |number, byte| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    })?;
    Some(if is_negative { number.wrapping_neg() } else { number })
}

/// Returns the parts of an ID's text: the time, and the sequence number if the text contains one (`Some(None)` for
/// `*`).
fn id_parts(text: &[u8], takes_star: bool) -> Result<(u64, Option<Option<u64>>), CommandError> {
    let (ms, sequence) = match text.iter().position(|&byte| byte == b'-') {
        Some(dash) => (&text[..dash], Some(&text[dash + 1..])),
        None => (text, None),
    };
    let ms = unsigned(ms).ok_or_else(invalid_id)?;
    let sequence = match sequence {
        None => None,
        Some(b"*") if takes_star => Some(None),
        Some(sequence) => Some(Some(unsigned(sequence).ok_or_else(invalid_id)?)),
    };
    Ok((ms, sequence))
}

/// Returns the text of an ID as C reads it: the bytes before the first NUL.
fn id_text(argument: &[u8]) -> Result<&[u8], CommandError> {
    if argument.len() > ID_BYTES_MAX { Err(invalid_id()) } else { Ok(quoted(argument)) }
}

/// Parses the ID in `argument`; `sequence` is the sequence number if the ID does not contain one. Accepts neither `-`
/// nor `+`.
pub(super) fn exact_id(argument: &[u8], sequence: u64) -> Result<StreamId, CommandError> {
    let (ms, given) = id_parts(id_text(argument)?, false)?;
    Ok(StreamId::new(ms, given.flatten().unwrap_or(sequence)))
}

/// Parses the ID in `argument`; `-` is the smallest ID and `+` the largest.
pub(super) fn id(argument: &[u8], sequence: u64) -> Result<StreamId, CommandError> {
    match id_text(argument)? {
        b"-" => Ok(StreamId::MIN),
        b"+" => Ok(StreamId::MAX),
        _ => exact_id(argument, sequence),
    }
}

/// Parses the ID of an entry to be added.
pub(super) fn new_id(argument: &[u8]) -> Result<NewId, CommandError> {
    Ok(match id_parts(id_text(argument)?, true)? {
        (ms, Some(None)) => NewId::At(ms),
        (ms, sequence) => NewId::Given(StreamId::new(ms, sequence.flatten().unwrap_or(0))),
    })
}

/// Parses the option that determines the handling of references to deleted entries, if argument `arg` is one.
pub(super) fn references_at(args: Args<'_>, arg: usize) -> Option<References> {
    const WORDS: [(&str, References); 3] =
        [("KEEPREF", References::Keep), ("DELREF", References::Delete), ("ACKED", References::Respect)];
    WORDS.iter().find(|(word, _)| is_word(args, arg, word)).map(|&(_, references)| references)
}

/// Parses the IDs in the arguments from `from` on, which may be neither `-` nor `+`.
pub(super) fn ids(args: Args<'_>, from: usize) -> Result<Vec<StreamId>, CommandError> {
    args.skip(from).iter().map(|argument| exact_id(argument, 0)).collect()
}

/// Parses a bound of an interval: an ID, preceded by `(` if the bound is excluded.
fn interval_end(argument: &[u8], sequence: u64) -> Result<(StreamId, bool), CommandError> {
    match argument {
        [b'(', rest @ ..] if !rest.is_empty() => Ok((exact_id(rest, sequence)?, true)),
        _ => Ok((id(argument, sequence)?, false)),
    }
}

/// Returns the first ID of an interval whose lower bound is `argument`.
pub(super) fn interval_start(argument: &[u8]) -> Result<StreamId, CommandError> {
    match interval_end(argument, 0)? {
        (id, false) => Ok(id),
        (id, true) => id.next().ok_or_else(|| "ERR invalid start ID for the interval".into()),
    }
}

/// Returns the last ID of an interval whose upper bound is `argument`.
pub(super) fn interval_last(argument: &[u8]) -> Result<StreamId, CommandError> {
    match interval_end(argument, u64::MAX)? {
        (id, false) => Ok(id),
        (id, true) => id.previous().ok_or_else(|| "ERR invalid end ID for the interval".into()),
    }
}

/// Writes an ID as a bulk string.
pub(super) fn reply_id(reply: &mut Reply, id: StreamId) {
    reply.bulk(id.text(&mut [0; StreamId::TEXT_BYTES_MAX]));
}

/// Writes an entry as its ID, followed by an array of the names and values of its fields.
pub(super) fn reply_entry(reply: &mut Reply, entry: &Entry<'_>) {
    reply.array(2);
    reply_id(reply, entry.id);
    reply.array(2 * entry.field_count);
    let mut digits = itoa::Buffer::new();
    for (name, value) in entry.fields() {
        reply.bulk(name.bytes(&mut digits));
        reply.bulk(value.bytes(&mut digits));
    }
}

/// Writes an array of `entries`, at most `count` of them; 0 means no limit. O(bytes written).
pub(super) fn reply_entries<'a>(reply: &mut Reply, entries: impl Iterator<Item = Entry<'a>>, count: usize) {
    let mark = reply.mark();
    let mut written = 0;
    for entry in entries {
        reply_entry(reply, &entry);
        written += 1;
        if written == count {
            break;
        }
    }
    reply.insert_array(mark, written);
}

/// Returns an error that quotes two names, each up to the first NUL, like C's `%s`.
fn quoting_two(before: &str, first: &[u8], between: &str, second: &[u8], after: &str) -> CommandError {
    let (first, second) = (quoted_up_to(first, NAME_BYTES_MAX), quoted_up_to(second, NAME_BYTES_MAX));
    CommandError::Bytes([before.as_bytes(), first, between.as_bytes(), second, after.as_bytes()].concat())
}

/// Returns the error for a missing key, or for a missing group of an existing key.
pub(super) fn no_key_or_group(key: &[u8], group: &[u8], after: &str) -> CommandError {
    quoting_two("NOGROUP No such key '", key, "' or consumer group '", group, after)
}

/// Returns the error for an existing key without this group.
pub(super) fn no_group(key: &[u8], group: &[u8]) -> CommandError {
    quoting_two("NOGROUP No such consumer group '", group, "' for key name '", key, "'")
}

/// Returns the error of `XGROUP` and `XINFO` for options that a subcommand does not support.
pub(super) fn unknown_options(args: Args<'_>) -> CommandError {
    let container = String::from_utf8_lossy(quoted(args.at(0))).to_uppercase();
    let after = format!("'. Try {container} HELP.");
    CommandError::quoting(
        "ERR unknown subcommand or wrong number of arguments for '",
        quoted(args.at(1)),
        &after,
    )
}

/// Parses the count of entries in argument `arg`; a negative count becomes 0.
pub(super) fn count(args: Args<'_>, arg: usize) -> Result<usize, CommandError> {
    let number = crate::commands::arguments::integer(args, arg)?;
    Ok(usize::try_from(number.max(0)).unwrap_or(usize::MAX))
}

/// Parses the integer in argument `arg`.
///
/// # Errors
/// Returns `text` if the argument is not an integer.
pub(super) fn integer_or(args: Args<'_>, arg: usize, text: &'static str) -> Result<i64, CommandError> {
    ember_protocol::number::parse_i64(args.at(arg)).ok_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_strtoull_reads_them() {
        for (text, number) in [
            ("0", Some(0)),
            ("18446744073709551615", Some(u64::MAX)),
            ("18446744073709551616", None),
            ("007", Some(7)),
            (" \t7", Some(7)),
            ("+7", Some(7)),
            ("-7", None),
            ("-07", Some(7u64.wrapping_neg())),
            ("7 ", None),
            ("", None),
            ("-", None),
            ("x", None),
        ] {
            assert_eq!(unsigned(text.as_bytes()), number, "{text:?}");
        }
    }

    #[test]
    fn ids_take_their_missing_part_from_the_command() {
        assert_eq!(exact_id(b"5", 9), Ok(StreamId::new(5, 9)));
        assert_eq!(exact_id(b"5-3", 9), Ok(StreamId::new(5, 3)));
        assert_eq!(exact_id(b"5-3\0x", 9), Ok(StreamId::new(5, 3)));
        assert_eq!(id(b"+", 0), Ok(StreamId::MAX));
        assert_eq!(new_id(b"5-*"), Ok(NewId::At(5)));
        for text in ["+", "-", "", "5-", "-5", "5-*", "5-3-1", "x"] {
            assert_eq!(exact_id(text.as_bytes(), 0), Err(invalid_id()), "{text:?}");
        }
        assert_eq!(exact_id(&[b'1'; 128], 0), Err(invalid_id()));
    }

    #[test]
    fn intervals_may_leave_their_ends_out() {
        assert_eq!(interval_start(b"(5-3"), Ok(StreamId::new(5, 4)));
        assert_eq!(interval_last(b"(5"), Ok(StreamId::new(5, u64::MAX - 1)));
        assert_eq!(interval_last(b"5"), Ok(StreamId::new(5, u64::MAX)));
        assert!(interval_start(b"(+").is_err());
        assert!(interval_start(b"(18446744073709551615-18446744073709551615").is_err());
        assert!(interval_last(b"(0-0").is_err());
        assert!(interval_start(b"(").is_err());
    }
}
