//! Distances between two stored vectors, computed with the best instructions of the processor.
//!
//! Every kernel takes two rows of bytes as they are stored. Each has a portable version; the kernel is chosen once per
//! index ([`Kernel::choose`]). The tests at the end of this file compare all kernels with the portable ones.
//!
//! A scan compares a row with many contiguous ones. A scan is limited by memory bandwidth, not by computation, so it
//! reads the rows sequentially and prefetches the beginning of the following rows meanwhile. Four rows at a time were
//! tried: scanning 20 MB took two to three times as long, because the processor prefetches one sequence better than
//! four.
#![allow(unsafe_code, reason = "instructions that only some processors have, on bytes of any alignment")]

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::config::Scalar;

/// The measure that a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The sum of products; for bits, the number of differing bits.
    Dot,
    /// The sum of squared differences; for floats of 32 bits only.
    SquaredL2,
}

/// A kernel, which takes pointers to two rows and their length in bytes.
///
/// # Safety
/// Both rows have that many readable bytes, a whole number of scalars (of 8 bytes for bits), and the processor supports
/// the kernel's instructions.
type One = unsafe fn(*const u8, *const u8, usize) -> f32;

/// A function that compares a row with contiguous others by one kernel.
///
/// # Safety
/// The conditions of [`One`], for the first row and each of the others.
type Scan = unsafe fn(*const u8, Rows<'_>, &mut [f32]);

/// Contiguous rows to compare with another one.
#[derive(Clone, Copy)]
struct Rows<'r> {
    /// Pointer to the first row.
    first: *const u8,
    /// Bytes of each row to compare.
    bytes: usize,
    /// Bytes from the beginning of one row to that of the next.
    width: usize,
    /// The rows after these: the scan prefetches as many bytes of them as it compares.
    ahead: &'r [u8],
}

/// A kernel's two functions: for one row and for many.
#[derive(Clone, Copy, Debug)]
struct Raw {
    one: One,
    scan: Scan,
}

/// Creates a kernel from its function for one row; the function for many rows is generated for the same processor
/// features.
macro_rules! raw {
    ($one:ident $(, $features:literal)?) => {{
        $(#[target_feature(enable = $features)])?
        unsafe fn scan(a: *const u8, rows: $crate::kernels::Rows<'_>, found: &mut [f32]) {
            let mut fetched = 0;
            for (at, found) in found.iter_mut().enumerate() {
                let begin = at * rows.width;
                while fetched < rows.ahead.len().min(begin + rows.width) {
                    $crate::kernels::fetch(&rows.ahead[fetched]);
                    fetched += $crate::kernels::LINE_BYTES;
                }
                // SAFETY: guaranteed by the caller.
                *found = unsafe { $one(a, rows.first.add(begin), rows.bytes) };
            }
        }
        $crate::kernels::Raw { one: $one, scan }
    }};
}
use raw;

/// A kernel that this processor supports.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    raw: Raw,
    /// The length of a row must be a multiple of this.
    unit: usize,
}

impl Kernel {
    /// Returns the fastest kernel for rows of `scalar` that this processor supports.
    pub(crate) fn choose(scalar: Scalar, measure: Measure) -> Kernel {
        let raw = fastest(scalar, measure).unwrap_or_else(|| portable::kernel(scalar, measure));
        Kernel { raw, unit: unit(scalar) }
    }

    /// Compares two rows of equal length.
    #[inline]
    pub(crate) fn of(self, a: &[u8], b: &[u8]) -> f32 {
        assert!(a.len() == b.len() && a.len().is_multiple_of(self.unit), "rows are of one index");
        // SAFETY: the lengths were checked, and `choose` has checked the instructions.
        unsafe { (self.raw.one)(a.as_ptr(), b.as_ptr(), a.len()) }
    }

    /// Compares `a` with the beginning of each of the contiguous rows in `rows`, which take `width` bytes each. There
    /// is one row for each element of `found`. Meanwhile prefetches the beginning of `ahead`, up to the size of these
    /// rows.
    #[inline]
    pub(crate) fn of_rows(self, a: &[u8], rows: &[u8], width: usize, ahead: &[u8], found: &mut [f32]) {
        assert!(a.len() <= width && a.len().is_multiple_of(self.unit), "rows are of one index");
        assert!(rows.len() / width >= found.len(), "there is a row for each distance");
        let rows = Rows { first: rows.as_ptr(), bytes: a.len(), width, ahead };
        // SAFETY: as above, for each row.
        unsafe { (self.raw.scan)(a.as_ptr(), rows, found) };
    }
}

/// Returns the unit of row lengths of a scalar, in bytes.
fn unit(scalar: Scalar) -> usize {
    match scalar {
        Scalar::F32 => 4,
        Scalar::F16 | Scalar::Bf16 => 2,
        Scalar::Int8 => 1,
        Scalar::Binary => 8,
    }
}

fn fastest(scalar: Scalar, measure: Measure) -> Option<Raw> {
    #[cfg(target_arch = "x86_64")]
    return x86::kernel(scalar, measure);
    #[cfg(target_arch = "aarch64")]
    return neon::kernel(scalar, measure);
    #[allow(unreachable_code, reason = "other processors run the portable kernel")]
    {
        let _ = (scalar, measure);
        None
    }
}

/// Prefetches a row: all its cache lines, or as many as the processor needs to recognize the sequence.
#[inline]
pub(crate) fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        let begin = row.as_ptr().cast::<i8>();
        let bytes = size_of_val(row).min(PREFETCHED_LINES * LINE_BYTES);
        // The number of prefetches is the same for all rows of a length, at whatever address they begin, so that the
        // processor predicts the end of the loop.
        for at in (0..bytes).step_by(LINE_BYTES).chain([bytes.saturating_sub(1)]) {
            // SAFETY: a prefetch is a hint; it never faults and has no visible effect on the program.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(begin.wrapping_add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Size of a cache line in bytes.
pub(crate) const LINE_BYTES: usize = 64;

/// Prefetches a cache line to the second-level cache, because it is used only after more data than the first-level
/// cache holds.
#[inline]
fn fetch(byte: &u8) {
    // SAFETY: a prefetch is a hint; it never faults and has no visible effect on the program.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(
            std::ptr::from_ref(byte).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

/// The maximum number of prefetched lines per row.
#[cfg(target_arch = "x86_64")]
const PREFETCHED_LINES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::{bf16_from_f32, f16_from_f32};
    use crate::random::split_mix;

    const SCALARS: [Scalar; 5] = [Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::Int8, Scalar::Binary];

    /// Returns one byte, which makes the following bytes unaligned, and `dim` stored numbers of both signs.
    fn row(scalar: Scalar, dim: usize, seed: u64) -> Vec<u8> {
        let number = |at: usize| (split_mix(seed + at as u64) % 2001) as f32 / 1000.0 - 1.0;
        let mut bytes = vec![0];
        for at in 0..dim {
            match scalar {
                Scalar::F32 => bytes.extend(number(at).to_le_bytes()),
                Scalar::F16 => bytes.extend(f16_from_f32(number(at)).to_le_bytes()),
                Scalar::Bf16 => bytes.extend(bf16_from_f32(number(at)).to_le_bytes()),
                Scalar::Int8 => bytes.extend(((number(at) * 127.0) as i8).to_le_bytes()),
                Scalar::Binary => bytes.extend(split_mix(seed + at as u64).to_le_bytes()),
            }
        }
        bytes
    }

    #[test]
    fn every_kernel_agrees_with_the_portable_one_at_every_length() {
        for scalar in SCALARS {
            for measure in [Measure::Dot, Measure::SquaredL2] {
                if measure == Measure::SquaredL2 && scalar != Scalar::F32 {
                    continue;
                }
                let mut kernels =
                    vec![Kernel::choose(scalar, measure).raw, portable::kernel(scalar, measure)];
                #[cfg(target_arch = "x86_64")]
                kernels.extend(x86::kernels(scalar, measure));
                for dim in (1..=300).chain([511, 512, 1023, 1100]) {
                    let (a, b) = (row(scalar, dim, 1), row(scalar, dim, 5_000_000));
                    let (a, b) = (&a[1..], &b[1..]);
                    let portable =
                        Kernel { raw: portable::kernel(scalar, measure), unit: unit(scalar) }.of(a, b);
                    let exact = matches!(scalar, Scalar::Int8 | Scalar::Binary);
                    let tolerance = if exact { 0.0 } else { 1e-6 * dim as f32 };
                    for raw in &kernels {
                        let kernel = Kernel { raw: *raw, unit: unit(scalar) };
                        let found = kernel.of(a, b);
                        // Three rows, each followed by bytes that are not compared.
                        let rows = [b, a, b].map(|row| [row, &[7; 3]].concat()).concat();
                        let mut scanned = [0.0; 3];
                        kernel.of_rows(a, &rows, a.len() + 3, &rows[1..], &mut scanned);
                        assert_eq!(scanned, [found, kernel.of(a, a), found], "{scalar:?} {dim}");
                        assert!(
                            (found - portable).abs() <= tolerance,
                            "{scalar:?} {dim}: {found} {portable}"
                        );
                    }
                }
            }
        }
    }

    #[test]
    fn the_largest_vectors_of_bytes_do_not_overflow() {
        let dim = 65_536;
        for (a, b) in [(127u8, 127u8), (127, 129), (129, 129)] {
            let (row_a, row_b) = (vec![a; dim], vec![b; dim]);
            let expected = (a as i8 as i64 * b as i8 as i64 * dim as i64) as f32;
            assert_eq!(Kernel::choose(Scalar::Int8, Measure::Dot).of(&row_a, &row_b), expected);
            let portable = Kernel { raw: portable::kernel(Scalar::Int8, Measure::Dot), unit: 1 };
            assert_eq!(portable.of(&row_a, &row_b), expected);
        }
    }
}
