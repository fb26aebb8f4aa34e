//! Numbers as text: the strict forms that Redis accepts, and its output format.

use std::fmt::{self, Write};

/// The maximum length of a formatted double with an exponent, in bytes: sign, 17 digits, point, `e-308`.
const F64_TEXT_MAX: usize = 24;

/// Parses an integer in its only canonical decimal form: no sign except a leading `-`, no leading zeros, no spaces, no
/// `-0`. `None` for anything else and for numbers beyond 64 bits.
#[inline]
pub fn parse_i64(bytes: &[u8]) -> Option<i64> {
    match bytes {
        [b'-', digits @ ..] => {
            let magnitude = parse_u64(digits).filter(|&magnitude| magnitude != 0)?;
            0i64.checked_sub_unsigned(magnitude)
        }
        digits => i64::try_from(parse_u64(digits)?).ok(),
    }
}

/// Parses an unsigned integer in its only canonical decimal form: digits only, no leading zeros.
#[inline]
pub fn parse_u64(bytes: &[u8]) -> Option<u64> {
    /// The number of decimal digits that can be converted without an overflow check.
    const DIGITS_SAFE: usize = 19;
    let (&first, rest) = bytes.split_first()?;
    if first == b'0' {
        return rest.is_empty().then_some(0);
    }
    let (safe, last) = bytes.split_at_checked(DIGITS_SAFE).unwrap_or((bytes, b""));
    let mut number = 0u64;
    for &byte in safe {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number * 10 + u64::from(digit);
    }
    match last {
        [] => Some(number),
        [byte @ b'0'..=b'9'] => number.checked_mul(10)?.checked_add(u64::from(byte - b'0')),
        _ => None,
    }
}

/// Parses a double by Redis's rules for scores and increments: the syntax of C's `strtod` (decimal, hexadecimal, `inf`
/// and `infinity` in any case) for the whole text, without spaces; `None` for NaN, overflow to infinity and underflow
/// to zero.
pub fn parse_f64(bytes: &[u8]) -> Option<f64> {
    let (number, is_in_range) = parse_rounded(bytes)?;
    is_in_range.then_some(number)
}

/// Like [`parse_f64`], but overflow becomes infinity and underflow zero: Redis's rules for the ends of ranges.
pub fn parse_f64_rounded(bytes: &[u8]) -> Option<f64> {
    parse_rounded(bytes).map(|(number, _)| number)
}

/// Returns the nearest double, and whether it neither overflowed nor underflowed to zero.
fn parse_rounded(bytes: &[u8]) -> Option<(f64, bool)> {
    let (negative, magnitude) = match bytes {
        [b'-', rest @ ..] => (true, rest),
        [b'+', rest @ ..] => (false, rest),
        rest => (false, rest),
    };
    let (number, is_in_range) = match magnitude {
        [b'0', b'x' | b'X', digits @ ..] => parse_hexadecimal(digits)?,
        [b'0'..=b'9' | b'.', ..] => parse_decimal(magnitude)?,
        _ if magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity") => {
            (f64::INFINITY, true)
        }
        _ => return None,
    };
    Some((if negative { -number } else { number }, is_in_range))
}

/// Parses decimal digits with an optional point and exponent, without a sign; see [`parse_rounded`].
fn parse_decimal(text: &[u8]) -> Option<(f64, bool)> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().ok()?;
    let mantissa = text.split(|byte| matches!(byte, b'e' | b'E')).next()?;
    let underflowed = number == 0.0 && mantissa.iter().any(|byte| matches!(byte, b'1'..=b'9'));
    Some((number, number.is_finite() && !underflowed))
}

/// Parses the part after `0x`: hexadecimal digits with an optional point and an optional binary exponent (`p-3`); see
/// [`parse_rounded`].
fn parse_hexadecimal(text: &[u8]) -> Option<(f64, bool)> {
    let exponent_at = text.iter().position(|byte| matches!(byte, b'p' | b'P')).unwrap_or(text.len());
    let (digits, exponent) = text.split_at(exponent_at);
    let mut exponent = match exponent {
        [] => 0,
        [_, exponent @ ..] => parse_exponent(exponent)?,
    };
    // The mantissa contains the first 60 bits exactly; its lowest bit is also set if any later bit is set, which
    // rounding needs.
    let mut mantissa = 0u64;
    let mut after_point = false;
    let mut any_digit = false;
    for &byte in digits {
        if byte == b'.' && !after_point {
            after_point = true;
            continue;
        }
        let digit = u64::from(char::from(byte).to_digit(16)?);
        any_digit = true;
        if mantissa >> 56 == 0 {
            mantissa = mantissa << 4 | digit;
            exponent -= if after_point { 4 } else { 0 };
        } else {
            mantissa |= u64::from(digit != 0);
            exponent += if after_point { 0 } else { 4 };
        }
    }
    if !any_digit {
        return None;
    }
    let number = scale(mantissa, exponent);
    Some((number, number.is_finite() && (number != 0.0 || mantissa == 0)))
}

/// Parses a decimal exponent with an optional sign, clamped to a range beyond which every double is infinite or zero.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    /// The clamping limit: greater than the number of bits in any text that a client can send.
    const EXPONENT_MAX: i64 = 1 << 50;
    let exponent =
        digits.iter().fold(0i64, |sum, digit| (sum * 10 + i64::from(digit - b'0')).min(EXPONENT_MAX));
    Some(if negative { -exponent } else { exponent })
}

/// Computes `mantissa * 2^exponent`, rounded once, to nearest even.
fn scale(mantissa: u64, exponent: i64) -> f64 {
    if mantissa == 0 {
        return 0.0;
    }
    let bits = i64::from(u64::BITS - mantissa.leading_zeros());
    // The exponent of the lowest bit that the result can hold: 53 bits, fewer when it is subnormal.
    let lowest = (exponent + bits - 53).max(-1074);
    let drop = lowest - exponent;
    if exponent + bits > 1024 {
        return f64::INFINITY;
    }
    if drop > 64 {
        return 0.0;
    }
    let (kept, lowest) = if drop <= 0 {
        (mantissa, exponent)
    } else {
        let wide = u128::from(mantissa);
        let kept = wide >> drop;
        let dropped = wide & ((1 << drop) - 1);
        let half = 1u128 << (drop - 1);
        let up = dropped > half || (dropped == half && kept & 1 == 1);
        ((kept + u128::from(up)) as u64, lowest)
    };
    // Both factors and all products but the last are exact; the last product is exact, too, unless it overflows.
    let step = lowest.clamp(-1000, 900) as i32;
    kept as f64 * 2f64.powi(step) * 2f64.powi((lowest - i64::from(step)) as i32)
}

/// Appends the decimal digits of `number`.
#[inline]
pub fn write_i64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends the decimal digits of `number`.
#[inline]
pub fn write_u64(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Appends `number` in Redis 7.2's format of double replies: the fewest digits that parse to the same number, without
/// an exponent where the text is short; `inf`, `-inf` and `nan`.
///
/// If several digit sequences are shortest, the one nearest to the number is chosen. Redis uses Grisu2, whose result is
/// longer for about one double in a thousand.
pub fn write_f64(out: &mut Vec<u8>, number: f64) {
    /// The maximum magnitude of whole numbers that are written with all their digits, as in Redis.
    const INTEGER_MAX: f64 = (1u64 << 62) as f64;
    if number.is_nan() {
        out.extend_from_slice(b"nan");
    } else if number.is_infinite() {
        out.extend_from_slice(if number < 0.0 { b"-inf" } else { b"inf" });
    } else if number == 0.0 {
        out.extend_from_slice(if number.is_sign_negative() { b"-0" } else { b"0" });
    } else if number.abs() <= INTEGER_MAX && number.trunc() == number {
        write_i64(out, number as i64);
    } else {
        write_shortest(out, number);
    }
}

/// Appends a finite `number` other than zero: the general case of [`write_f64`].
fn write_shortest(out: &mut Vec<u8>, number: f64) {
    /// The maximum number of zeros appended to the digits instead of an exponent.
    const ZEROS_MAX: i64 = 7;
    /// The maximum number of decimal places without an exponent for a number of any size.
    const PLACES_MAX: i64 = 6;
    /// The maximum magnitude of the decimal exponent of a number whose decimal places are not limited.
    const EXPONENT_MAX: u64 = 3;
    let mut text = ShortText::default();
    write!(text, "{:e}", number.abs()).expect("17 digits and an exponent fit");
    let text = text.as_bytes();
    let mark = text.iter().position(|&byte| byte == b'e').expect("the format has an exponent");
    let exponent = parse_i64(&text[mark + 1..]).expect("the exponent is a plain integer");
    let (first, others) = (text[0], text.get(2..mark).unwrap_or_default());
    // The power of ten of the last digit.
    let scale = exponent - others.len() as i64;

    if number < 0.0 {
        out.push(b'-');
    }
    let start = out.len();
    out.push(first);
    out.extend_from_slice(others);
    let is_whole = scale >= 0;
    if is_whole && scale <= ZEROS_MAX {
        out.resize(out.len() + scale as usize, b'0');
    } else if !is_whole && (scale >= -PLACES_MAX || exponent.unsigned_abs() <= EXPONENT_MAX) {
        write_point(out, start, exponent);
    } else {
        if !others.is_empty() {
            out.insert(start + 1, b'.');
        }
        out.extend_from_slice(if exponent < 0 { b"e-" } else { b"e+" });
        write_u64(out, exponent.unsigned_abs());
    }
}

/// Inserts the decimal point into the digits from `start` on. `exponent` is the power of ten of the first digit; that
/// of the last digit is negative.
fn write_point(out: &mut Vec<u8>, start: usize, exponent: i64) {
    match usize::try_from(exponent) {
        Ok(exponent) => out.insert(start + exponent + 1, b'.'),
        Err(_) => {
            let zeros = exponent.unsigned_abs() as usize + 1;
            out.splice(start..start, b"0.".iter().chain(b"0000000").copied().take(zeros));
        }
    }
}

/// A buffer on the stack for one formatted double.
#[derive(Default)]
struct ShortText {
    bytes: [u8; F64_TEXT_MAX],
    len: usize,
}

impl ShortText {
    fn as_bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

impl Write for ShortText {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.len + text.len();
        self.bytes.get_mut(self.len..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.len = end;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(number: f64) -> String {
        let mut out = Vec::new();
        write_f64(&mut out, number);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_the_canonical_form_is_an_integer() {
        for (text, number) in [
            ("0", 0),
            ("7", 7),
            ("-1", -1),
            ("1234567890", 1234567890),
            ("9223372036854775807", i64::MAX),
            ("-9223372036854775808", i64::MIN),
        ] {
            assert_eq!(parse_i64(text.as_bytes()), Some(number), "{text}");
        }
        for text in [
            "",
            "-",
            "+1",
            "01",
            "-01",
            "00",
            "-0",
            " 1",
            "1 ",
            "1.0",
            "a",
            "1a",
            "-a",
            "0x1",
            "--1",
            "9223372036854775808",
            "-9223372036854775809",
            "99999999999999999999",
            "18446744073709551616",
            "184467440737095516150",
        ] {
            assert_eq!(parse_i64(text.as_bytes()), None, "{text}");
        }
        assert_eq!(parse_u64(b"18446744073709551615"), Some(u64::MAX));
        for text in [
            "18446744073709551616",
            "-1",
            "28446744073709551615",
            "1844674407370955161a",
            "184467440737095516150",
        ] {
            assert_eq!(parse_u64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn doubles_are_read_as_redis_reads_scores() {
        for (text, number) in [
            ("1", 1.0),
            ("+1", 1.0),
            ("-1.5", -1.5),
            (".5", 0.5),
            ("5.", 5.0),
            ("5.e1", 50.0),
            ("1e5", 1e5),
            ("1E+5", 1e5),
            ("INF", f64::INFINITY),
            ("-inf", f64::NEG_INFINITY),
            ("+Infinity", f64::INFINITY),
            ("0x10", 16.0),
            ("0x1.8p1", 3.0),
            ("0x.8", 0.5),
            ("0X1P3", 8.0),
            ("0x1p+3", 8.0),
            ("-0xA", -10.0),
            ("1e-310", 1e-310),
            ("0e5", 0.0),
            ("0x0p9999999999999999999999", 0.0),
            ("0x1p-1074", 5e-324),
            ("0x1.fffffffffffff8p0", 2.0),
            ("0x1.fffffffffffff7p0", 1.9999999999999998),
            ("0x1.00000000000008p0", 1.0),
            ("0x1.000000000000080000000000000001p0", 1.0000000000000002),
            ("0x1.fffffffffffffp1023", f64::MAX),
            ("0x3p-1075", 1e-323),
        ] {
            assert_eq!(parse_f64(text.as_bytes()), Some(number), "{text}");
        }
        for text in [
            "",
            "nan",
            "-nan",
            "nan(1)",
            " 1",
            "1 ",
            ".",
            "1e",
            "e5",
            ".e5",
            "+",
            "-",
            "--1",
            "+-1",
            "0x",
            "0x.",
            "0x1p",
            "0x1p+",
            "0xg",
            "0x1.1.1",
            "infi",
            "1e400",
            "-1e400",
            "1e-400",
            "0x1p2000",
            "0x1p-1080",
            "1_0",
            "1\u{b}",
            "0x1.fffffffffffff8p1023",
            "0x1p-1075",
            "1\0",
            "é",
        ] {
            assert_eq!(parse_f64(text.as_bytes()), None, "{text}");
        }
    }

    #[test]
    fn range_bounds_round_to_infinity_or_zero() {
        for (text, number) in [
            ("1.5", 1.5),
            ("1e400", f64::INFINITY),
            ("-1e400", f64::NEG_INFINITY),
            ("1e-400", 0.0),
            ("0x1p2000", f64::INFINITY),
            ("0x1p-1080", 0.0),
        ] {
            assert_eq!(parse_f64_rounded(text.as_bytes()), Some(number), "{text}");
        }
        assert_eq!(parse_f64_rounded(b"1e"), None);
        assert_eq!(parse_f64_rounded(b"nan"), None);
    }

    #[test]
    fn doubles_are_written_as_redis_writes_them() {
        for (number, text) in [
            (0.0, "0"),
            (-0.0, "-0"),
            (3.0, "3"),
            (-1.5, "-1.5"),
            (0.1, "0.1"),
            (0.1 + 0.2, "0.30000000000000004"),
            (-2.9, "-2.9"),
            (2.5e-3, "0.0025"),
            (0.0001, "0.0001"),
            (0.00012345, "1.2345e-4"),
            (0.0012345678901234, "0.0012345678901234"),
            (0.000001, "0.000001"),
            (0.0000015, "1.5e-6"),
            (1e-7, "1e-7"),
            (-1.5e-8, "-1.5e-8"),
            (123456.789012, "123456.789012"),
            (123456.7890123, "1.234567890123e+5"),
            (1234.56789012345, "1234.56789012345"),
            (1e17, "100000000000000000"),
            (3e16, "30000000000000000"),
            (123456789012345678.0, "123456789012345680"),
            (4611686018427387904.0, "4611686018427387904"),
            (4611686018427388928.0, "4611686018427389000"),
            (1e19, "1e+19"),
            (1e20, "1e+20"),
            (1.5e20, "1.5e+20"),
            (-1.2345678901234568e22, "-12345678901234568000000"),
            (-1.2345678901234567e23, "-123456789012345670000000"),
            (1.2345678901234568e24, "1.2345678901234568e+24"),
            (1e300, "1e+300"),
            (f64::MAX, "1.7976931348623157e+308"),
            (5e-324, "5e-324"),
            (1e-310, "1e-310"),
            (1234.5, "1234.5"),
            (0.5, "0.5"),
            (0.015625, "0.015625"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
            (f64::NAN, "nan"),
        ] {
            assert_eq!(written(number), text);
        }
    }

    proptest! {
        #[test]
        fn integers_survive_the_round_trip(number: i64, unsigned: u64) {
            let mut out = Vec::new();
            write_i64(&mut out, number);
            prop_assert_eq!(parse_i64(&out), Some(number));
            out.clear();
            write_u64(&mut out, unsigned);
            prop_assert_eq!(parse_u64(&out), Some(unsigned));
        }

        #[test]
        fn a_text_is_an_integer_only_if_it_is_how_the_integer_is_written(text in "[-+ 0-9]{0,22}") {
            let expected = text.parse::<i64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_i64(text.as_bytes()), expected);
            let expected = text.parse::<u64>().ok().filter(|number| number.to_string() == text);
            prop_assert_eq!(parse_u64(text.as_bytes()), expected);
        }

        #[test]
        fn doubles_survive_the_round_trip(bits: u64) {
            let number = f64::from_bits(bits);
            let text = written(number);
            // The longest text has a sign, 17 digits and 7 zeros.
            prop_assert!(text.len() <= 25);
            if !number.is_nan() {
                prop_assert_eq!(parse_f64(text.as_bytes()), Some(number), "{}", text);
            }
        }

        #[test]
        fn hexadecimal_integers_round_as_the_hardware_does(number: u64) {
            prop_assert_eq!(parse_f64(format!("{number:#x}").as_bytes()), Some(number as f64));
        }

        #[test]
        fn arbitrary_bytes_are_parsed_without_panics(bytes: Vec<u8>) {
            let _ = (parse_i64(&bytes), parse_u64(&bytes), parse_f64(&bytes));
        }
    }
}
