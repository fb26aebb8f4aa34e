//! Types of floats, which arrays of numbers may be given (`FPHA`), as in Redis 8.8.
//!
//! A float of less than eight bytes is represented by the double nearest to the shortest decimal fraction that
//! identifies it. So its text is that of Redis, and the same type returns it unchanged.

/// The maximum number of significant decimal digits of a float of two bytes.
const HALF_DIGITS_MAX: i32 = 5;

/// A type of floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FloatType {
    /// Two bytes, with 11 significant bits: IEEE 754's format.
    Half,
    /// Two bytes, with 8 significant bits: bfloat16.
    Bfloat,
    /// Four bytes.
    Single,
    /// Eight bytes.
    Double,
}

impl FloatType {
    /// Returns the type with this name in a command.
    pub fn parse(name: &[u8]) -> Option<FloatType> {
        const NAMES: [(&str, FloatType); 4] = [
            ("FP16", FloatType::Half),
            ("BF16", FloatType::Bfloat),
            ("FP32", FloatType::Single),
            ("FP64", FloatType::Double),
        ];
        let mut names = NAMES.into_iter();
        names.find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes())).map(|(_, found)| found)
    }

    /// Returns the name of the type in errors.
    pub fn name(self) -> &'static str {
        match self {
            FloatType::Half => "F16",
            FloatType::Bfloat => "BF16",
            FloatType::Single => "F32",
            FloatType::Double => "F64",
        }
    }

    /// Returns the double that represents the nearest float of this type; `None` if that is not finite.
    pub fn round(self, number: f64) -> Option<f64> {
        match self {
            FloatType::Half => round_half(number, 10, -14, 0x7c00, half),
            FloatType::Bfloat => round_half(number, 7, -126, 0x7f80, bfloat),
            FloatType::Single => {
                Some(number as f32).filter(|number| number.is_finite()).map(shortest_of_single)
            }
            FloatType::Double => Some(number),
        }
    }
}

/// Rounds to a float of two bytes: one of `mantissa_bits`, of which the lowest exponent and the bits of infinity are
/// given. `value_of` returns the float with these bits.
fn round_half(
    number: f64,
    mantissa_bits: i32,
    exponent_min: i32,
    infinity: u32,
    value_of: fn(u16) -> f64,
) -> Option<f64> {
    let size = number.abs();
    let exponent = ((size.to_bits() >> 52) as i32 - 1023).max(exponent_min);
    // A division by a power of 2 is exact. The bit above those of the mantissa adds 1 to the exponent, as in the format;
    // so does a mantissa that was rounded up to the next power of 2.
    let units = (size / 2f64.powi(exponent - mantissa_bits)).round_ties_even() as u32;
    let bits = units + (((exponent - exponent_min) as u32) << mantissa_bits);
    let bits = u16::try_from(bits).ok().filter(|&bits| u32::from(bits) < infinity)?;
    Some(shortest(bits, value_of).copysign(number))
}

/// Returns the number with these bits of IEEE 754's format of two bytes.
pub(crate) fn half(bits: u16) -> f64 {
    let mantissa = f64::from(bits & 0x3ff);
    let size = match i32::from((bits >> 10) & 0x1f) {
        0 => mantissa * 2f64.powi(-24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        exponent => (mantissa + 1024.0) * 2f64.powi(exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}

/// Returns the number with these bits of the format bfloat16.
pub(crate) fn bfloat(bits: u16) -> f64 {
    f32::from_bits(u32::from(bits) << 16).into()
}

/// Returns the double nearest to the shortest decimal fraction that identifies a float of four bytes.
pub(crate) fn shortest_of_single(number: f32) -> f64 {
    if number.is_finite() {
        number.to_string().parse().expect("a printed float is a number")
    } else {
        f64::NAN
    }
}

/// Returns the double nearest to the shortest decimal fraction that identifies a float of two bytes, which `value_of`
/// returns for its bits.
pub(crate) fn shortest(bits: u16, value_of: impl Fn(u16) -> f64) -> f64 {
    let number = value_of(bits);
    if !number.is_finite() || number.fract() == 0.0 {
        return number;
    }
    // A fraction has neighbors on both sides, and all numbers between the middles are rounded to it; the middles
    // themselves if its last bit is 0.
    let size = number.abs();
    let low = f64::midpoint(value_of((bits & 0x7fff) - 1), size);
    let high = f64::midpoint(size, value_of((bits & 0x7fff) + 1));
    let is_even = bits & 1 == 0;
    let magnitude = size.log10().floor() as i32;
    let mut rounded = (1..=HALF_DIGITS_MAX).map(|digits| {
        let scale = 10f64.powi(digits - 1 - magnitude);
        (size * scale).round() / scale
    });
    let found =
        rounded.find(|&number| low < number && number < high || is_even && (number == low || number == high));
    found.unwrap_or(size).copysign(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shortest_fraction_identifies_every_float_of_two_bytes() {
        for (value_of, count, own) in [
            (half as fn(u16) -> f64, 0x7c00, FloatType::Half),
            (bfloat as fn(u16) -> f64, 0x7f80, FloatType::Bfloat),
        ] {
            for bits in 0..count {
                let found = shortest(bits, value_of);
                let nearest = (bits.saturating_sub(1)..=bits + 1)
                    .min_by(|&one, &other| {
                        let distance = |bits| (value_of(bits) - found).abs();
                        distance(one).total_cmp(&distance(other)).then((one & 1).cmp(&(other & 1)))
                    })
                    .unwrap();
                assert_eq!(nearest, bits, "{found}");
                assert_eq!(own.round(found), Some(found));
                assert_eq!(own.round(-value_of(bits)), Some(-found));
            }
        }
    }

    #[test]
    fn numbers_are_rounded_to_the_nearest_float() {
        for (float_type, number, expected) in [
            (FloatType::Half, 7.54321, Some(7.543)),
            (FloatType::Half, 42.42, Some(42.4)),
            (FloatType::Half, 12.345, Some(12.34)),
            (FloatType::Half, -0.5678, Some(-0.568)),
            (FloatType::Half, 2049.0, Some(2048.0)),
            (FloatType::Half, 2051.0, Some(2052.0)),
            (FloatType::Half, 65519.0, Some(65504.0)),
            (FloatType::Half, 65520.0, None),
            (FloatType::Half, 1e300, None),
            (FloatType::Half, 1e-9, Some(0.0)),
            (FloatType::Half, 6e-8, Some(6e-8)),
            (FloatType::Bfloat, 0.3, Some(0.3)),
            (FloatType::Bfloat, 2.125, Some(2.13)),
            (FloatType::Bfloat, 257.0, Some(256.0)),
            (FloatType::Bfloat, 1e39, None),
            (FloatType::Single, 12.345_678_912, Some(12.345_679)),
            (FloatType::Single, 1e39, None),
            (FloatType::Double, 1e300, Some(1e300)),
            (FloatType::Double, 0.1, Some(0.1)),
        ] {
            assert_eq!(float_type.round(number), expected, "{float_type:?} of {number}");
        }
        assert!(FloatType::Half.round(-0.0).is_some_and(f64::is_sign_negative));
    }
}
