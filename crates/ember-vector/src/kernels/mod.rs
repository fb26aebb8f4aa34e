//! Distances of two stored vectors, by the instructions that the processor has.
//!
//! Every kernel takes two rows of bytes as they are stored. There is a portable version of each; which one is used is
//! chosen once for an index ([`Kernel::choose`]). All are held to the portable ones by the tests at the foot of this file.
//!
//! A scan compares a row with many that lie one behind the other. It waits for memory, not for sums, so it reads them in one
//! sequence and has the beginning of what comes next fetched meanwhile. Four rows at a time were tried: 20 MB took two to
//! three times as long, because the processor follows one sequence better than four.
#![allow(unsafe_code, reason = "instructions that only some processors have, on bytes of any alignment")]

#[cfg(target_arch = "aarch64")]
mod neon;
mod portable;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::config::Scalar;

/// What a kernel computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Measure {
    /// The sum of products; of bits, of which it is the number that differs.
    Dot,
    /// The sum of squared differences; of floats of 32 bits only.
    SquaredL2,
}

/// A kernel: takes the beginnings of two rows and their bytes.
///
/// # Safety
/// Both rows have so many readable bytes, a whole number of scalars (of 8 bytes for bits), and the processor has the
/// instructions that the kernel is made of.
type One = unsafe fn(*const u8, *const u8, usize) -> f32;

/// Compares a row with others that lie one behind the other, all by the same kernel.
///
/// # Safety
/// That of [`One`], for the first row and each of the others.
type Scan = unsafe fn(*const u8, Rows<'_>, &mut [f32]);

/// Rows that another one is compared with.
#[derive(Clone, Copy)]
struct Rows<'r> {
    /// Where the first begins.
    first: *const u8,
    /// Bytes of each that are compared.
    bytes: usize,
    /// Bytes from the beginning of one to that of the next.
    width: usize,
    /// What is looked at next: as much of it is fetched as is looked at here.
    ahead: &'r [u8],
}

/// A kernel for one row and for many.
#[derive(Clone, Copy, Debug)]
struct Raw {
    one: One,
    scan: Scan,
}

/// The kernel whose function for one row this is; that for many is made of it, for the same features of the processor.
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
                // SAFETY: the caller's promise.
                *found = unsafe { $one(a, rows.first.add(begin), rows.bytes) };
            }
        }
        $crate::kernels::Raw { one: $one, scan }
    }};
}
use raw;

/// A kernel that this processor can run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Kernel {
    raw: Raw,
    /// The bytes of a row are a multiple of this.
    unit: usize,
}

impl Kernel {
    /// The fastest kernel for rows of `scalar` that this processor can run.
    pub(crate) fn choose(scalar: Scalar, measure: Measure) -> Kernel {
        let raw = fastest(scalar, measure).unwrap_or_else(|| portable::kernel(scalar, measure));
        Kernel { raw, unit: unit(scalar) }
    }

    /// What it says of two rows of equal length.
    #[inline]
    pub(crate) fn of(self, a: &[u8], b: &[u8]) -> f32 {
        assert!(a.len() == b.len() && a.len().is_multiple_of(self.unit), "rows are of one index");
        // SAFETY: the lengths were checked, and `choose` has looked for the instructions.
        unsafe { (self.raw.one)(a.as_ptr(), b.as_ptr(), a.len()) }
    }

    /// What it says of a row and as many bytes of each of those that lie one behind the other in `rows`, `width` bytes each:
    /// as many as `found` has room for. As much of `ahead` is fetched meanwhile.
    #[inline]
    pub(crate) fn of_rows(self, a: &[u8], rows: &[u8], width: usize, ahead: &[u8], found: &mut [f32]) {
        assert!(a.len() <= width && a.len().is_multiple_of(self.unit), "rows are of one index");
        assert!(rows.len() / width >= found.len(), "there is a row for each distance");
        let rows = Rows { first: rows.as_ptr(), bytes: a.len(), width, ahead };
        // SAFETY: as above, for each row.
        unsafe { (self.raw.scan)(a.as_ptr(), rows, found) };
    }
}

/// The bytes that rows of a scalar are multiples of.
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
    #[allow(unreachable_code, reason = "other processors run what is portable")]
    {
        let _ = (scalar, measure);
        None
    }
}

/// Asks the processor to fetch a row: all lines of it, or as many as it takes the processor to see the sequence.
#[inline]
pub(crate) fn prefetch<T>(row: &[T]) {
    #[cfg(target_arch = "x86_64")]
    {
        let begin = row.as_ptr().cast::<i8>();
        let bytes = size_of_val(row).min(PREFETCHED_LINES * LINE_BYTES);
        // As many for all rows of a length, wherever they begin: so the processor knows beforehand when it ends.
        for at in (0..bytes).step_by(LINE_BYTES).chain([bytes.saturating_sub(1)]) {
            // SAFETY: a prefetch is a hint; it never faults and reads nothing the program can see.
            unsafe {
                std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(begin.wrapping_add(at));
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}

/// Bytes of a line of the cache.
pub(crate) const LINE_BYTES: usize = 64;

/// Asks the processor to fetch a line, which is needed only after more than the nearest cache holds.
#[inline]
fn fetch(byte: &u8) {
    // SAFETY: a prefetch is a hint; it never faults and reads nothing the program can see.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T1 }>(
            std::ptr::from_ref(byte).cast(),
        );
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = byte;
}

/// Lines of a row that are asked for at most.
#[cfg(target_arch = "x86_64")]
const PREFETCHED_LINES: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quantize::{bf16_from_f32, f16_from_f32};
    use crate::random::split_mix;

    const SCALARS: [Scalar; 5] = [Scalar::F32, Scalar::F16, Scalar::Bf16, Scalar::Int8, Scalar::Binary];

    /// Stored numbers of both signs, `dim` of them, not aligned to anything.
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
                        // Three rows with bytes behind each that are not compared.
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
