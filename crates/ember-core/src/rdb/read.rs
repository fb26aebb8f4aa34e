//! Decoding of values.

use std::collections::HashSet;
use std::io::BufRead;
use std::sync::Arc;

use ember_protocol::number;

use super::format::{LoadError, NOT_UNPACKED, Reader, StringForm};
use super::kind::Kind;
use super::write::{NEVER_OF_VALKEY, NODE_LARGE, NODE_PACKED};
use super::{json, sketches, stream, vector_set, ziplist, zipmap};
use crate::algorithms::lzf;
use crate::effects::journal::Names;
use crate::entries::entry::{NewValue, ValueRef};
use crate::types::hash::{Hash, NewExpiry, NewField};
use crate::types::intset::Intset;
use crate::types::limits::EncodingLimits;
use crate::types::list::{End, List, NewElement, NodeLimit};
use crate::types::listpack::{Element, Listpack};
use crate::types::set::Set;
use crate::types::sorted_set::SortedSet;
use crate::types::value::{LARGE_VALUE_MIN_BYTES, StringValue};
use crate::types::{Aggregate, Collection, Variant};

/// A decoded value.
#[derive(Clone, Debug)]
pub enum Value {
    /// A string.
    String(Vec<u8>),
    /// A value with elements.
    Aggregate(Box<Aggregate>),
}

impl Value {
    /// Removes the elements that have expired at `now_ms`; returns whether no elements are left, so that no key may
    /// have the value.
    pub fn is_over(&mut self, now_ms: i64) -> bool {
        match self {
            Value::String(_) => false,
            Value::Aggregate(aggregate) => {
                aggregate.remove_expired(now_ms, usize::MAX, &mut Names::unwanted());
                aggregate.is_vacant()
            }
        }
    }

    /// Removes the expiries of a hash's fields; the fields remain. Returns false for types that cannot be converted to an
    /// older form.
    pub fn remove_field_expiries(&mut self) -> bool {
        let Value::Aggregate(aggregate) = self else { return true };
        match &mut **aggregate {
            Aggregate::Hash(hash) => {
                let mut expiring = Vec::new();
                hash.for_each(i64::MIN, |field| {
                    if field.expire_at_ms.is_some() {
                        expiring.push(field.name.bytes(&mut itoa::Buffer::new()).to_vec());
                    }
                });
                expiring.iter().for_each(|name| hash.set_expiry(name, None));
                true
            }
            Aggregate::VectorSet(_) | Aggregate::Json(_) => false,
            _ => true,
        }
    }

    /// Returns the value for reading.
    pub fn as_value(&self) -> ValueRef<'_> {
        match self {
            Value::String(bytes) => ValueRef::String(StringValue::Inline(bytes)),
            Value::Aggregate(aggregate) => ValueRef::Aggregate(aggregate),
        }
    }

    /// Returns the value in the form to be stored; `buffer` receives the bytes of a short string.
    pub fn into_new(self, buffer: &mut Vec<u8>) -> NewValue<'_> {
        match self {
            Value::Aggregate(aggregate) => NewValue::Aggregate(aggregate),
            Value::String(bytes) if bytes.len() >= LARGE_VALUE_MIN_BYTES => NewValue::Large(Arc::new(bytes)),
            Value::String(bytes) => {
                *buffer = bytes;
                NewValue::from_bytes(buffer)
            }
        }
    }
}

/// Returns the string that all of `bytes` encode, in the form to be stored; `buffer` receives an unpacked one. O(its
/// bytes).
///
/// # Errors
/// Returns an error if the bytes are not exactly one string.
pub fn read_string<'b>(bytes: &'b [u8], buffer: &'b mut Vec<u8>) -> Result<NewValue<'b>, LoadError> {
    const OTHER_LENGTH: LoadError = LoadError::Corrupt("a string does not have its stated length");
    let mut rest = bytes;
    let form = Reader::new(&mut rest).string_form()?;
    let follow = match form {
        StringForm::Integer(_) => 0,
        StringForm::Plain(len) | StringForm::Packed { packed_len: len, .. } => len,
    };
    if rest.len() as u64 != follow {
        return Err(OTHER_LENGTH);
    }
    match form {
        StringForm::Integer(number) => Ok(NewValue::Int(number.into())),
        StringForm::Plain(_) => Ok(NewValue::from_bytes(rest)),
        StringForm::Packed { len, .. } => {
            let len = usize::try_from(len).map_err(|_| NOT_UNPACKED)?;
            if len >= LARGE_VALUE_MIN_BYTES {
                return lzf::decompress(rest, len).map(Arc::new).map(NewValue::Large).ok_or(NOT_UNPACKED);
            }
            if !lzf::decompress_into(rest, len, buffer) {
                return Err(NOT_UNPACKED);
            }
            Ok(NewValue::from_bytes(buffer))
        }
    }
}

/// Reads a value of a kind. The value receives the encoding that `limits` require, whatever encoding it was written in.
/// O(its bytes), for sorted sets O(n log n).
///
/// # Errors
/// Returns an error if the bytes are not a value of this kind; [`LoadError::Empty`] if the value has no elements and
/// its type does not permit that.
pub fn read_value<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    limits: &EncodingLimits,
) -> Result<Value, LoadError> {
    let aggregate = match kind {
        Kind::String => return reader.string().map(Value::String),
        Kind::List | Kind::ListZiplist | Kind::ListZiplists | Kind::ListListpacks => {
            read_list(reader, kind, limits)?.into_aggregate()
        }
        Kind::Set | Kind::SetIntset | Kind::SetListpack => read_set(reader, kind, limits)?.into_aggregate(),
        Kind::SortedSetText | Kind::SortedSet => read_sorted_set(reader, kind, limits)?.into_aggregate(),
        Kind::SortedSetZiplist => {
            packed_sorted_set(&ziplist::to_listpack(&reader.string()?)?, limits)?.into_aggregate()
        }
        Kind::SortedSetListpack => packed_sorted_set(&listpack(reader)?, limits)?.into_aggregate(),
        Kind::Hash | Kind::HashExpiring | Kind::HashOfValkey => {
            read_hash(reader, kind, limits)?.into_aggregate()
        }
        Kind::HashZipmap => packed_hash(zipmap::to_listpack(&reader.string()?)?, limits)?.into_aggregate(),
        Kind::HashZiplist => packed_hash(ziplist::to_listpack(&reader.string()?)?, limits)?.into_aggregate(),
        Kind::HashListpack => packed_hash(listpack(reader)?, limits)?.into_aggregate(),
        Kind::HashTriplets => read_triplets(reader, limits)?.into_aggregate(),
        Kind::Stream1 | Kind::Stream2 | Kind::Stream3 => stream::read(reader, kind)?.into_aggregate(),
        Kind::Module
        | Kind::Json
        | Kind::Bloom
        | Kind::Cuckoo
        | Kind::CountMin
        | Kind::TopK
        | Kind::TDigest => read_of_module(reader)?,
    };
    if aggregate.is_vacant() {
        return Err(match kind {
            // No server writes an intset without members.
            Kind::SetIntset => LoadError::Corrupt("an intset has no elements"),
            _ => LoadError::Empty,
        });
    }
    Ok(Value::Aggregate(Box::new(aggregate)))
}

/// Reads a value of any known module, which begins with the module's number.
fn read_of_module<R: BufRead>(reader: &mut Reader<R>) -> Result<Aggregate, LoadError> {
    let id = reader.length()?;
    match Kind::of_module(id) {
        Some(Kind::Module) => Ok(vector_set::read(reader, id)?.into_aggregate()),
        Some(Kind::Json) => Ok(json::read(reader, id)?.into_aggregate()),
        Some(Kind::Bloom) => Ok(sketches::read_bloom(reader)?.into_aggregate()),
        Some(Kind::Cuckoo) => Ok(sketches::read_cuckoo(reader)?.into_aggregate()),
        Some(Kind::CountMin) => Ok(sketches::read_count_min(reader)?.into_aggregate()),
        Some(Kind::TopK) => Ok(sketches::read_top_k(reader)?.into_aggregate()),
        Some(Kind::TDigest) => Ok(sketches::read_t_digest(reader)?.into_aggregate()),
        _ => Err(LoadError::Corrupt("a value belongs to an unknown module")),
    }
}

/// Reads a listpack and rewrites its elements in the forms used here: a search would not find elements in other forms.
fn listpack<R: BufRead>(reader: &mut Reader<R>) -> Result<Listpack, LoadError> {
    let foreign = Listpack::from_bytes(reader.string()?);
    let foreign = foreign.map_err(|_| LoadError::Corrupt("a listpack is inconsistent"))?;
    let mut own = Listpack::new();
    let mut digits = itoa::Buffer::new();
    foreign.iter().for_each(|element| own.push_back(element.bytes(&mut digits)));
    Ok(own)
}

/// Checks that the listpack consists of whole groups of `stride` elements, and that the first elements of the groups
/// all differ. O(elements).
fn check_groups(listpack: &Listpack, stride: usize) -> Result<(), LoadError> {
    // In a listpack written here, two elements are equal if their bytes are.
    let mut seen = HashSet::new();
    let differs = listpack.iter().step_by(stride).all(|element| {
        seen.insert(match element {
            Element::Integer(number) => (Some(number), &b""[..]),
            Element::Bytes(bytes) => (None, bytes),
        })
    });
    if differs && listpack.len().is_multiple_of(stride) {
        Ok(())
    } else {
        Err(LoadError::Corrupt("an element of a listpack is missing or duplicate"))
    }
}

fn read_list<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    limits: &EncodingLimits,
) -> Result<List, LoadError> {
    let limit = NodeLimit::of(limits);
    let mut list = List::default();
    if kind == Kind::ListZiplist {
        push_all(&mut list, &ziplist::to_listpack(&reader.string()?)?, limit);
        return Ok(list);
    }
    for _ in 0..reader.length()? {
        let is_packed = match kind {
            Kind::ListListpacks => match reader.length()? {
                NODE_LARGE => false,
                NODE_PACKED => true,
                _ => return Err(LoadError::Corrupt("a node of a list has an unknown encoding")),
            },
            _ => kind == Kind::ListZiplists,
        };
        if !is_packed {
            let bytes = Arc::new(reader.string()?);
            if bytes.is_empty() {
                return Err(LoadError::Corrupt("a node of a list has no bytes"));
            }
            list.push(End::Back, NewElement::Large(&bytes), limit);
            continue;
        }
        let elements = match kind {
            Kind::ListZiplists => ziplist::to_listpack(&reader.string()?)?,
            _ => listpack(reader)?,
        };
        push_all(&mut list, &elements, limit);
    }
    Ok(list)
}

fn push_all(list: &mut List, elements: &Listpack, limit: NodeLimit) {
    let mut digits = itoa::Buffer::new();
    for element in elements.iter() {
        list.push(End::Back, NewElement::Bytes(element.bytes(&mut digits)), limit);
    }
}

fn read_set<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    limits: &EncodingLimits,
) -> Result<Set, LoadError> {
    const TWICE: LoadError = LoadError::Corrupt("a set has a member twice");
    match kind {
        Kind::SetIntset => {
            let intset = Intset::from_bytes(reader.string()?);
            let intset = intset.map_err(|_| LoadError::Corrupt("an intset is inconsistent"))?;
            let mut set = Set::Intset(intset);
            set.expect(set.len(), limits);
            Ok(set)
        }
        Kind::SetListpack => {
            let members = listpack(reader)?;
            check_groups(&members, 1)?;
            let is_small = members.iter().all(|member| member.len_bytes() <= limits.set_max_listpack_value);
            let mut set = Set::Listpack(members);
            set.expect(if is_small { set.len() } else { usize::MAX }, limits);
            Ok(set)
        }
        _ => {
            let len = reader.length()?;
            let mut set = Set::default();
            for index in 0..len {
                let member = reader.string()?;
                if index == 0 {
                    set = Set::for_members(&member, usize::try_from(len).unwrap_or(usize::MAX), limits);
                }
                if !set.insert(&member, limits) {
                    return Err(TWICE);
                }
            }
            Ok(set)
        }
    }
}

/// Adds a member, which must not exist yet. Ascending members take O(1), others O(log n).
fn add_member(
    set: &mut SortedSet,
    member: &[u8],
    score: f64,
    limits: &EncodingLimits,
) -> Result<(), LoadError> {
    if score.is_nan() {
        return Err(LoadError::Corrupt("a score is not a number"));
    }
    if set.set(member, score, limits).is_some() {
        return Err(LoadError::Corrupt("a sorted set has a member twice"));
    }
    Ok(())
}

fn read_sorted_set<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    limits: &EncodingLimits,
) -> Result<SortedSet, LoadError> {
    let len = reader.length()?;
    let mut set = SortedSet::for_members(usize::try_from(len).unwrap_or(usize::MAX), 0, limits);
    for _ in 0..len {
        let member = reader.string()?;
        let score = if kind == Kind::SortedSet { reader.double()? } else { reader.text_double()? };
        add_member(&mut set, &member, score, limits)?;
    }
    Ok(set)
}

fn packed_sorted_set(listpack: &Listpack, limits: &EncodingLimits) -> Result<SortedSet, LoadError> {
    check_groups(listpack, 2)?;
    let mut set = SortedSet::for_members(listpack.len() / 2, 0, limits);
    let mut digits = itoa::Buffer::new();
    let mut elements = listpack.iter();
    let mut last: Option<(Vec<u8>, f64)> = None;
    while let (Some(member), Some(score)) = (elements.next(), elements.next()) {
        let score = match score {
            Element::Integer(number) => number as f64,
            Element::Bytes(bytes) => {
                number::parse_f64(bytes).ok_or(LoadError::Corrupt("a score is not a number"))?
            }
        };
        let member = member.bytes(&mut digits);
        let is_after = last.as_ref().is_none_or(|(last, last_score)| {
            score > *last_score || score == *last_score && member > last.as_slice()
        });
        if is_after {
            set.push_back(member, score, limits);
            last = Some((member.to_vec(), score));
        } else {
            // The member is out of order; the next ones may be, too.
            add_member(&mut set, member, score, limits)?;
        }
    }
    Ok(set)
}

fn packed_hash(pairs: Listpack, limits: &EncodingLimits) -> Result<Hash, LoadError> {
    check_groups(&pairs, 2)?;
    Ok(Hash::from_pairs(pairs, limits))
}

fn expiry_of(at_ms: Option<i64>) -> NewExpiry {
    at_ms.map_or(NewExpiry::None, NewExpiry::At)
}

fn add_field(
    hash: &mut Hash,
    (name, value): (&[u8], &[u8]),
    expiry: NewExpiry,
    limits: &EncodingLimits,
) -> Result<(), LoadError> {
    // A field that has expired counts as existing, so that it cannot occur twice.
    if hash.set(&NewField { name, value, shared: None, expiry }, i64::MIN, limits) {
        Ok(())
    } else {
        Err(LoadError::Corrupt("a hash has a field twice"))
    }
}

fn read_hash<R: BufRead>(
    reader: &mut Reader<R>,
    kind: Kind,
    limits: &EncodingLimits,
) -> Result<Hash, LoadError> {
    let first_ms = if kind == Kind::HashExpiring { Some(reader.time_ms()?) } else { None };
    let len = reader.length()?;
    let mut hash = Hash::default();
    hash.expect_fields(usize::try_from(len).unwrap_or(usize::MAX), limits);
    for _ in 0..len {
        let expire_at_ms = match first_ms {
            None => None,
            Some(first_ms) => later_by(first_ms, reader.length()?)?,
        };
        let (name, value) = (reader.string()?, reader.string()?);
        let expire_at_ms = match kind {
            Kind::HashOfValkey => Some(reader.time_ms()?).filter(|&at_ms| at_ms != NEVER_OF_VALKEY),
            _ => expire_at_ms,
        };
        add_field(&mut hash, (&name, &value), expiry_of(expire_at_ms), limits)?;
    }
    Ok(hash)
}

/// Returns the expiry that is written as `difference`: one more than its distance from the first expiry, or 0 for none.
fn later_by(first_ms: i64, difference: u64) -> Result<Option<i64>, LoadError> {
    let Some(later) = difference.checked_sub(1) else { return Ok(None) };
    let at_ms = first_ms.checked_add_unsigned(later);
    at_ms.map(Some).ok_or(LoadError::Corrupt("the expiry of a field is out of range"))
}

fn read_triplets<R: BufRead>(reader: &mut Reader<R>, limits: &EncodingLimits) -> Result<Hash, LoadError> {
    // The first expiry is skipped, because the triplets contain it.
    reader.time_ms()?;
    let triplets = listpack(reader)?;
    check_groups(&triplets, 3)?;
    let mut hash = Hash::default();
    hash.expect_fields(triplets.len() / 3, limits);
    let (mut name_digits, mut value_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
    let mut elements = triplets.iter();
    while let (Some(name), Some(value), Some(expiry)) = (elements.next(), elements.next(), elements.next()) {
        let Element::Integer(at_ms) = expiry else {
            return Err(LoadError::Corrupt("the expiry of a field is not a number"));
        };
        let field = (name.bytes(&mut name_digits), value.bytes(&mut value_digits));
        add_field(&mut hash, field, expiry_of(Some(at_ms).filter(|&at_ms| at_ms != 0)), limits)?;
    }
    Ok(hash)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::Writer;
    use super::*;

    /// Returns the string that [`read_string`] and [`read_value`] decode from `bytes`, after comparing their results;
    /// `None` if both refuse the bytes.
    fn both(bytes: &[u8]) -> Option<Vec<u8>> {
        let mut rest = bytes;
        let value = read_value(&mut Reader::new(&mut rest), Kind::String, &EncodingLimits::DEFAULT);
        let value = value.ok().filter(|_| rest.is_empty());
        let mut buffer = b"earlier bytes".to_vec();
        let (form, text) = match (read_string(bytes, &mut buffer), value) {
            (Err(_), None) => return None,
            (Ok(form), Some(Value::String(text))) => (form, text),
            other => panic!("{}: {other:?}", bytes.escape_ascii()),
        };
        let mut own = Vec::new();
        match (&form, Value::String(text.clone()).into_new(&mut own)) {
            (NewValue::Int(one), NewValue::Int(other)) => assert_eq!(*one, other),
            (NewValue::Bytes(one), NewValue::Bytes(other)) => assert_eq!(*one, other),
            (NewValue::Large(one), NewValue::Large(other)) => assert_eq!(*one, other),
            other => panic!("{}: {other:?}", bytes.escape_ascii()),
        }
        Some(text)
    }

    fn written(text: &[u8]) -> Vec<u8> {
        let mut writer = Writer::new(Vec::new());
        writer.string(text).unwrap();
        writer.into_inner()
    }

    #[test]
    fn single_strings_are_stored_as_strings_of_a_file() {
        let long = b"0123456789abcdef".repeat(4000);
        let noise: Vec<u8> =
            (0..40_000u32).map(|number| (number.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for text in [
            &b""[..],
            b"12",
            b"-128",
            b"2147483648",
            b"9223372036854775807",
            b"hello",
            &[b'a'; 100],
            &long,
            &noise,
        ] {
            let bytes = written(text);
            assert_eq!(both(&bytes).as_deref(), Some(text));
            assert!(both(&[&bytes[..], b"x"].concat()).is_none(), "trailing bytes");
            assert!(both(&bytes[..bytes.len() - 1]).is_none(), "missing bytes");
        }
        assert!(both(b"\xC3\x05\x81\x7F\xFF\xFF\xFF\xFF\xFF\xFF\xFFhello").is_none());
    }

    proptest! {
        #[test]
        fn both_string_readers_agree_on_arbitrary_bytes(
            bytes in proptest::collection::vec(any::<u8>(), 0..40), form in 0u8..8,
        ) {
            let first = [0x05, 0x40, 0x80, 0xC0, 0xC1, 0xC2, 0xC3, 0xC4][usize::from(form)];
            both(&[&[first][..], &bytes].concat());
        }

        #[test]
        fn written_strings_survive_the_round_trip(text in proptest::collection::vec(0u8..3, 0..300)) {
            prop_assert_eq!(both(&written(&text)), Some(text));
        }
    }
}
