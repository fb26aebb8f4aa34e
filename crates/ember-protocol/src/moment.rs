//! Moments: points in time as users write them, and as messages show them.
//!
//! | text | moment |
//! |---|---|
//! | `1700000000` | Unix time in s |
//! | `1700000000123` | Unix time in ms, if the number is greater than 10^12 |
//! | `2023-11-14T22:13:20Z`, `2023-11-14 23:13:20.5+01:00`, `2023-11-14` | ISO 8601; the default is midnight, and UTC |
//! | `-90s`, `-5m`, `-1h`, `-2d`, `-1w`, `-1y` | before now; a day has 24 hours, a year 365 days |
//! | `now` | now |
//!
//! All other texts are errors, including an empty text and `0`: a script with an empty variable would otherwise read
//! another moment than its author intended.

use crate::number::parse_u64;

/// Numbers up to this one are Unix times in s, greater ones Unix times in ms: in s this is the year 33658.
const SECONDS_MAX: u64 = 1_000_000_000_000;

/// The highest moment, as Unix time in ms: the end of the year 9999, the last one that ISO 8601 can express.
const MOMENT_MAX_MS: i64 = 253_402_300_799_999;

const DAY_S: i64 = 24 * 3600;

/// The number of days in 400 years, after which the calendar repeats itself.
const DAYS_OF_CYCLE: i64 = 400 * 365 + 97;

/// The suffixes of relative times, with their length in s.
const UNITS: [(u8, i64); 6] =
    [(b's', 1), (b'm', 60), (b'h', 3600), (b'd', DAY_S), (b'w', 7 * DAY_S), (b'y', 365 * DAY_S)];

/// Parses a moment, and returns its Unix time in ms; `now_ms` is the present one.
///
/// # Errors
/// Returns a description of the accepted forms.
pub fn parse_moment(text: &str, now_ms: i64) -> Result<i64, String> {
    let bytes = text.as_bytes();
    let parsed = match bytes {
        _ if text.eq_ignore_ascii_case("now") => Some(now_ms),
        [b'-', rest @ ..] => parse_relative(rest).and_then(|before_ms| now_ms.checked_sub(before_ms)),
        _ if !bytes.is_empty() && bytes.iter().all(u8::is_ascii_digit) => parse_unix(bytes),
        _ => parse_iso(bytes),
    };
    parsed.filter(|moment_ms| (1..=MOMENT_MAX_MS).contains(moment_ms)).ok_or_else(|| {
        format!(
            "'{text}' is not a time: use Unix time in seconds or milliseconds, a time like 2023-11-14T22:13:20Z, a time \
             before now like -1h (s, m, h, d, w, y), or now"
        )
    })
}

fn parse_unix(digits: &[u8]) -> Option<i64> {
    let number = parse_u64(digits)?;
    let ms = if number > SECONDS_MAX { number } else { number * 1000 };
    i64::try_from(ms).ok()
}

/// Parses the part of a relative time after its sign; returns ms.
fn parse_relative(text: &[u8]) -> Option<i64> {
    let (unit, digits) = text.split_last()?;
    let (_, seconds) = UNITS.iter().find(|(suffix, _)| suffix.eq_ignore_ascii_case(unit))?;
    i64::try_from(parse_u64(digits)?).ok()?.checked_mul(seconds * 1000)
}

/// Parses a date with or without a time and an offset.
fn parse_iso(text: &[u8]) -> Option<i64> {
    let (date, rest) = text.split_at_checked(10)?;
    let [year, month, day] = numbers(date, b'-', [4, 2, 2])?;
    let is_date = (1..=12).contains(&month) && (1..=days_of_month(year, month)).contains(&day);
    let midnight_ms = is_date.then(|| days_since_1970(year, month, day) * DAY_S * 1000)?;
    let Some((separator, rest)) = rest.split_first() else { return Some(midnight_ms) };
    if !b"Tt ".contains(separator) {
        return None;
    }
    let (time, rest) = rest.split_at_checked(8)?;
    let [hour, minute, second] = numbers(time, b':', [2, 2, 2])?;
    if hour > 23 || minute > 59 || second > 59 {
        return None;
    }
    let (fraction_ms, rest) = split_fraction(rest)?;
    let offset_s = match rest {
        [] | [b'Z' | b'z'] => 0,
        [sign @ (b'+' | b'-'), offset @ ..] => {
            let [hours, minutes] = numbers(offset, b':', [2, 2])?;
            if hours > 23 || minutes > 59 {
                return None;
            }
            (hours * 3600 + minutes * 60) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return None,
    };
    Some(midnight_ms + (hour * 3600 + minute * 60 + second - offset_s) * 1000 + fraction_ms)
}

/// Splits off the fraction of a second, in ms, rounded down.
fn split_fraction(text: &[u8]) -> Option<(i64, &[u8])> {
    let [b'.' | b',', rest @ ..] = text else { return Some((0, text)) };
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (fraction, rest) = rest.split_at(digits);
    let ms =
        (0..3).fold(0, |ms, place| ms * 10 + fraction.get(place).map_or(0, |digit| i64::from(digit - b'0')));
    (digits > 0).then_some((ms, rest))
}

/// Parses numbers of fixed numbers of digits with a separator between them.
fn numbers<const N: usize>(text: &[u8], separator: u8, digits: [usize; N]) -> Option<[i64; N]> {
    let mut parts = text.split(|&byte| byte == separator);
    let mut found = [0; N];
    for (number, count) in found.iter_mut().zip(digits) {
        let part = parts.next().filter(|part| part.len() == count && part.iter().all(u8::is_ascii_digit))?;
        *number = part.iter().fold(0, |sum, digit| sum * 10 + i64::from(digit - b'0'));
    }
    parts.next().is_none().then_some(found)
}

fn is_leap_year(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        2 if is_leap_year(year) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Returns the days between 1970-01-01 and a date of the Gregorian calendar; negative for earlier dates.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let leap_days = |year: i64| year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    let before_year = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    before_year + (1..month).map(|month| days_of_month(year, month)).sum::<i64>() + day - 1
}

/// Formats a Unix time in s as in ISO 8601, in UTC.
pub fn format_moment(unix_s: i64) -> String {
    let (days, seconds) = (unix_s.div_euclid(DAY_S), unix_s.rem_euclid(DAY_S));
    let mut year = 1970 + 400 * days.div_euclid(DAYS_OF_CYCLE);
    while days_since_1970(year + 1, 1, 1) <= days {
        year += 1;
    }
    let mut month = 1;
    while month < 12 && days_since_1970(year, month + 1, 1) <= days {
        month += 1;
    }
    let day = days - days_since_1970(year, month, 1) + 1;
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 2023-11-14T22:13:20Z.
    const NOW_MS: i64 = 1_700_000_000_000;

    #[test]
    fn every_form_of_a_moment_is_parsed() {
        for (text, expected_ms) in [
            ("1", 1000),
            ("1700000000", NOW_MS),
            ("1700000000123", NOW_MS + 123),
            ("now", NOW_MS),
            ("NOW", NOW_MS),
            ("-0s", NOW_MS),
            ("-90s", NOW_MS - 90_000),
            ("-5m", NOW_MS - 300_000),
            ("-1h", NOW_MS - 3_600_000),
            ("-2D", NOW_MS - 172_800_000),
            ("-1w", NOW_MS - 604_800_000),
            ("-1y", NOW_MS - 31_536_000_000),
            ("2023-11-14T22:13:20Z", NOW_MS),
            ("2023-11-14 22:13:20", NOW_MS),
            ("2023-11-14t22:13:20.5z", NOW_MS + 500),
            ("2023-11-14T22:13:20,123456Z", NOW_MS + 123),
            ("2023-11-14T23:43:20+01:30", NOW_MS),
            ("2023-11-14T20:13:20-02:00", NOW_MS),
            ("2023-11-14", NOW_MS - 80_000_000),
            ("2024-02-29", 1_709_164_800_000),
            ("2000-02-29T00:00:00Z", 951_782_400_000),
        ] {
            assert_eq!(parse_moment(text, NOW_MS), Ok(expected_ms), "{text}");
        }
    }

    #[test]
    fn a_text_that_is_no_moment_is_an_error() {
        for text in [
            "",
            " ",
            "0",
            "00",
            "01",
            "-",
            "-1",
            "-h",
            "-1hh",
            "-1.5h",
            "- 1h",
            "-01h",
            "+1h",
            "1h",
            "--1h",
            "-60y",
            "-99999999999999999999s",
            "-9223372036854775807y",
            "99999999999999999999",
            "1000000000000",
            "1.5",
            "1e9",
            "yesterday",
            "nowish",
            "2023-11-14T",
            "2023-11-14T22:13",
            "2023-11-14T24:00:00Z",
            "2023-11-14T22:60:00Z",
            "2023-11-14T22:13:60Z",
            "2023-11-14T22:13:20.Z",
            "2023-11-14T22:13:20+1:00",
            "2023-11-14T22:13:20+01",
            "2023-11-14T22:13:20Zx",
            "2023-11-31",
            "2023-02-29",
            "1900-02-29",
            "2023-13-01",
            "2023-00-01",
            "2023-1-1",
            "23-11-14",
            "2023/11/14",
            "1969-12-31",
            "2023-11-14T22:13:20é",
        ] {
            let error = parse_moment(text, NOW_MS).unwrap_err();
            assert!(error.starts_with(&format!("'{text}' is not a time")), "{text}: {error}");
        }
    }

    #[test]
    fn a_formatted_moment_is_parsed_as_itself() {
        assert_eq!(format_moment(0), "1970-01-01T00:00:00Z");
        assert_eq!(format_moment(1_700_000_000), "2023-11-14T22:13:20Z");
        assert_eq!(format_moment(-1), "1969-12-31T23:59:59Z");
        assert_eq!(format_moment(MOMENT_MAX_MS / 1000), "9999-12-31T23:59:59Z");
        assert!(format_moment(i64::MAX).ends_with("Z") && format_moment(i64::MIN).ends_with("Z"));
        // Every 35 hours, so that each time of the day and each day of a leap cycle occurs.
        for unix_s in (1..=13_000_000_000i64).step_by(126_001) {
            let text = format_moment(unix_s);
            assert_eq!(parse_moment(&text, 0), Ok(unix_s * 1000), "{text}");
        }
    }
}
