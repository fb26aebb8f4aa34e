//! Counters: their values equal the sums of all additions; each ticket number is drawn once.

use std::collections::BTreeMap;

use ember_testkit::{Random, RawClient, Value};

use crate::batch::{Batch, ask, words};
use crate::book::{Book, double};

const COUNTER_COUNT: usize = 8;

/// The additions and tickets of one connection.
#[derive(Default)]
pub(crate) struct Counters {
    /// The additions by key and, for collections, by field or member. The amounts are multiples of 1/4, so that doubles
    /// are exact.
    added: BTreeMap<(&'static str, usize), f64>,
    tickets: Vec<i64>,
    highest: i64,
}

/// Adds a random call.
pub(crate) fn act(batch: &mut Batch, random: &mut Random, _: &mut Book) {
    let index = random.below(COUNTER_COUNT);
    let amount = random.between(-1000, 1000);
    let quarters = amount as f64 / 4.0;
    let field = format!("f{index}");
    let (kind, amount, call) = match random.below(9) {
        0 => ("integer", amount as f64, words!["INCRBY", format!("integer:{index}"), amount.to_string()]),
        1 => ("integer", 1.0, words!["INCR", format!("integer:{index}")]),
        2 => ("integer", -amount as f64, words!["DECRBY", format!("integer:{index}"), amount.to_string()]),
        3 => ("float", quarters, words!["INCRBYFLOAT", format!("float:{index}"), quarters.to_string()]),
        4 => ("hash", amount as f64, words!["HINCRBY", "counters:hash", field, amount.to_string()]),
        5 => ("floats", quarters, words!["HINCRBYFLOAT", "counters:floats", field, quarters.to_string()]),
        6 => ("scores", quarters, words!["ZINCRBY", "counters:scores", quarters.to_string(), field]),
        7 => {
            let offset = format!("#{index}");
            (
                "bits",
                amount as f64,
                words!["BITFIELD", "counters:bits", "INCRBY", "i64", offset, amount.to_string()],
            )
        }
        _ => {
            batch.call(words!["INCR", "tickets"], |book, reply| {
                let ticket = reply.integer().unwrap();
                assert!(ticket > book.counters.highest, "tickets ascend");
                book.counters.highest = ticket;
                book.counters.tickets.push(ticket);
            });
            return;
        }
    };
    batch.call(call, move |book, _| *book.counters.added.entry((kind, index)).or_default() += amount);
}

/// Compares the records with the counters.
pub(crate) fn check(books: &[Book], client: &mut RawClient) {
    let mut sums: BTreeMap<(&str, usize), f64> = BTreeMap::new();
    for (place, amount) in books.iter().flat_map(|book| &book.counters.added) {
        *sums.entry(*place).or_default() += amount;
    }
    for ((kind, index), sum) in sums {
        let field = format!("f{index}");
        let call = match kind {
            "hash" => words!["HGET", "counters:hash", field],
            "floats" => words!["HGET", "counters:floats", field],
            "scores" => words!["ZSCORE", "counters:scores", field],
            "bits" => words!["BITFIELD_RO", "counters:bits", "GET", "i64", format!("#{index}")],
            _ => words!["GET", format!("{kind}:{index}")],
        };
        let value = match ask(client, &call) {
            Value::Array(values) => values[0].integer().unwrap() as f64,
            value => double(&value),
        };
        assert!(value == sum, "{kind} {index} is {value}, the sum is {sum}");
    }
    let mut tickets: Vec<i64> = books.iter().flat_map(|book| book.counters.tickets.iter().copied()).collect();
    tickets.sort_unstable();
    assert!(tickets.iter().copied().eq(1..=tickets.len() as i64), "every ticket is drawn once");
}
