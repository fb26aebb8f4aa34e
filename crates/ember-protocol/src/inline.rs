//! Inline commands: a line of words, as typed into a terminal, split by the quoting rules of Redis.
//!
//! A word ends at white space. Inside `"…"` a backslash starts an escape (`\n \r \t \b \a \xHH`, any other character is
//! literal); inside `'…'` only `\'` is an escape. A quote may open in the middle of a word, but a closing quote must be
//! followed by white space or the end of the line.

use std::sync::Arc;

use crate::arguments::{Span, push_owned};

/// The line has a quote that is not closed, or text right after a closing quote.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct UnbalancedQuotes;

/// Splits `line` (without its line end) into words. A word without quotes becomes a span relative to the start of the
/// line; a quoted word has a separate buffer. On error, words added before the invalid one remain.
///
/// The caller limits the length of the line, so its offsets fit in 32 bits.
pub(crate) fn split(
    line: &[u8],
    spans: &mut Vec<Span>,
    buffers: &mut Vec<Arc<Vec<u8>>>,
) -> Result<(), UnbalancedQuotes> {
    let mut at = 0;
    loop {
        while line.get(at).is_some_and(|&byte| is_space(byte)) {
            at += 1;
        }
        if at == line.len() {
            return Ok(());
        }
        let plain = line[at..].iter().position(|&byte| ends_word(byte) || byte == b'"' || byte == b'\'');
        let end = plain.map_or(line.len(), |len| at + len);
        match line.get(end) {
            Some(b'"' | b'\'') => {
                let (word, next) = quoted_word(line, at)?;
                push_owned(spans, buffers, word);
                at = next;
            }
            _ => {
                spans.push(Span::new(at as u32, (end - at) as u32));
                at = end;
            }
        }
    }
}

/// Returns the word that starts at `at` without its quotes and escapes, and its end in the line.
fn quoted_word(line: &[u8], mut at: usize) -> Result<(Vec<u8>, usize), UnbalancedQuotes> {
    let mut word = Vec::new();
    while let Some(&byte) = line.get(at) {
        match byte {
            b'"' | b'\'' => {
                at = unquote(line, at + 1, byte, &mut word)?;
                return match line.get(at) {
                    Some(&next) if !is_space(next) => Err(UnbalancedQuotes),
                    _ => Ok((word, at)),
                };
            }
            _ => word.push(byte),
        }
        at += 1;
    }
    Ok((word, at))
}

/// Appends the text between `at` and the closing `quote` to `word`; returns the offset after that quote.
fn unquote(line: &[u8], mut at: usize, quote: u8, word: &mut Vec<u8>) -> Result<usize, UnbalancedQuotes> {
    loop {
        match line.get(at..) {
            Some(&[byte, ..]) if byte == quote => return Ok(at + 1),
            Some(&[b'\\', b'x', high, low, ..])
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                word.push(hex_digit(high) << 4 | hex_digit(low));
                at += 4;
            }
            Some(&[b'\\', escaped, ..]) if quote == b'"' => {
                word.push(unescape(escaped));
                at += 2;
            }
            Some(&[b'\\', b'\'', ..]) => {
                word.push(b'\'');
                at += 2;
            }
            Some(&[byte, ..]) => {
                word.push(byte);
                at += 1;
            }
            Some(&[]) | None => return Err(UnbalancedQuotes),
        }
    }
}

fn unescape(escaped: u8) -> u8 {
    match escaped {
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 0x08,
        b'a' => 0x07,
        other => other,
    }
}

fn hex_digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        _ => (digit | 0x20) - b'a' + 10,
    }
}

/// Whether `byte` is white space that separates words, which includes the vertical tab and form feed.
fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Whether `byte` is white space that ends an unquoted word: the vertical tab and form feed do not.
fn ends_word(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Batch;

    fn words(line: &[u8]) -> Result<Vec<Vec<u8>>, UnbalancedQuotes> {
        let mut batch = Batch::new();
        split(line, &mut batch.spans, &mut batch.buffers)?;
        batch.ends.push(batch.spans.len());
        Ok(batch.command(0, line).iter().map(<[u8]>::to_vec).collect())
    }

    #[track_caller]
    fn gives(line: &[u8], expected: &[&[u8]]) {
        assert_eq!(words(line).unwrap(), expected);
    }

    #[test]
    fn words_are_split_at_white_space() {
        gives(b"", &[]);
        gives(b" \t ", &[]);
        gives(b"PING", &[b"PING"]);
        gives(b"  SET\tkey  value ", &[b"SET", b"key", b"value"]);
        gives(b"a\rb\r", &[b"a", b"b"]);
    }

    #[test]
    fn vertical_tab_separates_words_only_at_their_start() {
        gives(b"\x0b\x0ca", &[b"a"]);
        gives(b"a\x0bb\x0c", &[b"a\x0bb\x0c"]);
        gives(b"\"a\"\x0bb", &[b"a", b"b"]);
    }

    #[test]
    fn quotes_and_escapes_are_undone() {
        gives(br#"a "" '' b"#, &[b"a", b"", b"", b"b"]);
        gives(br#"a"b c""#, &[b"ab c"]);
        gives(br#""\x41\n\r\t\b\a\q\"\\""#, &[b"A\n\r\t\x08\x07q\"\\"]);
        gives(br#""\x4g\xAg\xfF""#, &[b"x4gxAg\xff"]);
        gives(br#"'a\'b\n"'"#, &[b"a'b\\n\""]);
        gives(b"\"a\x00b\" c\x00d", &[b"a\0b", b"c\0d"]);
    }

    #[test]
    fn unbalanced_quotes_are_refused() {
        for line in [&b"\"a"[..], b"'a", b"\"a\"b", b"'a'b", b"\"\\\"", b"\"a\"\"b\"", b"a \"\\", b"'\\'"] {
            assert_eq!(words(line), Err(UnbalancedQuotes), "{}", String::from_utf8_lossy(line));
        }
    }
}
