//! Random writes of all types, in calls, transactions and scripts.

use std::time::{SystemTime, UNIX_EPOCH};

use ember_testkit::Random;

use crate::history::{Book, Kind, Unit, Words};

/// Names of a connection's keys. The type of a key's value may change.
pub(crate) const NAMES: [&str; 16] =
    ["s0", "s1", "n0", "n1", "l0", "l1", "h0", "h1", "x0", "x1", "z0", "z1", "t0", "b0", "p0", "g0"];

/// Keys with numbers that no other call changes: the number of the last mark, and the counts of two kinds of units.
pub(crate) const NUMBERS: [&str; 3] = ["mark", "seen", "met"];

/// The set from which random members are removed.
pub(crate) const POOL: &str = "pool";

/// Fields of hashes, whose expiry is compared one by one.
pub(crate) const FIELDS: [&str; 6] = ["f0", "f1", "f2", "f3", "f4", "f5"];

/// A distant time, Unix time in ms.
const FAR_MS: i64 = 4_000_000_000_000;

/// The maximum time to live of keys that expire soon, in ms.
const SOON_MS: i64 = 1500;

/// A script that adds to a list and a counter. If a key has another type, the script fails in the middle.
const SCRIPT: &str = "redis.call('RPUSH', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[2]) \
                      redis.call('LTRIM', KEYS[1], -20, -1) return redis.call('LLEN', KEYS[1])";
const SHARED_SCRIPT: &str = "redis.call('INCRBY', KEYS[1], ARGV[1]) redis.call('INCR', KEYS[3]) \
                             return redis.call('DECRBY', KEYS[2], ARGV[1])";

/// The counters that connections share; their sum is 0.
pub(crate) const SHARED: [&str; 2] = ["shared:a", "shared:b"];

macro_rules! words {
    ($($word:expr),* $(,)?) => { vec![$(AsRef::<[u8]>::as_ref(&$word).to_vec()),*] };
}

pub(crate) fn unix_ms() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis() as i64
}

/// Returns the unit that records the progress of the history.
pub(crate) fn mark(book: &Book) -> Unit {
    Unit::new(vec![words!["SET", book.mark_key(), book.next.to_string()]], Kind::Mark)
}

/// Returns a random unit.
pub(crate) fn unit(random: &mut Random, book: &Book) -> Unit {
    match random.below(100) {
        0..10 => transaction(random, book),
        10..16 => {
            let (list, counter) = (book.key("l0"), book.key("n0"));
            let script = words!["EVAL", SCRIPT, "2", list, counter, random.below(1000).to_string()];
            Unit::new(vec![script], Kind::Usual)
        }
        16..22 if !book.has_own_database() => shared(random, book),
        22..26 => {
            let key = book.key(&format!("soon{}", random.below(4)));
            let (value, at_ms) = (random.below(1 << 30).to_string(), unix_ms() + random.between(1, SOON_MS));
            let set = words!["SET", key, value, "PXAT", at_ms.to_string()];
            let seen = words!["INCR", book.key("seen")];
            let calls = vec![words!["MULTI"], set, seen, words!["EXEC"]];
            Unit::new(calls, Kind::Expiring(key, value.into_bytes(), at_ms))
        }
        26..29 => Unit::new(vec![words!["SPOP", book.key(POOL)]], Kind::Pop(book.key(POOL))),
        29..33 => {
            let members: Vec<String> = (0..4).map(|_| random.below(10_000).to_string()).collect();
            let mut call = words!["SADD", book.key(POOL)];
            call.extend(members.into_iter().map(String::into_bytes));
            Unit::new(vec![call], Kind::Usual)
        }
        33 if book.has_own_database() => {
            // The mark must not be removed with the other keys.
            let mark = words!["SET", book.mark_key(), book.next.to_string()];
            Unit::new(vec![words!["MULTI"], words!["FLUSHDB"], mark, words!["EXEC"]], Kind::Flush)
        }
        _ => Unit::new(vec![call(random, book)], Kind::Usual),
    }
}

fn transaction(random: &mut Random, book: &Book) -> Unit {
    let mut calls = vec![words!["MULTI"]];
    for _ in 0..2 + random.below(5) {
        // In a transaction a blocking call removes an existing element or returns immediately.
        let waits = words!["BLPOP", book.key("l0"), book.key("l1"), "0"];
        calls.push(if random.chance(10) { waits } else { call(random, book) });
    }
    calls.push(words!["EXEC"]);
    Unit::new(calls, Kind::Usual)
}

/// Moves an amount between counters that all connections share, and counts the move.
fn shared(random: &mut Random, book: &Book) -> Unit {
    let amount = random.between(1, 9).to_string();
    let ([a, b], own) = (SHARED, book.key("met"));
    let calls = if random.chance(50) {
        vec![words!["EVAL", SHARED_SCRIPT, "3", a, b, own, amount]]
    } else {
        let (to, from) = (words!["INCRBY", a, amount], words!["DECRBY", b, amount]);
        vec![words!["MULTI"], words!["INCR", own], to, from, words!["EXEC"]]
    };
    Unit::new(calls, Kind::Shared)
}

/// Returns a random call whose outcome depends only on the connection's own keys.
fn call(random: &mut Random, book: &Book) -> Words {
    match random.below(8) {
        0 => strings(random, book),
        1 => lists(random, book),
        2 => hashes(random, book),
        3 => sets(random, book),
        4 => sorted_sets(random, book),
        5 => streams(random, book),
        6 => other_values(random, book),
        _ => keys(random, book),
    }
}

/// Returns one of the two keys that begin with this letter.
fn one(random: &mut Random, book: &Book, letter: char) -> Vec<u8> {
    book.key(&format!("{letter}{}", random.below(2)))
}

fn value(random: &mut Random) -> Vec<u8> {
    let long = random.below(100) == 0;
    let length = random.below(if long { 60_000 } else { 40 });
    random.bytes(length)
}

fn small(random: &mut Random) -> String {
    random.below(40).to_string()
}

fn strings(random: &mut Random, book: &Book) -> Words {
    let (key, number) = (one(random, book, 's'), one(random, book, 'n'));
    match random.below(9) {
        0 | 1 => words!["SET", key, value(random)],
        2 => words!["SET", key, value(random), "PXAT", (FAR_MS + random.between(0, 9999)).to_string()],
        3 => words!["APPEND", key, value(random)],
        4 => words!["SETRANGE", key, small(random), value(random)],
        5 => words!["INCRBY", number, small(random)],
        6 => words!["INCRBYFLOAT", number, "0.25"],
        7 => words!["MSET", key, value(random), number, small(random)],
        _ => words!["GETDEL", key],
    }
}

fn lists(random: &mut Random, book: &Book) -> Words {
    let key = one(random, book, 'l');
    match random.below(10) {
        0 | 1 => words!["RPUSH", key, value(random), small(random)],
        2 => words!["LPUSH", key, small(random), value(random)],
        3 => words!["LPOP", key, "2"],
        4 => words!["LREM", key, "1", small(random)],
        5 => words!["LTRIM", key, "0", "40"],
        6 => words!["LMOVE", book.key("l0"), book.key("l1"), "LEFT", "RIGHT"],
        7 => words!["LINSERT", key, "BEFORE", small(random), small(random)],
        8 => words!["LSET", key, "0", small(random)],
        _ => words!["LMPOP", "2", book.key("l0"), book.key("l1"), "RIGHT", "COUNT", "2"],
    }
}

fn hashes(random: &mut Random, book: &Book) -> Words {
    let key = one(random, book, 'h');
    let (field, other) = (random.pick(&FIELDS), random.pick(&FIELDS));
    match random.below(8) {
        0 | 1 => words!["HSET", key, field, value(random), other, small(random)],
        2 => words!["HDEL", key, field],
        3 => words!["HINCRBY", key, field, small(random)],
        4 => words!["HINCRBYFLOAT", key, field, "1.5"],
        5 => words!["HPEXPIREAT", key, (FAR_MS + random.between(0, 999)).to_string(), "FIELDS", "1", field],
        6 => words!["HPERSIST", key, "FIELDS", "1", field],
        _ => words!["HGETDEL", key, "FIELDS", "1", field],
    }
}

fn sets(random: &mut Random, book: &Book) -> Words {
    let key = one(random, book, 'x');
    match random.below(6) {
        0 | 1 => words!["SADD", key, small(random), value(random)],
        2 => words!["SREM", key, small(random), small(random)],
        3 => words!["SMOVE", book.key("x0"), book.key("x1"), small(random)],
        4 => words!["SUNIONSTORE", key, book.key("x0"), book.key("x1")],
        _ => words!["SDIFFSTORE", key, book.key("x0"), book.key("x1")],
    }
}

fn sorted_sets(random: &mut Random, book: &Book) -> Words {
    let key = one(random, book, 'z');
    match random.below(8) {
        0 | 1 => words!["ZADD", key, small(random), small(random), "0.5", value(random)],
        2 => words!["ZINCRBY", key, "2.5", small(random)],
        3 => words!["ZREM", key, small(random)],
        4 => words!["ZPOPMIN", key],
        5 => words!["ZREMRANGEBYRANK", key, "20", "-1"],
        6 => words!["ZUNIONSTORE", key, "2", book.key("z0"), book.key("z1")],
        _ => words!["GEOADD", book.key("g0"), "13.4", "52.5", small(random)],
    }
}

fn streams(random: &mut Random, book: &Book) -> Words {
    let key = book.key("t0");
    let id = |random: &mut Random| format!("{}-0", book.next.saturating_sub(random.below(200) as u64));
    match random.below(9) {
        0..3 => words!["XADD", key, format!("{}-*", book.next), "a", value(random), "b", small(random)],
        3 => words!["XDEL", key, id(random)],
        4 => words!["XTRIM", key, "MAXLEN", "30"],
        5 => words!["XGROUP", "CREATE", key, "g", "0", "MKSTREAM"],
        6 => words!["XREADGROUP", "GROUP", "g", "c", "COUNT", "3", "STREAMS", key, ">"],
        7 => words!["XACK", key, "g", id(random), id(random)],
        _ => words!["XAUTOCLAIM", key, "g", "other", "0", "0", "COUNT", "2"],
    }
}

fn other_values(random: &mut Random, book: &Book) -> Words {
    let bits = book.key("b0");
    match random.below(5) {
        0 => words!["SETBIT", bits, random.below(5000).to_string(), "1"],
        1 => words!["BITFIELD", bits, "INCRBY", "u8", small(random), "3"],
        2 => words!["BITOP", "NOT", bits, bits],
        _ => words!["PFADD", book.key("p0"), value(random), small(random)],
    }
}

fn keys(random: &mut Random, book: &Book) -> Words {
    let (key, other) = (book.key(random.pick(&NAMES)), book.key(random.pick(&NAMES)));
    match random.below(9) {
        0 => words!["DEL", key],
        1 => words!["UNLINK", key, other],
        2 => words!["RENAME", key, other],
        3 => words!["COPY", key, other, "REPLACE"],
        4 => words!["PEXPIREAT", key, (FAR_MS + random.between(0, 9999)).to_string()],
        5 => words!["PERSIST", key],
        6 => words!["PEXPIREAT", key, "1"],
        7 => words!["SORT", book.key("l0"), "ALPHA", "STORE", book.key("l1")],
        _ => words!["TOUCH", key],
    }
}
