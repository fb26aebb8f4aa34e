//! JSON text: parsing into the packed form, and printing.

use std::collections::HashMap;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error as _, MapAccess, SeqAccess, Visitor};

use super::floats::FloatType;
use super::numbers::Number;
use super::packed::{self, View};

/// The maximum number of members whose names are compared pairwise. With so few members, hashing the names takes longer.
const PAIRED_MEMBERS_MAX: usize = 16;

/// A value that was parsed from a text.
#[derive(Clone, Debug)]
pub struct Parsed {
    /// The packed value.
    pub packed: Vec<u8>,
    /// The number of nested containers.
    pub depth: usize,
}

impl Parsed {
    /// Returns null.
    pub fn null() -> Parsed {
        Parsed { packed: packed::NULL_VALUE.to_vec(), depth: 0 }
    }
}

/// Parses a JSON text. Nesting is limited to 128 containers.
///
/// # Errors
/// Returns the description of the error, with its position.
pub fn parse(text: &[u8]) -> Result<Parsed, String> {
    parse_as(text, None)
}

/// Like [`parse`]; all numbers of arrays that have only numbers become floats of this type.
///
/// # Errors
/// As [`parse`], and for a number that is too large for the type.
pub fn parse_as(text: &[u8], floats: Option<FloatType>) -> Result<Parsed, String> {
    let text = std::str::from_utf8(text).map_err(|_| "Couldn't parse as UTF-8 string".to_owned())?;
    let mut parsed = Parsed { packed: Vec::with_capacity(text.len()), depth: 0 };
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let value = Value { parsed: &mut parsed, depth: 0, floats };
    value
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|error| error.to_string())?;
    parsed.packed.shrink_to_fit();
    Ok(parsed)
}

/// Parses a JSON text that is a number; `None` if it is another value.
///
/// # Errors
/// As [`parse`].
pub fn parse_number(text: &[u8]) -> Result<Option<Number>, String> {
    let parsed = parse(text)?;
    match packed::view(&parsed.packed, 0) {
        View::Number(number) => Ok(Some(number)),
        _ => Ok(None),
    }
}

/// Appends a value to a packed one.
struct Value<'p> {
    parsed: &'p mut Parsed,
    depth: usize,
    floats: Option<FloatType>,
}

impl Value<'_> {
    fn enter(&mut self) -> usize {
        self.depth += 1;
        self.parsed.depth = self.parsed.depth.max(self.depth);
        self.depth
    }
}

impl<'de> DeserializeSeed<'de> for Value<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Value<'_> {
    type Value = ();

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        packed::push_null(&mut self.parsed.packed);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        packed::push_bool(&mut self.parsed.packed, value);
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        packed::push_number(&mut self.parsed.packed, Number::Int(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        packed::push_number(&mut self.parsed.packed, Number::Uint(value));
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        packed::push_number(&mut self.parsed.packed, Number::Double(value));
        Ok(())
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<(), E> {
        if u32::try_from(value.len()).is_err() {
            return Err(E::custom("a string is too long"));
        }
        packed::push_string(&mut self.parsed.packed, value.as_bytes());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut elements: A) -> Result<(), A::Error> {
        let depth = self.enter();
        let at = packed::open(&mut self.parsed.packed, false);
        let (mut count, mut floats) = (0, self.floats);
        let mut next = self.parsed.packed.len();
        while elements.next_element_seed(Value { parsed: self.parsed, depth, floats: self.floats })?.is_some()
        {
            count += 1;
            if let Some(own) = floats {
                match packed::view(&self.parsed.packed, next) {
                    View::Number(number) if own.round(number.as_f64()).is_none() => {
                        return Err(A::Error::custom(format_args!("value out of range for {}", own.name())));
                    }
                    View::Number(_) => {}
                    _ => floats = None,
                }
                next = self.parsed.packed.len();
            }
        }
        if let Some(floats) = floats {
            round_elements(&mut self.parsed.packed, at, floats);
        }
        packed::close(&mut self.parsed.packed, at, count);
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut members: A) -> Result<(), A::Error> {
        let depth = self.enter();
        let at = packed::open(&mut self.parsed.packed, true);
        let mut count = 0;
        while members.next_key_seed(Value { parsed: self.parsed, depth, floats: None })?.is_some() {
            members.next_value_seed(Value { parsed: self.parsed, depth, floats: self.floats })?;
            count += 1;
        }
        let out = &mut self.parsed.packed;
        if u32::try_from(out.len()).is_err() {
            return Err(A::Error::custom("the text is too long"));
        }
        let count = merge_members(out, at, count);
        packed::close(out, at, count);
        Ok(())
    }
}

/// Replaces the numbers in the array at `at`, which is not closed yet, by floats of a type, for which none is too large.
fn round_elements(out: &mut Vec<u8>, at: usize, floats: FloatType) {
    let elements = out.split_off(at + 2);
    let mut next = 0;
    while next < elements.len() {
        if let View::Number(number) = packed::view(&elements, next) {
            let rounded = floats.round(number.as_f64()).expect("the number is not too large");
            packed::push_number(out, Number::Double(rounded));
        }
        next = packed::end(&elements, next);
    }
}

/// A member, as the positions of its name, of its value and of its end.
type Member = (usize, usize, usize);

/// Gives the first of several members with the same name the value of the last one, and removes the others, in the
/// object at `at`, which is not closed yet. Returns the number of members left. O(bytes).
fn merge_members(out: &mut Vec<u8>, at: usize, count: usize) -> usize {
    if count < 2 {
        return count;
    }
    let mut members: Vec<Member> = Vec::with_capacity(count);
    let mut next = at + 2;
    for _ in 0..count {
        let value = packed::end(out, next);
        let end = packed::end(out, value);
        members.push((next, value, end));
        next = end;
    }
    let name = |&(start, value, _): &Member| &out[start..value];
    let is_unique = if count <= PAIRED_MEMBERS_MAX {
        (1..count).all(|index| members[..index].iter().all(|other| name(other) != name(&members[index])))
    } else {
        let mut names = std::collections::HashSet::with_capacity(count);
        members.iter().all(|member| names.insert(name(member)))
    };
    if is_unique {
        return count;
    }
    let mut last: HashMap<&[u8], usize> = HashMap::with_capacity(count);
    for (index, member) in members.iter().enumerate() {
        last.insert(name(member), index);
    }
    let mut merged = Vec::with_capacity(out.len() - at);
    let mut left = 0;
    for member in &members {
        if let Some(index) = last.remove(name(member)) {
            merged.extend_from_slice(name(member));
            merged.extend_from_slice(&out[members[index].1..members[index].2]);
            left += 1;
        }
    }
    out.truncate(at + 2);
    out.extend_from_slice(&merged);
    left
}

/// The format of a printed text.
#[derive(Clone, Copy, Debug, Default)]
pub struct Format<'f> {
    /// The text before each element, repeated for each level.
    pub indent: &'f [u8],
    /// The text after each line.
    pub newline: &'f [u8],
    /// The text after each colon.
    pub space: &'f [u8],
}

impl Format<'_> {
    /// Ends a line, and begins the next one at a level.
    pub fn line(&self, out: &mut Vec<u8>, level: usize) {
        out.extend_from_slice(self.newline);
        if !self.indent.is_empty() {
            (0..level).for_each(|_| out.extend_from_slice(self.indent));
        }
    }
}

/// Appends the text of the value at `at`. O(bytes).
pub fn print(doc: &[u8], at: usize, out: &mut Vec<u8>) {
    print_as(doc, at, out, &Format::default(), 0);
}

/// Appends the text of the value at `at` in a format; the value is nested in `level` containers.
pub fn print_as(doc: &[u8], at: usize, out: &mut Vec<u8>, format: &Format<'_>, level: usize) {
    match packed::view(doc, at) {
        View::Null => out.extend_from_slice(b"null"),
        View::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
        View::Number(number) => match packed::decimal_at(doc, at) {
            Some((mantissa, exponent)) if is_plain(mantissa, exponent) => {
                print_decimal(mantissa, exponent, out)
            }
            _ => print_number(number, out),
        },
        View::String(text) => print_string(text, out),
        View::Array(children) => {
            print_list(children, [b'[', b']'], out, format, level, |child, out| {
                print_as(doc, child.at, out, format, level + 1);
            });
        }
        View::Object(children) => {
            print_list(children, [b'{', b'}'], out, format, level, |child, out| {
                print_string(child.name.unwrap_or_default(), out);
                out.push(b':');
                out.extend_from_slice(format.space);
                print_as(doc, child.at, out, format, level + 1);
            });
        }
    }
}

/// Appends the elements of a container, which is nested in `level` others; `each` appends one of them.
pub fn print_list<T>(
    elements: impl IntoIterator<Item = T>,
    brackets: [u8; 2],
    out: &mut Vec<u8>,
    format: &Format<'_>,
    level: usize,
    mut each: impl FnMut(T, &mut Vec<u8>),
) {
    out.push(brackets[0]);
    let mut is_first = true;
    for element in elements {
        if !is_first {
            out.push(b',');
        }
        format.line(out, level + 1);
        each(element, out);
        is_first = false;
    }
    if !is_first {
        format.line(out, level);
    }
    out.push(brackets[1]);
}

/// Returns whether a decimal fraction is printed without an exponent: those below 0.00001 have one.
fn is_plain(mantissa: i64, exponent: u32) -> bool {
    mantissa == 0 || exponent <= 5 || mantissa.unsigned_abs() >= 10u64.pow(exponent - 5)
}

fn print_decimal(mantissa: i64, exponent: u32, out: &mut Vec<u8>) {
    if mantissa < 0 {
        out.push(b'-');
    }
    let power = 10u64.pow(exponent);
    let mut digits = itoa::Buffer::new();
    out.extend_from_slice(digits.format(mantissa.unsigned_abs() / power).as_bytes());
    out.push(b'.');
    let fraction = digits.format(mantissa.unsigned_abs() % power).as_bytes();
    out.resize(out.len() + (exponent as usize).saturating_sub(fraction.len()), b'0');
    out.extend_from_slice(fraction);
}

/// Appends a number: doubles with the fewest digits that identify them, with a point or an exponent.
pub fn print_number(number: Number, out: &mut Vec<u8>) {
    let mut digits = itoa::Buffer::new();
    match number {
        Number::Int(number) => out.extend_from_slice(digits.format(number).as_bytes()),
        Number::Uint(number) => out.extend_from_slice(digits.format(number).as_bytes()),
        Number::Double(number) => out.extend_from_slice(ryu::Buffer::new().format(number).as_bytes()),
    }
}

/// Appends a string in quotes.
pub fn print_string(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut begin = 0;
    for (index, &byte) in text.iter().enumerate() {
        let escaped = match byte {
            b'"' | b'\\' => byte,
            0x08 => b'b',
            0x0C => b'f',
            b'\n' => b'n',
            b'\r' => b'r',
            b'\t' => b't',
            0..0x20 => b'u',
            _ => continue,
        };
        out.extend_from_slice(&text[begin..index]);
        out.extend_from_slice(&[b'\\', escaped]);
        if escaped == b'u' {
            out.extend_from_slice(&[b'0', b'0', HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
        }
        begin = index + 1;
    }
    out.extend_from_slice(&text[begin..]);
    out.push(b'"');
}
