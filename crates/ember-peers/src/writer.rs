//! Sends random commands to a server and ignores the replies, so that tests can compare the server's data with that of
//! its replicas.

use ember_testkit::{RawClient, Server};

use crate::driver::arities;
use crate::generate::{Draw, Outcome, Words};

/// The number of connections; each uses its own database.
const CONNECTION_COUNT: usize = 4;

/// The maximum number of commands in one write.
const BATCH_COMMANDS_MAX: usize = 64;

/// The percentage of batches that are transactions.
const TRANSACTIONS_PERCENT: usize = 20;

/// Commands about the connection or the server, which write no data.
const LEFT_OUT: [&[u8]; 17] = [
    b"AUTH",
    b"CLIENT",
    b"CLUSTER",
    b"COMMAND",
    b"CONFIG",
    b"DEBUG",
    b"DISCARD",
    b"EXEC",
    b"HELLO",
    b"LATENCY",
    b"MEMORY",
    b"MODULE",
    b"MULTI",
    b"QUIT",
    b"REPLICAOF",
    b"RESET",
    b"SLOWLOG",
];

/// Whether not all servers handle a command alike, so that replicas of another kind may differ:
/// * redis-server 7.0 lets a failing BITFIELD lengthen its value, without replicating that;
/// * Valkey 9 does not accept hexadecimal numbers, which other servers accept and replicate unchanged;
/// * Valkey 9 uses the lower 32 bits of LSET's index;
/// * Valkey 9 counts a negative offset of LIMIT from the end, like Redis 8, if the sorted set is not a listpack.
fn is_left_out(words: &Words) -> bool {
    let is = |word: &Vec<u8>, name: &[u8]| word.eq_ignore_ascii_case(name);
    let is_limited_from_end =
        || words.windows(2).any(|pair| is(&pair[0], b"LIMIT") && pair[1].starts_with(b"-"));
    LEFT_OUT.iter().any(|left_out| is(&words[0], left_out))
        || (is(&words[0], b"BITFIELD") && words.iter().any(|word| is(word, b"FAIL")))
        || words.iter().any(|word| word.starts_with(b"0x"))
        || (is(&words[0], b"ZRANGESTORE") && is_limited_from_end())
        || (is(&words[0], b"LSET") && words.get(2).is_some_and(|index| index.len() >= "2147483648".len()))
}

/// Commands that set the expiry of hash fields: after some hours, or immediately.
const EXPIRING_FIELDS: [&str; 8] = [
    "HPEXPIRE {hash} {milliseconds} FIELDS 1 {field}",
    "HEXPIRE {hash} {seconds} NX FIELDS 2 {field} {field}",
    "HPEXPIREAT {hash} {at_milliseconds} GT FIELDS 1 {field}",
    "HPEXPIRE {hash} 20 FIELDS 1 {field}",
    "HPERSIST {hash} FIELDS 2 {field} {field}",
    "HSETEX {hash} PX {milliseconds} FIELDS 1 {field} {value}",
    "HGETEX {hash} PX {milliseconds} FIELDS 1 {field}",
    "HGETEX {hash} PERSIST FIELDS 1 {field}",
];

/// The percentage of batches that contain one of these commands.
const EXPIRING_FIELDS_PERCENT: usize = 70;

/// Random commands over several connections.
pub struct Writer {
    draw: Draw,
    connections: Vec<RawClient>,
    expires_fields: bool,
}

impl Writer {
    /// Creates a writer; equal seeds produce equal commands.
    pub fn new(server: &Server, seed: u64) -> Writer {
        let draw = Draw::new(seed, arities(&mut server.client()));
        let connections = (0..CONNECTION_COUNT).map(|_| server.client()).collect();
        Writer { draw, connections, expires_fields: false }
    }

    /// Enables expiries of hash fields, which the server and its replicas must support.
    #[must_use]
    pub fn with_expiring_fields(mut self) -> Writer {
        self.expires_fields = true;
        self
    }

    /// Sends `commands` commands or a few more.
    ///
    /// # Panics
    /// Panics if a connection breaks.
    pub fn write(&mut self, commands: usize) {
        let mut written = 0;
        while written < commands {
            let mut batch: Vec<Words> = Vec::new();
            let count = 1 + self.draw.random.below(BATCH_COMMANDS_MAX);
            while batch.len() < count {
                let steps = self.draw.steps();
                // Commands that belong together are sent or skipped together, because one of them alone might block
                // forever.
                if steps.iter().all(|step| step.outcome == Outcome::Reply && !is_left_out(&step.words)) {
                    batch.extend(steps.into_iter().map(|step| step.words));
                }
            }
            if self.expires_fields && self.draw.random.chance(EXPIRING_FIELDS_PERCENT) {
                let steps = self.draw.any(&EXPIRING_FIELDS);
                batch.extend(steps.into_iter().map(|step| step.words));
            }
            if self.draw.random.chance(TRANSACTIONS_PERCENT) {
                batch.insert(0, vec![b"MULTI".to_vec()]);
                batch.push(vec![b"EXEC".to_vec()]);
            }
            written += batch.len();
            let connection = self.draw.random.below(CONNECTION_COUNT);
            self.connections[connection].pipeline(&batch).expect("a server replies to all commands");
        }
    }
}
