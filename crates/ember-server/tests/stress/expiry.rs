//! Expired data is never returned: neither keys of any type nor fields.

use std::time::{SystemTime, UNIX_EPOCH};

use ember_testkit::{Random, Value};

use crate::batch::{Batch, Words, words};
use crate::book::{Book, element};

/// The maximum number of expiring keys of a connection.
const EXPIRING_MAX: usize = 64;

/// The maximum time to live, in milliseconds.
const TTL_MAX_MS: usize = 60;

/// Expiring keys of one connection.
#[derive(Default)]
pub(crate) struct Expiring {
    keys: Vec<ExpiringKey>,
    /// The number of keys created so far, which is the name of the next one.
    count: u64,
    /// The number of keys that were read after their expiry.
    pub(crate) asked: u64,
}

struct ExpiringKey {
    number: u64,
    kind: usize,
    /// The time at which the key has expired by every clock, in milliseconds since 1970; `None` before the key exists.
    gone_at_ms: Option<u64>,
    /// Whether a round trip that began after `gone_at_ms` has ended. A worker reads the clock once per turn, and the
    /// turn may have begun before the request arrived; the next request is served in a later turn.
    has_waited: bool,
    is_asked: bool,
}

fn now_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later than 1970").as_millis() as u64
}

/// Returns the calls that create a key, the last of which sets the expiry, and the call that reads the key.
fn calls(kind: usize, key: &str, ttl: String, deadline: String) -> (Vec<Words>, Words) {
    let value = element(7);
    match kind {
        0 => (vec![words!["SET", key, value, "PX", ttl]], words!["GET", key]),
        1 => (vec![words!["PSETEX", key, ttl, value]], words!["GET", key]),
        2 => (vec![words!["SET", key, value, "PXAT", deadline]], words!["STRLEN", key]),
        3 => (vec![words!["RPUSH", key, value], words!["PEXPIRE", key, ttl]], words!["LLEN", key]),
        4 => (vec![words!["SADD", key, value], words!["PEXPIREAT", key, deadline]], words!["SCARD", key]),
        5 => (vec![words!["ZADD", key, "1", "m"], words!["PEXPIRE", key, ttl]], words!["ZSCORE", key, "m"]),
        6 => (vec![words!["SET", key, value], words!["GETEX", key, "PX", ttl]], words!["EXISTS", key]),
        7 => (
            vec![
                words!["HSET", key, "stays", "1", "goes", value],
                words!["HPEXPIRE", key, ttl, "FIELDS", "1", "goes"],
            ],
            words!["HGET", key, "goes"],
        ),
        8 => (
            vec![
                words!["HSET", key, "goes", value],
                words!["HPEXPIREAT", key, deadline, "FIELDS", "1", "goes"],
            ],
            words!["HLEN", key],
        ),
        _ => (vec![words!["XADD", key, "*", "f", "v"], words!["PEXPIRE", key, ttl]], words!["TYPE", key]),
    }
}

const KIND_COUNT: usize = 10;

fn is_absent(reply: &Value) -> bool {
    *reply == Value::Null || *reply == Value::Integer(0) || reply.bytes() == Some(b"none")
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let me = book.me;
    let now = now_ms();
    let due = book
        .expiring
        .keys
        .iter_mut()
        .find(|key| !key.is_asked && key.gone_at_ms.is_some_and(|gone_at_ms| gone_at_ms < now));
    if let Some(due) = due {
        due.is_asked = true;
        let number = due.number;
        let (_, call) = calls(due.kind, &format!("expiring:{me}:{number}"), String::new(), String::new());
        let shown = String::from_utf8_lossy(&call.join(&b' ')).into_owned();
        return batch.call(call, move |book, reply| {
            let keys = &mut book.expiring.keys;
            let index = keys.iter().position(|key| key.number == number).expect("the key is read once");
            let key = &mut keys[index];
            key.is_asked = false;
            if key.has_waited {
                let late = now_ms().saturating_sub(key.gone_at_ms.unwrap_or_default());
                assert!(is_absent(reply), "{shown}: {reply:?}, {late} ms after its time");
                keys.swap_remove(index);
                book.expiring.asked += 1;
            } else {
                key.has_waited = true;
            }
        });
    }
    if book.expiring.keys.len() < EXPIRING_MAX {
        book.expiring.count += 1;
        let (number, kind) = (book.expiring.count, random.below(KIND_COUNT));
        let ttl_ms = 1 + random.below(TTL_MAX_MS) as u64;
        book.expiring.keys.push(ExpiringKey {
            number,
            kind,
            gone_at_ms: None,
            has_waited: false,
            is_asked: false,
        });
        let key = format!("expiring:{me}:{number}");
        let (made, _) = calls(kind, &key, ttl_ms.to_string(), (now + ttl_ms).to_string());
        batch.transaction(made, move |book, _| {
            let key =
                book.expiring.keys.iter_mut().find(|key| key.number == number).expect("the key was recorded");
            key.gone_at_ms = Some(now_ms() + ttl_ms);
        });
    }
}
