//! MurmurHash64A by A. Appleby, reading words as little-endian on every machine, with Redis's seed.

const SEED: u64 = 0xADC8_3B19;
const MULTIPLIER: u64 = 0xC6A4_A793_5BD1_E995;
const SHIFT: u32 = 47;

/// Returns the hash of `bytes`. O(bytes).
pub(super) fn murmur64a(bytes: &[u8]) -> u64 {
    let mut hash = SEED ^ (bytes.len() as u64).wrapping_mul(MULTIPLIER);
    let (words, rest) = bytes.as_chunks::<8>();
    for word in words {
        let mut word = u64::from_le_bytes(*word).wrapping_mul(MULTIPLIER);
        word ^= word >> SHIFT;
        hash ^= word.wrapping_mul(MULTIPLIER);
        hash = hash.wrapping_mul(MULTIPLIER);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(MULTIPLIER);
    }
    hash ^= hash >> SHIFT;
    hash = hash.wrapping_mul(MULTIPLIER);
    hash ^ (hash >> SHIFT)
}
