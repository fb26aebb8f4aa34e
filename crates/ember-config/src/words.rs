//! Splits configuration lines into words, with the quotes of redis.conf, and quotes words.
//!
//! A word in double quotes supports the escapes `\n \r \t \b \a \xHH` and `\c` for any other `c`; a word in single
//! quotes supports only `\'`. A closing quote must be followed by white space or the end of the line.

use std::iter::Peekable;
use std::slice::Iter;

/// The reason why a line cannot be split into words.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum BadLine {
    /// A quote is not closed, or a closing quote is not followed by white space.
    UnbalancedQuotes,
    /// The escapes of a word result in bytes that are not UTF-8.
    NotUtf8,
}

impl std::fmt::Display for BadLine {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            BadLine::UnbalancedQuotes => "unbalanced quotes",
            BadLine::NotUtf8 => "a value is not valid UTF-8",
        })
    }
}

/// Splits `line` into words. An empty line has none.
///
/// # Errors
/// Returns [`BadLine`] if quotes are not balanced or a word is not UTF-8.
pub(crate) fn split(line: &str) -> Result<Vec<String>, BadLine> {
    let mut words = Vec::new();
    let mut rest = line.as_bytes().iter().peekable();
    loop {
        while rest.next_if(|byte| is_space(**byte)).is_some() {}
        if rest.peek().is_none() {
            return Ok(words);
        }
        let word = next_word(&mut rest)?;
        words.push(String::from_utf8(word).map_err(|_| BadLine::NotUtf8)?);
    }
}

fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | 0x0b | 0x0c)
}

fn next_word(rest: &mut Peekable<Iter<'_, u8>>) -> Result<Vec<u8>, BadLine> {
    let mut word = Vec::new();
    while let Some(&byte) = rest.next_if(|byte| !is_space(**byte) && **byte != 0) {
        match byte {
            b'"' => {
                double_quoted(rest, &mut word)?;
                return ended(rest, word);
            }
            b'\'' => {
                single_quoted(rest, &mut word)?;
                return ended(rest, word);
            }
            _ => word.push(byte),
        }
    }
    // A NUL ends the word like a space. It must be consumed for the scan to advance.
    rest.next_if(|byte| **byte == 0);
    Ok(word)
}

fn ended(rest: &mut Peekable<Iter<'_, u8>>, word: Vec<u8>) -> Result<Vec<u8>, BadLine> {
    match rest.peek() {
        Some(byte) if !is_space(**byte) => Err(BadLine::UnbalancedQuotes),
        _ => Ok(word),
    }
}

fn double_quoted(rest: &mut Peekable<Iter<'_, u8>>, word: &mut Vec<u8>) -> Result<(), BadLine> {
    loop {
        match *rest.next().ok_or(BadLine::UnbalancedQuotes)? {
            b'"' => return Ok(()),
            b'\\' => {
                if let Some((byte, after)) = hex_escape(rest) {
                    word.push(byte);
                    *rest = after;
                    continue;
                }
                word.push(match *rest.next().ok_or(BadLine::UnbalancedQuotes)? {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 0x08,
                    b'a' => 0x07,
                    other => other,
                });
            }
            byte => word.push(byte),
        }
    }
}

/// Parses `xHH` and returns its byte and the rest; `None` if the escape does not have that form.
fn hex_escape<'a>(rest: &Peekable<Iter<'a, u8>>) -> Option<(u8, Peekable<Iter<'a, u8>>)> {
    let mut ahead = rest.clone();
    ahead.next_if(|byte| **byte == b'x')?;
    let high = char::from(*ahead.next()?).to_digit(16)?;
    let low = char::from(*ahead.next()?).to_digit(16)?;
    Some((u8::try_from(high * 16 + low).ok()?, ahead))
}

fn single_quoted(rest: &mut Peekable<Iter<'_, u8>>, word: &mut Vec<u8>) -> Result<(), BadLine> {
    loop {
        match *rest.next().ok_or(BadLine::UnbalancedQuotes)? {
            b'\'' => return Ok(()),
            b'\\' if rest.next_if(|byte| **byte == b'\'').is_some() => word.push(b'\''),
            byte => word.push(byte),
        }
    }
}

/// Quotes `word` for a configuration line: unchanged if possible, otherwise in double quotes. [`split`] reverses the
/// quoting.
pub(crate) fn quote(word: &str) -> String {
    let bare = |c: char| c.is_ascii_graphic() && !matches!(c, '"' | '\'' | '\\' | '#');
    if !word.is_empty() && word.chars().all(bare) {
        return word.to_owned();
    }
    let mut quoted = String::with_capacity(word.len() + 2);
    quoted.push('"');
    for c in word.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            c if c.is_ascii_control() => quoted.push_str(&format!("\\x{:02x}", u32::from(c))),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(line: &str) -> Vec<String> {
        split(line).unwrap()
    }

    #[test]
    fn words_are_separated_by_white_space() {
        assert_eq!(words("  bind \t127.0.0.1   ::1 \r\n"), ["bind", "127.0.0.1", "::1"]);
        assert!(words(" \t ").is_empty());
    }

    #[test]
    fn double_quotes_allow_escapes_and_single_quotes_only_an_escaped_quote() {
        assert_eq!(words(r#"a "b c\n\x41\"\\\q""#), ["a", "b c\nA\"\\q"]);
        assert_eq!(words(r"a 'b\n\'c'"), ["a", r"b\n'c"]);
        assert_eq!(words(r#"save """#), ["save", ""]);
        assert_eq!(words(r#"ab"c d""#), ["abc d"]);
        assert_eq!(words(r#""\xzz""#), ["xzz"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in ["\"a", "'a", "\"a\"b", "'a'b", "\"a\\", "\"a\\\""] {
            assert_eq!(split(line), Err(BadLine::UnbalancedQuotes), "{line}");
        }
        assert_eq!(split(r#""\xff""#), Err(BadLine::NotUtf8));
    }

    #[test]
    fn a_quoted_word_splits_to_itself() {
        for word in ["", "plain", "two words", "q\"uote", "it's", "back\\slash", "\x01\n\r\t", "#x", "é 漢"]
        {
            assert_eq!(words(&quote(word)), [word]);
        }
        assert_eq!(quote("127.0.0.1"), "127.0.0.1");
    }

    #[test]
    fn every_short_line_is_refused_or_can_be_quoted_back() {
        let symbols = ["a", " ", "\"", "'", "\\", "x", "4", "\0", "\n", "é"];
        for number in 0..symbols.len().pow(5) {
            let line: String =
                (0..5).map(|at| symbols[number / symbols.len().pow(at) % symbols.len()]).collect();
            if let Ok(words) = split(&line) {
                let quoted: Vec<_> = words.iter().map(|word| quote(word)).collect();
                assert_eq!(split(&quoted.join(" ")), Ok(words), "{line:?}");
            }
        }
    }

    #[test]
    fn a_nul_ends_a_word() {
        assert_eq!(words("a\0b"), ["a", "b"]);
    }
}
