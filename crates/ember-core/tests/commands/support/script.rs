//! Scripts: command lines with their expected replies, which run in both protocols.

use ember_protocol::Protocol;
use emberkv_core::local::Local;

use crate::support::words::words_of;

/// A keyspace that runs command lines.
pub(crate) struct Script {
    pub(crate) local: Local,
    protocol: Protocol,
}

impl Script {
    pub(crate) fn new(protocol: Protocol) -> Script {
        Script { local: Local::new(protocol), protocol }
    }

    /// Runs a line; returns the reply's bytes, with spaces instead of line ends and with escapes for bytes that are not
    /// ASCII. A null in RESP3 is returned as in RESP2.
    pub(crate) fn run(&mut self, line: &str) -> String {
        let words = words_of(line);
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = self.local.run(&words).escape_ascii().to_string().replace("\\r\\n", " ");
        let reply = if self.protocol == Protocol::Resp3 { reply.replace("_ ", "$-1 ") } else { reply };
        reply.trim_end().replace("\\'", "'")
    }

    /// Runs one line of a script as [`check_in`] describes.
    pub(crate) fn step(&mut self, line: &str) -> String {
        match line.split_once(' ') {
            Some(("ENTRY", key)) => self.entry(key),
            Some(("PASS", ms)) => {
                self.local.turn.now_ms += ms.parse::<i64>().expect("PASS takes a number of ms");
                String::new()
            }
            _ => self.run(line),
        }
    }

    /// Returns the encoding of a key and its expiry in ms from now, as `raw` or `int 1000`; empty if the key does not
    /// exist.
    pub(crate) fn entry(&self, key: &str) -> String {
        let hash = self.local.keyspace.hash(key.as_bytes());
        let shard = self.local.keyspace.lock(hash.shard());
        let Some(at) = shard.find(0, hash, key.as_bytes()) else { return String::new() };
        let entry = shard.entry(0, at);
        match entry.expire_at_ms() {
            None => entry.encoding_name().to_string(),
            Some(expire_at_ms) => {
                format!("{} {}", entry.encoding_name(), expire_at_ms - self.local.turn.now_ms)
            }
        }
    }
}

/// Runs a script in RESP2 and RESP3 (see [`check_in`]).
pub(crate) fn check(steps: &[(&str, &str)]) {
    check_in(Protocol::Resp2, steps);
    check_in(Protocol::Resp3, steps);
}

/// Runs a script on an empty keyspace. Each step is a command line and its reply; `ENTRY key` returns
/// [`Script::entry`], and `PASS ms` advances the clock.
pub(crate) fn check_in(protocol: Protocol, steps: &[(&str, &str)]) {
    let mut script = Script::new(protocol);
    for (line, expected) in steps {
        assert_eq!(script.step(line), *expected, "{line} in {protocol:?}");
    }
    script.local.keyspace.check_invariants();
}
