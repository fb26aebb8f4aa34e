//! Glob patterns of `KEYS`, `SCAN MATCH`, `PSUBSCRIBE` and `CONFIG GET`.
//!
//! `*` is any bytes, `?` any one byte, `[…]` one byte of a class (`[^…]` one that is not in it, `a-z` a range in either
//! direction, `\` takes the next byte literally), `\` outside a class takes the next byte literally. The rules for
//! malformed patterns are those of Redis: a class that is never closed ends with the pattern, a backslash at the very
//! end matches itself, a range without its end is three or two literal bytes. Only the empty pattern matches an empty
//! string.
//!
//! Every part of a pattern except `*` matches exactly one byte, so the first position at which the parts between two
//! `*` match is as good as any later one: after a mismatch the search returns to the last `*` only. That limits the
//! work to pattern length × text length, where the recursive form is exponential in the number of `*`.

/// Whether the case of letters matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// Upper and lower case differ.
    Sensitive,
    /// ASCII letters are the same in either case.
    Insensitive,
}

impl Case {
    #[inline]
    fn fold(self, byte: u8) -> u8 {
        match self {
            Case::Sensitive => byte,
            Case::Insensitive => byte.to_ascii_lowercase(),
        }
    }
}

/// The maximum number of `*` before the last part of a pattern. A pattern with more matches nothing, as in Redis: it is
/// an attempt to keep the server busy.
const STARS_MAX: usize = 1000;

/// Returns bytes with which every text that matches `pattern` begins.
pub fn literal_prefix(pattern: &[u8]) -> &[u8] {
    let end = pattern.iter().position(|byte| b"*?[\\".contains(byte)).unwrap_or(pattern.len());
    &pattern[..end]
}

/// Returns whether `pattern` matches the whole of `text`. O(pattern × text) at worst, O(pattern + text) without `*`.
pub fn matches(pattern: &[u8], text: &[u8], case: Case) -> bool {
    if text.is_empty() {
        return pattern.is_empty();
    }
    let (mut at, mut taken) = (0, 0);
    // After the last `*`: the offset of the pattern's rest, and the position in the text at which that rest was last
    // tried.
    let mut star: Option<(usize, usize)> = None;
    let mut stars = 0;
    while taken < text.len() {
        if pattern.get(at) == Some(&b'*') {
            at = skip_stars(pattern, at);
            if at == pattern.len() {
                return true;
            }
            stars += 1;
            if stars > STARS_MAX {
                return false;
            }
            star = Some((at, taken));
        } else if let Some(after) = matches_one(pattern, at, text[taken], case) {
            at = after;
            taken += 1;
        } else if let Some((after_star, tried)) = star {
            star = Some((after_star, tried + 1));
            (at, taken) = (after_star, tried + 1);
        } else {
            return false;
        }
    }
    skip_stars(pattern, at) == pattern.len()
}

/// Returns whether `pattern` matches every text, including an empty one: the pattern of `KEYS *`.
pub fn matches_all(pattern: &[u8]) -> bool {
    pattern == b"*"
}

fn skip_stars(pattern: &[u8], from: usize) -> usize {
    from + pattern[from..].iter().take_while(|&&byte| byte == b'*').count()
}

/// Matches the part of `pattern` at `at`, which must not be `*`, with one byte; returns the offset of the next part.
#[inline]
fn matches_one(pattern: &[u8], at: usize, byte: u8, case: Case) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'[' => matches_class(pattern, at + 1, byte, case),
        b'\\' if at + 1 < pattern.len() => (case.fold(pattern[at + 1]) == case.fold(byte)).then_some(at + 2),
        literal => (case.fold(literal) == case.fold(byte)).then_some(at + 1),
    }
}

/// Matches the class that begins after its bracket at `at`.
fn matches_class(pattern: &[u8], mut at: usize, byte: u8, case: Case) -> Option<usize> {
    let negated = pattern.get(at) == Some(&b'^');
    at += usize::from(negated);
    let mut found = false;
    loop {
        match pattern[at..] {
            [] => break,
            // An escaped byte in a class is compared as it is, whatever the case rule.
            [b'\\', literal, ..] => {
                found |= literal == byte;
                at += 2;
            }
            [b']', ..] => {
                at += 1;
                break;
            }
            [first, b'-', last, ..] => {
                // The two ends are ordered before their case is folded, so `[Z-a]` is empty when case does not matter.
                let (low, high) = (case.fold(first.min(last)), case.fold(first.max(last)));
                found |= (low..=high).contains(&case.fold(byte));
                at += 3;
            }
            [literal, ..] => {
                found |= case.fold(literal) == case.fold(byte);
                at += 1;
            }
        }
    }
    (found != negated).then_some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn patterns_with_too_many_stars_match_nothing() {
        let text = vec![b'a'; 50_000];
        for (stars, expected) in [(1, true), (STARS_MAX, true), (STARS_MAX + 1, false), (50_000, false)] {
            let pattern = [&b"*?".repeat(stars)[..], b"*"].concat();
            assert_eq!(matches(&pattern, &text, Case::Sensitive), expected, "{stars}");
        }
        // Consecutive stars are one, and the last star matches any rest.
        assert!(matches(&vec![b'*'; 5000], &text, Case::Sensitive));
    }

    /// Matches by the recursive definition: in exponential time, and obviously correct.
    fn naive(pattern: &[u8], text: &[u8], case: Case) -> bool {
        match (pattern, text) {
            ([], _) => text.is_empty(),
            ([b'*', rest @ ..], _) => {
                naive(rest, text, case) || (!text.is_empty() && naive(pattern, &text[1..], case))
            }
            (_, []) => false,
            (_, [byte, text_rest @ ..]) => {
                let (part, rest) = split_part(pattern);
                part_accepts(part, *byte, case) && naive(rest, text_rest, case)
            }
        }
    }

    /// Returns the first part of a pattern and the rest.
    fn split_part(pattern: &[u8]) -> (&[u8], &[u8]) {
        let len = match pattern {
            [b'\\', _, ..] => 2,
            [b'[', ..] => {
                let mut len = if pattern.get(1) == Some(&b'^') { 2 } else { 1 };
                loop {
                    match pattern[len..] {
                        [] => break len,
                        [b'\\', _, ..] => len += 2,
                        [b']', ..] => break len + 1,
                        [_, b'-', _, ..] => len += 3,
                        [_, ..] => len += 1,
                    }
                }
            }
            _ => 1,
        };
        pattern.split_at(len)
    }

    fn part_accepts(part: &[u8], byte: u8, case: Case) -> bool {
        let same = |a: u8, b: u8| match case {
            Case::Sensitive => a == b,
            Case::Insensitive => a.eq_ignore_ascii_case(&b),
        };
        match part {
            b"?" => true,
            [b'\\', literal] => same(*literal, byte),
            [b'[', b'^', members @ ..] => !class_has(members, byte, case),
            [b'[', members @ ..] => class_has(members, byte, case),
            [literal] => same(*literal, byte),
            _ => unreachable!("split_part makes no other parts"),
        }
    }

    fn class_has(members: &[u8], byte: u8, case: Case) -> bool {
        match members {
            [] | [b']', ..] => false,
            [b'\\', literal, rest @ ..] => *literal == byte || class_has(rest, byte, case),
            [a, b'-', b, rest @ ..] => {
                let mut ends = [*a.min(b), *a.max(b)];
                let mut byte_here = byte;
                if case == Case::Insensitive {
                    ends.make_ascii_lowercase();
                    byte_here.make_ascii_lowercase();
                }
                (ends[0] <= byte_here && byte_here <= ends[1]) || class_has(rest, byte, case)
            }
            [literal, rest @ ..] => {
                part_accepts(&[b'\\', *literal], byte, case) || class_has(rest, byte, case)
            }
        }
    }

    #[test]
    fn patterns_match_as_in_redis() {
        let cases: [(&str, &str, bool); 34] = [
            ("*", "anything", true),
            ("h?llo", "hello", true),
            ("h?llo", "hllo", false),
            ("h*llo", "heeeello", true),
            ("h*llo", "hllo", true),
            ("h[ae]llo", "hallo", true),
            ("h[ae]llo", "hillo", false),
            ("h[^e]llo", "hallo", true),
            ("h[^e]llo", "hello", false),
            ("h[a-b]llo", "hbllo", true),
            ("h[b-a]llo", "hbllo", true),
            ("h[a-b]llo", "hcllo", false),
            ("a\\*b", "a*b", true),
            ("a\\*b", "axb", false),
            ("a\\", "a\\", true),
            ("\\a", "a", true),
            ("[", "a", false),
            ("[^", "a", true),
            ("[a", "a", true),
            ("[a-", "-", true),
            ("[]", "a", false),
            ("[^]", "a", true),
            ("[\\]]", "]", true),
            ("[a-]", "]", true),
            ("a**", "a", true),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("", "", true),
            ("*", "", false),
            ("", "a", false),
            ("a", "ab", false),
            ("ab", "a", false),
            ("a*?", "a", false),
            ("*a", "aaab", false),
        ];
        for (pattern, text, expected) in cases {
            let matched = matches(pattern.as_bytes(), text.as_bytes(), Case::Sensitive);
            assert_eq!(matched, expected, "{pattern} against {text}");
        }
        assert!(matches(b"MAX*[A-C]", b"maxmemoryb", Case::Insensitive));
        assert!(!matches(b"[\\A]", b"a", Case::Insensitive));
    }

    #[test]
    fn many_stars_take_time_in_proportion_to_the_lengths() {
        let pattern = [&b"*a".repeat(2000)[..], b"b"].concat();
        assert!(!matches(&pattern, &[b'a'; 4000], Case::Sensitive));
    }

    proptest! {
        #[test]
        fn the_fast_matcher_agrees_with_the_definition(
            pattern in "[ab*?\\[\\]^\\\\A\\-]{0,12}",
            text in "[abA^\\-\\]]{0,8}",
            insensitive: bool,
        ) {
            let case = if insensitive { Case::Insensitive } else { Case::Sensitive };
            let expected = if text.is_empty() { pattern.is_empty() } else {
                naive(pattern.as_bytes(), text.as_bytes(), case)
            };
            prop_assert_eq!(matches(pattern.as_bytes(), text.as_bytes(), case), expected);
        }

        #[test]
        fn arbitrary_bytes_are_matched_without_panics(pattern: Vec<u8>, text: Vec<u8>) {
            matches(&pattern, &text, Case::Insensitive);
        }
    }
}
