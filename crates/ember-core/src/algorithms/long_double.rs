//! The 80-bit floating point numbers that INCRBYFLOAT and HINCRBYFLOAT compute with, in integer arithmetic.
//!
//! Redis adds `long double`s, which on x86-64 have 64 bits of mantissa, and prints them with 17 digits after the point.
//! The result depends on those 64 bits: in `f64` the sum of 10.5 and 0.1 would print as 10.59999999999999964. So the
//! format is implemented here: text is rounded to 64 bits once, sums are rounded once, both to nearest even, and the
//! decimal digits are exact before they are cut. On every machine, replies equal those of Redis on x86-64.
//!
//! There are two paths: numbers of up to 38 digits between about 1e-27 and 1e38 are computed with `u128` alone, without
//! an allocation; all others with [`Natural`], integers of any size.
//!
//! One property is omitted: below 2^-16382 the real format has fewer than 64 bits. This has no visible effect, because
//! such numbers print as 0 and vanish in a sum with any other; only those that round to zero must be detected, and are
//! refused as in Redis.

use std::cmp::Ordering;

use ember_protocol::number::parse_i64;

/// The number of bits of the mantissa.
const MANTISSA_BITS: u32 = 64;

/// The exponent of two from which numbers are infinite: 2^16384 and more.
const TOP_EXPONENT_MAX: i64 = 16384;

/// The exponent of the smallest number; half of it rounds to zero.
const LOW_EXPONENT_MIN: i64 = -16445;

/// The length in bytes from which texts are not numbers, as in Redis, which copies them to a buffer of this size.
const TEXT_BYTES_END: usize = 5 * 1024;

/// The number of digits printed after the point, before trailing zeros are cut.
const FRACTION_DIGITS: u32 = 17;

/// A finite number: `mantissa * 2^exponent`. The mantissa's highest bit is set unless the number is zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Finite {
    negative: bool,
    mantissa: u64,
    exponent: i64,
}

/// A number of the format, which is never NaN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LongDouble(Number);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Number {
    Finite(Finite),
    Infinite { negative: bool },
}

impl From<i64> for LongDouble {
    fn from(number: i64) -> LongDouble {
        let finite = Finite::rounded(number < 0, u128::from(number.unsigned_abs()), false, 0);
        LongDouble(Number::Finite(finite.expect("64 bits are far below the largest number")))
    }
}

impl LongDouble {
    /// Zero.
    pub const ZERO: LongDouble =
        LongDouble(Number::Finite(Finite { negative: false, mantissa: 0, exponent: 0 }));

    /// The largest finite number.
    pub const MAX: LongDouble = LongDouble(Number::Finite(Finite {
        negative: false,
        mantissa: u64::MAX,
        exponent: TOP_EXPONENT_MAX - MANTISSA_BITS as i64,
    }));

    /// Parses a number by the rules of C's `strtold`: decimal or hexadecimal, with point and exponent, or `inf`. `None`
    /// for anything else, for NaN, for surrounding spaces, and for numbers that overflow or vanish.
    pub fn parse(text: &[u8]) -> Option<LongDouble> {
        if text.len() >= TEXT_BYTES_END {
            return None;
        }
        let (negative, magnitude) = match text {
            [b'-', rest @ ..] => (true, rest),
            [b'+', rest @ ..] => (false, rest),
            rest => (false, rest),
        };
        if magnitude.eq_ignore_ascii_case(b"inf") || magnitude.eq_ignore_ascii_case(b"infinity") {
            return Some(LongDouble(Number::Infinite { negative }));
        }
        let number = match magnitude {
            [b'0', b'x' | b'X', digits @ ..] => Scanned::new(digits, 16, b'p')?.hexadecimal(negative),
            digits => Scanned::new(digits, 10, b'e')?.decimal(negative),
        };
        let number = number.filter(|number| number.mantissa == 0 || !number.vanishes())?;
        Some(LongDouble(Number::Finite(number)))
    }

    fn finite(self) -> Option<Finite> {
        match self.0 {
            Number::Finite(finite) => Some(finite),
            Number::Infinite { .. } => None,
        }
    }

    fn is_negative(self) -> bool {
        match self.0 {
            Number::Finite(finite) => finite.negative,
            Number::Infinite { negative } => negative,
        }
    }

    /// Returns whether the number is infinite.
    pub fn is_infinite(self) -> bool {
        self.finite().is_none()
    }

    /// Returns the number with the other sign.
    #[must_use]
    pub fn negated(self) -> LongDouble {
        LongDouble(match self.0 {
            Number::Finite(finite) => Number::Finite(Finite { negative: !finite.negative, ..finite }),
            Number::Infinite { negative } => Number::Infinite { negative: !negative },
        })
    }

    /// Returns the sum; `None` if it is infinite or not a number.
    pub fn checked_add(self, other: LongDouble) -> Option<LongDouble> {
        let sum = self.finite()?.add(other.finite()?)?;
        Some(LongDouble(Number::Finite(sum)))
    }

    /// Returns the sum of two finite numbers, which may be infinite.
    #[must_use]
    pub fn saturating_add(self, other: LongDouble) -> LongDouble {
        // A sum is infinite only if both numbers have its sign.
        self.checked_add(other).unwrap_or(LongDouble(Number::Infinite { negative: other.is_negative() }))
    }

    /// Compares two numbers; both zeros are equal.
    pub fn compare(self, other: LongDouble) -> Ordering {
        /// Orders numbers of one sign by their magnitude.
        fn magnitude(number: LongDouble) -> (bool, bool, i64, u64) {
            match number.finite() {
                None => (true, true, 0, 0),
                Some(finite) if finite.mantissa == 0 => (false, false, 0, 0),
                Some(finite) => (false, true, finite.exponent, finite.mantissa),
            }
        }
        let is_below_zero =
            |number: LongDouble| number.is_negative() && magnitude(number) != magnitude(Self::ZERO);
        match (is_below_zero(self), is_below_zero(other)) {
            (false, false) => magnitude(self).cmp(&magnitude(other)),
            (true, true) => magnitude(other).cmp(&magnitude(self)),
            (is_below, _) => {
                if is_below {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
        }
    }

    /// Returns a thousand times the number, rounded up to an integer. `None` if it does not fit into 64 bits.
    pub fn thousandfold_ceiling(self) -> Option<i64> {
        let Finite { negative, mantissa, exponent } = self.finite()?;
        let product = Finite::rounded(negative, u128::from(mantissa) * 1000, false, exponent)?;
        let magnitude = match product.exponent {
            _ if product.mantissa == 0 => 0,
            0.. => return None,
            down => {
                let down = u32::try_from(-down).ok().filter(|&down| down < MANTISSA_BITS);
                let whole = down.map_or(0, |down| product.mantissa >> down);
                let is_whole = down.is_some_and(|down| whole << down == product.mantissa);
                whole + u64::from(!is_whole && !negative)
            }
        };
        let magnitude = i64::try_from(magnitude).ok()?;
        Some(if negative { -magnitude } else { magnitude })
    }

    /// Returns the text: plain decimal digits, at most 17 of them after the point, without trailing zeros; never an
    /// exponent.
    pub fn to_text(self) -> Text {
        let mut text = Text::default();
        match self.0 {
            Number::Infinite { negative } => text.push(if negative { b"-inf" } else { b"inf" }),
            Number::Finite(number) => number.write(&mut text),
        }
        text
    }
}

impl Finite {
    /// Returns the number nearest to `(mantissa + rest) * 2^exponent`, or `None` if it is infinite. `has_rest`: whether
    /// there is a rest, above zero and below one; the mantissa must then have more than 64 bits.
    fn rounded(negative: bool, mantissa: u128, has_rest: bool, exponent: i64) -> Option<Finite> {
        if mantissa == 0 {
            return Some(Finite { negative, mantissa: 0, exponent: 0 });
        }
        let bits = u128::BITS - mantissa.leading_zeros();
        let (mut kept, mut exponent) = if bits <= MANTISSA_BITS {
            debug_assert!(!has_rest);
            let up = MANTISSA_BITS - bits;
            (mantissa << up, exponent - i64::from(up))
        } else {
            let drop = bits - MANTISSA_BITS;
            let (kept, dropped) = (mantissa >> drop, mantissa & ((1 << drop) - 1));
            let is_up = match dropped.cmp(&(1 << (drop - 1))) {
                Ordering::Less => false,
                Ordering::Equal => has_rest || kept & 1 == 1,
                Ordering::Greater => true,
            };
            (kept + u128::from(is_up), exponent + i64::from(drop))
        };
        if kept >> MANTISSA_BITS != 0 {
            (kept, exponent) = (kept >> 1, exponent + 1);
        }
        let number = Finite { negative, mantissa: kept as u64, exponent };
        (number.top_exponent() <= TOP_EXPONENT_MAX).then_some(number)
    }

    /// Returns the exponent of the power of two above the number.
    fn top_exponent(self) -> i64 {
        self.exponent + i64::from(MANTISSA_BITS)
    }

    /// Returns whether the number, which must not be zero, is so small that the real format rounds it to zero.
    fn vanishes(self) -> bool {
        let half_of_smallest = LOW_EXPONENT_MIN - 1;
        let is_power = self.mantissa == 1 << (MANTISSA_BITS - 1);
        self.top_exponent() <= half_of_smallest || (is_power && self.top_exponent() == half_of_smallest + 1)
    }

    fn add(self, other: Finite) -> Option<Finite> {
        if self.mantissa == 0 || other.mantissa == 0 {
            return Some(if self.mantissa == 0 { other } else { self });
        }
        let order = (self.exponent, self.mantissa).cmp(&(other.exponent, other.mantissa));
        let (large, small) = if order.is_lt() { (other, self) } else { (self, other) };
        /// The number of bits below the mantissa, which decide the rounding; above it, two bits remain for a carry.
        const GUARD_BITS: u32 = 62;
        let distance = u32::try_from(large.exponent - small.exponent).unwrap_or(u32::MAX);
        let wide = u128::from(small.mantissa) << GUARD_BITS;
        let shifted = wide.checked_shr(distance).unwrap_or(0);
        // If bits that are shifted out are not zero, the last bit is set, which is far below the point where the sum is
        // rounded.
        let lost = distance >= u128::BITS || shifted << distance != wide;
        let (large_wide, small_wide) = (u128::from(large.mantissa) << GUARD_BITS, shifted | u128::from(lost));
        let exponent = large.exponent - i64::from(GUARD_BITS);
        if large.negative == small.negative {
            Finite::rounded(large.negative, large_wide + small_wide, false, exponent)
        } else {
            let difference = large_wide - small_wide;
            Finite::rounded(large.negative && difference != 0, difference, false, exponent)
        }
    }

    fn write(self, text: &mut Text) {
        let (whole, fraction) = self.split();
        if self.negative && (fraction != 0 || whole != Whole::Small(0)) {
            text.push(b"-");
        }
        match whole {
            Whole::Small(number) => text.push_number(number),
            Whole::Large(number) => number.write(text),
        }
        if fraction != 0 {
            let mut digits = [b'0'; FRACTION_DIGITS as usize];
            let mut rest = fraction;
            for digit in digits.iter_mut().rev() {
                *digit += (rest % 10) as u8;
                rest /= 10;
            }
            let significant = digits.iter().rposition(|&digit| digit != b'0').map_or(0, |last| last + 1);
            text.push(b".");
            text.push(&digits[..significant]);
        }
    }

    /// Returns the part before the point, and the 17 digits after it as a number, rounded to nearest even.
    fn split(self) -> (Whole, u64) {
        const SCALE: u64 = 10u64.pow(FRACTION_DIGITS);
        let mantissa = u128::from(self.mantissa);
        let Ok(fraction_bits) = u32::try_from(-self.exponent) else {
            let up = self.exponent as u32;
            return match mantissa.checked_mul(1u128.checked_shl(up).unwrap_or(u128::MAX)) {
                Some(number) => (Whole::Small(number), 0),
                None => (Whole::Large(Natural::from(mantissa).shifted_left(up)), 0),
            };
        };
        let whole = mantissa.checked_shr(fraction_bits).unwrap_or(0);
        let fraction = mantissa - whole.checked_shl(fraction_bits).unwrap_or(0);
        // The product of 64 and 57 bits fits into 128 bits. With 128 fraction bits or more, the number is below 2^-64,
        // and its digits are certainly less than a half.
        let scaled = fraction * u128::from(SCALE);
        let Some(digits) = scaled.checked_shr(fraction_bits) else { return (Whole::Small(whole), 0) };
        let rest = scaled - (digits << fraction_bits);
        let is_up = fraction_bits > 0
            && match rest.cmp(&(1 << (fraction_bits - 1))) {
                Ordering::Less => false,
                Ordering::Equal => digits & 1 == 1,
                Ordering::Greater => true,
            };
        let digits = digits as u64 + u64::from(is_up);
        if digits == SCALE { (Whole::Small(whole + 1), 0) } else { (Whole::Small(whole), digits) }
    }
}

/// The part of a number before the point.
#[derive(PartialEq, Eq)]
enum Whole {
    Small(u128),
    Large(Natural),
}

/// The text of a number without its sign: digits, with a point somewhere, and an exponent.
struct Scanned<'a> {
    digits: &'a [u8],
    /// The exponent of the base (10, or 2 for hexadecimal) when all digits are read as one integer.
    exponent: i64,
    /// The number of digits without leading zeros.
    significant: usize,
}

impl<'a> Scanned<'a> {
    /// Reads digits to `base`, at least one, with an optional point, and an exponent after the letter `mark`.
    fn new(text: &'a [u8], base: u32, mark: u8) -> Option<Scanned<'a>> {
        let is_mark = |byte: &u8| byte.to_ascii_lowercase() == mark;
        let (digits, exponent) = match text.iter().position(is_mark) {
            Some(at) => (&text[..at], parse_exponent(&text[at + 1..])?),
            None => (text, 0),
        };
        let point = digits.iter().position(|&byte| byte == b'.');
        let (before, after) = point.map_or((digits, &b""[..]), |at| (&digits[..at], &digits[at + 1..]));
        let all_digits = before.iter().chain(after).all(|&byte| char::from(byte).is_digit(base));
        if !all_digits || before.len() + after.len() == 0 {
            return None;
        }
        let bits_per_place = if base == 16 { 4 } else { 1 };
        let exponent = exponent - after.len() as i64 * bits_per_place;
        let leading = before.iter().chain(after).take_while(|&&byte| byte == b'0').count();
        Some(Scanned { digits, exponent, significant: before.len() + after.len() - leading })
    }

    fn values(&self, base: u32) -> impl Iterator<Item = u8> {
        self.digits.iter().filter_map(move |&byte| char::from(byte).to_digit(base).map(|digit| digit as u8))
    }

    /// Returns the digits as one integer, if it is below 2^128.
    fn small(&self, base: u32) -> Option<u128> {
        let add = |sum: u128, digit| sum.checked_mul(u128::from(base))?.checked_add(u128::from(digit));
        self.values(base).try_fold(0, add)
    }

    fn hexadecimal(&self, negative: bool) -> Option<Finite> {
        match self.small(16) {
            Some(digits) => Finite::rounded(negative, digits, false, self.exponent),
            None => {
                let mut digits = Natural::default();
                self.values(16).for_each(|digit| digits.multiply_add(16, u64::from(digit)));
                digits.rounded(negative, self.exponent)
            }
        }
    }

    fn decimal(&self, negative: bool) -> Option<Finite> {
        self.decimal_in_words(negative).unwrap_or_else(|| self.decimal_at_length(negative))
    }

    /// Returns the number, if 128 bits suffice; the inner `None` means that it is infinite.
    fn decimal_in_words(&self, negative: bool) -> Option<Option<Finite>> {
        /// The exponent of the largest power of five in 64 bits.
        const FIVES_MAX: u64 = 27;
        let digits = self.small(10)?;
        if digits == 0 {
            return Some(Finite::rounded(negative, 0, false, 0));
        }
        let power = u32::try_from(self.exponent.unsigned_abs().min(FIVES_MAX + 1)).ok()?;
        let fives = 5u64.checked_pow(power)?;
        if self.exponent >= 0 {
            let product = digits.checked_mul(u128::from(fives))?;
            return Some(Finite::rounded(negative, product, false, self.exponent));
        }
        let up = digits.leading_zeros();
        // The dividend has 128 bits and the divisor at most 63: the quotient has more than 64.
        let dividend = digits << up;
        let (quotient, rest) = (dividend / u128::from(fives), dividend % u128::from(fives));
        Some(Finite::rounded(negative, quotient, rest != 0, self.exponent - i64::from(up)))
    }

    /// Returns the number, computed with integers of any size.
    fn decimal_at_length(&self, negative: bool) -> Option<Finite> {
        /// Numbers with a decimal exponent outside of this range are infinite or zero: 10^4932 is just below 2^16384,
        /// and 10^-4951 below half the smallest number.
        const PLACES: std::ops::RangeInclusive<i64> = -4960..=4940;
        if self.significant == 0 {
            return Finite::rounded(negative, 0, false, 0);
        }
        if !PLACES.contains(&(self.significant as i64 + self.exponent)) {
            return None;
        }
        let mut digits = Natural::default();
        self.values(10).for_each(|digit| digits.multiply_add(10, u64::from(digit)));
        let power = self.exponent.unsigned_abs() as usize;
        if self.exponent >= 0 {
            (0..power).for_each(|_| digits.multiply_add(5, 0));
            return digits.rounded(negative, self.exponent);
        }
        let mut fives = Natural::from(1);
        (0..power).for_each(|_| fives.multiply_add(5, 0));
        let (quotient, has_rest, exponent) = digits.divided_by(fives);
        Finite::rounded(negative, quotient, has_rest, exponent + self.exponent)
    }
}

/// Returns the number after the exponent's letter, limited to a range beyond which every number is infinite or zero.
fn parse_exponent(text: &[u8]) -> Option<i64> {
    const EXPONENT_MAX: i64 = 1_000_000;
    let (negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let leading = digits.iter().take_while(|&&digit| digit == b'0').count();
    let digits = &digits[leading.min(digits.len() - 1)..];
    let exponent = parse_i64(digits).map_or(EXPONENT_MAX, |exponent| exponent.min(EXPONENT_MAX));
    Some(if negative { -exponent } else { exponent })
}

/// An integer of any size: 64-bit words, the lowest first, the highest not zero.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Natural(Vec<u64>);

impl From<u128> for Natural {
    fn from(number: u128) -> Natural {
        let mut words = vec![number as u64, (number >> 64) as u64];
        while words.pop_if(|word| *word == 0).is_some() {}
        Natural(words)
    }
}

impl Natural {
    fn bits(&self) -> u64 {
        self.0.last().map_or(0, |top| self.0.len() as u64 * 64 - u64::from(top.leading_zeros()))
    }

    /// Multiplies by `factor`, which must not be 0, and adds `carry`.
    fn multiply_add(&mut self, factor: u64, mut carry: u64) {
        for word in &mut self.0 {
            let product = u128::from(*word) * u128::from(factor) + u128::from(carry);
            *word = product as u64;
            carry = (product >> 64) as u64;
        }
        if carry != 0 {
            self.0.push(carry);
        }
    }

    /// Divides by `divisor` and returns the remainder.
    fn divide(&mut self, divisor: u64) -> u64 {
        let mut rest = 0u64;
        for word in self.0.iter_mut().rev() {
            let dividend = u128::from(rest) << 64 | u128::from(*word);
            *word = (dividend / u128::from(divisor)) as u64;
            rest = (dividend % u128::from(divisor)) as u64;
        }
        self.trim();
        rest
    }

    fn trim(&mut self) {
        while self.0.pop_if(|word| *word == 0).is_some() {}
    }

    fn shifted_left(mut self, bits: u32) -> Natural {
        self.multiply_add(1 << (bits % 64), 0);
        self.0.splice(..0, std::iter::repeat_n(0, bits as usize / 64));
        self
    }

    fn subtract(&mut self, other: &Natural) {
        let mut borrow = false;
        for (index, word) in self.0.iter_mut().enumerate() {
            let (difference, under) = word.overflowing_sub(other.0.get(index).copied().unwrap_or(0));
            let (difference, under_too) = difference.overflowing_sub(u64::from(borrow));
            (*word, borrow) = (difference, under || under_too);
        }
        self.trim();
    }

    fn is_at_least(&self, other: &Natural) -> bool {
        self.0.len().cmp(&other.0.len()).then_with(|| self.0.iter().rev().cmp(other.0.iter().rev())).is_ge()
    }

    /// Returns the number times `2^exponent`, rounded.
    fn rounded(&self, negative: bool, exponent: i64) -> Option<Finite> {
        let above = self.0.len().saturating_sub(2);
        let (rest, top) = self.0.split_at(above);
        let top = top.iter().rev().fold(0, |sum, &word| sum << 64 | u128::from(word));
        let has_rest = rest.iter().any(|&word| word != 0);
        Finite::rounded(negative, top, has_rest, exponent + above as i64 * 64)
    }

    /// Returns a quotient of 66 or 67 bits, whether there is a remainder, and the exponent of two of the quotient.
    /// Neither number may be zero. O(67 * words).
    fn divided_by(self, divisor: Natural) -> (u128, bool, i64) {
        const QUOTIENT_BITS: u32 = 67;
        let exponent = self.bits() as i64 - divisor.bits() as i64;
        let up = exponent.unsigned_abs() as u32;
        let (mut rest, divisor) =
            if exponent < 0 { (self.shifted_left(up), divisor) } else { (self, divisor.shifted_left(up)) };
        let mut quotient = 0;
        for _ in 0..QUOTIENT_BITS {
            quotient <<= 1;
            if rest.is_at_least(&divisor) {
                rest.subtract(&divisor);
                quotient |= 1;
            }
            rest = rest.shifted_left(1);
        }
        (quotient, !rest.0.is_empty(), exponent - i64::from(QUOTIENT_BITS - 1))
    }

    fn write(mut self, text: &mut Text) {
        const DIGITS: usize = 19;
        const BASE: u64 = 10u64.pow(DIGITS as u32);
        let mut groups = Vec::new();
        while !self.0.is_empty() {
            groups.push(self.divide(BASE));
        }
        let mut groups = groups.into_iter().rev();
        text.push_number(u128::from(groups.next().unwrap_or(0)));
        for group in groups {
            let digits = itoa::Buffer::new().format(group).len();
            text.push(&[b'0'; DIGITS][digits..]);
            text.push_number(u128::from(group));
        }
    }
}

/// The size in bytes of a buffer for a sign, 39 digits, a point and 17 more digits.
const SHORT_TEXT_BYTES: usize = 64;

/// A number's text: on the stack if the part before the point is below 2^128.
#[derive(Clone, Debug)]
pub struct Text {
    short: [u8; SHORT_TEXT_BYTES],
    short_len: usize,
    /// The whole text, if it does not fit into `short`.
    long: Vec<u8>,
}

impl Default for Text {
    fn default() -> Text {
        Text { short: [0; SHORT_TEXT_BYTES], short_len: 0, long: Vec::new() }
    }
}

impl Text {
    /// Returns the text.
    pub fn as_bytes(&self) -> &[u8] {
        if self.long.is_empty() { &self.short[..self.short_len] } else { &self.long }
    }

    fn push(&mut self, bytes: &[u8]) {
        let end = self.short_len + bytes.len();
        if self.long.is_empty()
            && let Some(free) = self.short.get_mut(self.short_len..end)
        {
            free.copy_from_slice(bytes);
            self.short_len = end;
            return;
        }
        if self.long.is_empty() {
            self.long.extend_from_slice(&self.short[..self.short_len]);
        }
        self.long.extend_from_slice(bytes);
    }

    fn push_number(&mut self, number: u128) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text_of(number: LongDouble) -> String {
        String::from_utf8(number.to_text().as_bytes().to_vec()).unwrap()
    }

    fn sum(one: &str, other: &str) -> Option<String> {
        let (one, other) = (LongDouble::parse(one.as_bytes())?, LongDouble::parse(other.as_bytes())?);
        one.checked_add(other).map(text_of)
    }

    fn decimal(text: &str) -> Scanned<'_> {
        Scanned::new(text.as_bytes(), 10, b'e').unwrap()
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let number = |text: &str| LongDouble::parse(text.as_bytes()).unwrap();
        let texts = [
            "-inf", "-1e4000", "-2", "-1.5", "-1e-4000", "0", "1e-4000", "1", "1.25", "9e18", "1e4000", "inf",
        ];
        for (at, one) in texts.into_iter().enumerate() {
            for (other_at, other) in texts.into_iter().enumerate() {
                assert_eq!(number(one).compare(number(other)), at.cmp(&other_at), "{one} {other}");
            }
            assert_eq!(number(one).negated().negated(), number(one));
        }
        assert_eq!(number("-0").compare(LongDouble::ZERO), Ordering::Equal);
        assert_eq!(LongDouble::MAX.saturating_add(LongDouble::MAX), number("inf"));
        assert_eq!(LongDouble::MAX.negated().saturating_add(number("-1e4930")), number("-inf"));
        assert_eq!(LongDouble::MAX.saturating_add(number("-1")), LongDouble::MAX);
    }

    #[test]
    fn sums_are_those_of_redis() {
        for (one, other, expected) in GOLDEN_SUMS {
            assert_eq!(sum(one, other).as_deref(), Some(*expected), "{one} + {other}");
        }
    }

    #[test]
    fn texts_that_are_no_numbers_are_rejected() {
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
            "+",
            "-",
            "--1",
            "+-1",
            "0x",
            "0x.",
            "0x1p",
            "0xg",
            "infi",
            "1_0",
            "1e5000",
            "-1e5000",
            "1e-5000",
            "1e-4951",
            "1\0",
            "0x1p16384",
            "0x1p-16446",
            "1e+",
            "1..2",
            "0x1.p-16446",
            "1.e-99999999999999999999",
        ] {
            assert_eq!(LongDouble::parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(LongDouble::parse(&[b'1'; TEXT_BYTES_END]), None);
        for text in [
            "1e4932",
            "1e-4950",
            "0x1p-16445",
            "0x1.8p-16446",
            "0x1p16383",
            "0e99999999999999999999",
            "1.",
            ".5",
            "+1",
            "0X1P3",
            "-0",
        ] {
            assert!(LongDouble::parse(text.as_bytes()).is_some(), "{text}");
        }
    }

    #[test]
    fn infinite_sums_are_rejected() {
        for (one, other) in [("inf", "1"), ("1", "-infinity"), ("inf", "-inf"), ("1e4932", "1e4932")] {
            assert_eq!(sum(one, other), None, "{one} + {other}");
        }
    }

    #[test]
    fn the_largest_numbers_are_printed_in_full() {
        let text = sum("1e4932", "1e-4000").unwrap();
        assert_eq!(text.len(), 4933);
        assert!(text.starts_with("10000000000000000000") || text.starts_with("9999999999999999999"));
    }

    #[test]
    fn integers_are_exact() {
        for number in [0, 1, -1, i64::MAX, i64::MIN, 1 << 53, (1 << 53) + 1] {
            assert_eq!(text_of(LongDouble::from(number)), number.to_string());
        }
    }

    proptest! {
        #[test]
        fn both_decimal_parsers_agree(digits in "[0-9]{1,37}", exponent in -40i64..40) {
            let text = format!("{digits}e{exponent}");
            let scanned = decimal(&text);
            if let Some(quick) = scanned.decimal_in_words(false) {
                prop_assert_eq!(quick, scanned.decimal_at_length(false));
            }
        }

        #[test]
        fn seventeen_decimal_places_survive_the_round_trip(whole in 0u32..8, places in 0u64..10u64.pow(17)) {
            let text = format!("{whole}.{places:017}");
            let expected = text.trim_end_matches('0').trim_end_matches('.');
            prop_assert_eq!(text_of(LongDouble::parse(text.as_bytes()).unwrap()), expected);
        }

        #[test]
        fn doubles_are_read_and_added_exactly(one: i32, other: i32, up in 0u32..17) {
            // Multiples of 2^-16 with few bits: an f64 represents the sum exactly, and 17 digits print all of it.
            let (one, other) = (f64::from(one) / f64::from(1 << up), f64::from(other) / f64::from(1 << up));
            let printed = sum(&format!("{one:.17}"), &format!("{other:.17}")).unwrap();
            prop_assert_eq!(printed.parse::<f64>().unwrap(), one + other);
        }

        #[test]
        fn a_sum_does_not_depend_on_the_order(one in number(), other in number()) {
            prop_assert_eq!(sum(&one, &other), sum(&other, &one));
        }

        #[test]
        fn arbitrary_bytes_are_parsed_without_panics(text in prop::collection::vec(any::<u8>(), 0..40)) {
            if let Some(number) = LongDouble::parse(&text) {
                let _ = number.checked_add(number).map(LongDouble::to_text);
            }
        }

        #[test]
        fn number_like_texts_are_parsed_without_panics(text in "[-+]?(0x)?[0-9a-f.]{0,45}([ep][-+]?[0-9]{1,5})?") {
            if let Some(number) = LongDouble::parse(text.as_bytes()) {
                let _ = number.checked_add(number).map(LongDouble::to_text);
            }
        }
    }

    fn number() -> impl Strategy<Value = String> {
        "-?[0-9]{1,25}(\\.[0-9]{1,25})?(e-?[0-9]{1,3})?"
    }

    /// Computed by a C program with `ceill` on x86-64, except for results that do not fit into 64 bits.
    #[test]
    fn milliseconds_are_rounded_to_long_double_and_then_up() {
        let cases = [
            ("0", Some(0)),
            ("-0", Some(0)),
            ("0.001", Some(1)),
            ("0.002", Some(2)),
            ("0.003", Some(3)),
            ("0.0011", Some(2)),
            ("1e-4000", Some(1)),
            ("-1e-4000", Some(0)),
            ("-0.001", Some(0)),
            ("-0.002", Some(-1)),
            ("-0.003", Some(-3)),
            ("-0.004", Some(-3)),
            ("0.1", Some(100)),
            ("1e15", Some(1_000_000_000_000_000_000)),
            ("9223372036854775", Some(9_223_372_036_854_775_000)),
            ("9223372036854775.9", None),
            ("1e4000", None),
            ("inf", None),
        ];
        for (text, expected) in cases {
            let number = LongDouble::parse(text.as_bytes()).expect("it is a number");
            assert_eq!(number.thousandfold_ceiling(), expected, "{text}");
        }
    }

    /// Replies of Redis 7.0.15 on x86-64.
    const GOLDEN_SUMS: &[(&str, &str, &str)] = &[
        ("10.50", "0.1", "10.6"),
        ("5.0e3", "200", "5200"),
        ("-5", "0", "-5"),
        ("0.1", "0.2", "0.3"),
        ("3.0e3", "0", "3000"),
        ("5e-324", "0", "0"),
        ("-5e-324", "0", "0"),
        ("1000.1", "0.1", "1000.19999999999999996"),
        ("123456.789", "0.000001", "123456.78900099999999895"),
        ("9007199254740993", "0", "9007199254740993"),
        ("9223372036854775807", "1", "9223372036854775808"),
        ("18446744073709551615", "1", "18446744073709551616"),
        ("18446744073709551616", "1", "18446744073709551616"),
        ("1e20", "0.5", "100000000000000000000"),
        ("1e30", "1", "1000000000000000000024696061952"),
        ("1e40", "0", "9999999999999999999783686092270256259072"),
        ("1.5e45", "-1", "1500000000000000000015579380971322730684088320"),
        ("0.00000000000000001", "0", "0.00000000000000001"),
        ("0.000000000000000005", "0", "0"),
        ("0.0000000000000000050000001", "0", "0.00000000000000001"),
        ("0.000000000000000015", "0", "0.00000000000000002"),
        ("-0.1", "0.1", "0"),
        ("3", "-3", "0"),
        ("-3", "2.9", "-0.1"),
        ("0x10", "0x.8", "16.5"),
        ("0x1.8p3", "0", "12"),
        ("0x1.fffffffffffffffffffp0", "0", "2"),
        ("1.1", "-1", "0.1"),
        ("99999999999999999.9", "0.1", "100000000000000000"),
        ("0.99999999999999999", "0", "0.99999999999999999"),
        ("0.999999999999999999", "0", "1"),
        ("0.9999999999999999999999", "0", "1"),
        ("1.23456789012345678901234567890123456789012345", "0", "1.23456789012345679"),
        ("3.14159265358979323846", "2.71828182845904523536", "5.85987448204883847"),
        ("1e-30", "1", "1"),
        (
            "-1e100",
            "1",
            "-9999999999999999999669353532207342619498699019828496079271391541752018669482644324418977840117055488",
        ),
        ("100000000000000000000000000000000000000000", "0.1", "99999999999999999996656269301985151287296"),
        ("340282366920938463463374607431768211456", "0", "340282366920938463463374607431768211456"),
        ("340282366920938463463374607431768211455", "0", "340282366920938463463374607431768211456"),
        ("-0", "0", "0"),
        ("-0", "-0", "0"),
        (".5", "5.", "5.5"),
        ("1e-4950", "0", "0"),
        ("4", "1e19", "10000000000000000004"),
        ("12345678901234567890.12345", "0", "12345678901234567890"),
        ("0.5", "-0.49999999999999999999", "0"),
        ("36893488147419103233", "0", "36893488147419103232"),
        ("36893488147419103235", "0", "36893488147419103236"),
        ("0.1", "1e18", "1000000000000000000.125"),
        ("70.7", "-0.07", "70.63"),
    ];
}
