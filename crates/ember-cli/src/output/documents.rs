//! Formats replies that contain JSON documents for a prompt: one member or element per line.

use ember_protocol::client::{Paint, Piece, Value, quote};

/// The indentation of a level.
const INDENT: usize = 2;

/// Formats a reply that is a document or an array of documents, without the line end; `None` for other replies and for
/// texts that are not JSON objects or arrays.
pub(super) fn format(value: &Value, paint: &Paint) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match value {
        Value::Bulk(text) if is_container(text) => indent(text, 0, paint, &mut out),
        Value::Array(elements)
            if elements.iter().any(|element| element.bytes().is_some_and(is_container)) =>
        {
            let width = elements.len().to_string().len();
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b'\n');
                }
                paint(Piece::Label, format!("{:>width$})", index + 1).as_bytes(), &mut out);
                out.push(b' ');
                match element {
                    Value::Bulk(text) if is_container(text) => indent(text, width + 2, paint, &mut out),
                    Value::Bulk(text) => paint(Piece::Text, quote(text).as_bytes(), &mut out),
                    Value::Null => paint(Piece::Nothing, b"(nil)", &mut out),
                    _ => return None,
                }
            }
        }
        _ => return None,
    }
    Some(out)
}

/// Whether a text is a JSON object or array on one line, without characters that control a terminal.
fn is_container(text: &[u8]) -> bool {
    matches!(text.first(), Some(b'{' | b'['))
        && std::str::from_utf8(text).is_ok_and(|text| !text.contains(char::is_control))
        && serde_json::from_slice::<serde_json::Value>(text).is_ok()
}

/// Appends a valid JSON text with line ends. All lines after the first have at least `margin` blanks.
fn indent(text: &[u8], margin: usize, paint: &Paint, out: &mut Vec<u8>) {
    let mut level = 0;
    let line = |level: usize, out: &mut Vec<u8>| {
        out.push(b'\n');
        out.resize(out.len() + margin + level * INDENT, b' ');
    };
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let mut len = 1;
        match first {
            b' ' => {}
            b'{' | b'[' => {
                out.push(first);
                if after.trim_ascii_start().first() == Some(&(first + 2)) {
                    out.push(first + 2);
                    len = rest.len() - after.trim_ascii_start().len() + 1;
                } else {
                    level += 1;
                    line(level, out);
                }
            }
            b'}' | b']' => {
                level -= 1;
                line(level, out);
                out.push(first);
            }
            b',' => {
                out.push(first);
                line(level, out);
            }
            b':' => out.extend_from_slice(b": "),
            b'"' => {
                len = string_len(rest);
                let is_name = rest[len..].trim_ascii_start().starts_with(b":");
                paint(if is_name { Piece::Status } else { Piece::Text }, &rest[..len], out);
            }
            _ => {
                let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ');
                len = rest.iter().position(is_end).unwrap_or(rest.len());
                paint(if first == b'n' { Piece::Nothing } else { Piece::Number }, &rest[..len], out);
            }
        }
        rest = &rest[len..];
    }
}

/// Returns the length of the string at the beginning of a valid JSON text, with its quotes.
fn string_len(text: &[u8]) -> usize {
    let mut is_escaped = false;
    let end = text[1..].iter().position(|&byte| {
        let is_end = byte == b'"' && !is_escaped;
        is_escaped = byte == b'\\' && !is_escaped;
        is_end
    });
    end.map_or(text.len(), |end| end + 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(value: &Value) -> Option<String> {
        let plain: &Paint = &|_, piece, out| out.extend_from_slice(piece);
        format(value, plain).map(|text| String::from_utf8(text).unwrap())
    }

    #[test]
    fn documents_have_one_member_per_line() {
        let text = r#"{"a":[1,-2.50,{}],"b\"\\":{"c": null, "d":"x:{,y"},"e":[ ],"f":true}"#;
        let expected = r#"{
  "a": [
    1,
    -2.50,
    {}
  ],
  "b\"\\": {
    "c": null,
    "d": "x:{,y"
  },
  "e": [],
  "f": true
}"#;
        assert_eq!(shown(&Value::from(text)).as_deref(), Some(expected));
        let several = Value::Array(vec![Value::from("[1]"), Value::Null, Value::from("x")]);
        assert_eq!(shown(&several).as_deref(), Some("1) [\n     1\n   ]\n2) (nil)\n3) \"x\""));
    }

    #[test]
    fn other_replies_keep_their_form() {
        for text in ["5", "\"a\"", "{\"a\"", "[1] [2]", "{\n}", "[\"\u{9b}31m\"]", ""] {
            assert_eq!(shown(&Value::from(text)), None, "{text:?}");
        }
        assert_eq!(shown(&Value::Null), None);
        assert_eq!(shown(&Value::Array(vec![Value::from("x")])), None);
    }
}
