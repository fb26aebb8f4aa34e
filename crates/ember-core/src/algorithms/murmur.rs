//! MurmurHash2 and MurmurHash64A by A. Appleby, reading words as little-endian on every machine.

const MULTIPLIER_64: u64 = 0xC6A4_A793_5BD1_E995;
const SHIFT_64: u32 = 47;
const MULTIPLIER_32: u32 = 0x5BD1_E995;
const SHIFT_32: u32 = 24;

/// Returns the 64-bit hash of `bytes`. O(bytes).
pub(crate) fn murmur64a(bytes: &[u8], seed: u64) -> u64 {
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER_64);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER_64);
        word ^= word >> SHIFT_64;
        hash ^= word.wrapping_mul(MULTIPLIER_64);
        hash = hash.wrapping_mul(MULTIPLIER_64);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER_64);
    }
    hash ^= hash >> SHIFT_64;
    hash = hash.wrapping_mul(MULTIPLIER_64);
    hash ^ (hash >> SHIFT_64)
}

/// Returns the 32-bit hash of `bytes`. O(bytes).
pub(crate) fn murmur2(bytes: &[u8], seed: u32) -> u32 {
    // As in the original, the length counts modulo 2^32.
    let mut hash = seed ^ bytes.len() as u32;
    let (words, rest) = bytes.as_chunks::<4>();
    for word in words {
        let mut word = u32::from_le_bytes(*word).wrapping_mul(MULTIPLIER_32);
        word ^= word >> SHIFT_32;
        hash = hash.wrapping_mul(MULTIPLIER_32) ^ word.wrapping_mul(MULTIPLIER_32);
    }
    if !rest.is_empty() {
        let mut last = [0; 4];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u32::from_le_bytes(last)).wrapping_mul(MULTIPLIER_32);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(MULTIPLIER_32);
    hash ^ (hash >> 15)
}
