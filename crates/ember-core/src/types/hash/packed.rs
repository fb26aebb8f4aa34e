//! The fields of a small hash in one listpack.
//!
//! ```text
//! pairs      name, value | name, value | …                    in the order in which they were added
//! triplets   name, value, expiry | name, value, expiry | …    once a field has had an expiry
//! ```
//!
//! An expiry is a Unix time in ms, 0 for none. Triplets with an expiry come first, in the order of their expiries, so
//! those that are due are at the front.

use std::collections::HashSet;

use crate::effects::journal::Names;
use crate::types::listpack::{Element, Listpack};
use crate::types::value::StringValue;

use super::field::Field;

/// The number of elements per field without an expiry.
pub(super) const PAIR: usize = 2;

/// The number of elements per field with an expiry or 0.
pub(super) const TRIPLET: usize = 3;

/// The stored value for no expiry.
const NEVER: i64 = 0;

fn text(element: Element<'_>) -> StringValue<'_> {
    match element {
        Element::Integer(number) => StringValue::Int(number),
        Element::Bytes(bytes) => StringValue::Inline(bytes),
    }
}

fn expiry(element: Element<'_>) -> Option<i64> {
    match element {
        Element::Integer(at_ms) if at_ms != NEVER => Some(at_ms),
        Element::Integer(_) | Element::Bytes(_) => None,
    }
}

/// Returns every field of a listpack with `stride` elements per field, in order.
#[inline]
pub(super) fn fields(list: &Listpack, stride: usize) -> impl Iterator<Item = Field<'_>> {
    fields_of(list.iter(), stride)
}

fn fields_of<'a>(
    mut elements: impl Iterator<Item = Element<'a>>,
    stride: usize,
) -> impl Iterator<Item = Field<'a>> {
    std::iter::from_fn(move || {
        let name = text(elements.next()?);
        let value = text(elements.next()?);
        let expire_at_ms = if stride == TRIPLET { expiry(elements.next()?) } else { None };
        Some(Field { name, value, expire_at_ms })
    })
}

/// Returns the offset of the field `name`. O(fields).
#[inline]
pub(super) fn find(list: &Listpack, stride: usize, name: &[u8]) -> Option<usize> {
    list.find(list.first()?, name, stride - 1)
}

/// Returns the field at an offset.
#[inline]
pub(super) fn field(list: &Listpack, stride: usize, at: usize) -> Field<'_> {
    fields_of(list.iter_from(at), stride).next().expect("an offset that was found is that of a field")
}

/// Returns the offset of the field at `index`, which must be below the number of fields. O(fields).
pub(super) fn at_index(list: &Listpack, stride: usize, index: usize) -> usize {
    list.at((index * stride) as isize).expect("the index is below the number of fields")
}

/// Replaces the value of the field at an offset.
pub(super) fn replace_value(list: &mut Listpack, at: usize, value: &[u8]) {
    let at = list.next(at).expect("a value follows the name");
    list.replace(at, value);
}

/// Removes the field at an offset.
pub(super) fn remove(list: &mut Listpack, stride: usize, at: usize) {
    list.remove_range(at, stride);
}

/// Appends a pair. Its name must not exist yet.
pub(super) fn push_pair(list: &mut Listpack, name: &[u8], value: &[u8]) {
    list.push_back(name);
    list.push_back(value);
}

/// Returns the same fields as triplets, without expiries.
pub(super) fn to_triplets(pairs: &Listpack) -> Listpack {
    let mut triplets = Listpack::new();
    let mut digits = itoa::Buffer::new();
    for (index, element) in pairs.iter().enumerate() {
        triplets.push_back(element.bytes(&mut digits));
        if index % PAIR == PAIR - 1 {
            triplets.push_back_integer(NEVER);
        }
    }
    triplets
}

/// Inserts a triplet in the order of expiries. Its name must not exist yet. O(fields).
pub(super) fn insert_triplet(list: &mut Listpack, name: &[u8], value: &[u8], expire_at_ms: Option<i64>) {
    match expire_at_ms.and_then(|at_ms| first_after(list, at_ms)) {
        None => {
            push_pair(list, name, value);
            list.push_back_integer(expire_at_ms.unwrap_or(NEVER));
        }
        Some(at) => {
            let mut digits = itoa::Buffer::new();
            list.insert_before(at, digits.format(expire_at_ms.unwrap_or(NEVER)).as_bytes());
            list.insert_before(at, value);
            list.insert_before(at, name);
        }
    }
}

/// Returns the offset of the first triplet that expires after `at_ms` or never. Triplets with the same expiry stay in
/// the order of insertion, also when they are saved and loaded.
fn first_after(list: &Listpack, at_ms: i64) -> Option<usize> {
    let mut at = list.first();
    while let Some(name_at) = at {
        let expiry_at = list.next(list.next(name_at)?)?;
        if expiry(list.get(expiry_at)).is_none_or(|other| other > at_ms) {
            return Some(name_at);
        }
        at = list.next(expiry_at);
    }
    None
}

/// Changes the expiry of the triplet at an offset and, with `Some`, its value. O(fields).
pub(super) fn move_triplet(list: &mut Listpack, at: usize, value: Option<&[u8]>, expire_at_ms: Option<i64>) {
    let value_at = list.next(at).expect("a value follows the name");
    let name = list.get(at).to_vec();
    let value = value.map_or_else(|| list.get(value_at).to_vec(), <[u8]>::to_vec);
    list.remove_range(at, TRIPLET);
    insert_triplet(list, &name, &value, expire_at_ms);
}

/// Returns the earliest expiry of a triplet.
#[inline]
pub(super) fn earliest_ms(triplets: &Listpack) -> Option<i64> {
    fields(triplets, TRIPLET).next().and_then(|field| field.expire_at_ms)
}

/// Removes up to `max` triplets that have expired, and returns how many. O(fields).
pub(super) fn remove_expired(triplets: &mut Listpack, now_ms: i64, max: usize, names: &mut Names) -> usize {
    let mut digits = itoa::Buffer::new();
    let expired = fields(triplets, TRIPLET).take(max).take_while(|field| field.is_expired(now_ms));
    let expired = expired.inspect(|field| names.add(field.name.bytes(&mut digits))).count();
    if let (1.., Some(first)) = (expired, triplets.first()) {
        triplets.remove_range(first, expired * TRIPLET);
    }
    expired
}

/// Checks that the listpack is well formed, names are unique and triplets are in order; for tests.
pub(super) fn check_invariants(list: &Listpack, stride: usize) {
    list.check_invariants();
    assert_eq!(list.len() % stride, 0, "fields are whole");
    let names: HashSet<Vec<u8>> = list.iter().step_by(stride).map(Element::to_vec).collect();
    assert_eq!(names.len() * stride, list.len(), "every name occurs once");
    let expiries = fields(list, stride).map(|field| field.expire_at_ms.unwrap_or(i64::MAX));
    assert!(expiries.is_sorted(), "triplets are in the order of their expiries");
}
