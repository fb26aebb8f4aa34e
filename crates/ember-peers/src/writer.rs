//! Writes random commands to a server, whatever it answers: what others are to have then too.

use ember_testkit::{RawClient, Server};

use crate::driver::arities;
use crate::generate::{Draw, Outcome, Words};

/// Connections, each with a database of its own.
const CONNECTION_COUNT: usize = 4;

/// Most commands in one write.
const BATCH_COMMANDS_MAX: usize = 64;

/// Of a hundred batches so many are transactions.
const TRANSACTIONS_PERCENT: usize = 20;

/// Commands about the connection or the server, which write nothing.
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

/// Whether it is one that not all servers take alike, so that their own replicas may differ:
/// * redis-server 7.0 lets a BITFIELD that fails lengthen its value, and does not tell replicas;
/// * Valkey 9 reads no hexadecimal numbers, which others take and pass on as they are;
/// * it takes the lower 32 bits of a position in a list that LSET is given;
/// * it counts a negative offset of LIMIT from the end, as Redis 8 does, where the sorted set is no listpack.
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

/// Commands about the expiry of a hash's fields: in some hours, and at once.
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

/// Of a hundred batches so many have one of them.
const EXPIRING_FIELDS_PERCENT: usize = 70;

/// Random commands over several connections.
pub struct Writer {
    draw: Draw,
    connections: Vec<RawClient>,
    expires_fields: bool,
}

impl Writer {
    /// Equal seeds give equal commands.
    pub fn new(server: &Server, seed: u64) -> Writer {
        let draw = Draw::new(seed, arities(&mut server.client()));
        let connections = (0..CONNECTION_COUNT).map(|_| server.client()).collect();
        Writer { draw, connections, expires_fields: false }
    }

    /// One that lets fields of hashes expire, too, which the server and its replicas have to know.
    #[must_use]
    pub fn with_expiring_fields(mut self) -> Writer {
        self.expires_fields = true;
        self
    }

    /// Writes so many commands or a few more.
    ///
    /// # Panics
    /// When a connection breaks.
    pub fn write(&mut self, commands: usize) {
        let mut written = 0;
        while written < commands {
            let mut batch: Vec<Words> = Vec::new();
            let count = 1 + self.draw.random.below(BATCH_COMMANDS_MAX);
            while batch.len() < count {
                let steps = self.draw.steps();
                // One without the other might wait for ever.
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
            self.connections[connection].pipeline(&batch).expect("a server answers all commands");
        }
    }
}
