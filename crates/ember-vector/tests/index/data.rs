//! Vectors distributed like those of texts: in clusters of clusters, along few directions.

/// A generator of pseudorandom numbers; contains its state.
pub(crate) struct Numbers(pub(crate) u64);

impl Numbers {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number from -1 to 1; numbers near 0 are more frequent.
    pub(crate) fn about_zero(&mut self) -> f32 {
        let unit = |bits: u64| bits as u16 as f32 / 65_536.0;
        let bits = self.next();
        unit(bits) + unit(bits >> 16) - unit(bits >> 32) - unit(bits >> 48)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

/// Returns `count` vectors of `dim` numbers: combinations of 24 directions, in 60 clusters.
pub(crate) fn vectors(count: usize, dim: usize, seed: u64) -> Vec<Vec<f32>> {
    const DIRECTIONS: usize = 24;
    let mut numbers = Numbers(4711);
    let mut row = |len: usize| (0..len).map(|_| numbers.about_zero()).collect::<Vec<f32>>();
    let directions: Vec<Vec<f32>> = (0..DIRECTIONS).map(|_| row(dim)).collect();
    let centres: Vec<Vec<f32>> = (0..60).map(|_| row(DIRECTIONS)).collect();
    let mut numbers = Numbers(seed);
    (0..count)
        .map(|_| {
            let centre = &centres[numbers.below(centres.len())];
            let weights: Vec<f32> = centre.iter().map(|weight| weight + numbers.about_zero()).collect();
            let mut vector: Vec<f32> = (0..dim).map(|_| 0.1 * numbers.about_zero()).collect();
            for (weight, direction) in weights.iter().zip(&directions) {
                vector.iter_mut().zip(direction).for_each(|(sum, number)| *sum += weight * number);
            }
            vector
        })
        .collect()
}
