//! Redis's digests of data: equal data have equal digests on every server.
//!
//! A part is *mixed in* where order matters: the digest is xored with the SHA-1 of the part and replaced by the SHA-1
//! of the result. Where order does not matter, digests are combined by xor alone.
//!
//! The algorithm: Redis, `debug.c` by S. Sanfilippo.

use emberkv_core::keyspace::entry::{EntryRef, StringValue, ValueRef, ValueType};
use emberkv_core::rdb::{Writer, write_value};
use emberkv_core::types::json::print;
use emberkv_core::types::stream::StreamId;
use emberkv_core::types::{Aggregate, Collection};

use ember_scripting::sha1;

/// A digest; all bytes are zero if nothing was added.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Digest([u8; 20]);

impl Digest {
    /// Adds a part; the order of combined parts does not matter.
    fn combine(&mut self, part: &[u8]) {
        let hash = sha1::digest(part);
        self.0.iter_mut().zip(hash).for_each(|(byte, other)| *byte ^= other);
    }

    /// Adds a part whose position in the order matters.
    pub(super) fn mix(&mut self, part: &[u8]) {
        self.combine(part);
        self.0 = sha1::digest(&self.0);
    }

    /// Adds a digest; the order of combined digests does not matter.
    pub(super) fn combine_digest(&mut self, other: &Digest) {
        self.combine(&other.0);
    }

    /// Adds the type, the value and whether the key expires. Skips fields that have expired at `now_ms`.
    pub(super) fn add_value(&mut self, entry: EntryRef<'_>, value: ValueRef<'_>, now_ms: i64) {
        let number: u32 = match entry.value_type() {
            ValueType::String => 0,
            ValueType::List => 1,
            ValueType::Set => 2,
            ValueType::SortedSet => 3,
            ValueType::Hash => 4,
            // In Redis, these are module types, and all module types have this number.
            ValueType::VectorSet
            | ValueType::Json
            | ValueType::Bloom
            | ValueType::Cuckoo
            | ValueType::CountMin
            | ValueType::TopK
            | ValueType::TDigest => 5,
            ValueType::Stream => 6,
        };
        self.mix(&number.to_be_bytes());
        match value {
            ValueRef::String(string) => self.mix(bytes_of(string, &mut itoa::Buffer::new())),
            ValueRef::Aggregate(aggregate) => self.add_elements(aggregate, now_ms),
        }
        if entry.expire_at_ms().is_some() {
            self.combine(b"!!expire!!");
        }
    }

    fn add_elements(&mut self, aggregate: &Aggregate, now_ms: i64) {
        let (mut digits, mut more_digits) = (itoa::Buffer::new(), itoa::Buffer::new());
        match aggregate {
            Aggregate::List(list) => {
                list.visit(0..list.len(), |element| self.mix(element.bytes(&mut digits)));
            }
            Aggregate::Set(set) => set.for_each(|member| self.combine(member.bytes(&mut digits))),
            Aggregate::SortedSet(set) => {
                for (member, score) in set.iter_all() {
                    let mut one = Digest::default();
                    one.mix(member.bytes(&mut digits));
                    one.mix(seventeen_digits(score).as_bytes());
                    self.combine_digest(&one);
                }
            }
            Aggregate::Hash(hash) => hash.for_each(now_ms, |field| {
                let mut one = Digest::default();
                one.mix(bytes_of(field.name, &mut digits));
                one.mix(bytes_of(field.value, &mut more_digits));
                if field.expire_at_ms.is_some() {
                    one.combine(b"!!hexpire!!");
                }
                self.combine_digest(&one);
            }),
            Aggregate::VectorSet(set) => {
                // As Redis does for module types, the parts are first collected in a separate digest.
                let mut all = Digest::default();
                let mut one = Digest::default();
                one.mix(digits.format(set.len()).as_bytes());
                one.mix(more_digits.format(set.dim()).as_bytes());
                all.combine_digest(&one);
                for slot in 0..set.len() as u32 {
                    let (element, mut one) = (set.element(slot), Digest::default());
                    one.mix(&set.stored(slot).0);
                    one.mix(element.name());
                    element.attributes().into_iter().for_each(|attributes| one.mix(attributes));
                    all.combine_digest(&one);
                }
                self.combine_digest(&all);
            }
            Aggregate::Json(json) => {
                let mut text = Vec::new();
                print(json.packed(), 0, &mut text);
                let mut one = Digest::default();
                one.mix(&text);
                self.combine_digest(&one);
            }
            Aggregate::Bloom(_)
            | Aggregate::Cuckoo(_)
            | Aggregate::CountMin(_)
            | Aggregate::TopK(_)
            | Aggregate::TDigest(_) => {
                // RedisBloom contributes nothing. Here, equal digests mean equal sketches.
                let mut writer = Writer::new(Vec::new());
                write_value(&mut writer, ValueRef::Aggregate(aggregate)).expect("a vector takes all bytes");
                self.mix(&writer.into_inner());
            }
            Aggregate::Stream(stream) => {
                for entry in stream.log().range(StreamId::MIN..=StreamId::MAX) {
                    self.mix(format!("{}.{}", entry.id.ms, entry.id.sequence).as_bytes());
                    for (name, value) in entry.fields() {
                        self.mix(name.bytes(&mut digits));
                        self.mix(value.bytes(&mut more_digits));
                    }
                }
            }
        }
    }

    /// Returns the digest in hexadecimal digits.
    pub(super) fn text(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

fn bytes_of<'a>(value: StringValue<'a>, digits: &'a mut itoa::Buffer) -> &'a [u8] {
    match value {
        StringValue::Int(number) => digits.format(number).as_bytes(),
        StringValue::Inline(bytes) => bytes,
        StringValue::Large(large) => large.bytes(),
    }
}

/// Formats a number like C's `%.17g`.
fn seventeen_digits(number: f64) -> String {
    if !number.is_finite() {
        return if number > 0.0 { "inf".to_owned() } else { "-inf".to_owned() };
    }
    let scientific = format!("{number:.16e}");
    let (mantissa, exponent) = scientific.split_once('e').expect("the format has an exponent");
    let exponent: i32 = exponent.parse().expect("an exponent is a number");
    let without_zeros = |text: &str| text.trim_end_matches('0').trim_end_matches('.').to_owned();
    if (-4..17).contains(&exponent) {
        let decimals = usize::try_from(16 - exponent).expect("the exponent is at most 16");
        let text = format!("{number:.decimals$}");
        if decimals == 0 { text } else { without_zeros(&text) }
    } else {
        let sign = if exponent < 0 { '-' } else { '+' };
        format!("{}e{sign}{:02}", without_zeros(mantissa), exponent.abs())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_seventeen_digits_at_most() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (1.0, "1"),
            (2.5, "2.5"),
            (0.1, "0.10000000000000001"),
            (-1e16, "-10000000000000000"),
            (1e17, "1e+17"),
            (1e-4, "0.0001"),
            (2f64.powi(-20), "9.5367431640625e-07"),
            (1.0 / 3.0, "0.33333333333333331"),
            (f64::MAX, "1.7976931348623157e+308"),
            (f64::NEG_INFINITY, "-inf"),
        ] {
            assert_eq!(seventeen_digits(number), text);
        }
    }

    #[test]
    fn mixing_depends_on_order_and_combining_does_not() {
        let digest = |parts: &[&[u8]], add: fn(&mut Digest, &[u8])| {
            let mut digest = Digest::default();
            parts.iter().for_each(|part| add(&mut digest, part));
            digest
        };
        assert_ne!(digest(&[b"a", b"b"], Digest::mix), digest(&[b"b", b"a"], Digest::mix));
        assert_eq!(digest(&[b"a", b"b"], Digest::combine), digest(&[b"b", b"a"], Digest::combine));
        assert_eq!(Digest::default().text(), "0".repeat(40));
    }
}
