//! JSON numbers: integers of 64 bits, with or without sign, and doubles.

use std::cmp::Ordering;

/// A number.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Number {
    /// An integer.
    Int(i64),
    /// An integer above the largest `i64`.
    Uint(u64),
    /// A finite double.
    Double(f64),
}

/// The largest magnitude of the integer in a decimal fraction: with more bytes, the double itself is as short.
const MANTISSA_MAX: f64 = i32::MAX as f64;

/// The maximum number of digits after the decimal point of a decimal fraction.
const EXPONENT_MAX: usize = 7;

const POWERS: [f64; EXPONENT_MAX + 1] = [1.0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7];

/// Returns the integer `m` and the exponent `e` with which `m / 10^e` is exactly this double, if there are such numbers
/// in the supported ranges; `e` is the lowest possible.
pub(super) fn decimal_of(number: f64) -> Option<(i64, u32)> {
    // The sign of -0.0 would be lost.
    if number.abs() > MANTISSA_MAX || number == 0.0 && number.is_sign_negative() {
        return None;
    }
    (0u32..).zip(POWERS).find_map(|(exponent, power)| {
        let mantissa = (number * power).round();
        let is_exact = mantissa.abs() <= MANTISSA_MAX && mantissa / power == number;
        is_exact.then_some((mantissa as i64, exponent))
    })
}

/// Returns the double of a decimal fraction: both numbers are exact, so their quotient is rounded once.
pub(super) fn decimal_value(mantissa: i64, exponent: u32) -> f64 {
    mantissa as f64 / POWERS[exponent as usize]
}

impl Number {
    /// Returns the number as a double, rounded.
    pub fn as_f64(self) -> f64 {
        match self {
            Number::Int(number) => number as f64,
            Number::Uint(number) => number as f64,
            Number::Double(number) => number,
        }
    }

    /// Compares two numbers; an integer and a double are compared as doubles.
    pub fn compare(self, other: Number) -> Ordering {
        match (self, other) {
            (Number::Int(a), Number::Int(b)) => a.cmp(&b),
            (Number::Uint(a), Number::Uint(b)) => a.cmp(&b),
            (Number::Int(_), Number::Uint(_)) => Ordering::Less,
            (Number::Uint(_), Number::Int(_)) => Ordering::Greater,
            (a, b) => a.as_f64().partial_cmp(&b.as_f64()).unwrap_or(Ordering::Equal),
        }
    }

    fn as_i128(self) -> Option<i128> {
        match self {
            Number::Int(number) => Some(number.into()),
            Number::Uint(number) => Some(number.into()),
            Number::Double(_) => None,
        }
    }

    /// Returns the sum; `None` if it is not finite. Integers have an exact sum as long as it fits 64 bits.
    #[must_use]
    pub fn plus(self, other: Number) -> Option<Number> {
        self.combine(other, |a, b| a + b, |a, b| a + b)
    }

    /// Returns the product; `None` if it is not finite. Integers have an exact product as long as it fits 64 bits.
    #[must_use]
    pub fn times(self, other: Number) -> Option<Number> {
        self.combine(other, |a, b| a * b, |a, b| a * b)
    }

    fn combine(
        self,
        other: Number,
        exact: impl Fn(i128, i128) -> i128,
        rounded: impl Fn(f64, f64) -> f64,
    ) -> Option<Number> {
        // Sums and products of two numbers of 64 bits fit 128 bits.
        if let (Some(a), Some(b)) = (self.as_i128(), other.as_i128()) {
            let result = exact(a, b);
            if let Ok(number) = i64::try_from(result) {
                return Some(Number::Int(number));
            }
            if let Ok(number) = u64::try_from(result) {
                return Some(Number::Uint(number));
            }
        }
        let result = rounded(self.as_f64(), other.as_f64());
        result.is_finite().then_some(Number::Double(result))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimal_fractions_are_exact_and_short() {
        for (number, expected) in [
            (0.0, Some((0, 0))),
            (1.5, Some((15, 1))),
            (-19.99, Some((-1999, 2))),
            (100.0, Some((100, 0))),
            (0.000_000_1, Some((1, 7))),
            (-0.0, None),
            (1.0 / 3.0, None),
            (1e10, None),
            (2_147_483_647.0, Some((2_147_483_647, 0))),
        ] {
            let found = decimal_of(number);
            assert_eq!(found, expected, "{number}");
            if let Some((mantissa, exponent)) = found {
                assert_eq!(decimal_value(mantissa, exponent).to_bits(), number.to_bits());
            }
        }
    }

    #[test]
    fn results_beyond_64_bits_are_doubles() {
        let max = Number::Int(i64::MAX);
        assert_eq!(max.plus(Number::Int(1)), Some(Number::Uint(1 << 63)));
        assert_eq!(
            Number::Uint(u64::MAX).plus(Number::Int(1)),
            Some(Number::Double(18_446_744_073_709_551_616.0))
        );
        assert_eq!(Number::Uint(u64::MAX).plus(Number::Int(i64::MIN)), Some(max));
        assert_eq!(
            Number::Int(i64::MIN).times(Number::Int(2)),
            Some(Number::Double(-18_446_744_073_709_551_616.0))
        );
        assert_eq!(Number::Double(1e308).times(Number::Int(10)), None);
        assert!(Number::Int(1).compare(Number::Double(1.0)).is_eq());
        assert!(Number::Int(-1).compare(Number::Uint(u64::MAX)).is_lt());
    }
}
