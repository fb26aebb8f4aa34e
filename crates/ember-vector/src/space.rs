//! The vectors of an index, and the distances between them.
//!
//! ```text
//! row   numbers | length, 4 bytes | largest number, 4 bytes (Int8 only)
//! ```
//!
//! Rows are stored here, by slot, unless the index has lists, which store the rows list by list ([`crate::lists`]).

use std::borrow::Cow;

use crate::arena::{Account, ByteRows};
use crate::config::{Config, Metric, Scalar};
use crate::kernels::{self, Kernel, LINE_BYTES, Measure};
use crate::quantize::{Facts, Prepared, decode, restored};

/// Cache lines to prefetch ahead: about as many as a core can load concurrently.
const LINES_AHEAD: usize = 24;

/// The formula that converts the result of a kernel to a distance.
#[derive(Clone, Copy, Debug)]
enum Form {
    /// 1 minus the result.
    Cosine,
    /// Like [`Form::Cosine`], for numbers scaled by their largest absolute value.
    CosineInt8,
    /// Twice the share of differing bits.
    CosineBits,
    /// The result itself.
    L2,
    /// Computed from the squared lengths of both vectors and the product.
    L2ByProduct,
    /// The squared distance between vectors of 1 and -1, from the number of differing bits.
    L2Bits,
    /// The negative of the result.
    Product,
    /// The negative product of vectors of 1 and -1, from the number of differing bits.
    ProductBits,
}

/// The vectors of an index.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    pub(crate) dim: usize,
    pub(crate) metric: Metric,
    pub(crate) scalar: Scalar,
    form: Form,
    kernel: Kernel,
    /// Length of the numbers in a row, in bytes.
    bytes: usize,
    rows: ByteRows,
}

fn float_at(row: &[u8], at: usize) -> f32 {
    row[at..].first_chunk().map_or(0.0, |bytes| f32::from_le_bytes(*bytes))
}

impl Space {
    pub(crate) fn new(config: &Config) -> Space {
        let Config { dim, metric, scalar, account, .. } = *config;
        let form = match (metric, scalar) {
            (Metric::Cosine, Scalar::Int8) => Form::CosineInt8,
            (Metric::Cosine, Scalar::Binary) => Form::CosineBits,
            (Metric::Cosine, _) => Form::Cosine,
            (Metric::L2, Scalar::F32) => Form::L2,
            (Metric::L2, Scalar::Binary) => Form::L2Bits,
            (Metric::L2, _) => Form::L2ByProduct,
            (Metric::InnerProduct, Scalar::Binary) => Form::ProductBits,
            (Metric::InnerProduct, _) => Form::Product,
        };
        let measure = if matches!(form, Form::L2) { Measure::SquaredL2 } else { Measure::Dot };
        let bytes = scalar.bytes(dim);
        let rows = Self::rows(bytes, scalar, account);
        Space { dim, metric, scalar, form, kernel: Kernel::choose(scalar, measure), bytes, rows }
    }

    fn rows(bytes: usize, scalar: Scalar, account: Account) -> ByteRows {
        ByteRows::new(bytes + 4 + if scalar == Scalar::Int8 { 4 } else { 0 }, account)
    }

    /// Returns the length of a row in bytes.
    pub(crate) fn width(&self) -> usize {
        self.rows.width()
    }

    /// Moves all rows out of this value and returns them.
    pub(crate) fn take_rows(&mut self, account: Account) -> ByteRows {
        let width = self.width();
        std::mem::replace(&mut self.rows, ByteRows::new(width, account))
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Encodes a vector as a row.
    pub(crate) fn row_of(&self, vector: &Prepared) -> Vec<u8> {
        let mut row = Vec::with_capacity(self.width());
        self.put_row(&vector.bytes, vector.facts, &mut row);
        row
    }

    /// Encodes numbers and facts into `row`.
    pub(crate) fn put_row(&self, numbers: &[u8], facts: Facts, row: &mut Vec<u8>) {
        assert!(numbers.len() == self.bytes, "a vector has as many dimensions as the index");
        row.clear();
        row.extend_from_slice(numbers);
        row.extend(facts.norm.to_le_bytes());
        if self.scalar == Scalar::Int8 {
            row.extend(facts.range.to_le_bytes());
        }
    }

    /// Returns the row of a slot.
    #[inline]
    pub(crate) fn row(&self, slot: u32) -> &[u8] {
        self.rows.row(slot as usize)
    }

    #[inline]
    pub(crate) fn prefetch(&self, slot: u32) {
        kernels::prefetch(self.row(slot));
    }

    /// Returns the number of rows to prefetch ahead.
    #[inline]
    pub(crate) fn rows_ahead(&self) -> usize {
        (LINES_AHEAD * LINE_BYTES / self.width()).max(1)
    }

    /// Returns the distance between two rows: smaller means nearer. O(dimensions).
    #[inline]
    pub(crate) fn distance(&self, a: &[u8], b: &[u8]) -> f32 {
        self.distance_by(self.kernel.of(&a[..self.bytes], &b[..self.bytes]), a, b)
    }

    /// Computes the distance between `a` and each of the contiguous rows in `rows`, one for each element of
    /// `distances`. Meanwhile prefetches the beginning of `ahead`, up to the size of these rows. O(rows · dimensions).
    pub(crate) fn scan(&self, a: &[u8], rows: &[u8], ahead: &[u8], distances: &mut [f32]) {
        let width = self.width();
        self.kernel.of_rows(&a[..self.bytes], rows, width, ahead, distances);
        match self.form {
            Form::L2 => {}
            // The most common form does not read the rows again.
            Form::Cosine => distances.iter_mut().for_each(|distance| *distance = 1.0 - *distance),
            _ => {
                for (distance, row) in distances.iter_mut().zip(rows.chunks_exact(width)) {
                    *distance = self.distance_by(*distance, a, row);
                }
            }
        }
    }

    /// Returns the distance between two rows for which the kernel returned `found`.
    #[inline]
    fn distance_by(&self, found: f32, a: &[u8], b: &[u8]) -> f32 {
        match self.form {
            Form::Cosine => 1.0 - found,
            Form::CosineInt8 => {
                let (a, b) = (float_at(a, self.bytes + 4), float_at(b, self.bytes + 4));
                if a == 0.0 || b == 0.0 {
                    return 1.0;
                }
                (1.0 - found * ((a / 127.0) * (b / 127.0))).clamp(0.0, 2.0)
            }
            Form::CosineBits => found * 2.0 / self.dim as f32,
            Form::L2 => found,
            Form::L2ByProduct => {
                let squares = float_at(a, self.bytes) + float_at(b, self.bytes);
                (squares - 2.0 * found * self.scale(a, b)).max(0.0)
            }
            Form::L2Bits => 4.0 * found,
            Form::Product => -found * self.scale(a, b),
            Form::ProductBits => 2.0 * found - self.dim as f32,
        }
    }

    /// Returns the factor by which the product of two rows of scaled numbers is multiplied.
    #[inline]
    fn scale(&self, a: &[u8], b: &[u8]) -> f32 {
        match self.scalar {
            Scalar::Int8 => (float_at(a, self.bytes + 4) / 127.0) * (float_at(b, self.bytes + 4) / 127.0),
            _ => 1.0,
        }
    }

    /// Returns the distance between the vectors of two slots.
    #[inline]
    pub(crate) fn between(&self, a: u32, b: u32) -> f32 {
        self.distance(self.row(a), self.row(b))
    }

    /// Returns the stored form of a row.
    pub(crate) fn stored(&self, row: &[u8]) -> Prepared {
        let range = if self.scalar == Scalar::Int8 { float_at(row, self.bytes + 4) } else { 0.0 };
        Prepared {
            bytes: row[..self.bytes].to_vec(),
            facts: Facts { norm: float_at(row, self.bytes), range },
        }
    }

    /// Returns the vector of a row, with the precision of its stored form.
    pub(crate) fn vector(&self, row: &[u8]) -> Vec<f32> {
        let Prepared { bytes, facts } = self.stored(row);
        restored(&bytes, facts, self.metric, self.scalar, self.dim)
    }

    /// Returns the numbers of a row as the bytes of floats, without restoring the length. O(dimensions).
    pub(crate) fn floats<'r>(&self, row: &'r [u8]) -> Cow<'r, [u8]> {
        if self.scalar == Scalar::F32 {
            return Cow::Borrowed(&row[..self.bytes]);
        }
        let range = if self.scalar == Scalar::Int8 { float_at(row, self.bytes + 4) } else { 0.0 };
        let numbers = decode(&row[..self.bytes], range, self.scalar, self.dim);
        Cow::Owned(numbers.into_iter().flat_map(f32::to_le_bytes).collect())
    }

    /// Returns all rows in contiguous runs, each with the slot of its first row.
    pub(crate) fn runs(&self) -> impl Iterator<Item = (u32, &[u8])> {
        let starts = (0..self.rows.len()).step_by(self.rows.block_rows());
        starts.map(|row| (row as u32, self.rows.run(row, usize::MAX)))
    }

    pub(crate) fn push(&mut self, row: &[u8]) {
        self.rows.push(row);
    }

    pub(crate) fn set(&mut self, slot: u32, row: &[u8]) {
        self.rows.set(slot as usize, row);
    }

    pub(crate) fn swap_remove(&mut self, slot: u32) {
        self.rows.swap_remove(slot as usize);
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.rows.bytes()
    }

    pub(crate) fn recounted_bytes(&self) -> usize {
        self.rows.recounted_bytes()
    }
}

/// Computes the distances between scattered vectors and one row, and prefetches the next ones meanwhile.
#[derive(Debug)]
pub(crate) struct Gather<'s> {
    space: &'s Space,
    /// The rows, looked up once.
    rows: Vec<&'s [u8]>,
}

impl<'s> Gather<'s> {
    /// Creates a gatherer that computes up to `most` distances at a time without an allocation.
    pub(crate) fn new(space: &'s Space, most: usize) -> Gather<'s> {
        Gather { space, rows: Vec::with_capacity(most) }
    }

    /// Passes the distance between each slot and `row` to `visit`.
    #[inline]
    pub(crate) fn measure(&mut self, row: &[u8], slots: &[u32], mut visit: impl FnMut(u32, f32)) {
        let Gather { space, rows } = self;
        let ahead = space.rows_ahead();
        rows.clear();
        rows.extend(slots.iter().map(|&slot| space.row(slot)));
        rows.iter().take(ahead).for_each(|row| kernels::prefetch(row));
        for (at, (&slot, other)) in slots.iter().zip(rows.iter()).enumerate() {
            if let Some(next) = rows.get(at + ahead) {
                kernels::prefetch(next);
            }
            visit(slot, space.distance(row, other));
        }
    }
}
