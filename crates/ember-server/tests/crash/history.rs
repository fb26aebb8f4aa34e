//! The history of a connection: the units it has sent, in order, and their replies.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::RwLock;
use std::sync::mpsc::Sender;

use ember_testkit::{Random, RawClient, Value, encode_command};

use crate::random_writes;

/// The number of units between two marks, which record the progress of the history.
const MARK_INTERVAL: u64 = 8;

pub(crate) type Words = Vec<Vec<u8>>;

/// A call or a transaction, which the server executes as a whole or not at all.
pub(crate) struct Unit {
    pub(crate) calls: Vec<Words>,
    pub(crate) kind: Kind,
    /// The last reply, which acknowledges the unit.
    pub(crate) reply: Option<Value>,
}

/// Keys that expire soon: their values and expiries, Unix time in ms.
pub(crate) type Expiring = BTreeMap<Vec<u8>, (Vec<u8>, i64)>;

/// The kind of a unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The unit has the same outcome whenever it runs.
    Usual,
    /// The unit's replies depend on other connections.
    Shared,
    /// The unit removes a random member from this set.
    Pop(Vec<u8>),
    /// The unit sets a key that expires soon, and increments [`Book::key`] `seen`. The fields are the key, the value
    /// and the expiry in Unix time in ms.
    Expiring(Vec<u8>, Vec<u8>, i64),
    /// The unit's last change stores the unit's number.
    Mark,
    /// The unit empties the connection's database, and stores the unit's number.
    Flush,
}

impl Unit {
    pub(crate) fn new(calls: Vec<Words>, kind: Kind) -> Unit {
        Unit { calls, kind, reply: None }
    }

    /// Whether the unit stores its number.
    pub(crate) fn is_mark(&self) -> bool {
        matches!(self.kind, Kind::Mark | Kind::Flush)
    }
}

/// A connection's keys and its history in the current run of the server.
pub(crate) struct Book {
    pub(crate) me: usize,
    /// The number of the next unit, which increases across all runs of the server.
    pub(crate) next: u64,
    pub(crate) units: Vec<Unit>,
    pub(crate) expiring: Expiring,
    /// Whether a FLUSHALL, and no other call, was in progress when the server was killed.
    pub(crate) may_be_flushed: bool,
}

impl Book {
    pub(crate) fn new(me: usize) -> Book {
        Book { me, next: 1, units: Vec::new(), expiring: Expiring::new(), may_be_flushed: false }
    }

    /// Returns the database of the connection: every second connection has its own, the others share the first one.
    pub(crate) fn database(&self) -> usize {
        if self.has_own_database() { self.me + 1 } else { 0 }
    }

    pub(crate) fn has_own_database(&self) -> bool {
        self.me % 2 == 1
    }

    pub(crate) fn key(&self, name: &str) -> Vec<u8> {
        format!("{}:{name}", self.me).into_bytes()
    }

    /// Returns the key with the number of the last mark.
    pub(crate) fn mark_key(&self) -> Vec<u8> {
        self.key("mark")
    }
}

/// Sends units until the server is killed, at most `pipeline_max` at a time.
pub(crate) fn write(
    address: SocketAddr,
    mut book: Book,
    random: &mut Random,
    pipeline_max: usize,
    world: &RwLock<()>,
    acknowledged: &Sender<()>,
) -> Book {
    let Ok(mut client) = RawClient::connect(address) else { return book };
    let selected =
        client.send_command(&["SELECT", &book.database().to_string()]).and_then(|()| client.read_value());
    if selected.is_err() {
        return book;
    }
    loop {
        let _living = world.read().unwrap();
        let first = book.units.len();
        for _ in 0..=random.below(pipeline_max) {
            let unit = if book.next.is_multiple_of(MARK_INTERVAL) {
                random_writes::mark(&book)
            } else {
                random_writes::unit(random, &book)
            };
            book.next += 1;
            book.units.push(unit);
        }
        if exchange(&mut client, &mut book.units[first..], acknowledged).is_err() {
            return book;
        }
    }
}

/// Sends units and reads their replies.
fn exchange(client: &mut RawClient, units: &mut [Unit], acknowledged: &Sender<()>) -> std::io::Result<()> {
    let mut bytes = Vec::new();
    units.iter().flat_map(|unit| &unit.calls).for_each(|call| encode_command(call, &mut bytes));
    client.send(&bytes)?;
    for unit in units {
        let mut reply = None;
        for _ in &unit.calls {
            reply = Some(client.read_value()?);
        }
        let text = reply.as_ref().map(Value::text).unwrap_or_default();
        assert!(!text.starts_with("MISCONF") && !text.starts_with("EXECABORT"), "{text}: {:?}", shown(unit));
        unit.reply = reply;
        // Sending fails once acknowledgements are no longer counted, because the server is about to be killed.
        let _ = acknowledged.send(());
    }
    Ok(())
}

/// Formats a unit for messages.
pub(crate) fn shown(unit: &Unit) -> String {
    let word = |word: &Vec<u8>| String::from_utf8_lossy(&word[..word.len().min(40)]).into_owned();
    let calls: Vec<String> =
        unit.calls.iter().map(|call| call.iter().map(word).collect::<Vec<_>>().join(" ")).collect();
    calls.join(" | ")
}
