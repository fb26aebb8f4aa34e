//! Random numbers for sampling.

/// A small fast generator (Marsaglia, "Xorshift RNGs", 2003, with Vigna's multiplier) for sampling; not for secrets.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Returns a generator that yields the same numbers for the same seed.
    pub fn seeded(seed: u64) -> Random {
        Random(seed | 1)
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns the next 32 bits.
    #[inline]
    pub fn next_u32(&mut self) -> u32 {
        (self.next_u64() >> 32) as u32
    }

    /// Returns a number below `bound`, which must not be 0.
    #[inline]
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns a number below `count`. The probability of each number is proportional to its weight. Returns `None` if all
    /// weights are zero. O(`count`).
    pub fn weighted(&mut self, count: usize, weight: impl Fn(usize) -> usize) -> Option<usize> {
        let total: usize = (0..count).map(&weight).sum();
        let mut rank = if total == 0 { return None } else { self.below(total) };
        (0..count).find(|&index| {
            let here = weight(index);
            let found = rank < here;
            rank = rank.saturating_sub(here);
            found
        })
    }

    /// Returns a number in 0.0..1.0.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }
}
