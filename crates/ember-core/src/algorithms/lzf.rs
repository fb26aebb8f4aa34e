//! LZF: the compression of strings in RDB, and of the inner nodes of lists.
//!
//! ```text
//! literals    000lllll | l + 1 bytes
//! reference   nnnhhhhh | [n = 7: one byte more, added to n] | low byte        n + 2 bytes from h·256 + low + 1 before
//! ```
//!
//! The format is that of liblzf by M. Lehmann.

/// The number of bytes that the shortest reference represents.
const MATCH_MIN: usize = 3;
/// The number of bytes that the longest reference represents.
const MATCH_MAX: usize = 264;
/// The maximum distance of a reference in bytes.
const DISTANCE_MAX: usize = 1 << 13;
/// The maximum number of literals in one run.
const LITERALS_MAX: usize = 32;

/// The table has about one slot per byte of the input, within these bounds: clearing a table for the longest strings
/// would take longer than packing a short string.
const TABLE_BITS_MIN: u32 = 6;
const TABLE_BITS_MAX: u32 = 13;

/// Returns the slot of the first three bytes in a table of `1 << bits` slots (Fibonacci hashing).
fn place(bytes: &[u8], bits: u32) -> usize {
    let number = u32::from(bytes[0]) | u32::from(bytes[1]) << 8 | u32::from(bytes[2]) << 16;
    (number.wrapping_mul(0x9E37_79B1) >> (32 - bits)) as usize
}

/// Packs bytes into at most `len_max` bytes, if that is possible. O(bytes).
pub(crate) fn compress(data: &[u8], len_max: usize) -> Option<Vec<u8>> {
    if u32::try_from(data.len()).is_err() {
        return None;
    }
    // `seen` contains the last position of each three bytes, plus one.
    let bits = (data.len().max(1).ilog2() + 1).clamp(TABLE_BITS_MIN, TABLE_BITS_MAX);
    let mut seen = vec![0u32; 1 << bits];
    let mut packed = Vec::new();
    let (mut at, mut literals_from) = (0, 0);
    while at + MATCH_MIN <= data.len() {
        let found = std::mem::replace(&mut seen[place(&data[at..], bits)], at as u32 + 1) as usize;
        let matched = found.checked_sub(1).filter(|from| at - from <= DISTANCE_MAX);
        let len = matched.map_or(0, |from| match_len(data, from, at));
        if len < MATCH_MIN {
            at += 1;
            if packed.len() + (at - literals_from) > len_max {
                return None;
            }
            continue;
        }
        push_literals(&mut packed, &data[literals_from..at]);
        push_reference(&mut packed, at - found, len);
        at += len;
        literals_from = at;
    }
    push_literals(&mut packed, &data[literals_from..]);
    (packed.len() <= len_max).then_some(packed)
}

/// Returns the number of equal bytes from `from` and from `at` on, up to the maximum length of a reference.
fn match_len(data: &[u8], from: usize, at: usize) -> usize {
    data[from..].iter().zip(&data[at..]).take(MATCH_MAX).take_while(|(one, other)| one == other).count()
}

fn push_literals(packed: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(LITERALS_MAX) {
        packed.push(run.len() as u8 - 1);
        packed.extend_from_slice(run);
    }
}

/// Adds a reference to `len` bytes that begin `distance` + 1 before.
fn push_reference(packed: &mut Vec<u8>, distance: usize, len: usize) {
    let (high, low) = ((distance >> 8) as u8, distance as u8);
    let units = len - 2;
    if units < 7 {
        packed.push((units as u8) << 5 | high);
    } else {
        packed.push(7 << 5 | high);
        packed.push((units - 7) as u8);
    }
    packed.push(low);
}

/// Returns the `len` bytes that `packed` represents; `None` if it represents another number of bytes. Allocates at most
/// [`MATCH_MAX`] bytes per packed byte.
pub(crate) fn decompress(packed: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut data = Vec::new();
    decompress_into(packed, len, &mut data).then_some(data)
}

/// Like [`decompress`], but replaces the contents of `data`. Returns true if the result has exactly `len` bytes.
pub(crate) fn decompress_into(packed: &[u8], len: usize, data: &mut Vec<u8>) -> bool {
    data.clear();
    if len > packed.len().saturating_mul(MATCH_MAX) {
        return false;
    }
    data.reserve_exact(len);
    unpack(packed, len, data).is_some() && data.len() == len
}

/// Appends the decompressed bytes of `packed`, up to `len`; `None` if the input is malformed.
fn unpack(packed: &[u8], len: usize, data: &mut Vec<u8>) -> Option<()> {
    let mut rest = packed;
    while let Some((&control, after)) = rest.split_first() {
        let units = usize::from(control >> 5);
        if units == 0 {
            let (literals, after) = after.split_at_checked(usize::from(control) + 1)?;
            if data.len() + literals.len() > len {
                return None;
            }
            data.extend_from_slice(literals);
            rest = after;
        } else {
            let (units, after) = match after {
                [more, after @ ..] if units == 7 => (7 + usize::from(*more), after),
                _ => (units, after),
            };
            let (&low, after) = after.split_first()?;
            let distance = (usize::from(control & 0x1F) << 8 | usize::from(low)) + 1;
            let from = data.len().checked_sub(distance)?;
            let end = data.len() + units + 2;
            if end > len {
                return None;
            }
            repeat(data, from, end);
            rest = after;
        }
    }
    Some(())
}

/// Appends bytes up to `end` that repeat those from `from` on, which may include bytes appended here.
fn repeat(data: &mut Vec<u8>, from: usize, end: usize) {
    if let [byte] = data[from..] {
        data.resize(end, byte);
        return;
    }
    while data.len() < end {
        // The existing bytes are a whole number of periods, and so are the bytes that each round adds, except the last
        // round.
        let there = data.len() - from;
        data.extend_from_within(from..from + there.min(end - data.len()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn check(data: &[u8]) -> usize {
        let packed = compress(data, usize::MAX).expect("the length is unlimited");
        assert_eq!(decompress(&packed, data.len()).as_deref(), Some(data));
        packed.len()
    }

    #[test]
    fn repetitive_data_is_compressed() {
        assert_eq!(check(b""), 0);
        assert_eq!(check(b"abc"), 4);
        assert!(check(&[b'a'; 10_000]) < 150);
        assert!(check(&b"abcdefgh".repeat(4000)) < 500);
        let far: Vec<u8> =
            [&b"needle"[..], &(0..=255).cycle().take(9000).collect::<Vec<u8>>(), b"needle"].concat();
        check(&far);
    }

    #[test]
    fn incompressible_data_is_not_compressed() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(compress(&bytes, bytes.len() - 4), None);
        assert_eq!(compress(b"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 2), None);
    }

    #[test]
    fn malformed_compressed_data_is_rejected() {
        assert_eq!(decompress(b"\x05ab", 6), None, "literals end too early");
        assert_eq!(decompress(b"\x20\x00", 3), None, "a reference before the start");
        assert_eq!(decompress(b"\x00a\x20", 4), None, "half a reference");
        assert_eq!(decompress(b"\x00a", 2), None, "too few bytes");
        assert_eq!(decompress(b"\x01ab", 1), None, "too many bytes");
        assert_eq!(decompress(b"\x00a", usize::MAX), None, "an impossible length");
        assert_eq!(decompress(b"\x00a\xE0\xFF\x00", 4), None, "a reference longer than the rest");
    }

    proptest! {
        #[test]
        fn compressed_data_survives_the_round_trip(data in proptest::collection::vec(0u8..4, 0..3000)) {
            check(&data);
        }

        #[test]
        fn arbitrary_bytes_are_decompressed_without_panics(
            data in proptest::collection::vec(any::<u8>(), 0..100), len in 0usize..3000,
        ) {
            if let Some(unpacked) = decompress(&data, len) {
                prop_assert_eq!(unpacked.len(), len);
            }
        }
    }
}
