//! JSON forms of commands and replies, which may contain arbitrary bytes.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ember_protocol::client::Value;
use serde_json::Value as Json;

/// The maximum number of commands in a request.
const COMMANDS_MAX: usize = 512;

/// The words of a command, beginning with its name.
pub(super) type Words = Vec<Vec<u8>>;

/// The contents of a request.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Commands {
    /// The database in which the commands run.
    pub(super) database: u64,
    pub(super) commands: Vec<Words>,
}

/// Parses `{"database": 0, "commands": [["GET", "key"], …]}`; `database` is optional.
///
/// # Errors
/// Returns a message that describes the mistake.
pub(super) fn parse(body: &[u8]) -> Result<Commands, String> {
    let body: Json = serde_json::from_slice(body).map_err(|error| format!("invalid JSON: {error}"))?;
    let Json::Object(mut fields) = body else { return Err("expected an object".to_owned()) };
    let database = fields.remove("database").map_or(Some(0), |number| number.as_u64());
    let database = database.ok_or("'database' must be a number")?;
    let Some(Json::Array(commands)) = fields.remove("commands") else {
        return Err("'commands' must be an array".to_owned());
    };
    if let Some(name) = fields.keys().next() {
        return Err(format!("'{name}' is unknown"));
    }
    if commands.len() > COMMANDS_MAX {
        return Err(format!("a request has at most {COMMANDS_MAX} commands"));
    }
    let commands = commands.into_iter().map(words).collect::<Result<_, _>>()?;
    Ok(Commands { database, commands })
}

fn words(command: Json) -> Result<Words, String> {
    let words = match command {
        Json::Array(words) if !words.is_empty() => words,
        _ => return Err("a command must be an array of at least one word".to_owned()),
    };
    words.into_iter().map(word).collect()
}

fn word(word: Json) -> Result<Vec<u8>, String> {
    let decoded = match word {
        Json::String(text) => Some(text.into_bytes()),
        Json::Object(fields) if fields.len() == 1 => {
            fields.get("base64").and_then(Json::as_str).and_then(|text| STANDARD.decode(text).ok())
        }
        _ => None,
    };
    decoded.ok_or_else(|| "a word must be a string, or an object with the field 'base64'".to_owned())
}

/// Appends a reply without its attributes. Writes text directly, because a JSON tree would take a hundred times the
/// memory.
pub(super) fn write_reply(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Simple(text) => write_named("simple", |out| write_text(text, out), out),
        Value::Error(text) => write_named("error", |out| write_text(text, out), out),
        Value::Integer(number) => write_named("integer", |out| write_string(&number.to_string(), out), out),
        Value::Double(digits) => write_named("double", |out| write_text(digits, out), out),
        Value::BigNumber(digits) => write_named("number", |out| write_text(digits, out), out),
        Value::Bulk(content) | Value::Verbatim(_, content) => match std::str::from_utf8(content) {
            Ok(text) => write_named("text", |out| write_string(text, out), out),
            Err(_) => write_named("base64", |out| write_string(&STANDARD.encode(content), out), out),
        },
        Value::Null => out.extend_from_slice(b"null"),
        Value::Boolean(truth) => out.extend_from_slice(if *truth { b"true" } else { b"false" }),
        Value::Array(values) | Value::Push(values) => write_list(values, write_reply, out),
        Value::Set(values) => write_named("set", |out| write_list(values, write_reply, out), out),
        Value::Map(pairs) => {
            let write_pair = |(key, value): &(Value, Value), out: &mut Vec<u8>| {
                write_list([key, value], write_reply, out);
            };
            write_named("map", |out| write_list(pairs, write_pair, out), out);
        }
        Value::Attribute(_, value) => write_reply(value, out),
    }
}

/// Appends a JSON array whose elements `write` appends.
pub(super) fn write_list<T>(
    items: impl IntoIterator<Item = T>,
    write: impl Fn(T, &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        write(item, out);
    }
    out.push(b']');
}

/// Appends an object with one member, whose name needs no escapes.
fn write_named(name: &str, write: impl FnOnce(&mut Vec<u8>), out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
    write(out);
    out.push(b'}');
}

fn write_text(text: &[u8], out: &mut Vec<u8>) {
    write_string(&String::from_utf8_lossy(text), out);
}

/// Appends a JSON string.
pub(super) fn write_string(text: &str, out: &mut Vec<u8>) {
    serde_json::to_writer(out, text).expect("every string has a form, and memory takes it");
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_of_any_bytes_are_read() {
        let body = br#"{"database": 3, "commands": [["SET", "k\u0000", {"base64": "/wA="}], ["PING"]]}"#;
        let set = vec![b"SET".to_vec(), b"k\0".to_vec(), vec![0xff, 0]];
        assert_eq!(parse(body), Ok(Commands { database: 3, commands: vec![set, vec![b"PING".to_vec()]] }));
        assert_eq!(parse(br#"{"commands": []}"#), Ok(Commands { database: 0, commands: vec![] }));
    }

    #[test]
    fn invalid_requests_are_rejected_with_a_reason() {
        let many = format!(r#"{{"commands": [{}["PING"]]}}"#, r#"["PING"],"#.repeat(COMMANDS_MAX));
        let deep = format!(r#"{{"commands": {}"#, "[".repeat(100_000));
        for body in [
            "",
            "[]",
            "{}",
            r#"{"commands": [[]]}"#,
            r#"{"commands": ["PING"]}"#,
            r#"{"commands": [[1]]}"#,
            r#"{"commands": [[{"base64": "?"}]]}"#,
            r#"{"commands": [[{"base64": "", "text": ""}]]}"#,
            r#"{"database": -1, "commands": []}"#,
            r#"{"commands": [], "more": 1}"#,
            &many,
            &deep,
        ] {
            assert!(parse(body.as_bytes()).is_err_and(|reason| !reason.is_empty()), "{body:.60}");
        }
    }

    #[test]
    fn every_type_of_reply_is_encoded() {
        let value = Value::Map(vec![
            (Value::Simple(b"OK".to_vec()), Value::Integer(i64::MIN)),
            (Value::from("a\n"), Value::Bulk(vec![0xff])),
            (Value::Null, Value::Set(vec![Value::Boolean(true), Value::Double(b"inf".to_vec())])),
            (
                Value::Error(b"ERR x".to_vec()),
                Value::Array(vec![
                    Value::Verbatim(b"txt".to_vec(), b"v".to_vec()),
                    Value::Attribute(vec![], Box::new(Value::BigNumber(b"9".to_vec()))),
                ]),
            ),
        ]);
        let expected = json!({ "map": [
            [{ "simple": "OK" }, { "integer": "-9223372036854775808" }],
            [{ "text": "a\n" }, { "base64": "/w==" }],
            [null, { "set": [true, { "double": "inf" }] }],
            [{ "error": "ERR x" }, [{ "text": "v" }, { "number": "9" }]],
        ]});
        let mut text = Vec::new();
        write_reply(&value, &mut text);
        assert_eq!(serde_json::from_slice::<Json>(&text).unwrap(), expected);
    }
}
