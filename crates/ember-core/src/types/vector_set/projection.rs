//! Vectors with fewer dimensions: products with a matrix of signs.
//!
//! The standard matrix is that of Walsh and Hadamard (Sylvester's construction), cut to the dimensions before and
//! after. A product with it is computed by the fast transform of the vector, padded with zeros to a power of two: for
//! 65,536 dimensions this takes a million additions instead of four billion. The matrix itself is built for files and
//! payloads only.

use std::sync::Arc;

/// The maximum number of elements of a matrix, 256 MiB: files and payloads contain the whole matrix.
pub const MATRIX_NUMBERS_MAX: usize = 1 << 26;

/// The maximum number of elements of a matrix that is not the standard one. No server builds such a matrix: vectors are
/// multiplied with it row by row, under the lock of their key.
const OTHER_NUMBERS_MAX: usize = 1 << 20;

/// The number of additions done in about the time of one step of a call ([`crate::call::Call::steps_max`]).
const ADDITIONS_PER_STEP: usize = 32;

/// A projection that reduces vectors of `input` dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// The dimensions of vectors before the reduction.
    pub input: usize,
    /// The magnitude of all numbers of the standard matrix.
    scale: f32,
    /// The matrix from a file; `None` for the standard one.
    matrix: Option<Arc<[f32]>>,
}

/// Returns whether a number of the matrix is negative: by the parity of the common bits of row and column (Sylvester's
/// construction of Hadamard matrices). All numbers have the same magnitude.
fn is_negative(row: usize, column: usize) -> bool {
    !(row & column).count_ones().is_multiple_of(2)
}

fn standard(input: usize, output: usize, scale: f32) -> impl Iterator<Item = f32> {
    (0..output).flat_map(move |row| {
        (0..input).map(move |column| if is_negative(row, column) { -scale } else { scale })
    })
}

impl Projection {
    /// Returns the standard projection.
    pub fn new(input: usize) -> Projection {
        let scale = (1.0 / (input as f64).sqrt()) as f32;
        Projection { input, scale, matrix: None }
    }

    /// Returns a projection with this matrix of `input` columns, row by row, as bytes of floats; `None` if the bytes do
    /// not fit the dimensions, contain a number that is not finite, or exceed the limit of a matrix that is not the
    /// standard one.
    pub(crate) fn from_bytes(input: usize, output: usize, bytes: &[u8]) -> Option<Projection> {
        if bytes.len() != input.checked_mul(output)?.checked_mul(4)? {
            return None;
        }
        let numbers = || bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        if !numbers().all(f32::is_finite) {
            return None;
        }
        let scale = numbers().next()?;
        let matrix = if standard(input, output, scale).eq(numbers()) {
            None
        } else if bytes.len() / 4 <= OTHER_NUMBERS_MAX {
            Some(numbers().collect())
        } else {
            return None;
        };
        Some(Projection { input, scale, matrix })
    }

    /// Returns the matrix as bytes.
    pub(crate) fn to_bytes(&self, output: usize) -> Vec<u8> {
        match &self.matrix {
            Some(matrix) => matrix.iter().flat_map(|number| number.to_le_bytes()).collect(),
            None => standard(self.input, output, self.scale).flat_map(f32::to_le_bytes).collect(),
        }
    }

    /// Returns the bytes of memory beyond its own size.
    pub(super) fn memory_bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, |matrix| crate::memory::size_class(16 + matrix.len() * 4))
    }

    /// Returns the approximate number of steps that a product takes.
    pub(crate) fn steps(&self, output: usize) -> usize {
        let additions = match &self.matrix {
            Some(matrix) => matrix.len(),
            None => {
                let padded = self.input.next_power_of_two();
                padded * padded.trailing_zeros() as usize + output
            }
        };
        additions / ADDITIONS_PER_STEP
    }

    /// Reduces a vector of `input` dimensions to `output` ones. O(input · log input + output); with a matrix from a
    /// file O(input · output).
    pub(crate) fn apply(&self, vector: &[f32], output: usize) -> Vec<f32> {
        let Some(matrix) = &self.matrix else {
            let mut sums: Vec<f32> = vector.iter().map(|number| self.scale * number).collect();
            transform(&mut sums);
            // Rows beyond the padded length repeat the same signs.
            return (0..output).map(|row| sums[row % sums.len()]).collect();
        };
        let row = |row: usize| {
            let row = &matrix[row * self.input..][..self.input];
            row.iter().zip(vector).fold(0.0, |sum, (number, other)| sum + number * other)
        };
        (0..output).map(row).collect()
    }
}

/// Applies the Walsh-Hadamard transform to numbers, padded to a power of two: number `row` becomes the sum of all
/// numbers with the signs of [`is_negative`]. O(n log n) (Fino, Algazi: Unified matrix treatment of the fast
/// Walsh-Hadamard transform, 1976).
fn transform(numbers: &mut Vec<f32>) {
    numbers.resize(numbers.len().next_power_of_two(), 0.0);
    let mut half = 1;
    while half < numbers.len() {
        for pair in numbers.chunks_exact_mut(2 * half) {
            let (low, high) = pair.split_at_mut(half);
            for (low, high) in low.iter_mut().zip(high) {
                (*low, *high) = (*low + *high, *low - *high);
            }
        }
        half *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_transform_is_the_product_with_the_matrix() {
        use crate::algorithms::random::Random;

        let mut random = Random::seeded(11);
        for _ in 0..300 {
            let (input, output) = (1 + random.below(70), 1 + random.below(140));
            // Sums of small integers are exact in any order of addition, also when halves are added.
            let vector: Vec<f32> = (0..input).map(|_| random.below(200) as f32 - 100.0).collect();
            let projection = Projection::new(input);
            let scale = projection.scale;
            let numbers: Vec<f32> = standard(input, output, scale).collect();
            for (row, reduced) in numbers.chunks(input).zip(projection.apply(&vector, output)) {
                let sum: f32 = row.iter().zip(&vector).map(|(sign, number)| sign.signum() * number).sum();
                let difference = (reduced - scale * sum).abs();
                assert!(difference <= 1e-3, "{input} to {output}: {reduced} for {}", scale * sum);
            }
        }
    }

    #[test]
    fn the_widest_reduction_takes_few_steps() {
        let projection = Projection::new(65_536);
        let vector = vec![1.0; 65_536];
        // Row by row, the product would take four billion steps.
        let reduced = projection.apply(&vector, 65_536);
        assert!((reduced[0] - 256.0).abs() < 0.01 && reduced[1..].iter().all(|number| number.abs() < 0.01));
        assert!(projection.steps(65_536) <= 65_536);
    }

    #[test]
    fn standard_matrices_are_recognized_and_others_are_stored() {
        let standard = Projection::new(6);
        let bytes = standard.to_bytes(3);
        assert_eq!(Projection::from_bytes(6, 3, &bytes), Some(standard.clone()));
        let mut other = bytes.clone();
        other[3] ^= 0x80;
        let projection = Projection::from_bytes(6, 3, &other).unwrap();
        assert_eq!(projection.to_bytes(3), other);
        let vector = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        let differences: Vec<f32> = projection
            .apply(&vector, 3)
            .iter()
            .zip(standard.apply(&vector, 3))
            .map(|(other, number)| (other - number).abs())
            .collect();
        assert!(differences[0] > 0.1 && differences[1..].iter().all(|&difference| difference < 1e-5));
        // The signs identify the matrix: another server may round their magnitude differently.
        let scaled: Vec<u8> = super::standard(6, 3, 0.5).flat_map(f32::to_le_bytes).collect();
        let projection = Projection::from_bytes(6, 3, &scaled).unwrap();
        assert!(projection.matrix.is_none() && projection.to_bytes(3) == scaled);
        assert_eq!(Projection::from_bytes(6, 3, &bytes[1..]), None);
        assert_eq!(Projection::from_bytes(usize::MAX, 3, &bytes), None);
    }
}
