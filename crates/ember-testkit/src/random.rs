//! A small seeded generator of random numbers (xorshift64*, Vigna 2016), so that a failing run can be repeated.

/// Random numbers that depend on the seed alone. Prints the seed when it is dropped by a panic.
#[derive(Debug)]
pub struct Random {
    seed: u64,
    state: u64,
}

impl Random {
    /// Creates a generator; equal seeds produce equal sequences on every machine.
    pub fn new(seed: u64) -> Self {
        // One round of splitmix64: adjacent seeds must not produce similar sequences, and the state must not be 0.
        let mut mixed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        Random { seed, state: (mixed ^ (mixed >> 31)) | 1 }
    }

    /// Returns the seed of the generator.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// Returns 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Returns a number in `0..bound`; 0 if `bound` is 0. (The bias of the multiplication is below 2⁻³² for small
    /// bounds.)
    pub fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next_u64()) * bound as u128) >> 64) as usize
    }

    /// Returns a number in `low..=high`.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = high.wrapping_sub(low) as u64;
        let offset = (u128::from(self.next_u64()) * (u128::from(width) + 1)) >> 64;
        low.wrapping_add(offset as u64 as i64)
    }

    /// Returns true in `percent` of 100 calls.
    pub fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    /// Returns an element of a slice that is not empty.
    pub fn pick<'a, T: ?Sized>(&mut self, choices: &[&'a T]) -> &'a T {
        choices[self.below(choices.len())]
    }

    /// Returns `length` random bytes.
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| (self.next_u64() >> 56) as u8).collect()
    }

    /// Shuffles the elements (Fisher–Yates).
    pub fn shuffle<T>(&mut self, elements: &mut [T]) {
        for last in (1..elements.len()).rev() {
            elements.swap(last, self.below(last + 1));
        }
    }
}

impl Drop for Random {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("random seed of this run: {}", self.seed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_seeds_give_equal_sequences_and_different_seeds_different_ones() {
        let draw = |seed| -> Vec<u64> {
            let mut random = Random::new(seed);
            (0..8).map(|_| random.next_u64()).collect()
        };
        assert_eq!(draw(0), draw(0));
        assert_ne!(draw(0), draw(1));
    }

    #[test]
    fn numbers_stay_inside_their_bounds() {
        let mut random = Random::new(7);
        let mut seen = [false; 6];
        for _ in 0..1000 {
            seen[random.below(6)] = true;
            assert!((-3..=3).contains(&random.between(-3, 3)));
        }
        assert_eq!(seen, [true; 6]);
        assert_eq!(random.below(0), 0);
        assert_eq!(random.between(i64::MAX, i64::MAX), i64::MAX);
        random.between(i64::MIN, i64::MAX);
    }
}
