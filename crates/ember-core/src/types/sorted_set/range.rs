//! The two kinds of ranges in commands: of scores and of members.

use ember_protocol::number;

/// A range of scores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ScoreRange {
    /// The lower end.
    pub min: f64,
    /// Whether `min` itself is excluded.
    pub is_min_exclusive: bool,
    /// The upper end.
    pub max: f64,
    /// Whether `max` itself is excluded.
    pub is_max_exclusive: bool,
}

impl ScoreRange {
    /// Returns the range from `first` up to but excluding `end`.
    pub fn half_open(first: f64, end: f64) -> ScoreRange {
        ScoreRange { min: first, is_min_exclusive: false, max: end, is_max_exclusive: true }
    }

    /// Parses the two arguments of a range: numbers, exclusive after a `(`. `None` if one is not a number.
    pub fn parse(min: &[u8], max: &[u8]) -> Option<ScoreRange> {
        let (min, is_min_exclusive) = parse_score_bound(min)?;
        let (max, is_max_exclusive) = parse_score_bound(max)?;
        Some(ScoreRange { min, is_min_exclusive, max, is_max_exclusive })
    }

    /// Returns whether a score is below the range.
    #[inline]
    pub fn is_before(&self, score: f64) -> bool {
        score < self.min || (self.is_min_exclusive && score == self.min)
    }

    /// Returns whether a score is not above the range.
    #[inline]
    pub fn is_not_after(&self, score: f64) -> bool {
        score < self.max || (!self.is_max_exclusive && score == self.max)
    }
}

/// Parses a bound as C's `strtod` does, which Redis uses: leading spaces are allowed, a NUL ends the number, empty text
/// is 0, and numbers that are too large are infinite.
fn parse_score_bound(text: &[u8]) -> Option<(f64, bool)> {
    let (text, is_exclusive) = match text {
        [b'(', text @ ..] => (text, true),
        text => (text, false),
    };
    let text = &text[..text.iter().position(|&byte| byte == 0).unwrap_or(text.len())];
    let number = if text.is_empty() {
        0.0
    } else {
        let is_space = |byte: &u8| byte.is_ascii_whitespace() || *byte == 0x0B;
        let start = text.iter().position(|byte| !is_space(byte)).unwrap_or(text.len());
        number::parse_f64_rounded(&text[start..])?
    };
    Some((number, is_exclusive))
}

/// One end of a range of members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// The bound before every member.
    Lowest,
    /// The bound after every member.
    Highest,
    /// A member that belongs to the range.
    Inclusive(&'a [u8]),
    /// A member that does not belong to the range.
    Exclusive(&'a [u8]),
}

impl<'a> LexBound<'a> {
    fn parse(text: &'a [u8]) -> Option<LexBound<'a>> {
        match text {
            // In C a NUL ends the text.
            [b'-'] | [b'-', 0, ..] => Some(LexBound::Lowest),
            [b'+'] | [b'+', 0, ..] => Some(LexBound::Highest),
            [b'[', member @ ..] => Some(LexBound::Inclusive(member)),
            [b'(', member @ ..] => Some(LexBound::Exclusive(member)),
            _ => None,
        }
    }
}

/// A range of members, in the order of their bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexRange<'a> {
    /// The lower end.
    pub min: LexBound<'a>,
    /// The upper end.
    pub max: LexBound<'a>,
}

impl<'a> LexRange<'a> {
    /// Parses the two arguments of a range: `-`, `+`, or a member after `[` or `(`. `None` for anything else.
    pub fn parse(min: &'a [u8], max: &'a [u8]) -> Option<LexRange<'a>> {
        Some(LexRange { min: LexBound::parse(min)?, max: LexBound::parse(max)? })
    }

    /// Returns whether a member is below the range.
    pub fn is_before(&self, member: &[u8]) -> bool {
        match self.min {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(min) => member < min,
            LexBound::Exclusive(min) => member <= min,
        }
    }

    /// Returns whether a member is not above the range.
    pub fn is_not_after(&self, member: &[u8]) -> bool {
        match self.max {
            LexBound::Lowest => false,
            LexBound::Highest => true,
            LexBound::Inclusive(max) => member <= max,
            LexBound::Exclusive(max) => member < max,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bounds_of_scores_are_read_as_c_reads_numbers() {
        for (text, expected) in [
            (&b"1"[..], Some((1.0, false))),
            (b"(1", Some((1.0, true))),
            (b"", Some((0.0, false))),
            (b"(", Some((0.0, true))),
            (b" 1.5", Some((1.5, false))),
            (b"\t\x0b(1", None),
            (b"( -inf", Some((f64::NEG_INFINITY, true))),
            (b"1 ", None),
            (b" ", None),
            (b"1\0x", Some((1.0, false))),
            (b"\0x", Some((0.0, false))),
            (b"1e999", Some((f64::INFINITY, false))),
            (b"-1e999", Some((f64::NEG_INFINITY, false))),
            (b"1e-999", Some((0.0, false))),
            (b"0x10", Some((16.0, false))),
            (b"0x1p9999", Some((f64::INFINITY, false))),
            (b"nan", None),
            (b"x", None),
            (b"((1", None),
        ] {
            assert_eq!(parse_score_bound(text), expected, "{}", text.escape_ascii());
        }
    }

    #[test]
    fn a_bound_belongs_to_the_range_unless_it_is_exclusive() {
        let range = ScoreRange::parse(b"1", b"(2").unwrap();
        let is_in = |score| !range.is_before(score) && range.is_not_after(score);
        assert_eq!([0.9, 1.0, 1.9, 2.0].map(is_in), [false, true, true, false]);
        let range = LexRange::parse(b"(a", b"[c").unwrap();
        let is_in = |member: &[u8]| !range.is_before(member) && range.is_not_after(member);
        assert_eq!([&b"a"[..], b"aa", b"b", b"c", b"ca"].map(is_in), [false, true, true, true, false]);
        let all = LexRange::parse(b"-", b"+").unwrap();
        assert!(!all.is_before(b"") && all.is_not_after(b"\xff"));
        let none = LexRange::parse(b"+", b"-").unwrap();
        assert!(none.is_before(b"\xff") && !none.is_not_after(b""));
    }

    #[test]
    fn bounds_of_members_require_a_bracket() {
        for text in [&b""[..], b"a", b"--", b"+x", b" [a"] {
            assert_eq!(LexBound::parse(text), None, "{}", text.escape_ascii());
        }
        assert_eq!(LexBound::parse(b"["), Some(LexBound::Inclusive(b"")));
        assert_eq!(LexBound::parse(b"-\0x"), Some(LexBound::Lowest));
    }
}
