//! Runs commands on vectors on one keyspace, in RESP2 by default.

use ember_protocol::Protocol;
use emberkv_core::local::Local;

use crate::support::words::words_of;

/// Runs a command; returns the reply's bytes, with spaces instead of line ends and with escapes for bytes that are not
/// ASCII.
pub(crate) fn reply(local: &mut Local, words: &[&[u8]]) -> String {
    let reply = local.run(words).escape_ascii().to_string();
    reply.replace("\\r\\n", " ").replace("\\\"", "\"").replace("\\'", "'").trim_end().to_owned()
}

/// Runs a command line and returns its reply.
pub(crate) fn run(local: &mut Local, line: &str) -> String {
    let words = words_of(line);
    reply(local, &words.iter().map(Vec::as_slice).collect::<Vec<_>>())
}

/// Runs command lines on one keyspace and compares their replies.
pub(crate) fn check(steps: &[(&str, &str)]) {
    let mut local = Local::new(Protocol::Resp2);
    for (line, expected) in steps {
        assert_eq!(run(&mut local, line), *expected, "{line}");
    }
    local.keyspace.check_invariants();
}
