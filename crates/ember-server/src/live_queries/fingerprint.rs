//! Fingerprints: the numbers by which clients identify live queries, equal to those of DiceDB.
//!
//! A fingerprint is FarmHash's `Fingerprint32` (Geoff Pike, Google, 2014) of the command line, with the command name in
//! upper case and single spaces. The function never changes. Strings of up to 4, 12, 24 and more bytes are hashed by
//! four functions that use the mixing steps of MurmurHash3 (Austin Appleby, 2011).

use ember_protocol::Args;

const C1: u32 = 0xCC9E_2D51;
const C2: u32 = 0x1B87_3593;

/// Returns the fingerprint of a call.
pub(crate) fn fingerprint(args: Args<'_>) -> u32 {
    let mut line = args.at(0).to_ascii_uppercase();
    for arg in args.skip(1).iter() {
        line.push(b' ');
        line.extend_from_slice(arg);
    }
    hash(&line)
}

/// Mixes a word into a hash.
fn mix(word: u32, hash: u32) -> u32 {
    let word = word.wrapping_mul(C1).rotate_right(17).wrapping_mul(C2);
    add_round(hash ^ word)
}

fn add_round(hash: u32) -> u32 {
    hash.rotate_right(19).wrapping_mul(5).wrapping_add(0xE654_6B64)
}

/// Applies the final mixing steps to a hash.
fn finish(mut hash: u32) -> u32 {
    hash = (hash ^ hash >> 16).wrapping_mul(0x85EB_CA6B);
    hash = (hash ^ hash >> 13).wrapping_mul(0xC2B2_AE35);
    hash ^ hash >> 16
}

fn word_at(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4].iter().rev().fold(0, |word, &byte| word << 8 | u32::from(byte))
}

fn hash(bytes: &[u8]) -> u32 {
    match bytes.len() {
        0..=4 => hash_up_to_4(bytes),
        5..=12 => hash_up_to_12(bytes),
        13..=24 => hash_up_to_24(bytes),
        _ => hash_long(bytes),
    }
}

fn hash_up_to_4(bytes: &[u8]) -> u32 {
    let (mut sum, mut all) = (0_u32, 9_u32);
    for &byte in bytes {
        // The reference implementation uses signed characters.
        sum = sum.wrapping_mul(C1).wrapping_add(i32::from(byte.cast_signed()).cast_unsigned());
        all ^= sum;
    }
    finish(mix(sum, mix(bytes.len() as u32, all)))
}

fn hash_up_to_12(bytes: &[u8]) -> u32 {
    let len = bytes.len();
    let fives = len as u32 * 5;
    let first = (len as u32).wrapping_add(word_at(bytes, 0));
    let last = fives.wrapping_add(word_at(bytes, len - 4));
    let middle = 9_u32.wrapping_add(word_at(bytes, len >> 1 & 4));
    finish(mix(middle, mix(last, mix(first, fives))))
}

fn hash_up_to_24(bytes: &[u8]) -> u32 {
    let len = bytes.len();
    let before_middle = word_at(bytes, (len >> 1) - 4);
    let [second, near_end, middle, first, last] =
        [4, len - 8, len >> 1, 0, len - 4].map(|at| word_at(bytes, at));
    let mut turned = before_middle.rotate_right(12).wrapping_add(last);
    let mut hash = middle.wrapping_mul(C1).wrapping_add(len as u32);
    hash = mix(near_end, hash).wrapping_add(turned);
    turned = turned.rotate_right(3).wrapping_add(near_end);
    hash = mix(first, hash).wrapping_add(turned);
    turned = turned.wrapping_add(last).rotate_right(12).wrapping_add(middle);
    finish(mix(second, hash).wrapping_add(turned))
}

fn hash_long(bytes: &[u8]) -> u32 {
    let len = bytes.len();
    let from_end =
        |back: usize| word_at(bytes, len - back).wrapping_mul(C1).rotate_right(17).wrapping_mul(C2);
    let mut h = add_round(add_round(len as u32 ^ from_end(4)) ^ from_end(16));
    let seed = C1.wrapping_mul(len as u32);
    let mut g = add_round(add_round(seed ^ from_end(8)) ^ from_end(12));
    let mut f = seed.wrapping_add(from_end(20)).rotate_right(19).wrapping_add(113);
    for block in bytes.chunks(20).take((len - 1) / 20) {
        let [a, b, c, d, e] = [0, 4, 8, 12, 16].map(|at| word_at(block, at));
        (h, g, f) = (h.wrapping_add(a), g.wrapping_add(b), f.wrapping_add(c));
        h = mix(d, h).wrapping_add(e);
        g = mix(c, g).wrapping_add(a);
        f = mix(b.wrapping_add(e.wrapping_mul(C1)), f).wrapping_add(d);
        f = f.wrapping_add(g);
        g = g.wrapping_add(f);
    }
    let spread = |word: u32| word.rotate_right(11).wrapping_mul(C1).rotate_right(17).wrapping_mul(C1);
    let join = |hash: u32, word: u32| add_round(hash.wrapping_add(word)).rotate_right(17).wrapping_mul(C1);
    join(join(h, spread(g)), spread(f))
}

#[cfg(test)]
mod tests {
    use ember_protocol::OwnedBatch;

    use super::*;

    #[test]
    fn fingerprints_are_those_of_dicedb() {
        for (line, expected) in [
            ("GET getwatchkey", 2_714_318_480),
            ("get getunwatchkey", 426_696_421),
            ("ZRANGE zrangewatchkey 0 -1 REV WITHSCORES", 1_178_068_413),
        ] {
            let mut batch = OwnedBatch::new();
            batch.push(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
            assert_eq!(fingerprint(batch.command(0)), expected, "{line}");
        }
        assert_eq!(hash(b"GET-getwatchkey"), 1_768_826_704);
    }

    #[test]
    fn strings_of_every_length_have_different_fingerprints() {
        let line = [b'k'; 100];
        let mut found: Vec<u32> = (0..=100).map(|len| hash(&line[..len])).collect();
        found.sort_unstable();
        found.dedup();
        assert_eq!(found.len(), 101);
    }
}
