//! Lists: every pushed element is popped exactly once or still exists, however often it moves in between.

use std::collections::HashSet;

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, ask, words};
use crate::book::{Book, check_bags, element, items, number};

const LIST_COUNT: usize = 6;

fn key(random: &mut Random) -> String {
    format!("list:{}", random.below(LIST_COUNT))
}

fn side(random: &mut Random) -> &'static str {
    random.pick(&["LEFT", "RIGHT"])
}

/// Returns a short timeout, because there may be no client that pushes an element.
fn timeout(random: &mut Random) -> String {
    format!("0.00{}", 1 + random.below(9))
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    if random.chance(if book.is_filling { 60 } else { 30 }) {
        return push(batch, random, book);
    }
    let (source, target) = (key(random), key(random));
    let count = random.below(12).to_string();
    match random.below(14) {
        0 => batch.call(words![random.pick(&["LPOP", "RPOP"]), source], take_one),
        1..4 => batch.call(words![random.pick(&["LPOP", "RPOP"]), source, count], take_all),
        4 => batch.call(words!["LMOVE", source, target, side(random), side(random)], whole_or_null),
        5 => batch.call(words!["RPOPLPUSH", source, target], whole_or_null),
        6 => {
            let call = words!["LMPOP", "2", source, target, side(random), "COUNT", "9"];
            batch.call(call, |book, reply| {
                items(reply).get(1).iter().for_each(|popped| take_all(book, popped));
            });
        }
        7 => batch.call(
            words![random.pick(&["BLPOP", "BRPOP"]), source, target, timeout(random)],
            |book, reply| items(reply).get(1).iter().for_each(|popped| take_one(book, popped)),
        ),
        8 => batch.call(
            words!["BLMOVE", source, target, side(random), side(random), timeout(random)],
            whole_or_null,
        ),
        9 => batch.call(
            words!["BLMPOP", timeout(random), "2", source, target, side(random), "COUNT", "3"],
            |book, reply| items(reply).get(1).iter().for_each(|popped| take_all(book, popped)),
        ),
        10 => {
            let number = book.fresh();
            let calls =
                vec![words!["RPUSH", source.clone(), element(number)], words!["RENAMENX", source, target]];
            batch.transaction(calls, move |book, _| book.lists.put.push(number));
        }
        11 => batch.transaction(
            vec![words!["LRANGE", source.clone(), "0", count.clone()], words!["LPOP", source, "2"]],
            |book, replies| {
                let common = items(&replies[1]).len().min(items(&replies[0]).len());
                assert_eq!(items(&replies[0])[..common], items(&replies[1])[..common]);
                take_all(book, &replies[1]);
            },
        ),
        12 => batch.transaction(
            vec![
                words!["LLEN", source.clone()],
                words!["LRANGE", source.clone(), "-5", "-1"],
                words!["LTRIM", source.clone(), "0", "-6"],
                words!["LLEN", source],
            ],
            |book, replies| {
                let (before, after) = (replies[0].integer().unwrap(), replies[3].integer().unwrap());
                assert_eq!(before - after, items(&replies[1]).len() as i64, "LTRIM removes elements outside");
                take_all(book, &replies[1]);
            },
        ),
        _ => batch.call(words!["LRANGE", source, "0", "60"], |_, reply| {
            let seen: HashSet<u64> = items(reply).iter().map(number).collect();
            assert_eq!(seen.len(), items(reply).len(), "a list shows an element twice: {reply:?}");
        }),
    }
}

fn push(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let key = key(random);
    let numbers: Vec<u64> = (0..=random.below(4)).map(|_| book.fresh()).collect();
    let first = element(numbers[0]);
    match random.below(8) {
        0 => {
            let pivot = element(book.fresh());
            let calls = vec![
                words!["RPUSH", key.clone(), pivot.clone()],
                words!["LINSERT", key.clone(), random.pick(&["BEFORE", "AFTER"]), pivot.clone(), first],
                words!["LREM", key, "-1", pivot],
            ];
            batch.transaction(calls, move |book, replies| {
                assert!(replies[1].integer() > Some(0) && replies[2] == Value::Integer(1), "{replies:?}");
                book.lists.put.push(numbers[0]);
            });
        }
        1 => {
            let calls = vec![
                words!["LPUSH", key.clone(), "a place"],
                words!["LSET", key.clone(), "0", first.clone()],
                words!["LPOS", key, first],
            ];
            batch.transaction(calls, move |book, replies| {
                assert_eq!(replies[2], Value::Integer(0));
                book.lists.put.push(numbers[0]);
            });
        }
        2 => {
            let name = random.pick(&["LPUSHX", "RPUSHX"]);
            batch.call(words![name, key, first], move |book, reply| {
                if reply.integer() != Some(0) {
                    book.lists.put.push(numbers[0]);
                }
            });
        }
        _ => {
            let mut call = words![random.pick(&["LPUSH", "RPUSH"]), key];
            call.extend(numbers.iter().map(|number| element(*number)));
            batch.call(call, move |book, reply| {
                assert!(reply.integer() >= Some(numbers.len() as i64));
                book.lists.put.extend(numbers);
            });
        }
    }
}

fn take_one(book: &mut Book, reply: &Value) {
    if *reply != Value::Null {
        book.lists.take(reply);
    }
}

fn take_all(book: &mut Book, reply: &Value) {
    items(reply).iter().for_each(|popped| book.lists.take(popped));
}

fn whole_or_null(_: &mut Book, reply: &Value) {
    if *reply != Value::Null {
        number(reply);
    }
}

/// Compares the records with the contents of the lists at the end.
pub(crate) fn check(books: &[Book], client: &mut RawClient) {
    let mut left = Vec::new();
    for index in 0..LIST_COUNT {
        let elements = ask(client, &words!["LRANGE", format!("list:{index}"), "0", "-1"]);
        let length = ask(client, &words!["LLEN", format!("list:{index}")]);
        assert_eq!(length, Value::Integer(items(&elements).len() as i64));
        left.extend(items(&elements).iter().map(number));
    }
    check_bags("lists", books.iter().map(|book| &book.lists), &left);
}
