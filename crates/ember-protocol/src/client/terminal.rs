//! Replies as redis-cli prints them on a terminal.

use super::Value;

/// The kind of a piece of a formatted reply, which for example determines its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece {
    /// A string in quotes.
    Text,
    /// A status or a verbatim string.
    Status,
    /// An error.
    Error,
    /// An integer, a double or a boolean, preceded by its type.
    Number,
    /// Null, or an aggregate without elements.
    Nothing,
    /// The label of an element: its number and a mark such as `)`.
    Label,
}

/// A function that appends a piece of a formatted reply of the given kind.
pub type Paint = dyn Fn(Piece, &[u8], &mut Vec<u8>);

/// Formats a reply as redis-cli does on a terminal, without the final line end.
pub fn render(value: &Value) -> Vec<u8> {
    render_with(value, &|_, piece, out| out.extend_from_slice(piece))
}

/// Like [`render`], with each piece written by `paint`.
pub fn render_with(value: &Value, paint: &Paint) -> Vec<u8> {
    let mut out = Vec::new();
    render_nested(value, 0, paint, &mut out);
    out
}

/// Formats a nested value. `indent` is the indentation of all lines after the first: the width of all labels before
/// this value.
fn render_nested(value: &Value, indent: usize, paint: &Paint, out: &mut Vec<u8>) {
    let prefixed = |kind: &str, text: &[u8]| [kind.as_bytes(), text].concat();
    match value {
        Value::Simple(text) | Value::Verbatim(_, text) | Value::BigNumber(text) => {
            paint(Piece::Status, text, out);
        }
        Value::Error(text) => paint(Piece::Error, &prefixed("(error) ", text), out),
        Value::Integer(number) => paint(Piece::Number, format!("(integer) {number}").as_bytes(), out),
        Value::Double(text) => paint(Piece::Number, &prefixed("(double) ", text), out),
        Value::Boolean(truth) => paint(Piece::Number, format!("({truth})").as_bytes(), out),
        Value::Bulk(text) => paint(Piece::Text, quote(text).as_bytes(), out),
        Value::Null => paint(Piece::Nothing, b"(nil)", out),
        Value::Array(elements) if elements.is_empty() => paint(Piece::Nothing, b"(empty array)", out),
        Value::Push(elements) if elements.is_empty() => paint(Piece::Nothing, b"(empty push)", out),
        Value::Set(elements) if elements.is_empty() => paint(Piece::Nothing, b"(empty set)", out),
        Value::Map(pairs) if pairs.is_empty() => paint(Piece::Nothing, b"(empty hash)", out),
        Value::Array(elements) | Value::Push(elements) | Value::Set(elements) => {
            let mark = if matches!(value, Value::Set(_)) { '~' } else { ')' };
            let width = elements.len().to_string().len();
            for (index, element) in elements.iter().enumerate() {
                label(index, width, mark, indent, paint, out);
                render_nested(element, indent + width + 2, paint, out);
            }
        }
        Value::Map(pairs) => {
            let width = pairs.len().to_string().len();
            for (index, (key, value)) in pairs.iter().enumerate() {
                label(index, width, '#', indent, paint, out);
                render_nested(key, indent + width + 2, paint, out);
                out.extend_from_slice(b" => ");
                let inner = indent + width + 2;
                // A value with several lines begins on a new line.
                if has_lines(value) {
                    out.push(b'\n');
                    out.resize(out.len() + inner, b' ');
                }
                render_nested(value, inner, paint, out);
            }
        }
        Value::Attribute(_, value) => render_nested(value, indent, paint, out),
    }
}

/// Whether the formatted value has several lines: any part of it has two or more elements.
fn has_lines(value: &Value) -> bool {
    match value {
        Value::Array(elements) | Value::Push(elements) | Value::Set(elements) => {
            elements.len() > 1 || elements.iter().any(has_lines)
        }
        Value::Map(pairs) => pairs.len() > 1 || pairs.iter().any(|(_, value)| has_lines(value)),
        Value::Attribute(_, value) => has_lines(value),
        _ => false,
    }
}

/// Writes the label of an element, on a new line except for the first element.
fn label(index: usize, width: usize, mark: char, indent: usize, paint: &Paint, out: &mut Vec<u8>) {
    if index > 0 {
        out.push(b'\n');
        out.resize(out.len() + indent, b' ');
    }
    paint(Piece::Label, format!("{:>width$}{mark}", index + 1).as_bytes(), out);
    out.push(b' ');
}

/// Quotes bytes with double quotes and the escapes of redis-cli; [`super::split_arguments`] parses the result back to
/// the same bytes.
pub fn quote(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() + 2);
    text.push('"');
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
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text.push('"');
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::split_arguments;

    fn shown(value: &Value) -> String {
        String::from_utf8(render(value)).unwrap()
    }

    #[test]
    fn replies_look_as_in_redis_cli() {
        assert_eq!(shown(&Value::ok()), "OK");
        assert_eq!(shown(&Value::Integer(3)), "(integer) 3");
        assert_eq!(shown(&Value::from("a\"\u{1}\n")), r#""a\"\x01\n""#);
        assert_eq!(shown(&Value::Error(b"ERR x".to_vec())), "(error) ERR x");
        let nested =
            Value::Array(vec![Value::Array(vec![Value::from("a"), Value::Null]), Value::Array(vec![])]);
        assert_eq!(shown(&nested), "1) 1) \"a\"\n   2) (nil)\n2) (empty array)");
        let long = Value::Array((0..10).map(Value::Integer).collect());
        assert!(shown(&long).starts_with(" 1) (integer) 0\n 2) "));
        assert!(shown(&long).ends_with("\n10) (integer) 9"));
        let map = Value::Map(vec![
            (Value::from("k"), Value::Boolean(true)),
            (Value::from("l"), Value::Set(vec![])),
        ]);
        assert_eq!(shown(&map), "1# \"k\" => (true)\n2# \"l\" => (empty set)");
        let list = Value::Array(vec![Value::Integer(1), map]);
        let nested =
            Value::Map(vec![(Value::from("a"), list), (Value::from("b"), Value::Set(vec![Value::Null]))]);
        assert_eq!(
            shown(&nested),
            "1# \"a\" => \n   1) (integer) 1\n   2) 1# \"k\" => (true)\n      2# \"l\" => (empty set)\n\
             2# \"b\" => 1~ (nil)"
        );
    }

    #[test]
    fn reply_pieces_are_colored_by_kind() {
        let list = Value::Array(vec![Value::from("a"), Value::Null]);
        let painted = render_with(&list, &|piece, text, out| {
            out.extend_from_slice(format!("<{piece:?} {}>", String::from_utf8_lossy(text)).as_bytes());
        });
        assert_eq!(
            String::from_utf8(painted).unwrap(),
            "<Label 1)> <Text \"a\">\n<Label 2)> <Nothing (nil)>"
        );
    }

    #[test]
    fn split_arguments_reads_the_output_of_quote() {
        let all: Vec<u8> = (0..=255).collect();
        assert_eq!(split_arguments(format!("GET {}", quote(&all))), Some(vec![b"GET".to_vec(), all]));
    }
}
