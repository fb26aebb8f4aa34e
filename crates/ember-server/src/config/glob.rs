//! Glob matching: `*`, `?`, `[a-z]`, `[^a]`, `\c`.

/// Whether `text` matches `pattern`. Takes at most `pattern.len() * text.len()` steps: a failed match goes back
/// only to the last `*`, since an earlier one could not do better.
pub(crate) fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
        } else if let Some(width) = one(&pattern[p..], text[t]) {
            p += width;
            t += 1;
        } else if let Some((after, from)) = star {
            star = Some((after, from + 1));
            (p, t) = (after, from + 1);
        } else {
            return false;
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// How many bytes of `pattern` match the single byte `byte`; none when they do not.
fn one(pattern: &[u8], byte: u8) -> Option<usize> {
    match *pattern.first()? {
        b'?' => Some(1),
        b'[' => class(pattern, byte),
        b'\\' if pattern.len() > 1 => (pattern[1] == byte).then_some(2),
        other => (other == byte).then_some(1),
    }
}

/// A class `[…]`; one which is not closed ends with the pattern.
fn class(pattern: &[u8], byte: u8) -> Option<usize> {
    let negated = pattern.get(1) == Some(&b'^');
    let mut at = if negated { 2 } else { 1 };
    let mut found = false;
    while let Some(&low) = pattern.get(at).filter(|low| **low != b']') {
        match (low, pattern.get(at + 1), pattern.get(at + 2)) {
            (b'\\', Some(escaped), _) => {
                found |= *escaped == byte;
                at += 2;
            }
            (_, Some(b'-'), Some(&high)) => {
                found |= (low.min(high)..=low.max(high)).contains(&byte);
                at += 3;
            }
            _ => {
                found |= low == byte;
                at += 1;
            }
        }
    }
    (found != negated).then_some((at + 1).min(pattern.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_match_as_in_config_get() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("*", "port", true),
            ("p*t", "port", true),
            ("p?rt", "port", true),
            ("P?RT", "port", false),
            ("p?", "port", false),
            ("max*mem*ory", "maxmemory", true),
            ("max*-policy", "maxmemory-policy", true),
            ("max*-policy", "maxmemory", false),
            ("[a-p]ort", "port", true),
            ("[^p]ort", "port", false),
            ("[p", "p", true),
            ("po\\rt", "port", true),
            ("\\*", "port", false),
            ("", "port", false),
            ("port**", "port", true),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), expected, "{pattern} {text}");
        }
    }

    #[test]
    fn many_stars_take_no_exponential_time() {
        let pattern = b"a*".repeat(1000);
        assert!(!matches(&[&pattern[..], b"b"].concat(), &b"a".repeat(2000)));
    }
}
