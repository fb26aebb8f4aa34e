//! Replies as redis-cli prints them on a terminal, and command lines split as redis-cli splits them.

use std::fmt::Write;

use crate::value::Value;

/// A reply as redis-cli shows it on a terminal, without the final line end.
pub fn render(value: &Value) -> String {
    render_nested(value, 0)
}

/// `indent` is how far the lines after the first are moved right: the width of all labels in front of this value.
fn render_nested(value: &Value, indent: usize) -> String {
    match value {
        Value::Simple(text) | Value::Verbatim(_, text) | Value::BigNumber(text) => lossy(text),
        Value::Error(text) => format!("(error) {}", lossy(text)),
        Value::Integer(number) => format!("(integer) {number}"),
        Value::Double(text) => format!("(double) {}", lossy(text)),
        Value::Boolean(truth) => format!("({truth})"),
        Value::Bulk(text) => quote(text),
        Value::Null => "(nil)".to_owned(),
        Value::Array(elements) => render_list(elements, ")", "(empty array)", indent),
        Value::Push(elements) => render_list(elements, ")", "(empty push)", indent),
        Value::Set(elements) => render_list(elements, "~", "(empty set)", indent),
        Value::Map(pairs) if pairs.is_empty() => "(empty hash)".to_owned(),
        Value::Map(pairs) => {
            let width = pairs.len().to_string().len();
            let mut lines = Vec::new();
            for (index, (key, value)) in pairs.iter().enumerate() {
                let left = if index == 0 { 0 } else { indent };
                let inner = indent + width + 2;
                let key = render_nested(key, inner);
                let value = render_nested(value, inner);
                lines.push(format!("{:left$}{:>width$}# {key} => {value}", "", index + 1));
            }
            lines.join("\n")
        }
        Value::Attribute(_, value) => render_nested(value, indent),
    }
}

fn render_list(elements: &[Value], mark: &str, empty: &str, indent: usize) -> String {
    if elements.is_empty() {
        return empty.to_owned();
    }
    let width = elements.len().to_string().len();
    let mut lines = Vec::new();
    for (index, element) in elements.iter().enumerate() {
        let left = if index == 0 { 0 } else { indent };
        let element = render_nested(element, indent + width + 2);
        lines.push(format!("{:left$}{:>width$}{mark} {element}", "", index + 1));
    }
    lines.join("\n")
}

/// Bytes between double quotes, with the escapes redis-cli uses; [`split_arguments`] reads them back.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::from("\"");
    for &byte in bytes {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b'"' => text.push_str("\\\""),
            b'\n' => text.push_str("\\n"),
            b'\r' => text.push_str("\\r"),
            b'\t' => text.push_str("\\t"),
            7 => text.push_str("\\a"),
            8 => text.push_str("\\b"),
            b' '..=b'~' => text.push(byte as char),
            _ => write!(text, "\\x{byte:02x}").expect("writing to a string cannot fail"),
        }
    }
    text.push('"');
    text
}

/// Splits a command line into arguments: blanks separate, `"…"` has escapes (`\n`, `\xff`, …), `'…'` has only `\'`.
///
/// Returns `None` for an open quote, or text directly behind a closing one.
pub fn split_arguments(line: &str) -> Option<Vec<Vec<u8>>> {
    let mut arguments = Vec::new();
    let mut rest = line.trim_ascii().as_bytes();
    while !rest.is_empty() {
        let mut argument = Vec::new();
        loop {
            match rest {
                [] => break,
                [b' ' | b'\t' | b'\n' | b'\r', ..] => break,
                [quote @ (b'"' | b'\''), tail @ ..] => {
                    rest = split_quoted(tail, *quote, &mut argument)?;
                    if !rest.first().is_none_or(u8::is_ascii_whitespace) {
                        return None;
                    }
                }
                [byte, tail @ ..] => {
                    argument.push(*byte);
                    rest = tail;
                }
            }
        }
        arguments.push(argument);
        rest = rest.trim_ascii_start();
    }
    Some(arguments)
}

/// Takes text up to the closing quote into `argument`; returns what stands behind the quote.
fn split_quoted<'a>(mut rest: &'a [u8], quote: u8, argument: &mut Vec<u8>) -> Option<&'a [u8]> {
    loop {
        rest = match rest {
            [] => return None,
            [byte, tail @ ..] if *byte == quote => return Some(tail),
            [b'\\', b'x', high, low, tail @ ..]
                if quote == b'"' && high.is_ascii_hexdigit() && low.is_ascii_hexdigit() =>
            {
                let digit =
                    |byte: u8| (byte as char).to_digit(16).expect("the guard lets only digits in") as u8;
                argument.push(digit(*high) << 4 | digit(*low));
                tail
            }
            [b'\\', byte, tail @ ..] if quote == b'"' => {
                argument.push(match byte {
                    b'n' => b'\n',
                    b'r' => b'\r',
                    b't' => b'\t',
                    b'b' => 8,
                    b'a' => 7,
                    other => *other,
                });
                tail
            }
            [b'\\', b'\'', tail @ ..] if quote == b'\'' => {
                argument.push(b'\'');
                tail
            }
            [byte, tail @ ..] => {
                argument.push(*byte);
                tail
            }
        }
    }
}

fn lossy(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_look_as_in_redis_cli() {
        assert_eq!(render(&Value::ok()), "OK");
        assert_eq!(render(&Value::Integer(3)), "(integer) 3");
        assert_eq!(render(&Value::from("a\"\u{1}\n")), r#""a\"\x01\n""#);
        assert_eq!(render(&Value::Error(b"ERR x".to_vec())), "(error) ERR x");
        let nested =
            Value::Array(vec![Value::Array(vec![Value::from("a"), Value::Null]), Value::Array(vec![])]);
        assert_eq!(render(&nested), "1) 1) \"a\"\n   2) (nil)\n2) (empty array)");
        let long = Value::Array((0..10).map(Value::Integer).collect());
        assert!(render(&long).starts_with(" 1) (integer) 0\n 2) "));
        assert!(render(&long).ends_with("\n10) (integer) 9"));
        let map = Value::Map(vec![
            (Value::from("k"), Value::Boolean(true)),
            (Value::from("l"), Value::Set(vec![])),
        ]);
        assert_eq!(render(&map), "1# \"k\" => (true)\n2# \"l\" => (empty set)");
    }

    #[test]
    fn what_quote_writes_split_arguments_reads() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(split_arguments(&format!("GET {}", quote(&all))), Some(vec![b"GET".to_vec(), all]));
    }

    #[test]
    fn quotes_group_words_and_open_ones_are_refused() {
        let words = |line| {
            split_arguments(line).map(|words| words.iter().map(|word| lossy(word)).collect::<Vec<_>>())
        };
        assert_eq!(
            words("  a  'b c' \"d\\te\" '' "),
            Some(vec!["a".into(), "b c".into(), "d\te".into(), "".into()])
        );
        assert_eq!(words("'it\\'s'"), Some(vec!["it's".into()]));
        assert_eq!(words(""), Some(vec![]));
        assert_eq!(words("\"open"), None);
        assert_eq!(words("'a'b"), None);
    }
}
