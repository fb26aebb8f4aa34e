//! The hash of a result, by which changes are detected: XXH3 of 128 bits (Yann Collet).
//!
//! Replies in the order of a hash table are hashed as a sum over their elements, so that a resize of the table does not
//! count as a change.

use emberkv_core::spec::Spec;
use xxhash_rust::xxh3::xxh3_128;

/// Returns the hash of a command's reply.
pub(super) fn of_result(spec: &Spec, result: &[u8]) -> u128 {
    if spec.tips.contains(&"nondeterministic_output_order") {
        of_unordered(spec.replies_pairs, result).unwrap_or_else(|| xxh3_128(result))
    } else {
        xxh3_128(result)
    }
}

/// Returns the hash of an aggregate whose elements have no order; `None` if `result` is not an aggregate.
fn of_unordered(is_pairs: bool, result: &[u8]) -> Option<u128> {
    let head = line_end(result, 0)?;
    let is_map = result[0] == b'%';
    if !matches!(result[0], b'*' | b'~' | b'%') {
        return None;
    }
    let values = if is_map || (is_pairs && result[0] == b'*') { 2 } else { 1 };
    let mut sum = xxh3_128(&result[..head]);
    let mut at = head;
    while at < result.len() {
        let mut end = at;
        for _ in 0..values {
            end = value_end(result, end)?;
        }
        sum = sum.wrapping_add(xxh3_128(&result[at..end]));
        at = end;
    }
    Some(sum)
}

/// Returns the offset after the line that begins at offset `at`, including its line end.
fn line_end(bytes: &[u8], at: usize) -> Option<usize> {
    let found = memchr::memchr(b'\n', bytes.get(at..)?)?;
    Some(at + found + 1)
}

/// Returns the end offset of the value that begins at offset `at`.
fn value_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (mut at, mut left) = (at, 1_usize);
    while left > 0 {
        let end = line_end(bytes, at)?;
        let number = || std::str::from_utf8(&bytes[at + 1..end - 2]).ok()?.parse::<i64>().ok();
        left -= 1;
        match bytes[at] {
            b'$' | b'=' => at = end + usize::try_from(number()?).map_or(0, |len| len + 2),
            b'*' | b'~' | b'>' => (at, left) = (end, left + usize::try_from(number()?).unwrap_or(0)),
            b'%' | b'|' => (at, left) = (end, left + 2 * usize::try_from(number()?).unwrap_or(0)),
            _ => at = end,
        }
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNORDERED: Spec = Spec { tips: &["nondeterministic_output_order"], ..Spec::DEFAULT };
    const PAIRS: Spec = Spec { replies_pairs: true, ..UNORDERED };

    #[test]
    fn digests_of_unordered_results_ignore_the_order() {
        let one = b"*2\r\n$1\r\na\r\n$3\r\nb\r\n\r\n";
        let other = b"*2\r\n$3\r\nb\r\n\r\n$1\r\na\r\n";
        assert_eq!(of_result(&UNORDERED, one), of_result(&UNORDERED, other));
        assert_ne!(of_result(&Spec::DEFAULT, one), of_result(&Spec::DEFAULT, other));
        assert_ne!(of_result(&UNORDERED, one), of_result(&UNORDERED, b"*2\r\n$1\r\na\r\n$1\r\nb\r\n"));
    }

    #[test]
    fn digests_depend_on_which_field_has_which_value() {
        let one = b"*4\r\n$1\r\na\r\n$1\r\n1\r\n$1\r\nb\r\n$1\r\n2\r\n";
        let same = b"*4\r\n$1\r\nb\r\n$1\r\n2\r\n$1\r\na\r\n$1\r\n1\r\n";
        let other = b"*4\r\n$1\r\na\r\n$1\r\n2\r\n$1\r\nb\r\n$1\r\n1\r\n";
        assert_eq!(of_result(&PAIRS, one), of_result(&PAIRS, same));
        assert_ne!(of_result(&PAIRS, one), of_result(&PAIRS, other));
        let map = |bytes: &[u8]| of_result(&PAIRS, &[b"%2\r\n", &bytes[4..]].concat());
        assert_eq!(map(one), map(same));
        assert_ne!(map(one), map(other));
    }

    #[test]
    fn nested_values_and_errors_have_hashes_too() {
        let nested = b"~2\r\n*2\r\n:1\r\n%1\r\n+a\r\n_\r\n$-1\r\n";
        let turned = b"~2\r\n$-1\r\n*2\r\n:1\r\n%1\r\n+a\r\n_\r\n";
        assert_eq!(of_result(&UNORDERED, nested), of_result(&UNORDERED, turned));
        assert_ne!(of_result(&UNORDERED, b"-ERR a\r\n"), of_result(&UNORDERED, b"-ERR b\r\n"));
        assert_ne!(of_result(&UNORDERED, b"*-1\r\n"), of_result(&UNORDERED, b"*0\r\n"));
    }
}
