//! Pseudorandom numbers.

/// Returns the next number of SplitMix64 (Steele, Lea and Flood) for a state.
pub(crate) fn split_mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

/// Returns a number that depends on two others and a secret, and cannot be predicted without it: the halves of the
/// product of two factors hidden by the secret, combined by exclusive or.
#[inline]
pub(crate) fn mixed(a: u64, b: u64, secret: [u64; 2]) -> u64 {
    let product = u128::from(a ^ secret[0]) * u128::from(b ^ secret[1]);
    product as u64 ^ (product >> 64) as u64
}

/// The maximum level of a node.
pub const LEVEL_MAX: usize = 16;

/// Returns the level of the node with this number: it reaches each level above 0 with a probability of 1 in `links`.
pub(crate) fn level_of(number: u64, links: usize) -> usize {
    let mut random = split_mix(number);
    let mut level = 0;
    while level < LEVEL_MAX && random.is_multiple_of(links as u64) {
        level += 1;
        random = split_mix(random);
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_in_m_nodes_reaches_the_next_level() {
        for links in [4, 16, 100] {
            let count = 1_000_000;
            let above = (0..count).filter(|&number| level_of(number, links) >= 1).count();
            let expected = count as usize / links;
            assert!(above.abs_diff(expected) < expected / 20, "{links}: {above}");
        }
    }
}
