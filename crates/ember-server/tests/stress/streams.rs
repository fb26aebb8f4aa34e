//! Streams: IDs ascend, a group delivers each entry to one consumer, and acknowledged entries are no longer pending.

use std::collections::BTreeMap;

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, Words, ask, words};
use crate::book::{Book, element, items, number};

const STREAM_COUNT: usize = 3;

/// The number of entries to which a stream is trimmed.
const TRIMMED_COUNT: i64 = 64;

/// An entry: its stream, its ID, and the number in it.
type Entry = (usize, (u64, u64), u64);

/// The records of one connection on streams.
#[derive(Default)]
pub(crate) struct Streams {
    added: Vec<Entry>,
    delivered: Vec<Entry>,
    /// Entries that were delivered to this connection and are not acknowledged yet.
    open: Vec<Entry>,
    acknowledged: [i64; STREAM_COUNT],
    deleted: [i64; STREAM_COUNT],
    latest: [(u64, u64); STREAM_COUNT],
}

/// Creates the streams and their group.
pub(crate) fn set_up(client: &mut RawClient) {
    for index in 0..STREAM_COUNT {
        ask(client, &words!["XGROUP", "CREATE", key(index), "group", "0", "MKSTREAM"]);
    }
}

fn key(index: usize) -> String {
    format!("stream:{index}")
}

fn parse_id(value: &Value) -> (u64, u64) {
    let text = value.text();
    let parts =
        text.split_once('-').and_then(|(left, right)| Some((left.parse().ok()?, right.parse().ok()?)));
    parts.unwrap_or_else(|| panic!("no ID: {value:?}"))
}

fn text_of((milliseconds, sequence): (u64, u64)) -> String {
    format!("{milliseconds}-{sequence}")
}

/// Returns the entries in a reply to XRANGE.
fn entries(index: usize, value: &Value) -> Vec<Entry> {
    let entry = |item: &Value| {
        let [id, fields] = items(item) else { panic!("no entry: {item:?}") };
        (index, parse_id(id), number(&items(fields)[1]))
    };
    let entries: Vec<Entry> = items(value).iter().map(entry).collect();
    assert!(entries.is_sorted_by(|left, right| left.1 < right.1), "IDs ascend: {entries:?}");
    entries
}

/// Returns the streams and their entries in a reply to XREAD or XREADGROUP: a map in RESP3, pairs in RESP2, null if
/// there are none.
pub(crate) fn by_stream(reply: &Value) -> Vec<(String, Value)> {
    match reply {
        Value::Null => Vec::new(),
        Value::Map(pairs) => pairs.iter().map(|(name, entries)| (name.text(), entries.clone())).collect(),
        other => {
            let pair = |item: &Value| (items(item)[0].text(), items(item)[1].clone());
            items(other).iter().map(pair).collect()
        }
    }
}

fn index_of(name: &str) -> usize {
    name.rsplit(':').next().and_then(|text| text.parse().ok()).expect("a stream of this module")
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let index = random.below(STREAM_COUNT);
    match random.below(16) {
        0..5 => {
            let fresh = book.fresh();
            batch.call(words!["XADD", key(index), "*", "n", element(fresh)], move |book, reply| {
                let id = parse_id(reply);
                assert!(id > book.streams.latest[index], "IDs ascend");
                book.streams.latest[index] = id;
                book.streams.added.push((index, id, fresh));
            });
        }
        5..8 => {
            let count = (1 + random.below(if book.is_filling { 3 } else { 12 })).to_string();
            let mut call =
                words!["XREADGROUP", "GROUP", "group", format!("consumer {}", book.me), "COUNT", count];
            if random.chance(30) {
                call.extend(words!["BLOCK", "2"]);
            }
            call.extend(words!["STREAMS", key(index), ">"]);
            batch.call(call, deliver);
        }
        8 => {
            let mut call = words!["XREADGROUP", "GROUP", "group", format!("consumer {}", book.me), "STREAMS"];
            call.extend((0..STREAM_COUNT).map(|index| key(index).into_bytes()));
            call.extend(words![">", ">", ">"]);
            batch.call(call, deliver);
        }
        9..12 => acknowledge(batch, random, book),
        12 => batch.call(words!["XRANGE", key(index), "-", "+", "COUNT", "30"], move |_, reply| {
            entries(index, reply);
        }),
        13 => {
            let consumer = format!("consumer {}", book.me);
            let call = words!["XAUTOCLAIM", key(index), "group", consumer, "0", "0-0", "COUNT", "3"];
            batch.call(call, move |_, reply| {
                entries(index, &items(reply)[1]);
                assert_eq!(items(&items(reply)[2]).len(), 0, "deleted entries are acknowledged first");
            });
        }
        14 => batch.call(words!["XREVRANGE", key(index), "+", "-", "COUNT", "3"], |_, reply| {
            let ids: Vec<_> = items(reply).iter().map(|item| parse_id(&items(item)[0])).collect();
            assert!(ids.is_sorted_by(|left, right| left > right), "IDs descend: {ids:?}");
        }),
        _ => batch.transaction(
            vec![
                words!["XADD", "stream:trimmed", "MAXLEN", "=", TRIMMED_COUNT.to_string(), "*", "f", "v"],
                words!["XLEN", "stream:trimmed"],
            ],
            |_, replies| assert!(replies[1].integer().unwrap() <= TRIMMED_COUNT),
        ),
    }
}

fn deliver(book: &mut Book, reply: &Value) {
    for (name, value) in by_stream(reply) {
        let entries = entries(index_of(&name), &value);
        book.streams.delivered.extend(&entries);
        book.streams.open.extend(entries);
    }
}

/// Acknowledges some delivered entries, and deletes some of them.
fn acknowledge(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let Some(&(index, _, _)) = book.streams.open.last() else { return };
    let mut ids: Vec<Vec<u8>> = Vec::new();
    let most = 1 + random.below(8);
    while let Some((_, id, _)) =
        book.streams.open.pop_if(|(stream, _, _)| *stream == index && ids.len() < most)
    {
        ids.push(text_of(id).into_bytes());
    }
    let count = ids.len() as i64;
    let call = |name: &str, more: Words| [words![name, key(index)], more, ids.clone()].concat();
    if random.chance(30) {
        batch.call(call("XACK", words!["group"]), move |book, reply| {
            assert_eq!(*reply, Value::Integer(count), "pending entries are acknowledged once");
            book.streams.acknowledged[index] += count;
        });
    } else {
        let calls = vec![call("XACK", words!["group"]), call("XDEL", words![])];
        batch.transaction(calls, move |book, replies| {
            assert_eq!(replies, [Value::Integer(count), Value::Integer(count)]);
            book.streams.acknowledged[index] += count;
            book.streams.deleted[index] += count;
        });
    }
}

/// Compares the records with the streams.
pub(crate) fn check(books: &mut [Book], client: &mut RawClient) {
    for index in 0..STREAM_COUNT {
        let rest = words!["XREADGROUP", "GROUP", "group", "rest", "STREAMS", key(index), ">"];
        let rest = ask(client, &rest);
        deliver(&mut books[0], &rest);
    }
    let sorted = |pick: &dyn Fn(&Book) -> &Vec<Entry>| -> Vec<Entry> {
        let mut entries: Vec<Entry> = books.iter().flat_map(|book| pick(book).iter().copied()).collect();
        entries.sort_unstable();
        entries
    };
    let (added, delivered) = (sorted(&|book| &book.streams.added), sorted(&|book| &book.streams.delivered));
    assert_eq!(added.len(), delivered.len(), "entries added and delivered");
    assert!(added == delivered, "each entry is delivered once");
    let known: BTreeMap<(usize, (u64, u64)), u64> =
        added.iter().map(|(stream, id, number)| ((*stream, *id), *number)).collect();
    assert_eq!(known.len(), added.len(), "no ID is assigned twice");
    for index in 0..STREAM_COUNT {
        let sum = |pick: &dyn Fn(&Book) -> i64| books.iter().map(pick).sum::<i64>();
        let added = added.iter().filter(|entry| entry.0 == index).count() as i64;
        let left = entries(index, &ask(client, &words!["XRANGE", key(index), "-", "+"]));
        assert_eq!(left.len() as i64, added - sum(&|book| book.streams.deleted[index]), "entries left");
        assert!(left.iter().all(|(stream, id, number)| known[&(*stream, *id)] == *number));
        let pending = ask(client, &words!["XPENDING", key(index), "group"]);
        let expected = added - sum(&|book| book.streams.acknowledged[index]);
        assert_eq!(items(&pending)[0], Value::Integer(expected), "entries pending");
        let info = ask(client, &words!["XINFO", "STREAM", key(index)]);
        assert_eq!(info.get("entries-added"), Some(Value::Integer(added)));
    }
}
