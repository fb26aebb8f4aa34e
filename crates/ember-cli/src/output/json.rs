//! Formats replies as JSON in redis-cli's form: an error is printed as `error:"…"`, which is deliberately not valid
//! JSON.

use ember_protocol::client::{Value, quote};

/// The encoding of strings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Strings {
    /// Strings are written unchanged except for JSON escapes: valid JSON if they are UTF-8.
    Utf8,
    /// Strings are written as quoted strings, whose backslashes are escaped again: always ASCII.
    Quoted,
}

/// Formats a reply, without the line end.
pub(super) fn format(value: &Value, strings: Strings) -> Vec<u8> {
    let mut out = Vec::new();
    add(value, strings, &mut out);
    out
}

fn add(value: &Value, strings: Strings, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Error(text) => {
            out.extend_from_slice(b"error:");
            add_string(text, strings, out);
        }
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim(_, text) => add_string(text, strings, out),
        Value::BigNumber(text) => add_string(text, strings, out),
        Value::Double(text) => out.extend_from_slice(text),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Boolean(truth) => out.extend_from_slice(truth.to_string().as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            out.push(b'[');
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                add(element, strings, out);
            }
            out.push(b']');
        }
        Value::Map(pairs) => {
            out.push(b'{');
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                add_name(key, strings, out);
                out.push(b':');
                add(value, strings, out);
            }
            out.push(b'}');
        }
        Value::Attribute(_, value) => add(value, strings, out),
    }
}

/// Writes a name of an object, which must be a string: other values are written as the text of their JSON.
fn add_name(key: &Value, strings: Strings, out: &mut Vec<u8>) {
    match key {
        Value::Simple(_) | Value::Bulk(_) | Value::Verbatim(..) | Value::Error(_) => add(key, strings, out),
        other => escape(&format(other, strings), out),
    }
}

fn add_string(text: &[u8], strings: Strings, out: &mut Vec<u8>) {
    match strings {
        Strings::Utf8 => escape(text, out),
        Strings::Quoted => {
            let quoted = quote(text);
            escape(&quoted.as_bytes()[1..quoted.len() - 1], out);
        }
    }
}

/// Writes bytes in double quotes with the escapes of JSON (RFC 8259, section 7).
fn escape(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match byte {
            b'\\' | b'"' => out.extend_from_slice(&[b'\\', byte]),
            b'\n' => out.extend_from_slice(b"\\n"),
            0x0C => out.extend_from_slice(b"\\f"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0..=0x1F => out.extend_from_slice(format!("\\u{byte:04x}").as_bytes()),
            _ => out.push(byte),
        }
    }
    out.push(b'"');
}
