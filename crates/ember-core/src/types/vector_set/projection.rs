//! Vectors with fewer dimensions: products with a matrix of signs.

use std::sync::Arc;

/// Reduces vectors of `input` dimensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Projection {
    /// The dimensions that vectors have before.
    pub input: usize,
    /// The matrix, if it is another one than [`sign`] says: from a file.
    matrix: Option<Arc<[f32]>>,
}

/// Whether a number of the matrix is negative: by the parity of the common bits of row and column (Sylvester's
/// construction of Hadamard matrices). All of them have the same magnitude.
fn is_negative(row: usize, column: usize) -> bool {
    !(row & column).count_ones().is_multiple_of(2)
}

/// What all numbers of the matrix are, but for their signs.
fn magnitude(input: usize) -> f32 {
    (1.0 / (input as f64).sqrt()) as f32
}

fn standard(input: usize, output: usize) -> impl Iterator<Item = f32> {
    let scale = magnitude(input);
    (0..output).flat_map(move |row| {
        (0..input).map(move |column| if is_negative(row, column) { -scale } else { scale })
    })
}

impl Projection {
    /// The standard one.
    pub fn new(input: usize) -> Projection {
        Projection { input, matrix: None }
    }

    /// One with this matrix of `input` columns, row by row, as bytes of floats; `None` if they do not fit.
    pub(crate) fn from_bytes(input: usize, output: usize, bytes: &[u8]) -> Option<Projection> {
        if bytes.len() != input.checked_mul(output)?.checked_mul(4)? {
            return None;
        }
        let numbers = || bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes));
        if !numbers().all(f32::is_finite) {
            return None;
        }
        let is_standard = standard(input, output).eq(numbers());
        Some(Projection { input, matrix: (!is_standard).then(|| numbers().collect()) })
    }

    /// The matrix as bytes.
    pub(crate) fn to_bytes(&self, output: usize) -> Vec<u8> {
        match &self.matrix {
            Some(matrix) => matrix.iter().flat_map(|number| number.to_le_bytes()).collect(),
            None => standard(self.input, output).flat_map(f32::to_le_bytes).collect(),
        }
    }

    /// Bytes of memory beyond its own size.
    pub(super) fn memory_bytes(&self) -> usize {
        self.matrix.as_ref().map_or(0, |matrix| crate::memory::size_class(16 + matrix.len() * 4))
    }

    /// A vector of `input` dimensions with `output` ones. O(input · output).
    pub(crate) fn apply(&self, vector: &[f32], output: usize) -> Vec<f32> {
        let scale = magnitude(self.input);
        let row = |row: usize| match &self.matrix {
            Some(matrix) => {
                let row = &matrix[row * self.input..][..self.input];
                row.iter().zip(vector).fold(0.0, |sum, (number, other)| sum + number * other)
            }
            None => vector.iter().enumerate().fold(0.0, |sum, (column, number)| {
                if is_negative(row, column) { sum - scale * number } else { sum + scale * number }
            }),
        };
        (0..output).map(row).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_matrix_is_recognized_and_another_one_kept() {
        let standard = Projection::new(6);
        let bytes = standard.to_bytes(3);
        assert_eq!(Projection::from_bytes(6, 3, &bytes), Some(standard.clone()));
        let mut other = bytes.clone();
        other[3] ^= 0x80;
        let projection = Projection::from_bytes(6, 3, &other).unwrap();
        assert_eq!(projection.to_bytes(3), other);
        let vector = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
        assert_eq!(projection.apply(&vector, 3)[1..], standard.apply(&vector, 3)[1..]);
        assert_ne!(projection.apply(&vector, 3)[0], standard.apply(&vector, 3)[0]);
        assert_eq!(Projection::from_bytes(6, 3, &bytes[1..]), None);
        assert_eq!(Projection::from_bytes(usize::MAX, 3, &bytes), None);
    }
}
