//! Data that exceeds the memory limit, in a separate database, so that values of the other keys are demoted, too.
//!
//! Each value begins with its key and the number of its writes, so that the value of another key is detected.

use ember_testkit::{Random, RawClient, Value};

use crate::history::Book;
use crate::random_writes::NAMES;

/// Arguments of a server whose memory limit is below the size of this data. Keys are not evicted: values that are not
/// demoted remain in memory.
pub(crate) const ARGUMENTS: [&str; 4] = ["--maxmemory", "8mb", "--tiered-min-value", "16"];

/// The database of this data; connections that write do not use it.
const DATABASE: &str = "9";

/// The number of keys; their values take twice the memory limit.
const KEYS: usize = 16 * 1024;

/// The approximate size of a value in bytes.
const VALUE_BYTES: usize = 1000;

/// The number of keys in one pipeline.
const BATCH: usize = 256;

/// The expected versions of the keys.
pub(crate) struct Ballast {
    /// The number of times that each key was set.
    versions: Vec<u64>,
}

fn key(number: usize) -> String {
    format!("ballast:{number}")
}

fn value(number: usize, version: u64) -> String {
    format!("{}:{version}:{}", key(number), "v".repeat(VALUE_BYTES + number % 64))
}

impl Ballast {
    /// Sets all keys.
    pub(crate) fn load(client: &mut RawClient) -> Ballast {
        assert_eq!(client.command(&["SELECT", DATABASE]), Value::ok());
        let versions = vec![0; KEYS];
        for first in (0..KEYS).step_by(BATCH) {
            let calls: Vec<[String; 3]> = (first..first + BATCH)
                .map(|number| ["SET".to_owned(), key(number), value(number, 0)])
                .collect();
            let replies = client.pipeline(&calls).unwrap();
            assert_eq!(replies.iter().find(|reply| **reply != Value::ok()), None);
        }
        Ballast { versions }
    }

    /// Checks a restarted server; sets keys again that a FLUSHALL may have removed.
    pub(crate) fn recovered(&mut self, client: &mut RawClient, may_be_flushed: bool) {
        assert_eq!(client.command(&["SELECT", DATABASE]), Value::ok());
        if may_be_flushed && client.run("DBSIZE") == Value::Integer(0) {
            *self = Ballast::load(client);
            return;
        }
        assert_eq!(client.run("DBSIZE"), Value::Integer(KEYS as i64));
        for first in (0..KEYS).step_by(BATCH) {
            let numbers = first..first + BATCH;
            let calls: Vec<[String; 2]> = numbers.map(|number| ["GET".to_owned(), key(number)]).collect();
            for (number, reply) in (first..).zip(client.pipeline(&calls).unwrap()) {
                let expected = value(number, self.versions[number]);
                assert_eq!(reply.text(), expected, "{}", key(number));
            }
        }
    }

    /// Reads or sets a key of this data, or demotes the value of a key of another connection.
    pub(crate) fn stir(&mut self, client: &mut RawClient, random: &mut Random, connections: usize) {
        let number = random.below(KEYS);
        match random.below(3) {
            0 => {
                assert_eq!(client.command(&["SELECT", DATABASE]), Value::ok());
                let reply = client.command(&["GET", &key(number)]);
                assert_eq!(reply.text(), value(number, self.versions[number]));
            }
            1 => {
                assert_eq!(client.command(&["SELECT", DATABASE]), Value::ok());
                self.versions[number] += 1;
                let value = value(number, self.versions[number]);
                assert_eq!(client.command(&["SET", &key(number), &value]), Value::ok());
            }
            _ => {
                let book = Book::new(random.below(connections));
                assert_eq!(client.command(&["SELECT", &book.database().to_string()]), Value::ok());
                let key = book.key(random.pick(&NAMES));
                // The command is refused if the key does not exist, or has just changed.
                client.command(&[&b"TIERING"[..], b"MIGRATE", &key, b"COLD"]);
            }
        }
    }
}
