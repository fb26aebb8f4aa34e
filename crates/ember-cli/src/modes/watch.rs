//! Prints the successive states of a live query (`--watch`): a lost connection is reopened and resumes after the last
//! state. This also applies if the server's data is older than that state.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ember_client::put;
use ember_protocol::client::Value;

use super::failure::Failure;
use crate::client::{Client, report_lost};
use crate::output::{Contents, Form};
use crate::pause::pause;

/// The default pause before a lost connection is reopened (`-i`).
const RETRY: Duration = Duration::from_secs(1);

/// Prints states until the server reports that no further states will follow.
pub(super) fn run(client: &mut Client, command: &[OsString], since: Option<&str>) -> Result<(), Failure> {
    if command.is_empty() {
        return Err(Failure::Said("--watch needs a command, for example: --watch GET price".to_owned()));
    }
    let mut since = since.map(str::to_owned);
    loop {
        match follow(client, command, &mut since) {
            Err(Failure::Lost(error)) => report_lost(&error),
            other => return other,
        }
        loop {
            pause(if client.interval.is_zero() { RETRY } else { client.interval });
            if client.connect() {
                break;
            }
        }
    }
}

/// Watches the query from the version `since` on; each state updates `since`.
fn follow(client: &mut Client, command: &[OsString], since: &mut Option<String>) -> Result<(), Failure> {
    let mut words = vec![b"WATCH.OPEN".to_vec()];
    if let Some(version) = since {
        words.extend([b"SINCE".to_vec(), version.clone().into_bytes()]);
    }
    words.push(b"COMMAND".to_vec());
    words.extend(command.iter().map(|word| word.clone().into_vec()));
    let connection = client.connection.as_mut().ok_or(io::Error::from(io::ErrorKind::NotConnected))?;
    connection.send(&words)?;
    loop {
        let connection = client.connection.as_mut().ok_or(io::Error::from(io::ErrorKind::NotConnected))?;
        let message = connection.receive()?;
        if let Value::Error(text) = &message {
            if text.starts_with(b"BEHIND ") {
                // The server is a replica that will catch up, or another server under this address: retry later.
                return Err(Failure::Lost(io::Error::other(String::from_utf8_lossy(text).into_owned())));
            }
            return Err(Failure::Said(String::from_utf8_lossy(text).into_owned()));
        }
        let Some((version, result)) = state_of(&message) else { continue };
        if since.as_deref() == Some(&version) {
            continue; // unchanged since the connection was lost
        }
        put(&line(client, &version, &result));
        *since = Some(version);
        if result.is_error() && result.text().starts_with("NOPERM") {
            return Err(Failure::Known);
        }
    }
}

/// Returns the version and the result of a state, in the form of RESP3 or RESP2.
fn state_of(message: &Value) -> Option<(String, Value)> {
    match message {
        Value::Map(_) => Some((message.get("version")?.text(), message.get("result")?)),
        Value::Push(parts) | Value::Array(parts) => match parts.as_slice() {
            [_, _, version, result] => Some((version.text(), result.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Formats a state as a line; in JSON, as one object.
fn line(client: &Client, version: &str, result: &Value) -> Vec<u8> {
    let time = shown_time(SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default());
    if matches!(client.output.form, Form::Json | Form::QuotedJson) {
        let pair = |name: &str, value: Value| (Value::from(name), value);
        let state = Value::Map(vec![
            pair("time", Value::from(time.as_str())),
            pair("version", Value::from(version)),
            pair("result", result.clone()),
        ]);
        return client.output.format(&state, Contents::Values);
    }
    let mut text = format!("{time} {version}\n").into_bytes();
    text.extend(client.output.format(result, Contents::Values));
    text
}

/// The time of day, UTC.
fn shown_time(time: Duration) -> String {
    let seconds = time.as_secs();
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    format!("{hours:02}:{minutes:02}:{:02}.{:03}Z", seconds % 60, time.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_show_only_the_time_of_day() {
        assert_eq!(shown_time(Duration::from_millis(86_400_000 * 3 + 3_723_004)), "01:02:03.004Z");
    }

    #[test]
    fn states_are_read_in_both_protocols() {
        let push = Value::Push(["watch", "1", "v-1", "10"].map(Value::from).to_vec());
        let array = Value::Array(["GET", "1", "v-1", "10"].map(Value::from).to_vec());
        let map = Value::Map(
            [("version", "v-1"), ("result", "10")]
                .map(|(name, text)| (Value::from(name), Value::from(text)))
                .to_vec(),
        );
        for message in [push, array, map] {
            assert_eq!(state_of(&message), Some(("v-1".to_owned(), Value::from("10"))));
        }
        assert_eq!(state_of(&Value::ok()), None);
    }
}
