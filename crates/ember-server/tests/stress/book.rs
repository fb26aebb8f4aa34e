//! Records of all calls of one connection, which are compared with the data set and the records of the other
//! connections.

use std::collections::HashMap;

use ember_testkit::Value;

use crate::counters::Counters;
use crate::expiry::Expiring;
use crate::owned::Owned;
use crate::pubsub::CHANNEL_COUNT;
use crate::streams::Streams;

/// One element in this number is long.
const LONG_ONE_IN: u64 = 64;

/// The records of one connection.
#[derive(Default)]
pub(crate) struct Book {
    /// The number of this connection.
    pub(crate) me: usize,
    /// Whether collections should currently grow; otherwise they shrink.
    pub(crate) is_filling: bool,
    pub(crate) lists: Bag,
    pub(crate) sets: Bag,
    pub(crate) sorted_sets: Bag,
    /// Jobs that waiting clients should receive.
    pub(crate) jobs: Bag,
    pub(crate) counters: Counters,
    pub(crate) streams: Streams,
    pub(crate) expiring: Expiring,
    pub(crate) owned: Owned,
    /// The number of messages published in each channel.
    pub(crate) published: [u64; CHANNEL_COUNT],
    /// The sum of the increments made with WATCH.
    pub(crate) watched_increments: i64,
    elements: u64,
}

impl Book {
    /// Creates the records of connection `me`.
    pub(crate) fn new(me: usize) -> Self {
        Book { me, ..Book::default() }
    }

    /// Returns a new number for an element, which no other connection uses.
    pub(crate) fn fresh(&mut self) -> u64 {
        self.elements += 1;
        (self.me as u64) << 40 | self.elements
    }
}

/// The elements that a connection has added and removed.
#[derive(Default)]
pub(crate) struct Bag {
    pub(crate) put: Vec<u64>,
    taken: Vec<u64>,
}

impl Bag {
    /// Records a removed element.
    pub(crate) fn take(&mut self, value: &Value) {
        self.taken.push(number(value));
    }
}

/// Returns the text of an element: its number, and for some elements a padding derived from the number.
pub(crate) fn element(number: u64) -> Vec<u8> {
    let mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let padding = match mixed % LONG_ONE_IN {
        0 => mixed / LONG_ONE_IN % 3000,
        1..16 => mixed / LONG_ONE_IN % 30,
        _ => return number.to_string().into_bytes(),
    };
    let mut text = format!("{number}:").into_bytes();
    text.resize(text.len() + padding as usize, b'a' + (mixed % 26) as u8);
    text
}

/// Returns the number of an element, after checking that its text is undamaged.
pub(crate) fn number(value: &Value) -> u64 {
    let bytes = value.bytes().unwrap_or_else(|| panic!("an element is a string: {value:?}"));
    let digits = bytes.split(|byte| *byte == b':').next().and_then(|text| std::str::from_utf8(text).ok());
    let number = digits.and_then(|text| text.parse().ok());
    let number = number.unwrap_or_else(|| panic!("an element begins with its number: {value:?}"));
    assert!(bytes == element(number), "an element is damaged: {value:?}");
    number
}

/// Asserts that each added element was removed exactly once or still exists exactly once.
pub(crate) fn check_bags<'a>(what: &str, bags: impl Iterator<Item = &'a Bag>, left: &[u64]) {
    let mut seen: HashMap<u64, (usize, usize, usize)> = HashMap::new();
    for bag in bags {
        bag.put.iter().for_each(|number| seen.entry(*number).or_default().0 += 1);
        bag.taken.iter().for_each(|number| seen.entry(*number).or_default().1 += 1);
    }
    left.iter().for_each(|number| seen.entry(*number).or_default().2 += 1);
    let wrong: Vec<_> =
        seen.iter().filter(|(_, (put, taken, left))| (*put, taken + left) != (1, 1)).collect();
    assert!(
        wrong.is_empty(),
        "{what}: {} of {} elements lost or doubled, as (number, (put, taken, left)): {:?}",
        wrong.len(),
        seen.len(),
        &wrong[..wrong.len().min(10)]
    );
}

/// Returns the elements of an array or set; none for null.
pub(crate) fn items(value: &Value) -> &[Value] {
    value.elements().unwrap_or_default()
}

/// Returns the number of a double, which is text in RESP2.
pub(crate) fn double(value: &Value) -> f64 {
    let text = match value {
        Value::Double(text) | Value::Bulk(text) => String::from_utf8_lossy(text),
        other => panic!("no double: {other:?}"),
    };
    text.parse().unwrap_or_else(|_| panic!("no double: {text}"))
}

/// Returns members with scores from a reply: pairs in RESP3, a flat list in RESP2.
pub(crate) fn scored(value: &Value) -> Vec<(Value, f64)> {
    let flat: Vec<Value> = items(value)
        .iter()
        .flat_map(|item| item.elements().map_or_else(|| vec![item.clone()], <[Value]>::to_vec))
        .collect();
    flat.chunks_exact(2).map(|pair| (pair[0].clone(), double(&pair[1]))).collect()
}
