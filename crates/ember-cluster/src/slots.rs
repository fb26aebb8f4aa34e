//! The slots: every key belongs to one of 16,384, which follows from a CRC-16 of the key or of its hash tag.
//!
//! If a key contains `{`, and a later `}` with at least one byte between the first `{` and the first `}` after it, only
//! these bytes are hashed: they are the hash tag. Keys with the same tag are in the same slot.

use std::ops::RangeInclusive;

/// The number of slots.
pub const SLOTS: usize = 1 << SLOT_BITS;

/// The number of bits of a slot's number.
pub const SLOT_BITS: u32 = 14;

/// The polynomial of CRC-16/XMODEM, which Redis Cluster uses: `x^16 + x^12 + x^5 + 1`.
const POLYNOMIAL: u16 = 0x1021;

/// The number of bytes that one step of the checksum reads.
const STEP_BYTES: usize = 8;

/// For each of the eight bytes of a step, the checksum that its value contributes ("slicing by 8", Kounavis and Berry,
/// 2005). 4 KiB, so that they stay in the L1 cache.
static TABLES: [[u16; 256]; STEP_BYTES] = tables();

const fn tables() -> [[u16; 256]; STEP_BYTES] {
    let mut tables = [[0; 256]; STEP_BYTES];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = (byte as u16) << 8;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL };
            bit += 1;
        }
        tables[0][byte] = crc;
        byte += 1;
    }
    let mut table = 1;
    while table < STEP_BYTES {
        let mut byte = 0;
        while byte < 256 {
            let before: u16 = tables[table - 1][byte];
            tables[table][byte] = (before << 8) ^ tables[0][(before >> 8) as usize];
            byte += 1;
        }
        table += 1;
    }
    tables
}

/// Returns the CRC-16/XMODEM of `bytes`.
#[inline]
pub fn crc16(bytes: &[u8]) -> u16 {
    let (steps, rest) = bytes.as_chunks::<STEP_BYTES>();
    let mut crc = 0;
    for step in steps {
        let first = crc ^ u16::from_be_bytes([step[0], step[1]]);
        crc = TABLES[7][usize::from(first >> 8)]
            ^ TABLES[6][usize::from(first & 0xff)]
            ^ TABLES[5][usize::from(step[2])]
            ^ TABLES[4][usize::from(step[3])]
            ^ TABLES[3][usize::from(step[4])]
            ^ TABLES[2][usize::from(step[5])]
            ^ TABLES[1][usize::from(step[6])]
            ^ TABLES[0][usize::from(step[7])];
    }
    for &byte in rest {
        crc = (crc << 8) ^ TABLES[0][usize::from((crc >> 8) as u8 ^ byte)];
    }
    crc
}

/// Returns the part of a key that determines its slot: the hash tag, or the whole key.
#[inline]
pub fn hashed_part(key: &[u8]) -> &[u8] {
    if has_brace(key) { tag_of(key).unwrap_or(key) } else { key }
}

/// Returns the hash tag of a key, if it has one.
fn tag_of(key: &[u8]) -> Option<&[u8]> {
    let open = key.iter().position(|&byte| byte == b'{')?;
    let inner = &key[open + 1..];
    let close = inner.iter().position(|&byte| byte == b'}')?;
    Some(&inner[..close]).filter(|tag| !tag.is_empty())
}

/// Returns whether a key contains `{`. Eight bytes are compared at once, because most keys contain none.
#[inline]
fn has_brace(key: &[u8]) -> bool {
    const EACH: u64 = u64::MAX / 0xff;
    let (words, rest) = key.as_chunks::<8>();
    let is_there = |word: u64| {
        // A byte that equals `{` becomes 0, which borrows from its own highest bit.
        let zero_where_equal = word ^ (EACH * u64::from(b'{'));
        zero_where_equal.wrapping_sub(EACH) & !zero_where_equal & (EACH << 7) != 0
    };
    words.iter().any(|word| is_there(u64::from_le_bytes(*word))) || rest.contains(&b'{')
}

/// Returns the slot of a key or of a shard channel.
#[inline]
pub fn slot_of(key: &[u8]) -> u16 {
    crc16(hashed_part(key)) & (SLOTS as u16 - 1)
}

/// Returns the ranges of equal owners among consecutive slots; slots for which `owner_of` returns `None` are left out.
pub fn ranges<O: PartialEq>(owner_of: impl Fn(u16) -> Option<O>) -> Vec<(RangeInclusive<u16>, O)> {
    let mut ranges: Vec<(RangeInclusive<u16>, O)> = Vec::new();
    for slot in 0..SLOTS as u16 {
        let Some(owner) = owner_of(slot) else { continue };
        match ranges.last_mut() {
            Some((range, last)) if *last == owner && *range.end() + 1 == slot => {
                *range = *range.start()..=slot
            }
            _ => ranges.push((slot..=slot, owner)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The checksum, one bit at a time.
    fn crc16_by_bits(bytes: &[u8]) -> u16 {
        bytes.iter().fold(0, |crc, &byte| {
            (0..8).fold(crc ^ (u16::from(byte) << 8), |crc: u16, _| {
                if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ POLYNOMIAL }
            })
        })
    }

    #[test]
    fn the_checksum_of_every_length_equals_that_of_its_bits() {
        assert_eq!(crc16(b"123456789"), 0x31C3, "the check value of CRC-16/XMODEM");
        let bytes: Vec<u8> = (0..100_u32).map(|number| (number * 151 + 7) as u8).collect();
        for len in 0..bytes.len() {
            assert_eq!(crc16(&bytes[..len]), crc16_by_bits(&bytes[..len]), "{len} bytes");
        }
    }

    #[test]
    fn a_hash_tag_is_the_text_between_the_first_braces_unless_it_is_empty() {
        for (key, part) in [
            ("", ""),
            ("foo", "foo"),
            ("{user1000}.following", "user1000"),
            ("foo{}{bar}", "foo{}{bar}"),
            ("foo{{bar}}zap", "{bar"),
            ("foo{bar}{zap}", "bar"),
            ("}{a}", "a"),
            ("a{b", "a{b"),
            ("a}b{", "a}b{"),
            ("{}", "{}"),
            ("a long key with a {tag} far from its start", "tag"),
            ("1234567{tag}", "tag"),
            ("12345678{tag}", "tag"),
            ("z|{tag", "z|{tag"),
        ] {
            assert_eq!(hashed_part(key.as_bytes()), part.as_bytes(), "{key}");
        }
    }

    #[test]
    fn a_brace_is_found_at_every_position() {
        for len in 0..40 {
            let key: Vec<u8> = (0..len).map(|number| b'z' + number % 2 * 2).collect();
            assert!(!has_brace(&key), "{key:?}");
            for at in 0..key.len() {
                let mut key = key.clone();
                key[at] = b'{';
                assert!(has_brace(&key), "{key:?}");
            }
        }
    }

    #[test]
    fn slots_are_those_of_redis() {
        for (key, slot) in [("foo", 12182), ("bar", 5061), ("hello", 866), ("", 0), ("{foo}bar", 12182)] {
            assert_eq!(slot_of(key.as_bytes()), slot, "{key}");
        }
    }

    #[test]
    fn ranges_end_where_the_owner_changes_or_a_slot_has_none() {
        let owner_of = |slot: u16| match slot {
            0..=2 => Some('a'),
            3 | 5 => Some('b'),
            16_383 => Some('c'),
            _ => None,
        };
        let expected = [(0..=2, 'a'), (3..=3, 'b'), (5..=5, 'b'), (16_383..=16_383, 'c')];
        assert_eq!(ranges(owner_of), expected);
    }
}
