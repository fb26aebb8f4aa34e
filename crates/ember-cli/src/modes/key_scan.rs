//! Iteration over all keys of a database with SCAN.

use std::time::Duration;

use ember_protocol::client::{Value, quote};

use super::failure::Failure;
use crate::output::{Form, Output};
use crate::pause::pause;
use ember_client::Connection;
use ember_client::put;

/// An iteration over all keys with SCAN.
pub(super) struct Scan {
    pattern: Option<Vec<u8>>,
    count: u64,
    interval: Duration,
    cursor: Vec<u8>,
    rounds: u64,
    is_over: bool,
}

impl Scan {
    pub(super) fn new(pattern: Option<Vec<u8>>, count: u64, interval: Duration) -> Scan {
        Scan { pattern, count, interval, cursor: b"0".to_vec(), rounds: 0, is_over: false }
    }

    /// Returns the next keys, possibly none; `None` after the last.
    pub(super) fn next(&mut self, connection: &mut Connection) -> Result<Option<Vec<Vec<u8>>>, Failure> {
        if self.is_over {
            return Ok(None);
        }
        let mut command = vec![b"SCAN".to_vec(), self.cursor.clone()];
        if let Some(pattern) = &self.pattern {
            command.extend([b"MATCH".to_vec(), pattern.clone()]);
        }
        command.extend([b"COUNT".to_vec(), self.count.to_string().into_bytes()]);
        let answer = answered(connection.ask(&command)?)?;
        let Some([cursor, keys]) = answer.elements() else {
            return Err(Failure::Said("Invalid response from SCAN".to_owned()));
        };
        self.cursor = cursor.bytes().unwrap_or(b"0").to_vec();
        self.is_over = self.cursor == b"0";
        self.rounds += 1;
        let keys = keys.elements().unwrap_or_default();
        Ok(Some(keys.iter().filter_map(Value::bytes).map(<[u8]>::to_vec).collect()))
    }

    /// Pauses for the interval after every hundredth round.
    pub(super) fn pause(&self) {
        if self.rounds.is_multiple_of(100) {
            pause(self.interval);
        }
    }
}

/// Converts an error reply to a failure.
pub(super) fn answered(answer: Value) -> Result<Value, Failure> {
    match answer {
        Value::Error(text) => Err(Failure::Said(format!("ERROR: {}", String::from_utf8_lossy(&text)))),
        answer => Ok(answer),
    }
}

/// Prints all keys, one per line.
pub(super) fn list(connection: &mut Connection, mut scan: Scan, output: &Output) -> Result<(), Failure> {
    while let Some(keys) = scan.next(connection)? {
        let mut lines = Vec::new();
        for key in keys {
            match output.form {
                Form::Standard => lines.extend_from_slice(quote(&key).as_bytes()),
                _ => lines.extend_from_slice(&key),
            }
            lines.push(b'\n');
        }
        put(&lines);
        pause(scan.interval);
    }
    Ok(())
}

/// Prints the head of a search through all keys.
pub(super) fn print_head(what: &str) {
    put(format!(
        "\n# Scanning the entire keyspace to find {what} keys as well as\n# average sizes per key type.  You can use \
         -i 0.1 to sleep 0.1 sec\n# per 100 SCAN commands (not usually needed).\n\n"
    )
    .as_bytes());
}

/// The progress of a search through all keys.
pub(super) struct Progress {
    total: i64,
    pub(super) sampled: u64,
    percent: f64,
}

impl Progress {
    /// Loads the number of keys, and begins at zero.
    pub(super) fn new(connection: &mut Connection) -> Result<Progress, Failure> {
        let total = answered(connection.ask(&["DBSIZE"])?)?.integer().unwrap_or(0);
        Ok(Progress { total, sampled: 0, percent: 0.0 })
    }

    /// Records the progress at the beginning of a round.
    pub(super) fn begin_round(&mut self) {
        self.percent = if self.total > 0 { 100.0 * self.sampled as f64 / self.total as f64 } else { 0.0 };
    }

    /// `[12.34%]`
    pub(super) fn shown(&self) -> String {
        format!("[{:05.2}%]", self.percent)
    }

    /// Counts a key; prints the progress after each million.
    pub(super) fn count(&mut self) {
        self.sampled += 1;
        if self.sampled.is_multiple_of(1_000_000) {
            put(format!("{} Sampled {} keys so far\n", self.shown(), self.sampled).as_bytes());
        }
    }
}
