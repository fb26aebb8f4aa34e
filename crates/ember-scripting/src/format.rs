//! Formats numbers like C's `%.14g` and similar formats.

/// Appends `number` with `precision` significant digits and without trailing zeros: C's `%.<precision>g`.
pub(super) fn write_general(out: &mut Vec<u8>, number: f64, precision: usize) {
    if number.is_nan() {
        return out.extend_from_slice(if number.is_sign_negative() { b"-nan" } else { b"nan" });
    }
    if number.is_infinite() {
        return out.extend_from_slice(if number < 0.0 { b"-inf" } else { b"inf" });
    }
    let precision = precision.max(1);
    let scientific = format!("{number:.*e}", precision - 1);
    let (digits, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if exponent < -4 || exponent >= precision as i32 {
        out.extend_from_slice(without_zeros(digits).as_bytes());
        let sign = if exponent < 0 { '-' } else { '+' };
        out.extend_from_slice(format!("e{sign}{:02}", exponent.abs()).as_bytes());
    } else {
        let decimals = usize::try_from(precision as i32 - 1 - exponent).unwrap_or(0);
        out.extend_from_slice(without_zeros(&format!("{number:.decimals$}")).as_bytes());
    }
}

/// Returns `digits` without the trailing zeros of a fraction.
fn without_zeros(digits: &str) -> &str {
    if digits.contains('.') { digits.trim_end_matches('0').trim_end_matches('.') } else { digits }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn general(number: f64, precision: usize) -> String {
        let mut out = Vec::new();
        write_general(&mut out, number, precision);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fourteen_digits_are_those_of_c() {
        let known = [
            (1e15, "1e+15"),
            (2f64.powi(53), "9.007199254741e+15"),
            (1.0 / 3.0, "0.33333333333333"),
            (1e14, "1e+14"),
            (99_999_999_999_999.0, "99999999999999"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-0.0, "-0"),
            (1e300, "1e+300"),
            (100.0, "100"),
            (1.5, "1.5"),
            (f64::INFINITY, "inf"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, expected) in known {
            assert_eq!(general(number, 14), expected);
        }
    }

    #[test]
    fn other_precisions_round_to_that_many_digits() {
        assert_eq!(general(0.1, 17), "0.10000000000000001");
        assert_eq!(general(1e20, 17), "1e+20");
        assert_eq!(general(std::f64::consts::PI, 3), "3.14");
        assert_eq!(general(9.99, 1), "1e+01");
        assert_eq!(general(1234.0, 2), "1.2e+03");
    }
}
