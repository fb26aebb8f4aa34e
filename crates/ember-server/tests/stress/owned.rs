//! Collections that all connections change concurrently, each connection only its own members, so that every reply is
//! known in advance.

use std::collections::BTreeMap;

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, Words, ask, words};
use crate::book::{Book, double, items};

/// The number of members of each connection: together far more than fit in a listpack.
const MEMBER_COUNT: usize = 150;

/// The size in bytes of a connection's range of the shared string.
const PLACE_BYTES: usize = 8;

/// The members of one connection in the shared collections.
#[derive(Default)]
pub(crate) struct Owned {
    hash: BTreeMap<usize, i64>,
    scores: BTreeMap<usize, i64>,
    set: BTreeMap<usize, ()>,
    bits: BTreeMap<usize, bool>,
    text: BTreeMap<usize, i64>,
    positions: BTreeMap<usize, i64>,
    seen: BTreeMap<usize, ()>,
}

fn name(me: usize, member: usize) -> String {
    format!("{me}.{member}")
}

/// Returns the offset of a connection's bit or range.
fn offset(me: usize, member: usize) -> usize {
    me * MEMBER_COUNT + member
}

fn place(value: i64) -> String {
    format!("{value:0>PLACE_BYTES$}")
}

/// Returns a longitude that rounding does not change to another value.
fn longitude(value: i64) -> f64 {
    (value % 100) as f64 + 0.5
}

fn bulk(text: Option<String>) -> Value {
    text.map_or(Value::Null, |text| Value::from(text.as_str()))
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let member = random.below(MEMBER_COUNT);
    let value = random.between(1, 9999);
    let name = name(book.me, member);
    let offset = offset(book.me, member);
    let owned = &mut book.owned;
    let mut expect = |call: Words, expected: Value| {
        let shown = String::from_utf8_lossy(&call.join(&b' ')).into_owned();
        batch.call(call, move |_, reply| assert_eq!(*reply, expected, "{shown}"));
    };
    let count = |is_new: bool| Value::Integer(i64::from(is_new));
    match random.below(20) {
        0..2 => {
            let is_new = owned.hash.insert(member, value).is_none();
            expect(words!["HSET", "owned:hash", name, value.to_string()], count(is_new));
        }
        2 => {
            let was = owned.hash.remove(&member).is_some();
            expect(words!["HDEL", "owned:hash", name], count(was));
        }
        3 => {
            let sum = owned.hash.entry(member).or_default();
            *sum += value;
            expect(words!["HINCRBY", "owned:hash", name, value.to_string()], Value::Integer(*sum));
        }
        4 => {
            let known = owned.hash.get(&member).map(i64::to_string);
            expect(words!["HGET", "owned:hash", name], bulk(known));
        }
        5..7 => {
            let is_new = owned.scores.insert(member, value).is_none();
            expect(words!["ZADD", "owned:scores", value.to_string(), name], count(is_new));
        }
        7 => {
            let was = owned.scores.remove(&member).is_some();
            expect(words!["ZREM", "owned:scores", name], count(was));
        }
        8 => {
            let known = owned.scores.get(&member).copied();
            batch.call(words!["ZSCORE", "owned:scores", name], move |_, reply| {
                assert_eq!((*reply != Value::Null).then(|| double(reply)), known.map(|score| score as f64));
            });
        }
        9 => {
            let is_new = owned.set.insert(member, ()).is_none();
            expect(words!["SADD", "owned:set", name], count(is_new));
        }
        10 => {
            let was = owned.set.remove(&member).is_some();
            expect(words!["SREM", "owned:set", name], count(was));
        }
        11 => {
            let is_there = owned.set.contains_key(&member);
            expect(words!["SISMEMBER", "owned:set", name], count(is_there));
        }
        12 => {
            let bit = value % 2 == 1;
            let before = owned.bits.insert(member, bit).unwrap_or(false);
            let bit = if bit { "1" } else { "0" };
            expect(words!["SETBIT", "owned:bits", offset.to_string(), bit], count(before));
        }
        13 => {
            let bit = owned.bits.get(&member).copied().unwrap_or(false);
            expect(words!["GETBIT", "owned:bits", offset.to_string()], count(bit));
        }
        14 => {
            owned.text.insert(member, value);
            let start = (offset * PLACE_BYTES).to_string();
            batch.call(words!["SETRANGE", "owned:text", start, place(value)], |_, _| {});
        }
        15 => {
            let Some(value) = owned.text.get(&member) else { return };
            let start = offset * PLACE_BYTES;
            let end = (start + PLACE_BYTES - 1).to_string();
            let call = words!["GETRANGE", "owned:text", start.to_string(), end];
            expect(call, bulk(Some(place(*value))));
        }
        16 => {
            let is_new = owned.positions.insert(member, value).is_none();
            let call = words!["GEOADD", "owned:positions", longitude(value).to_string(), "10", name];
            expect(call, count(is_new));
        }
        17 => {
            let known = owned.positions.get(&member).copied();
            batch.call(words!["GEOPOS", "owned:positions", name], move |_, reply| {
                let position = items(&items(reply)[0]).first().map(double);
                assert_eq!(position.is_some(), known.is_some());
                let difference = position.unwrap_or(0.0) - known.map_or(0.0, longitude);
                assert!(difference.abs() < 0.001, "{position:?} {known:?}");
            });
        }
        18 => {
            owned.seen.insert(member, ());
            batch.call(words!["PFADD", "owned:seen", name], |_, _| {});
        }
        _ => batch.call(words!["HRANDFIELD", "owned:hash", "5"], |_, reply| {
            assert!(items(reply).len() <= 5);
        }),
    }
}

/// Compares the records with the collections.
pub(crate) fn check(books: &[Book], client: &mut RawClient) {
    let all = |pick: &dyn Fn(&Owned) -> &BTreeMap<usize, i64>| -> BTreeMap<String, i64> {
        let owned = |book: &Book| {
            let me = book.me;
            pick(&book.owned)
                .iter()
                .map(move |(member, value)| (name(me, *member), *value))
                .collect::<Vec<_>>()
        };
        books.iter().flat_map(owned).collect()
    };
    let flat = items(&ask(client, &words!["HGETALL", "owned:hash"])).to_vec();
    let hash: BTreeMap<String, i64> =
        flat.chunks_exact(2).map(|pair| (pair[0].text(), pair[1].text().parse().unwrap())).collect();
    assert_eq!(hash, all(&|owned| &owned.hash));
    let flat = items(&ask(client, &words!["ZRANGE", "owned:scores", "0", "-1", "WITHSCORES"])).to_vec();
    let scores: BTreeMap<String, i64> =
        flat.chunks_exact(2).map(|pair| (pair[0].text(), double(&pair[1]) as i64)).collect();
    assert_eq!(scores, all(&|owned| &owned.scores));
    for (rank, pair) in flat.chunks_exact(2).enumerate().step_by(97) {
        let call = words!["ZRANK", "owned:scores", pair[0].text()];
        assert_eq!(ask(client, &call), Value::Integer(rank as i64));
    }
    let sum =
        |pick: &dyn Fn(&Owned) -> usize| books.iter().map(|book| pick(&book.owned)).sum::<usize>() as i64;
    let mut count = |call: Words| ask(client, &call).integer().unwrap();
    assert_eq!(count(words!["SCARD", "owned:set"]), sum(&|owned| owned.set.len()));
    let bits = sum(&|owned| owned.bits.values().filter(|bit| **bit).count());
    assert_eq!(count(words!["BITCOUNT", "owned:bits"]), bits);
    assert_eq!(count(words!["ZCARD", "owned:positions"]), sum(&|owned| owned.positions.len()));
    let (seen, estimate) = (sum(&|owned| owned.seen.len()), count(words!["PFCOUNT", "owned:seen"]));
    assert!((seen - estimate).abs() * 20 <= seen, "{seen} seen, estimated {estimate}");
}
