//! Formats replies as bytes: strings unchanged, elements separated by a delimiter.

use ember_protocol::client::Value;

/// Formats a reply, without the final delimiter.
pub(super) fn format(value: &Value, delimiter: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    add(value, delimiter, &mut out);
    out
}

fn add(value: &Value, delimiter: &[u8], out: &mut Vec<u8>) {
    match value {
        Value::Null => {}
        Value::Error(text) => {
            out.extend_from_slice(text);
            out.push(b'\n');
        }
        Value::Simple(text)
        | Value::Bulk(text)
        | Value::Verbatim(_, text)
        | Value::BigNumber(text)
        | Value::Double(text) => out.extend_from_slice(text),
        Value::Integer(number) => out.extend_from_slice(number.to_string().as_bytes()),
        Value::Boolean(truth) => out.extend_from_slice(format!("({truth})").as_bytes()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            for (index, element) in elements.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                add(element, delimiter, out);
            }
        }
        Value::Map(pairs) => {
            for (index, (key, value)) in pairs.iter().enumerate() {
                if index > 0 {
                    out.extend_from_slice(delimiter);
                }
                add(key, delimiter, out);
                out.push(b' ');
                add(value, delimiter, out);
            }
        }
        Value::Attribute(_, value) => add(value, delimiter, out),
    }
}
