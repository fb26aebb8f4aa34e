//! Conversion of vectors to and from their stored form.
//!
//! All of this is scalar code in one fixed order, so the stored bytes are identical on every processor. With cosine
//! they equal the bytes of Redis's vector sets, as in RDB files and replies to `VEMB … RAW`.

use crate::config::{Metric, Scalar};

/// A vector in the stored form of an index.
#[derive(Clone, Debug, PartialEq)]
pub struct Prepared {
    /// The numbers.
    pub(crate) bytes: Vec<u8>,
    /// The facts stored with the numbers.
    pub(crate) facts: Facts,
}

/// The facts stored with the numbers of a vector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Facts {
    /// With [`Metric::Cosine`] the original length, or 1 for a zero vector; with [`Metric::L2`] the squared length of
    /// the stored vector; otherwise 1.
    pub norm: f32,
    /// For [`Scalar::Int8`] the largest absolute value of the vector's numbers, otherwise 0.
    pub range: f32,
}

/// Returns the length of a vector: the root of the sum of squares, added in groups of four.
fn norm(vector: &[f32]) -> f32 {
    let (groups, rest) = vector.as_chunks::<4>();
    let mut sum = 0.0;
    for [a, b, c, d] in groups {
        sum += a * a + b * b + c * c + d * d;
    }
    for number in rest {
        sum += number * number;
    }
    sum.sqrt()
}

impl Prepared {
    /// Converts a vector to its stored form. If the numbers are not finite, distances are NaN, so callers must refuse
    /// such vectors. O(dimensions).
    pub fn new(vector: &[f32], metric: Metric, scalar: Scalar) -> Prepared {
        let mut scaled = vector.to_vec();
        let mut facts = Facts { norm: 1.0, range: 0.0 };
        if metric == Metric::Cosine {
            let norm = norm(vector);
            if norm != 0.0 {
                facts.norm = norm;
                scaled.iter_mut().for_each(|number| *number /= norm);
            }
        }
        let bytes = encode(&scaled, scalar, &mut facts.range);
        if metric == Metric::L2 {
            facts.norm = squared_length(&bytes, facts.range, scalar, vector.len());
        }
        Prepared { bytes, facts }
    }

    /// Returns the stored numbers.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the facts stored with the numbers.
    pub fn facts(&self) -> Facts {
        self.facts
    }
}

/// Whether all stored numbers and facts are finite.
pub(crate) fn are_finite(bytes: &[u8], facts: Facts, scalar: Scalar) -> bool {
    // The loop has no early exit, so that it can be vectorized.
    let are_finite = |bytes| floats(bytes).fold(true, |are_finite, number| are_finite & number.is_finite());
    facts.norm.is_finite() && facts.range.is_finite() && (scalar != Scalar::F32 || are_finite(bytes))
}

fn floats(bytes: &[u8]) -> impl Iterator<Item = f32> + '_ {
    bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes))
}

fn encode(vector: &[f32], scalar: Scalar, range: &mut f32) -> Vec<u8> {
    match scalar {
        Scalar::F32 => vector.iter().flat_map(|number| number.to_le_bytes()).collect(),
        Scalar::F16 => vector.iter().flat_map(|&number| f16_from_f32(number).to_le_bytes()).collect(),
        Scalar::Bf16 => vector.iter().flat_map(|&number| bf16_from_f32(number).to_le_bytes()).collect(),
        Scalar::Int8 => {
            let largest = vector.iter().fold(0.0f32, |largest, number| largest.max(number.abs()));
            *range = largest;
            if largest == 0.0 {
                return vec![0; vector.len()];
            }
            // If this overflows to infinity, all numbers of the vector are too small to affect a sum of 32-bit floats.
            let scale = 127.0 / largest;
            vector.iter().map(|number| (number * scale).round() as i8 as u8).collect()
        }
        Scalar::Binary => {
            let mut words = vec![0u64; vector.len().div_ceil(64)];
            for (at, _) in vector.iter().enumerate().filter(|(_, number)| **number > 0.0) {
                words[at / 64] |= 1 << (at % 64);
            }
            words.into_iter().flat_map(u64::to_le_bytes).collect()
        }
    }
}

/// Decodes the stored numbers, without restoring the length. Bits become 1 and -1. O(dimensions).
pub(crate) fn decode(bytes: &[u8], range: f32, scalar: Scalar, dim: usize) -> Vec<f32> {
    match scalar {
        Scalar::F32 => floats(bytes).collect(),
        Scalar::F16 => halves(bytes).map(f32_from_f16).collect(),
        Scalar::Bf16 => halves(bytes).map(f32_from_bf16).collect(),
        Scalar::Int8 => bytes.iter().map(|&byte| f32::from(byte as i8) * range / 127.0).collect(),
        Scalar::Binary => {
            (0..dim).map(|at| if bytes[at / 8] & (1 << (at % 8)) == 0 { -1.0 } else { 1.0 }).collect()
        }
    }
}

fn halves(bytes: &[u8]) -> impl Iterator<Item = u16> + '_ {
    bytes.as_chunks::<2>().0.iter().map(|bytes| u16::from_le_bytes(*bytes))
}

fn squared_length(bytes: &[u8], range: f32, scalar: Scalar, dim: usize) -> f32 {
    decode(bytes, range, scalar, dim).iter().map(|number| number * number).sum()
}

/// Restores the vector with the precision of its stored form, and with its original length, except for bits.
/// O(dimensions).
pub(crate) fn restored(bytes: &[u8], facts: Facts, metric: Metric, scalar: Scalar, dim: usize) -> Vec<f32> {
    let mut vector = decode(bytes, facts.range, scalar, dim);
    if metric == Metric::Cosine && scalar != Scalar::Binary {
        vector.iter_mut().for_each(|number| *number *= facts.norm);
    }
    vector
}

/// Rounds to the nearest float of 16 bits, ties to even.
pub(crate) fn f16_from_f32(number: f32) -> u16 {
    let bits = number.to_bits();
    let sign = ((bits >> 16) & 0x8000) as u16;
    let magnitude = bits & 0x7FFF_FFFF;
    if magnitude > 0x7F80_0000 {
        return sign | 0x7E00;
    }
    // Magnitudes from 65,520 on round to infinity.
    if magnitude >= 0x477F_F000 {
        return sign | 0x7C00;
    }
    // Below 2^-14 results are multiples of 2^-24. Adding a power of two whose last place is 2^-24 rounds the number to
    // such a multiple.
    if magnitude < 0x3880_0000 {
        let rounded = f32::from_bits(magnitude) + 0.5;
        return sign | (rounded.to_bits() - 0.5f32.to_bits()) as u16;
    }
    let odd = (magnitude >> 13) & 1;
    sign | ((magnitude - 0x3800_0000 + 0xFFF + odd) >> 13) as u16
}

/// Converts a float of 16 bits.
pub(crate) fn f32_from_f16(half: u16) -> f32 {
    let sign = u32::from(half & 0x8000) << 16;
    let magnitude = u32::from(half & 0x7FFF);
    let bits = match magnitude {
        0x7C00.. => 0x7F80_0000 | ((magnitude & 0x3FF) << 13),
        0x400.. => (magnitude << 13) + 0x3800_0000,
        // Subnormal numbers are multiples of 2^-24.
        _ => (magnitude as f32 / 16_777_216.0).to_bits(),
    };
    f32::from_bits(sign | bits)
}

/// Rounds to the nearest float whose lower half is zero, ties to even, and returns its upper half.
pub(crate) fn bf16_from_f32(number: f32) -> u16 {
    let bits = number.to_bits();
    if number.is_nan() {
        return (bits >> 16) as u16 | 0x40;
    }
    ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16) as u16
}

/// Returns the float with these upper bits.
pub(crate) fn f32_from_bf16(half: u16) -> f32 {
    f32::from_bits(u32::from(half) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_floats_are_the_nearest_ones_and_survive_the_round_trip() {
        for half in (0..0x7C00u16).chain(0x8000..0xFC00) {
            let number = f32_from_f16(half);
            assert_eq!(f16_from_f32(number), half, "{number}");
            // The midpoint between two results rounds to the even one, and anything above it to the upper one.
            if half & 0x7FFF != 0x7BFF {
                let next = f32_from_f16(half + 1);
                let middle = (number + next) / 2.0;
                assert_eq!(f16_from_f32(middle), half + (half & 1), "{middle}");
                assert_eq!(f16_from_f32(f32::from_bits(middle.to_bits() + 1)), half + 1);
            }
        }
        for (number, half) in
            [(65_504.0, 0x7BFF), (65_519.9, 0x7BFF), (65_520.0, 0x7C00), (f32::INFINITY, 0x7C00)]
        {
            assert_eq!(f16_from_f32(number), half);
        }
        for (number, half) in [(1.0f32, 0x3F80), (-2.0, 0xC000), (1.003_906_3, 0x3F80), (1.011_718_8, 0x3F82)]
        {
            assert_eq!(bf16_from_f32(number), half, "{number}");
        }
    }

    #[test]
    fn stored_vectors_are_as_precise_as_their_format() {
        let vector: Vec<f32> = (0..100).map(|at| ((at * 37) % 100) as f32 / 10.0 - 5.0).collect();
        for metric in [Metric::Cosine, Metric::L2, Metric::InnerProduct] {
            let forms =
                [(Scalar::F32, 1e-5), (Scalar::F16, 0.01), (Scalar::Bf16, 0.03), (Scalar::Int8, 0.03)];
            for (scalar, tolerance) in forms {
                let stored = Prepared::new(&vector, metric, scalar);
                let back = restored(&stored.bytes, stored.facts, metric, scalar, vector.len());
                assert!(
                    vector.iter().zip(&back).all(|(a, b)| (a - b).abs() <= tolerance),
                    "{metric:?} {scalar:?}"
                );
            }
            let stored = Prepared::new(&vector, metric, Scalar::Binary);
            let back = restored(&stored.bytes, stored.facts, metric, Scalar::Binary, vector.len());
            assert!(vector.iter().zip(&back).all(|(a, b)| (*a > 0.0) == (*b > 0.0) && b.abs() == 1.0));
        }
    }

    #[test]
    fn bytes_are_those_of_redis() {
        let stored = Prepared::new(&[3.0, -4.0, 0.0], Metric::Cosine, Scalar::Int8);
        assert_eq!((stored.facts.norm, stored.facts.range), (5.0, 0.8));
        assert_eq!(stored.bytes, [95, 129, 0]);
        let stored = Prepared::new(&[0.0; 3], Metric::Cosine, Scalar::Int8);
        assert_eq!((stored.facts.norm, stored.facts.range), (1.0, 0.0));
        let stored = Prepared::new(&[0.5, 0.0, -1.0, 2.0], Metric::Cosine, Scalar::Binary);
        assert_eq!(stored.bytes, [0b1001, 0, 0, 0, 0, 0, 0, 0]);
    }
}
