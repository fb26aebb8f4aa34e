//! JSON values in CBOR (RFC 8949), as RedisJSON of Redis 8.8 writes them; they are read as JSON text.
//!
//! ```text
//! header    three bits: the type; five bits: a number below 24, or 24 to 27: the number follows in 1, 2, 4 or 8 bytes
//! types     0, 1 integers | 2 bytes | 3 text | 4 array: its elements | 5 object: name, value … | 6 tag, value
//!           7 with 20 to 22: false, true, null; with 25 to 27: a float of 2, 4 or 8 bytes
//! ```
//!
//! An array of numbers of one type is a tag that names the type (RFC 8746, or [`BFLOAT`]) and the bytes of the numbers.
//! Floats of less than eight bytes in such arrays are read as the shortest decimal fraction that identifies them, which
//! is the text that Redis prints.

use super::format::LoadError;
use crate::types::json::floats::{bfloat, half, shortest, shortest_of_single};
use crate::types::json::{Number, print_number, print_string};

/// The types of values.
const NATURAL: u8 = 0;
const NEGATIVE: u8 = 1;
const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const OBJECT: u8 = 5;
const TAG: u8 = 6;
const OTHER: u8 = 7;

/// RedisJSON's tag of arrays of bfloat16 numbers, which RFC 8746 does not have.
const BFLOAT: u64 = 0x1_0000;

const INVALID: LoadError = LoadError::Corrupt("the CBOR of a JSON document is invalid");
const TOO_DEEP: LoadError = LoadError::Corrupt("a JSON document is nested too deeply");

/// Returns the JSON text of a value, which may have `depth_max` nested containers. O(its bytes).
pub(super) fn text_of(cbor: &[u8], depth_max: usize) -> Result<Vec<u8>, LoadError> {
    let mut text = Vec::with_capacity(cbor.len());
    let mut rest = cbor;
    read_value(&mut rest, &mut text, depth_max)?;
    if rest.is_empty() { Ok(text) } else { Err(INVALID) }
}

fn take<'b>(rest: &mut &'b [u8], count: u64) -> Result<&'b [u8], LoadError> {
    let count = usize::try_from(count).map_err(|_| INVALID)?;
    let (taken, left) = rest.split_at_checked(count).ok_or(INVALID)?;
    *rest = left;
    Ok(taken)
}

fn take_array<const N: usize>(rest: &mut &[u8]) -> Result<[u8; N], LoadError> {
    let (taken, left) = rest.split_first_chunk().ok_or(INVALID)?;
    *rest = left;
    Ok(*taken)
}

/// Reads a header: the type, the five bits after it, and the number that they encode. The bytes of a float are read as
/// a number, too.
fn header(rest: &mut &[u8]) -> Result<(u8, u8, u64), LoadError> {
    let [first] = take_array(rest)?;
    let detail = first & 31;
    let number = match detail {
        0..24 => detail.into(),
        24 => take_array::<1>(rest)?[0].into(),
        25 => u16::from_be_bytes(take_array(rest)?).into(),
        26 => u32::from_be_bytes(take_array(rest)?).into(),
        27 => u64::from_be_bytes(take_array(rest)?),
        // Values of unknown length, which RedisJSON does not write.
        _ => return Err(INVALID),
    };
    Ok((first >> 5, detail, number))
}

fn read_value(rest: &mut &[u8], text: &mut Vec<u8>, depth_left: usize) -> Result<(), LoadError> {
    let (kind, detail, number) = header(rest)?;
    match kind {
        NATURAL => print_number(unsigned(number), text),
        NEGATIVE => {
            let number = i64::try_from(number).map_err(|_| INVALID)?;
            print_number(Number::Int(-1 - number), text);
        }
        TEXT => print_string(take(rest, number)?, text),
        ARRAY | OBJECT => {
            let depth_left = depth_left.checked_sub(1).ok_or(TOO_DEEP)?;
            text.push(if kind == OBJECT { b'{' } else { b'[' });
            for index in 0..number {
                if index > 0 {
                    text.push(b',');
                }
                if kind == OBJECT {
                    let (TEXT, _, len) = header(rest)? else { return Err(INVALID) };
                    print_string(take(rest, len)?, text);
                    text.push(b':');
                }
                read_value(rest, text, depth_left)?;
            }
            text.push(if kind == OBJECT { b'}' } else { b']' });
        }
        TAG => {
            depth_left.checked_sub(1).ok_or(TOO_DEEP)?;
            let (BYTES, _, len) = header(rest)? else { return Err(INVALID) };
            print_array(number, take(rest, len)?, text)?;
        }
        OTHER => match detail {
            20 => text.extend_from_slice(b"false"),
            21 => text.extend_from_slice(b"true"),
            22 => text.extend_from_slice(b"null"),
            25 => print_double(half(number as u16), text),
            26 => print_double(f32::from_bits(number as u32).into(), text),
            27 => print_double(f64::from_bits(number), text),
            _ => return Err(INVALID),
        },
        _ => return Err(INVALID),
    }
    Ok(())
}

/// Appends the text of an array of numbers of the type `tag`.
fn print_array(tag: u64, bytes: &[u8], text: &mut Vec<u8>) -> Result<(), LoadError> {
    match tag {
        64 => print_all(bytes, text, |bytes| integer(u8::from_le_bytes(bytes)), print_number),
        72 => print_all(bytes, text, |bytes| integer(i8::from_le_bytes(bytes)), print_number),
        69 => print_all(bytes, text, |bytes| integer(u16::from_le_bytes(bytes)), print_number),
        77 => print_all(bytes, text, |bytes| integer(i16::from_le_bytes(bytes)), print_number),
        70 => print_all(bytes, text, |bytes| integer(u32::from_le_bytes(bytes)), print_number),
        78 => print_all(bytes, text, |bytes| integer(i32::from_le_bytes(bytes)), print_number),
        71 => print_all(bytes, text, |bytes| unsigned(u64::from_le_bytes(bytes)), print_number),
        79 => print_all(bytes, text, |bytes| integer(i64::from_le_bytes(bytes)), print_number),
        84 => print_all(bytes, text, |bytes| shortest(u16::from_le_bytes(bytes), half), print_double),
        BFLOAT => print_all(bytes, text, |bytes| shortest(u16::from_le_bytes(bytes), bfloat), print_double),
        85 => print_all(bytes, text, |bytes| shortest_of_single(f32::from_le_bytes(bytes)), print_double),
        86 => print_all(bytes, text, f64::from_le_bytes, print_double),
        _ => Err(INVALID),
    }
}

fn print_all<const N: usize, T>(
    bytes: &[u8],
    text: &mut Vec<u8>,
    number_of: impl Fn([u8; N]) -> T,
    print: impl Fn(T, &mut Vec<u8>),
) -> Result<(), LoadError> {
    let (numbers, []) = bytes.as_chunks::<N>() else { return Err(INVALID) };
    text.push(b'[');
    for (index, &number) in numbers.iter().enumerate() {
        if index > 0 {
            text.push(b',');
        }
        print(number_of(number), text);
    }
    text.push(b']');
    Ok(())
}

fn integer(number: impl Into<i64>) -> Number {
    Number::Int(number.into())
}

fn unsigned(number: u64) -> Number {
    i64::try_from(number).map_or(Number::Uint(number), Number::Int)
}

/// Appends a number; JSON has no numbers that are not finite, which RedisJSON reads as null.
fn print_double(number: f64, text: &mut Vec<u8>) {
    if number.is_finite() {
        print_number(Number::Double(number), text);
    } else {
        text.extend_from_slice(b"null");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(cbor: &[u8]) -> String {
        String::from_utf8(text_of(cbor, 128).unwrap()).unwrap()
    }

    #[test]
    fn values_of_every_type_are_read() {
        // {"a":[1,-2,1000000,2^64-1,-2^63,1.5,1e300,true,false,null],"é\"":{}}
        let cbor = [
            &b"\xa2\x61a\x8a\x01\x21\x1a\x00\x0f\x42\x40\x1b\xff\xff\xff\xff\xff\xff\xff\xff"[..],
            b"\x3b\x7f\xff\xff\xff\xff\xff\xff\xff\xf9\x3e\x00\xfb\x7e\x37\xe4\x3c\x88\x00\x75\x9c\xf5\xf4\xf6",
            b"\x63\xc3\xa9\"\xa0",
        ]
        .concat();
        assert_eq!(
            text(&cbor),
            r#"{"a":[1,-2,1000000,18446744073709551615,-9223372036854775808,1.5,1e300,true,false,null],"é\"":{}}"#
        );
    }

    #[test]
    fn arrays_of_equal_numbers_are_read_as_redis_prints_them() {
        for (cbor, expected) in [
            (&b"\xd8\x40\x42\x01\xff"[..], "[1,255]"),
            (b"\xd8\x48\x42\x01\xff", "[1,-1]"),
            (b"\xd8\x45\x42\x01\xff", "[65281]"),
            (b"\xd8\x4d\x42\x01\xff", "[-255]"),
            (b"\xd8\x4e\x44\xfe\xff\xff\xff", "[-2]"),
            (b"\xd8\x47\x48\xff\xff\xff\xff\xff\xff\xff\xff", "[18446744073709551615]"),
            // 0.3, 3.14 and 0.0001 in two bytes; -0.3 and 2.125 as bfloat16; 0.3 and 1 in four bytes.
            (b"\xd8\x54\x46\xcd\x34\x48\x42\x8e\x06", "[0.3,3.14,0.0001]"),
            (b"\xda\x00\x01\x00\x00\x44\x9a\xbe\x08\x40", "[-0.3,2.13]"),
            (b"\xd8\x55\x48\x9a\x99\x99\x3e\x00\x00\x80\x3f", "[0.3,1.0]"),
            (b"\xd8\x56\x48\x9a\x99\x99\x99\x99\x99\xb9\x3f", "[0.1]"),
            (b"\xd8\x54\x42\x00\x7c", "[null]"),
        ] {
            assert_eq!(text(cbor), expected);
        }
    }

    #[test]
    fn invalid_and_cut_values_are_refused() {
        let valid = b"\xa1\x61a\x82\x01\xd8\x54\x42\xcd\x34";
        assert_eq!(text(valid), r#"{"a":[1,[0.3]]}"#);
        for end in 0..valid.len() {
            assert!(text_of(&valid[..end], 128).is_err(), "{end}");
        }
        for invalid in [
            &b"\x01\x01"[..],
            b"\x9f\x01\xff",
            b"\xa1\x01\x01",
            b"\x41a",
            b"\xf7",
            b"\xd8\x54\x43abc",
            b"\xd8\x41\x42ab",
            b"\xc1\x01",
            b"\x3b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x9b\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x7b\xff\xff\xff\xff\xff\xff\xff\xff",
        ] {
            assert!(text_of(invalid, 128).is_err(), "{invalid:?}");
        }
        let nested = |count| [&b"\x81".repeat(count)[..], b"\xf6"].concat();
        assert!(text_of(&nested(128), 128).is_ok());
        assert!(text_of(&nested(129), 128).is_err());
    }
}
