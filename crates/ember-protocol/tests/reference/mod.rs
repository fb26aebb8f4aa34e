//! The slow reference parser: reads a whole input at once, byte by byte, without state.

use ember_protocol::{Limits, ProtocolError};

/// The result of reading an input.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Reading {
    /// The complete commands, in order.
    pub(crate) commands: Vec<Vec<Vec<u8>>>,
    /// The error that ended the reading, if not the end of the input.
    pub(crate) error: Option<ProtocolError>,
}

/// The reason why reading stops: the input has ended, or is invalid.
enum Stop {
    Incomplete,
    Error(ProtocolError),
}

/// Reads all of `input`.
pub(crate) fn read(input: &[u8], limits: &Limits) -> Reading {
    let mut reading = Reading::default();
    let mut rest = input;
    loop {
        match command(&mut rest, limits) {
            Ok(command) if command.is_empty() => {}
            Ok(command) => reading.commands.push(command),
            Err(Stop::Incomplete) => return reading,
            Err(Stop::Error(error)) => {
                reading.error = Some(error);
                return reading;
            }
        }
    }
}

fn command(rest: &mut &[u8], limits: &Limits) -> Result<Vec<Vec<u8>>, Stop> {
    match rest.first() {
        None => Err(Stop::Incomplete),
        Some(b'*') => multibulk(rest, limits),
        Some(_) => inline(rest, limits),
    }
}

fn multibulk(rest: &mut &[u8], limits: &Limits) -> Result<Vec<Vec<u8>>, Stop> {
    let line = line(rest, limits, ProtocolError::TooBigMultibulkCount)?;
    let invalid = Stop::Error(ProtocolError::InvalidMultibulkLength);
    let Some(count) = number(&line[1..]) else { return Err(invalid) };
    if count > i128::from(limits.multibulk_count_max) {
        return Err(invalid);
    }
    if count > 10 && !limits.authenticated {
        return Err(Stop::Error(ProtocolError::UnauthenticatedMultibulkLength));
    }
    let mut arguments = Vec::new();
    for _ in 0..count.max(0) {
        arguments.push(bulk(rest, limits)?);
    }
    Ok(arguments)
}

fn bulk(rest: &mut &[u8], limits: &Limits) -> Result<Vec<u8>, Stop> {
    let line = line(rest, limits, ProtocolError::TooBigBulkCount)?;
    match line.first() {
        Some(b'$') => {}
        other => return Err(Stop::Error(ProtocolError::ExpectedDollar(*other.unwrap_or(&b'\r')))),
    }
    let len = number(&line[1..]).filter(|len| (0..=i128::from(limits.bulk_len_max)).contains(len));
    let Some(len) = len else { return Err(Stop::Error(ProtocolError::InvalidBulkLength)) };
    if len > 16384 && !limits.authenticated {
        return Err(Stop::Error(ProtocolError::UnauthenticatedBulkLength));
    }
    let bytes = take(rest, len as usize + 2)?;
    Ok(bytes[..len as usize].to_vec())
}

/// Returns the line up to its `\r`; consumes the line, the `\r` and the byte after it.
fn line<'a>(rest: &mut &'a [u8], limits: &Limits, too_long: ProtocolError) -> Result<&'a [u8], Stop> {
    match rest.iter().position(|&byte| byte == b'\r') {
        Some(len) if len <= limits.inline_len_max => Ok(&take(rest, len + 2)?[..len]),
        _ if rest.len() > limits.inline_len_max => Err(Stop::Error(too_long)),
        _ => Err(Stop::Incomplete),
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Stop> {
    let (taken, after) = rest.split_at_checked(count).ok_or(Stop::Incomplete)?;
    *rest = after;
    Ok(taken)
}

/// Returns the number whose only canonical form is `text`.
fn number(text: &[u8]) -> Option<i128> {
    let text = std::str::from_utf8(text).ok()?;
    let number: i128 = text.parse().ok()?;
    (number.to_string() == text && i64::try_from(number).is_ok()).then_some(number)
}

fn inline(rest: &mut &[u8], limits: &Limits) -> Result<Vec<Vec<u8>>, Stop> {
    if let [0x16, 0x03, ..] = rest {
        return Err(Stop::Error(ProtocolError::TlsHandshake));
    }
    let line = match rest.iter().position(|&byte| byte == b'\n') {
        Some(len) if len <= limits.inline_len_max => &take(rest, len + 1)?[..len],
        _ if rest.len() > limits.inline_len_max => return Err(Stop::Error(ProtocolError::TooBigInline)),
        _ => return Err(Stop::Incomplete),
    };
    words(line).ok_or(Stop::Error(ProtocolError::UnbalancedQuotes))
}

/// The context of a character in an inline command.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Between,
    Word,
    Quoted(u8),
    Closed,
}

/// Splits an inline command into words, by a state machine over single characters; `None` if the quotes do not match.
fn words(line: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut words: Vec<Vec<u8>> = Vec::new();
    let mut place = Place::Between;
    let mut at = 0;
    while at < line.len() {
        let byte = line[at];
        let space = byte == b' ' || (9..=13).contains(&byte);
        at += 1;
        if place == Place::Closed && !space {
            return None;
        }
        match (place, byte) {
            (Place::Closed | Place::Between, _) if space => place = Place::Between,
            (Place::Word, b' ' | b'\t' | b'\n' | b'\r') => place = Place::Between,
            (Place::Quoted(quote), _) if byte == quote => place = Place::Closed,
            (Place::Quoted(quote), b'\\') => {
                let word = words.last_mut()?;
                let next = line.get(at).copied();
                let code = line.get(at + 1..at + 3).and_then(|code| std::str::from_utf8(code).ok());
                let code = code.filter(|code| code.bytes().all(|digit| digit.is_ascii_hexdigit()));
                match (quote, next, code) {
                    (b'"', Some(b'x'), Some(code)) => {
                        word.push(u8::from_str_radix(code, 16).ok()?);
                        at += 3;
                    }
                    (b'"', Some(escaped), _) => {
                        let pairs = [(b'n', 10), (b'r', 13), (b't', 9), (b'b', 8), (b'a', 7)];
                        let found = pairs.iter().find(|(letter, _)| *letter == escaped);
                        word.push(found.map_or(escaped, |(_, code)| *code));
                        at += 1;
                    }
                    (b'\'', Some(b'\''), _) => {
                        word.push(b'\'');
                        at += 1;
                    }
                    _ => word.push(byte),
                }
            }
            (Place::Quoted(_), _) => words.last_mut()?.push(byte),
            _ => {
                if place == Place::Between {
                    words.push(Vec::new());
                    place = Place::Word;
                }
                match byte {
                    b'"' | b'\'' => place = Place::Quoted(byte),
                    _ => words.last_mut()?.push(byte),
                }
            }
        }
    }
    (!matches!(place, Place::Quoted(_))).then_some(words)
}
