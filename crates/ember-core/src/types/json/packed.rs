//! The packed form of a JSON value: its parts in the order of the text, one after another in one allocation.
//!
//! ```text
//! 0x00–0x3F  string of 0 to 63 bytes, which follow        0xA0, 0xA1, 0xA2  null, false, true
//! 0x40–0x9F  integer −10 to 85                            0xA3, 0xA4, 0xA5  string, length in 1, 2, 4 bytes
//! 0xA6–0xAA  integer of 1, 2, 3, 4, 8 bytes               0xAB, 0xAC        integer above i64, double
//! 0xB0–0xCF  double m / 10^e: e in 3 bits, then the bytes of m minus 1 in 2 bits; m follows
//! 0xD0, 0xD4 array, object: bytes of the elements in 1 byte
//! 0xD1, 0xD5 the same in 2 bytes, number of elements in 2 bytes
//! 0xD2, 0xD6 the same in 4 bytes, number of elements in 4 bytes                                    little-endian
//! ```
//!
//! A member of an object is its name, a string, and its value. Names are unique; members keep the order in which they
//! were added. A container may have a larger head than its size requires, because edits never make a head smaller: so
//! equal values may have different bytes.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use super::numbers::{self, Number};

const STRING_SHORT_MAX: usize = 0x3F;
const INT_SMALL: u8 = 0x40;
const INT_SMALL_END: u8 = 0x9F;
/// The integer that the first tag of a small integer stands for.
const INT_SMALL_MIN: i64 = -10;
const NULL: u8 = 0xA0;
/// The packed `null`.
pub(super) const NULL_VALUE: &[u8] = &[NULL];
const FALSE: u8 = 0xA1;
const TRUE: u8 = 0xA2;
const STRING_8: u8 = 0xA3;
const STRING_16: u8 = 0xA4;
const STRING_32: u8 = 0xA5;
const INT: u8 = 0xA6;
const INT_END: u8 = 0xAA;
const UINT: u8 = 0xAB;
const DOUBLE: u8 = 0xAC;
const DECIMAL: u8 = 0xB0;
const DECIMAL_END: u8 = 0xCF;
const ARRAY: u8 = 0xD0;
const OBJECT: u8 = 0xD4;
/// The bit that distinguishes the tags of objects from those of arrays.
const OBJECT_BIT: u8 = OBJECT ^ ARRAY;

/// The bytes of integers, indexed by the distance of their tags from [`INT`].
const INT_BYTES: [usize; 5] = [1, 2, 3, 4, 8];

/// The maximum number of nested containers: as many as a text may have.
pub const DEPTH_MAX: usize = 128;

/// The maximum number of bytes of a number.
pub const NUMBER_BYTES_MAX: usize = 9;

/// The largest head of a container in bytes.
pub(super) const HEAD_BYTES_MAX: usize = 9;

/// A value in a document.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum View<'d> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number.
    Number(Number),
    /// A string, as UTF-8.
    String(&'d [u8]),
    /// An array.
    Array(Children<'d>),
    /// An object.
    Object(Children<'d>),
}

/// An element of an array, or a member of an object.
#[derive(Clone, Copy, Debug)]
pub struct Child<'d> {
    /// The name of a member.
    pub name: Option<&'d [u8]>,
    /// The position of the whole element: that of the name, for a member.
    pub start: usize,
    /// The position of the value.
    pub at: usize,
    /// The end of the value.
    pub end: usize,
}

/// The elements of an array, or the members of an object, in order.
#[derive(Clone, Copy, Debug)]
pub struct Children<'d> {
    doc: &'d [u8],
    next: usize,
    end: usize,
    is_object: bool,
    count: Option<usize>,
}

impl PartialEq for Children<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.is_object == other.is_object && self.doc[self.next..self.end] == other.doc[other.next..other.end]
    }
}

impl Children<'_> {
    /// Returns the number of elements. O(elements) for containers of up to 255 bytes, otherwise O(1).
    pub fn len(&self) -> usize {
        self.count.unwrap_or_else(|| self.count())
    }

    /// Returns whether these are the members of an object.
    pub(super) fn is_object(&self) -> bool {
        self.is_object
    }

    /// Returns whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.next == self.end
    }
}

impl<'d> Iterator for Children<'d> {
    type Item = Child<'d>;

    fn next(&mut self) -> Option<Child<'d>> {
        if self.next >= self.end {
            return None;
        }
        let start = self.next;
        let (name, at) = if self.is_object {
            let text = string_range(self.doc, start).expect("the name of a member is a string");
            (Some(&self.doc[text.clone()]), text.end)
        } else {
            (None, start)
        };
        self.next = end(self.doc, at);
        Some(Child { name, start, at, end: self.next })
    }
}

fn array<const N: usize>(doc: &[u8], at: usize) -> [u8; N] {
    let mut bytes = [0; N];
    bytes.copy_from_slice(&doc[at..at + N]);
    bytes
}

/// The head of a container.
#[derive(Clone, Copy)]
struct Head {
    bytes: usize,
    payload: usize,
    count: Option<usize>,
}

fn head(doc: &[u8], at: usize) -> Option<Head> {
    Some(match doc[at] & !OBJECT_BIT {
        0xD0 => Head { bytes: 2, payload: doc[at + 1].into(), count: None },
        0xD1 => Head {
            bytes: 5,
            payload: u16::from_le_bytes(array(doc, at + 1)).into(),
            count: Some(u16::from_le_bytes(array(doc, at + 3)).into()),
        },
        0xD2 => Head {
            bytes: HEAD_BYTES_MAX,
            payload: u32::from_le_bytes(array(doc, at + 1)) as usize,
            count: Some(u32::from_le_bytes(array(doc, at + 5)) as usize),
        },
        _ => return None,
    })
}

/// Returns the position of the bytes of a string.
fn string_range(doc: &[u8], at: usize) -> Option<Range<usize>> {
    let (head, len) = match doc[at] {
        tag if usize::from(tag) <= STRING_SHORT_MAX => (1, tag.into()),
        STRING_8 => (2, doc[at + 1].into()),
        STRING_16 => (3, u16::from_le_bytes(array(doc, at + 1)).into()),
        STRING_32 => (5, u32::from_le_bytes(array(doc, at + 1)) as usize),
        _ => return None,
    };
    Some(at + head..at + head + len)
}

/// Returns the end of the value at `at`. O(1).
pub fn end(doc: &[u8], at: usize) -> usize {
    if let Some(text) = string_range(doc, at) {
        return text.end;
    }
    match doc[at] {
        tag @ INT..=INT_END => at + 1 + INT_BYTES[usize::from(tag - INT)],
        UINT | DOUBLE => at + 9,
        tag @ DECIMAL..=DECIMAL_END => at + 2 + usize::from(tag & 3),
        _ => match head(doc, at) {
            Some(head) => at + head.bytes + head.payload,
            None => at + 1,
        },
    }
}

/// Returns the value at `at`. O(1).
pub fn view(doc: &[u8], at: usize) -> View<'_> {
    if let Some(text) = string_range(doc, at) {
        return View::String(&doc[text]);
    }
    match doc[at] {
        FALSE => View::Bool(false),
        TRUE => View::Bool(true),
        tag @ INT_SMALL..=INT_SMALL_END => {
            View::Number(Number::Int(i64::from(tag - INT_SMALL) + INT_SMALL_MIN))
        }
        tag @ INT..=INT_END => {
            View::Number(Number::Int(signed(&doc[at + 1..at + 1 + INT_BYTES[usize::from(tag - INT)]])))
        }
        UINT => View::Number(Number::Uint(u64::from_le_bytes(array(doc, at + 1)))),
        DOUBLE => View::Number(Number::Double(f64::from_le_bytes(array(doc, at + 1)))),
        tag @ DECIMAL..=DECIMAL_END => {
            let (mantissa, exponent) = decimal(doc, at, tag);
            View::Number(Number::Double(numbers::decimal_value(mantissa, exponent)))
        }
        tag => match children(doc, at) {
            Some(children) if tag & OBJECT_BIT == 0 => View::Array(children),
            Some(children) => View::Object(children),
            None => View::Null,
        },
    }
}

/// Returns the elements of the container at `at`; `None` if the value is no container.
pub fn children(doc: &[u8], at: usize) -> Option<Children<'_>> {
    let Head { bytes, payload, count } = head(doc, at)?;
    let next = at + bytes;
    Some(Children { doc, next, end: next + payload, is_object: doc[at] & OBJECT_BIT != 0, count })
}

/// Returns mantissa and exponent of the double at `at` if it is stored as a decimal fraction.
pub(super) fn decimal_at(doc: &[u8], at: usize) -> Option<(i64, u32)> {
    match doc[at] {
        tag @ DECIMAL..=DECIMAL_END => Some(decimal(doc, at, tag)),
        _ => None,
    }
}

fn decimal(doc: &[u8], at: usize, tag: u8) -> (i64, u32) {
    let width = usize::from(tag & 3) + 1;
    (signed(&doc[at + 1..at + 1 + width]), u32::from(tag - DECIMAL) >> 2)
}

/// Returns the integer that `bytes`, at most eight, encode.
fn signed(bytes: &[u8]) -> i64 {
    let fill = if bytes.last().is_some_and(|&last| last >= 0x80) { 0xFF } else { 0 };
    let mut whole = [fill; 8];
    whole[..bytes.len()].copy_from_slice(bytes);
    i64::from_le_bytes(whole)
}

/// Returns the number of bytes that an integer needs.
fn signed_bytes(number: i64) -> usize {
    let magnitude = if number < 0 { !number } else { number };
    // One more bit is the sign.
    (64 - magnitude.leading_zeros() as usize + 1).div_ceil(8)
}

/// Appends `null`.
pub fn push_null(out: &mut Vec<u8>) {
    out.push(NULL);
}

/// Appends `true` or `false`.
pub fn push_bool(out: &mut Vec<u8>, value: bool) {
    out.push(if value { TRUE } else { FALSE });
}

/// Appends a number.
pub fn push_number(out: &mut Vec<u8>, number: Number) {
    match number {
        Number::Int(number) => push_int(out, number),
        Number::Uint(number) => match i64::try_from(number) {
            Ok(number) => push_int(out, number),
            Err(_) => {
                out.push(UINT);
                out.extend_from_slice(&number.to_le_bytes());
            }
        },
        Number::Double(number) => match numbers::decimal_of(number) {
            Some((mantissa, exponent)) => {
                let width = signed_bytes(mantissa);
                out.push(DECIMAL + ((exponent as u8) << 2 | (width - 1) as u8));
                out.extend_from_slice(&mantissa.to_le_bytes()[..width]);
            }
            None => {
                out.push(DOUBLE);
                out.extend_from_slice(&number.to_le_bytes());
            }
        },
    }
}

fn push_int(out: &mut Vec<u8>, number: i64) {
    let small = number.wrapping_sub(INT_SMALL_MIN);
    if (0..=i64::from(INT_SMALL_END - INT_SMALL)).contains(&small) {
        return out.push(INT_SMALL + small as u8);
    }
    let needed = signed_bytes(number);
    let form =
        INT_BYTES.iter().position(|&bytes| bytes >= needed).expect("the last form has all bytes of an i64");
    out.push(INT + form as u8);
    out.extend_from_slice(&number.to_le_bytes()[..INT_BYTES[form]]);
}

/// Appends a string, which must be shorter than 4 GiB.
pub fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    match text.len() {
        len @ ..=STRING_SHORT_MAX => out.push(len as u8),
        len @ ..=0xFF => out.extend_from_slice(&[STRING_8, len as u8]),
        len @ ..=0xFFFF => {
            out.push(STRING_16);
            out.extend_from_slice(&(len as u16).to_le_bytes());
        }
        len => {
            out.push(STRING_32);
            out.extend_from_slice(&(len as u32).to_le_bytes());
        }
    }
    out.extend_from_slice(text);
}

/// Begins a container at the end of `out`; returns its position for [`close`].
pub(super) fn open(out: &mut Vec<u8>, is_object: bool) -> usize {
    let at = out.len();
    out.extend_from_slice(&[if is_object { OBJECT } else { ARRAY }, 0]);
    at
}

/// Ends the container at `at`, whose `count` elements follow its head of two bytes and end with `out`. O(its bytes) if
/// they are more than 255.
pub(super) fn close(out: &mut Vec<u8>, at: usize, count: usize) {
    let payload = out.len() - at - 2;
    set_head(out, at, payload, Some(count));
}

/// Sets the size of the container at `at`, whose elements have been edited; `count` is their number, which is counted
/// if the caller does not know it. Returns the growth of the head in bytes.
fn set_head(doc: &mut Vec<u8>, at: usize, payload: usize, count: Option<usize>) -> usize {
    let object = doc[at] & OBJECT_BIT;
    let old = head(doc, at).expect("only containers have heads");
    if old.bytes == 2 && payload <= 0xFF {
        doc[at + 1] = payload as u8;
        return 0;
    }
    let count = count.unwrap_or_else(|| {
        let next = at + old.bytes;
        let is_object = object != 0;
        Children { doc, next, end: next + payload, is_object, count: None }.count()
    });
    let mut new = [0; HEAD_BYTES_MAX];
    let bytes = if old.bytes <= 5 && payload <= 0xFFFF && count <= 0xFFFF {
        new[0] = 0xD1 | object;
        new[1..3].copy_from_slice(&(payload as u16).to_le_bytes());
        new[3..5].copy_from_slice(&(count as u16).to_le_bytes());
        5
    } else {
        new[0] = 0xD2 | object;
        new[1..5].copy_from_slice(&(payload as u32).to_le_bytes());
        new[5..9].copy_from_slice(&(count as u32).to_le_bytes());
        HEAD_BYTES_MAX
    };
    let growth = bytes - old.bytes;
    if growth == 0 {
        doc[at..at + bytes].copy_from_slice(&new[..bytes]);
    } else {
        doc.splice(at..at + old.bytes, new[..bytes].iter().copied());
    }
    growth
}

/// Records that the elements of the container at `at` have grown by `growth` bytes and `more` in number. Returns the
/// growth of the whole container in bytes.
pub(super) fn resize(doc: &mut Vec<u8>, at: usize, growth: isize, more: isize) -> isize {
    let old = head(doc, at).expect("only containers have elements");
    let payload = old.payload.checked_add_signed(growth).expect("no more is removed than there is");
    let count = old.count.and_then(|count| count.checked_add_signed(more));
    growth + set_head(doc, at, payload, count) as isize
}

/// Whether numbers of different kinds can be equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Numbers are equal if their values are.
    ByValue,
    /// An integer never equals a double.
    ByKind,
}

/// Returns whether two values, each in its document, are equal. Members may have different orders. O(bytes).
pub fn is_equal(a: (&[u8], usize), b: (&[u8], usize), numbers: Numbers) -> bool {
    match (view(a.0, a.1), view(b.0, b.1)) {
        (View::Null, View::Null) => true,
        (View::Bool(a), View::Bool(b)) => a == b,
        (View::Number(a), View::Number(b)) => {
            let is_double = |number| matches!(number, Number::Double(_));
            a.compare(b).is_eq() && (numbers == Numbers::ByValue || is_double(a) == is_double(b))
        }
        (View::String(a), View::String(b)) => a == b,
        (View::Array(one), View::Array(other)) => {
            let mut pairs = one.zip(other);
            one.len() == other.len()
                && pairs.all(|(one, other)| is_equal((a.0, one.at), (b.0, other.at), numbers))
        }
        (View::Object(mut one), View::Object(other)) => {
            let mut expected = other;
            let mut by_name = None;
            one.len() == other.len()
                && one.all(|member| {
                    // Usually the members of both have the same order.
                    let same = expected.next().filter(|next| next.name == member.name);
                    let found = same.or_else(|| {
                        let by_name = by_name.get_or_insert_with(|| {
                            other.map(|member| (member.name, member)).collect::<HashMap<_, _>>()
                        });
                        by_name.get(&member.name).copied()
                    });
                    found.is_some_and(|found| is_equal((a.0, member.at), (b.0, found.at), numbers))
                })
        }
        _ => false,
    }
}

/// Returns the number of nested containers of the value at `at`, including itself.
pub(super) fn depth(doc: &[u8], at: usize) -> usize {
    let deepest = |children: Children<'_>| children.map(|child| depth(doc, child.at)).max().unwrap_or(0);
    children(doc, at).map_or(0, |children| 1 + deepest(children))
}

/// Checks that the value at `at` is well-formed, and returns its end; for tests.
///
/// # Panics
/// Panics if it is not.
pub(super) fn check(doc: &[u8], at: usize) -> usize {
    if let Some(all) = children(doc, at) {
        let mut next = all.next;
        let mut names = HashSet::new();
        for child in all {
            assert_eq!(child.start, next, "elements follow each other");
            assert!(child.name.is_none_or(|name| std::str::from_utf8(name).is_ok() && names.insert(name)));
            next = check(doc, child.at);
        }
        assert_eq!(next, all.end, "the elements fill their container");
        assert!(all.count.is_none_or(|count| count == all.count()), "the number of elements");
    }
    if let View::String(text) = view(doc, at) {
        assert!(std::str::from_utf8(text).is_ok(), "strings are UTF-8");
    }
    end(doc, at)
}
