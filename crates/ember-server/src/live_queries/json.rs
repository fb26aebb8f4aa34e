//! A state as JSON, for messages of channels and for browsers: `{"version":"…","result":…}`.
//!
//! ```text
//! string          "text"; {"base64":"…"} if the bytes are not UTF-8
//! integer, double 12, 1.5; "inf" if JSON cannot represent the number
//! nothing         null
//! array, set      [result,…]
//! map             {"field":result,…}; [[result,result],…] if a field is not a text
//! error           {"error":"WRONGTYPE …"}
//! ```

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_protocol::client::{Value, read_value};
use serde_json::{Map, Value as Json, json};

/// Returns the JSON message for a state, given its version and its result in RESP3.
pub(super) fn message(version: &str, result: &[u8]) -> Vec<u8> {
    let result = match read_value(&mut &*result) {
        Ok(value) => of_value(&value),
        // This does not occur: a reply of the server itself is always complete.
        Err(error) => json!({ "error": format!("ERR {error}") }),
    };
    json!({ "version": version, "result": result }).to_string().into_bytes()
}

/// Converts a value of a reply to JSON.
pub(crate) fn of_value(value: &Value) -> Json {
    match value {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Verbatim(_, bytes) | Value::BigNumber(bytes) => {
            match std::str::from_utf8(bytes) {
                Ok(text) => Json::from(text),
                Err(_) => json!({ "base64": STANDARD.encode(bytes) }),
            }
        }
        Value::Error(text) => json!({ "error": String::from_utf8_lossy(text) }),
        Value::Integer(number) => Json::from(*number),
        Value::Double(digits) => {
            let digits = String::from_utf8_lossy(digits);
            let number = digits.parse().ok().and_then(serde_json::Number::from_f64);
            number.map_or_else(|| Json::from(&*digits), Json::Number)
        }
        Value::Null => Json::Null,
        Value::Boolean(truth) => Json::from(*truth),
        Value::Array(values) | Value::Push(values) | Value::Set(values) => {
            values.iter().map(of_value).collect()
        }
        Value::Map(pairs) => map_to_json(pairs),
        Value::Attribute(_, value) => of_value(value),
    }
}

fn map_to_json(pairs: &[(Value, Value)]) -> Json {
    let field = |(name, value): &(Value, Value)| match of_value(name) {
        Json::String(name) => Some((name, of_value(value))),
        _ => None,
    };
    match pairs.iter().map(field).collect::<Option<Map<String, Json>>>() {
        Some(fields) => Json::Object(fields),
        None => {
            pairs.iter().map(|(name, value)| Json::Array(vec![of_value(name), of_value(value)])).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_of_result_is_encoded() {
        for (result, expected) in [
            (&b"$5\r\nprice\r\n"[..], json!("price")),
            (b"$1\r\n\xff\r\n", json!({ "base64": "/w==" })),
            (b":12\r\n", json!(12)),
            (b",1.5\r\n", json!(1.5)),
            (b",inf\r\n", json!("inf")),
            (b"_\r\n", Json::Null),
            (b"~2\r\n+a\r\n*0\r\n", json!(["a", []])),
            (b"%1\r\n$1\r\nf\r\n$1\r\nv\r\n", json!({ "f": "v" })),
            (b"%1\r\n$1\r\n\xff\r\n$1\r\nv\r\n", json!([[{ "base64": "/w==" }, "v"]])),
            (b"-WRONGTYPE x\r\n", json!({ "error": "WRONGTYPE x" })),
        ] {
            let message: Json = serde_json::from_slice(&message("v-1", result)).unwrap();
            assert_eq!(message, json!({ "version": "v-1", "result": expected }));
        }
    }
}
