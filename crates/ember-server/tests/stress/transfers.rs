//! Related keys change atomically: sums are constant for every reader, whichever kind of call moves the amounts.

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, Words, ask, words};
use crate::book::{Book, double, items};

const ACCOUNT_COUNT: usize = 8;

const BALANCE: i64 = 1000;

/// A script that moves an amount between two accounts, which are given as keys or by number.
const TRANSFER: &str = "redis.call('DECRBY', KEYS[1] or 'account:' .. ARGV[2], ARGV[1]) \
                        return redis.call('INCRBY', KEYS[2] or 'account:' .. ARGV[3], ARGV[1])";

/// A script that returns the sum of all given accounts.
const SUM: &str =
    "local sum = 0 for _, key in ipairs(KEYS) do sum = sum + redis.call('GET', key) end return sum";

const LIBRARY: &str = "#!lua name=bank\n\
    redis.register_function('transfer', function(keys, arguments) \
    redis.call('DECRBY', keys[1], arguments[1]) return redis.call('INCRBY', keys[2], arguments[1]) end)";

/// Creates the accounts.
pub(crate) fn set_up(client: &mut RawClient) {
    for index in 0..ACCOUNT_COUNT {
        ask(client, &words!["SET", account(index), BALANCE.to_string()]);
    }
    ask(client, &words!["HSET", "both:hash", "amount", "0"]);
    ask(client, &words!["ZADD", "both:scores", "0", "amount"]);
    ask(client, &words!["FUNCTION", "LOAD", LIBRARY]);
}

fn account(index: usize) -> String {
    format!("account:{index}")
}

/// Returns a command with all accounts after the given words.
fn on_all(before: Words) -> Words {
    before.into_iter().chain((0..ACCOUNT_COUNT).map(|index| account(index).into_bytes())).collect()
}

fn assert_sum(balances: &[Value]) {
    let sum: i64 = balances.iter().map(|balance| balance.text().parse::<i64>().unwrap()).sum();
    assert_eq!(sum, BALANCE * ACCOUNT_COUNT as i64, "part of a transfer is visible: {balances:?}");
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, book: &mut Book) {
    let (from, to) = (random.below(ACCOUNT_COUNT), random.below(ACCOUNT_COUNT));
    let (source, target) = (account(from), account(to));
    let amount = random.between(1, 99).to_string();
    match random.below(15) {
        0..3 => batch.transaction(
            vec![words!["DECRBY", source, amount.clone()], words!["INCRBY", target, amount]],
            |_, _| {},
        ),
        3 | 4 => batch.call(on_all(words!["MGET"]), |_, reply| assert_sum(items(reply))),
        5 => {
            let calls = (0..ACCOUNT_COUNT).map(|index| words!["GET", account(index)]).collect();
            batch.transaction(calls, |_, replies| assert_sum(replies));
        }
        6 | 7 => batch.call(words!["EVAL", TRANSFER, "2", source, target, amount], |_, _| {}),
        8 => batch.call(words!["EVAL", TRANSFER, "0", amount, from.to_string(), to.to_string()], |_, _| {}),
        9 => {
            let call = on_all(words!["EVAL", SUM, ACCOUNT_COUNT.to_string()]);
            batch.call(call, |_, reply| {
                assert_eq!(*reply, Value::Integer(BALANCE * ACCOUNT_COUNT as i64));
            });
        }
        10 => batch.call(words!["FCALL", "transfer", "2", source, target, amount], |_, _| {}),
        11 => batch.transaction(
            vec![
                words!["HINCRBY", "both:hash", "amount", amount.clone()],
                words!["ZINCRBY", "both:scores", format!("-{amount}"), "amount"],
            ],
            |_, _| {},
        ),
        12 => batch.transaction(
            vec![words!["HGET", "both:hash", "amount"], words!["ZSCORE", "both:scores", "amount"]],
            |_, replies| assert_eq!(double(&replies[0]) + double(&replies[1]), 0.0),
        ),
        13 => {
            let script = format!("return {}", book.fresh());
            batch.call(words!["EVAL", script.clone(), "0"], |_, _| {});
            batch.call(words!["SCRIPT", "LOAD", script], |_, _| {});
        }
        _ => batch.transaction(
            vec![
                words!["DBSIZE"],
                words!["INCRBY", source, amount.clone()],
                words!["DECRBY", target, amount],
            ],
            |_, _| {},
        ),
    }
}

/// Makes an increment or a transfer with WATCH, which is executed only if no other client has changed the keys.
pub(crate) fn converse(client: &mut RawClient, random: &mut Random, book: &mut Book) {
    if random.chance(50) {
        ask(client, &words!["WATCH", "watched"]);
        let value = ask(client, &words!["GET", "watched"]).text().parse().unwrap_or(0) + 1;
        ask(client, &words!["MULTI"]);
        ask(client, &words!["SET", "watched", i64::to_string(&value)]);
        if ask(client, &words!["EXEC"]) != Value::Null {
            book.watched_increments += 1;
        }
        return;
    }
    let (source, target) = (account(random.below(ACCOUNT_COUNT)), account(random.below(ACCOUNT_COUNT)));
    if source == target {
        return;
    }
    ask(client, &words!["WATCH", source.clone(), target.clone()]);
    let mut balance = |key: &String| ask(client, &words!["GET", key.clone()]).text().parse::<i64>().unwrap();
    let (left, right) = (balance(&source) - 7, balance(&target) + 7);
    ask(client, &words!["MULTI"]);
    ask(client, &words!["SET", source, left.to_string()]);
    ask(client, &words!["SET", target, right.to_string()]);
    ask(client, &words!["EXEC"]);
}

/// Compares the records with the sums.
pub(crate) fn check(books: &[Book], client: &mut RawClient) {
    assert_sum(items(&ask(client, &on_all(words!["MGET"]))));
    let done: i64 = books.iter().map(|book| book.watched_increments).sum();
    let watched = ask(client, &words!["GET", "watched"]).text().parse().unwrap_or(0);
    assert_eq!(done, watched, "no increment with WATCH is lost");
}
