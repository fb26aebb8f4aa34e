//! Count-min sketches: estimates of how often items were counted, which are never too low (Cormode, Muthukrishnan, "An
//! Improved Data Stream Summary", 2005).
//!
//! A row per hash function; each item has one counter in each row, and its estimate is the lowest of them.

use super::blocks::Blocks;
use super::{BYTES_MAX, TooLarge};
use crate::algorithms::murmur::murmur2;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The bytes of a counter.
const COUNTER_BYTES: usize = 4;

#[derive(Clone, Debug)]
struct Rows {
    width: u64,
    depth: u64,
    /// The sum of all counts.
    total: u64,
    counters: Blocks,
}

/// The value of a key that holds a count-min sketch. The empty value has no counters yet.
#[derive(Clone, Debug, Default)]
pub struct CountMin(Option<Box<Rows>>);

/// The sum of counters is outside the range of a counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow;

impl Rows {
    /// Returns the offset of an item's counter in a row, whose number is the seed of its hash.
    fn offset(&self, item: &[u8], row: u64) -> usize {
        let column = u64::from(murmur2(item, row as u32)) % self.width;
        (row * self.width + column) as usize * COUNTER_BYTES
    }
}

/// Returns the counter at `offset`.
fn counter(counters: &Blocks, offset: usize) -> u32 {
    u32::from_le_bytes(std::array::from_fn(|at| counters.get(offset + at)))
}

/// Returns the width and depth of a sketch whose estimates are too high by more than the part `error` of all counts only
/// with `probability`. Both are between 0 and 1; the results may be infinite or 0.
pub fn dimensions(error: f64, probability: f64) -> (f64, f64) {
    // RedisBloom computes the depth in single precision.
    let depth = (probability as f32).log10() / 0.5f32.log10();
    ((2.0 / error).ceil(), f64::from(depth).ceil())
}

impl CountMin {
    fn rows(&self) -> &Rows {
        self.0.as_deref().expect("a sketch that is kept has counters")
    }

    /// Returns a sketch whose counters are 0. Width and depth must not be 0.
    ///
    /// # Errors
    /// Returns an error if the counters would exceed [`BYTES_MAX`].
    pub fn new(width: u64, depth: u64) -> Result<CountMin, TooLarge> {
        let bytes = width.checked_mul(depth).and_then(|count| count.checked_mul(COUNTER_BYTES as u64));
        let bytes = bytes.filter(|&bytes| bytes <= BYTES_MAX as u64).ok_or(TooLarge)?;
        let counters = Blocks::zeros(bytes as usize);
        Ok(CountMin(Some(Box::new(Rows { width, depth, total: 0, counters }))))
    }

    /// Returns a sketch with these counters; `None` if the values contradict each other.
    pub fn from_counters(width: u64, depth: u64, total: u64, counters: Blocks) -> Option<CountMin> {
        let bytes = width.checked_mul(depth)?.checked_mul(COUNTER_BYTES as u64)?;
        let is_valid = bytes > 0 && bytes <= BYTES_MAX as u64 && bytes == counters.len() as u64;
        is_valid.then(|| CountMin(Some(Box::new(Rows { width, depth, total, counters }))))
    }

    /// Returns the number of counters per row.
    pub fn width(&self) -> u64 {
        self.rows().width
    }

    /// Returns the number of rows.
    pub fn depth(&self) -> u64 {
        self.rows().depth
    }

    /// Returns the sum of all counts, modulo 2^64.
    pub fn total(&self) -> u64 {
        self.rows().total
    }

    /// Returns the counters.
    pub fn counters(&self) -> &Blocks {
        &self.rows().counters
    }

    /// Increases the count of an item, which stays at `u32::MAX` when it would exceed that; returns its estimate.
    /// O(depth).
    pub fn increment(&mut self, item: &[u8], by: u64) -> u32 {
        let rows = self.0.as_deref_mut().expect("a sketch that is kept has counters");
        let mut estimate = u32::MAX;
        for row in 0..rows.depth {
            let offset = rows.offset(item, row);
            // As in RedisBloom, the sum wraps around if only the higher bits of the increment exceed a counter.
            let sum = counter(&rows.counters, offset).wrapping_add(by as u32);
            let sum = if u64::from(sum) < by { u32::MAX } else { sum };
            rows.counters.write(offset, &sum.to_le_bytes());
            estimate = estimate.min(sum);
        }
        rows.total = rows.total.wrapping_add(by);
        estimate
    }

    /// Returns the estimate of an item's count. O(depth).
    pub fn estimate(&self, item: &[u8]) -> u32 {
        let rows = self.rows();
        let estimates = (0..rows.depth).map(|row| counter(&rows.counters, rows.offset(item, row)));
        estimates.min().unwrap_or(u32::MAX)
    }

    /// Returns the sum of sketches with equal dimensions, each multiplied by its weight. O(sources · counters).
    ///
    /// # Errors
    /// Returns an error if a counter or the sum of all counts would be negative or exceed its range.
    pub fn weighted_sum(&self, sources: &[(&CountMin, i64)]) -> Result<CountMin, Overflow> {
        let rows = self.rows();
        let mut counters = Blocks::zeros(rows.counters.len());
        let mut pieces: Vec<_> =
            sources.iter().map(|(source, _)| source.counters().pieces(0..counters.len())).collect();
        let (mut at, mut sums) = (0, Vec::new());
        while at < counters.len() {
            sums.clear();
            for (pieces, (_, weight)) in pieces.iter_mut().zip(sources) {
                let piece = pieces.next().expect("sketches of equal dimensions have equal pieces");
                let (piece, _) = piece.as_chunks::<COUNTER_BYTES>();
                sums.resize(piece.len(), 0i64);
                for (sum, bytes) in sums.iter_mut().zip(piece) {
                    let part = i64::from(u32::from_le_bytes(*bytes)).checked_mul(*weight);
                    *sum = part.and_then(|part| sum.checked_add(part)).ok_or(Overflow)?;
                }
            }
            if sums.is_empty() {
                break;
            }
            let bytes = sums.iter().map(|&sum| u32::try_from(sum).map(u32::to_le_bytes));
            let bytes: Vec<[u8; COUNTER_BYTES]> = bytes.collect::<Result<_, _>>().map_err(|_| Overflow)?;
            counters.write(at, bytes.as_flattened());
            at += bytes.as_flattened().len();
        }
        let parts = sources.iter().map(|&(source, weight)| i128::from(source.total()) * i128::from(weight));
        let mut parts = parts.map(|part| i64::try_from(part).ok());
        let total = parts.try_fold(0i64, |sum, part| sum.checked_add(part?));
        let total = total.and_then(|total| u64::try_from(total).ok()).ok_or(Overflow)?;
        Ok(CountMin(Some(Box::new(Rows { width: rows.width, depth: rows.depth, total, counters }))))
    }
}

impl Collection for CountMin {
    const TYPE: ValueType = ValueType::CountMin;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| size_class(size_of::<Rows>()) + rows.counters.memory_bytes())
    }

    /// Returns the sum of all counts: the sketch does not know how many different items it has counted.
    fn len(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| usize::try_from(rows.total).unwrap_or(usize::MAX))
    }

    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn free_effort(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| 1 + rows.counters.count())
    }

    fn move_inside(&mut self, _: u64, _: usize, _: &mut Mover<'_>) -> u64 {
        0
    }

    fn is_shared_in_parts(&self) -> bool {
        true
    }

    fn check_invariants(&self) {
        let Some(rows) = &self.0 else { return };
        assert_eq!(rows.counters.len() as u64, rows.width * rows.depth * COUNTER_BYTES as u64);
        rows.counters.check_invariants();
    }
}
