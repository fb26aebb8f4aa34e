//! Sets and sorted sets: the number of members does not change when they move; members that are popped are popped
//! exactly once.

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, ask, words};
use crate::book::{Book, check_bags, element, items, number, scored};

/// The number of sets between which the members of a population move.
const HOME_COUNT: usize = 4;

/// The number of members of each population: too many for a listpack in one set, but not when distributed among all.
const POPULATION: usize = 150;

/// The kinds of members: integers, which form an intset, and texts.
const KINDS: [&str; 2] = ["numbers", "texts"];

const POOL_COUNT: usize = 4;

/// Creates the populations.
pub(crate) fn set_up(client: &mut RawClient) {
    for member in 0..POPULATION {
        for kind in KINDS {
            ask(client, &words!["SADD", home(kind, member % HOME_COUNT), name(kind, member)]);
        }
    }
}

fn home(kind: &str, index: usize) -> String {
    format!("home:{kind}:{index}")
}

fn name(kind: &str, member: usize) -> String {
    if kind == "numbers" { member.to_string() } else { format!("member {member}") }
}

fn homes(kind: &str) -> Vec<Vec<u8>> {
    (0..HOME_COUNT).map(|index| home(kind, index).into_bytes()).collect()
}

/// Returns a command with all sets of a kind between the given words.
fn on_all(kind: &str, before: &[&str], after: &[&str]) -> Vec<Vec<u8>> {
    let bytes = |words: &[&str]| words.iter().map(|word| word.as_bytes().to_vec()).collect::<Vec<_>>();
    [bytes(before), homes(kind), bytes(after)].concat()
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    match random.below(10) {
        0..4 => move_or_read(batch, random),
        4..7 => pool(batch, random, book),
        _ => scores(batch, random, book),
    }
}

fn move_or_read(batch: &mut Batch, random: &mut Random) {
    let kind = *random.pick(&[&KINDS[0], &KINDS[1]]);
    let all = Value::Integer(POPULATION as i64);
    match random.below(12) {
        0 => batch.call(on_all(kind, &["SUNION"], &[]), |_, reply| {
            assert_eq!(items(reply).len(), POPULATION, "no member is between two sets");
        }),
        1 => batch.call(on_all(kind, &["SUNIONSTORE", "home:all"], &[]), move |_, reply| {
            assert_eq!(*reply, all);
        }),
        2 => batch
            .call(on_all(kind, &["ZUNIONSTORE", "home:scored", "4"], &["WEIGHTS", "1", "2", "3", "4"]), {
                move |_, reply| assert_eq!(*reply, all)
            }),
        3 => {
            let call = words!["SINTERCARD", "2", home(kind, 0), home(kind, 1)];
            batch.call(call, |_, reply| assert_eq!(*reply, Value::Integer(0), "no member is in two sets"));
        }
        4 => {
            let calls = homes(kind).into_iter().map(|home| words!["SCARD", home]).collect();
            batch.transaction(calls, |_, replies| {
                let sum: i64 = replies.iter().filter_map(Value::integer).sum();
                assert_eq!(sum, POPULATION as i64);
            });
        }
        5 => {
            let (member, call) = (random.below(POPULATION), "SISMEMBER");
            let member = name(kind, member);
            let calls = homes(kind).into_iter().map(|home| words![call, home, member.clone()]).collect();
            batch.transaction(calls, |_, replies| {
                let sum: i64 = replies.iter().filter_map(Value::integer).sum();
                assert_eq!(sum, 1, "a member is in one set");
            });
        }
        _ => {
            let (source, target) = (random.below(HOME_COUNT), random.below(HOME_COUNT));
            let member = name(kind, random.below(POPULATION));
            batch.call(words!["SMOVE", home(kind, source), home(kind, target), member], |_, _| {});
        }
    }
}

fn pool(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let key = format!("pool:{}", random.below(POOL_COUNT));
    if random.chance(if book.is_filling { 50 } else { 20 }) {
        let numbers: Vec<u64> = (0..=random.below(6)).map(|_| book.fresh()).collect();
        let mut call = words!["SADD", key];
        call.extend(numbers.iter().map(|number| element(*number)));
        return batch.call(call, move |book, reply| {
            assert_eq!(*reply, Value::Integer(numbers.len() as i64), "members are new");
            book.sets.put.extend(numbers);
        });
    }
    match random.below(4) {
        0 => batch.call(words!["SPOP", key], |book, reply| {
            if *reply != Value::Null {
                book.sets.take(reply);
            }
        }),
        1 => {
            batch.transaction(vec![words!["SRANDMEMBER", key.clone()], words!["SCARD", key]], |_, replies| {
                assert_eq!(replies[0] == Value::Null, replies[1] == Value::Integer(0));
            })
        }
        _ => batch.call(words!["SPOP", key, random.below(12).to_string()], |book, reply| {
            items(reply).iter().for_each(|member| book.sets.take(member));
        }),
    }
}

fn scores(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let (key, other) =
        (format!("scores:{}", random.below(POOL_COUNT)), format!("scores:{}", random.below(POOL_COUNT)));
    let count = random.below(9).to_string();
    let end = *random.pick(&[&"MIN", &"MAX"]);
    let pop = format!("ZPOP{end}");
    match random.below(if book.is_filling { 11 } else { 8 }) {
        0 | 1 => batch.call(words![pop, key, count], take_scored),
        2 => batch.call(words!["ZMPOP", "2", key, other, end, "COUNT", "5"], |book, reply| {
            items(reply).get(1).iter().for_each(|popped| take_scored(book, popped));
        }),
        3 => batch.call(words!["BZMPOP", "0.002", "2", key, other, end], |book, reply| {
            items(reply).get(1).iter().for_each(|popped| take_scored(book, popped));
        }),
        4 => batch.call(words![format!("B{pop}"), key, other, "0.003"], |book, reply| {
            if let [_, member, score] = items(reply) {
                take_scored(book, &Value::Array(vec![member.clone(), score.clone()]));
            }
        }),
        5 => batch.call(words!["ZRANGE", key, "0", "40", "WITHSCORES"], |_, reply| {
            let scores: Vec<f64> = scored(reply).into_iter().map(|(_, score)| score).collect();
            assert!(scores.is_sorted(), "scores ascend: {scores:?}");
        }),
        6 => batch.transaction(
            vec![
                words!["ZCARD", key.clone()],
                words!["ZRANGEBYSCORE", key.clone(), "-inf", "+inf", "WITHSCORES", "LIMIT", "0", "3"],
                words!["ZREMRANGEBYRANK", key.clone(), "0", "2"],
                words!["ZCARD", key],
            ],
            |book, replies| {
                let count = |index: usize| replies[index].integer().unwrap();
                assert_eq!(count(0) - count(2), count(3));
                assert_eq!(scored(&replies[1]).len() as i64, count(2));
                take_scored(book, &replies[1]);
            },
        ),
        _ => {
            let numbers: Vec<u64> = (0..=random.below(5)).map(|_| book.fresh()).collect();
            let mut call = words!["ZADD", key];
            for number in &numbers {
                call.extend([score(*number).to_string().into_bytes(), element(*number)]);
            }
            batch.call(call, move |book, reply| {
                assert_eq!(*reply, Value::Integer(numbers.len() as i64), "members are new");
                book.sorted_sets.put.extend(numbers);
            });
        }
    }
}

/// Returns the score that is derived from the number of an element.
fn score(number: u64) -> f64 {
    (number % 100_003) as f64 / 8.0
}

fn take_scored(book: &mut Book, reply: &Value) {
    for (member, value) in scored(reply) {
        assert!(value == score(number(&member)), "{member:?} has the score {value}");
        book.sorted_sets.take(&member);
    }
}

/// Compares the records with the members at the end.
pub(crate) fn check(books: &[Book], client: &mut RawClient) {
    for kind in KINDS {
        let all = ask(client, &on_all(kind, &["SUNION"], &[]));
        assert_eq!(items(&all).len(), POPULATION);
    }
    let (mut members, mut sorted) = (Vec::new(), Vec::new());
    for index in 0..POOL_COUNT {
        let pool = ask(client, &words!["SMEMBERS", format!("pool:{index}")]);
        members.extend(items(&pool).iter().map(number));
        let scores = ask(client, &words!["ZRANGE", format!("scores:{index}"), "0", "-1"]);
        sorted.extend(items(&scores).iter().map(number));
    }
    check_bags("sets", books.iter().map(|book| &book.sets), &members);
    check_bags("sorted sets", books.iter().map(|book| &book.sorted_sets), &sorted);
}
