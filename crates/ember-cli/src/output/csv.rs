//! Formats replies as comma-separated values, on one line whatever their structure.

use ember_protocol::client::{Value, quote};

/// Formats a reply, without the line end.
pub(crate) fn format(value: &Value) -> Vec<u8> {
    let mut fields = Vec::new();
    add(value, &mut fields);
    fields.join(",").into_bytes()
}

fn add(value: &Value, fields: &mut Vec<String>) {
    match value {
        Value::Null => fields.push("NULL".to_owned()),
        Value::Error(text) => fields.extend(["ERROR".to_owned(), quote(text)]),
        Value::Simple(text) | Value::Bulk(text) | Value::Verbatim(_, text) => fields.push(quote(text)),
        Value::BigNumber(text) => fields.push(quote(text)),
        Value::Double(text) => fields.push(String::from_utf8_lossy(text).into_owned()),
        Value::Integer(number) => fields.push(number.to_string()),
        Value::Boolean(truth) => fields.push(truth.to_string()),
        // An empty aggregate is printed as an empty field.
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) if elements.is_empty() => {
            fields.push(String::new());
        }
        Value::Map(pairs) if pairs.is_empty() => fields.push(String::new()),
        Value::Array(elements) | Value::Set(elements) | Value::Push(elements) => {
            elements.iter().for_each(|element| add(element, fields));
        }
        Value::Map(pairs) => {
            for (key, value) in pairs {
                add(key, fields);
                add(value, fields);
            }
        }
        Value::Attribute(_, value) => add(value, fields),
    }
}
