//! Kernels for x86-64: AVX-512 if the processor has all extensions used here, otherwise AVX2.
#![allow(unsafe_code, reason = "instructions that only some processors have, on bytes of any alignment")]

use std::arch::x86_64::*;

use super::{Measure, Raw, raw};
use crate::config::Scalar;

/// Returns the fastest kernel of a scalar that this processor supports.
pub(super) fn kernel(scalar: Scalar, measure: Measure) -> Option<Raw> {
    kernels(scalar, measure).first().copied()
}

/// Returns all kernels of a scalar that this processor supports, the fastest first.
pub(super) fn kernels(scalar: Scalar, measure: Measure) -> Vec<Raw> {
    let mut kernels: Vec<Raw> = Vec::new();
    let has_avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
    let has_vnni = has_avx512 && is_x86_feature_detected!("avx512vnni");
    let has_popcnt = has_avx512 && is_x86_feature_detected!("avx512vpopcntdq");
    let has_avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("popcnt");
    let (best, second): (Option<Raw>, Raw) = match (scalar, measure) {
        (Scalar::F32, Measure::Dot) => (
            has_avx512.then_some(raw!(dot_f32_512, "avx512f,avx512bw")),
            raw!(dot_f32_256, "avx2,fma,f16c,popcnt"),
        ),
        (Scalar::F32, Measure::SquaredL2) => (
            has_avx512.then_some(raw!(l2_f32_512, "avx512f,avx512bw")),
            raw!(l2_f32_256, "avx2,fma,f16c,popcnt"),
        ),
        (Scalar::F16, _) => (
            has_avx512.then_some(raw!(dot_f16_512, "avx512f,avx512bw")),
            raw!(dot_f16_256, "avx2,fma,f16c,popcnt"),
        ),
        (Scalar::Bf16, _) => (
            has_avx512.then_some(raw!(dot_bf16_512, "avx512f,avx512bw")),
            raw!(dot_bf16_256, "avx2,fma,f16c,popcnt"),
        ),
        (Scalar::Int8, _) => (
            has_vnni.then_some(raw!(dot_i8_512, "avx512f,avx512bw,avx512vnni")),
            raw!(dot_i8_256, "avx2,fma,f16c,popcnt"),
        ),
        (Scalar::Binary, _) => {
            let best = raw!(bits_512, "avx512f,avx512bw,avx512vpopcntdq");
            (has_popcnt.then_some(best), raw!(bits_256, "avx2,fma,f16c,popcnt"))
        }
    };
    kernels.extend(best);
    kernels.extend(has_avx2.then_some(second));
    kernels
}

/// Returns the mask of the last vector, in which only `left` of 16 lanes are used.
#[inline]
fn mask16(left: usize) -> __mmask16 {
    ((1u32 << left) - 1) as __mmask16
}

/// # Safety
/// The conditions of [`One`](super::One); the same holds for all following kernels.
#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn dot_f32_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let (a, b, count) = (a.cast::<f32>(), b.cast::<f32>(), bytes / 4);
    let mut sums = [_mm512_setzero_ps(); 4];
    let mut at = 0;
    // SAFETY: all loads are below `count`; masked lanes are not loaded.
    unsafe {
        while at + 64 <= count {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 16;
                *sum = _mm512_fmadd_ps(_mm512_loadu_ps(a.add(at)), _mm512_loadu_ps(b.add(at)), *sum);
            }
            at += 64;
        }
        while at < count {
            let mask = if count - at >= 16 { !0 } else { mask16(count - at) };
            let (x, y) = (_mm512_maskz_loadu_ps(mask, a.add(at)), _mm512_maskz_loadu_ps(mask, b.add(at)));
            sums[0] = _mm512_fmadd_ps(x, y, sums[0]);
            at += 16;
        }
    }
    let sum = _mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3]));
    _mm512_reduce_add_ps(sum)
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn l2_f32_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let (a, b, count) = (a.cast::<f32>(), b.cast::<f32>(), bytes / 4);
    let mut sums = [_mm512_setzero_ps(); 2];
    let mut at = 0;
    // SAFETY: all loads are below `count`; masked lanes are not loaded.
    unsafe {
        while at + 32 <= count {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 16;
                let x = _mm512_sub_ps(_mm512_loadu_ps(a.add(at)), _mm512_loadu_ps(b.add(at)));
                *sum = _mm512_fmadd_ps(x, x, *sum);
            }
            at += 32;
        }
        while at < count {
            let mask = if count - at >= 16 { !0 } else { mask16(count - at) };
            let (x, y) = (_mm512_maskz_loadu_ps(mask, a.add(at)), _mm512_maskz_loadu_ps(mask, b.add(at)));
            let x = _mm512_sub_ps(x, y);
            sums[0] = _mm512_fmadd_ps(x, x, sums[0]);
            at += 16;
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn dot_f16_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sums = [_mm512_setzero_ps(); 2];
    let whole = bytes / 64 * 64;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 32;
                let x = _mm512_cvtph_ps(_mm256_loadu_si256(a.add(at).cast()));
                let y = _mm512_cvtph_ps(_mm256_loadu_si256(b.add(at).cast()));
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
            at += 64;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        for at in [0, 32] {
            let x = _mm512_cvtph_ps(_mm256_loadu_si256(a.as_ptr().add(at).cast()));
            let y = _mm512_cvtph_ps(_mm256_loadu_si256(b.as_ptr().add(at).cast()));
            sums[0] = _mm512_fmadd_ps(x, y, sums[0]);
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

/// Returns the rest of a row, padded with zeros.
///
/// # Safety
/// The row has `bytes` readable bytes, and fewer than 65 of them are at or after `at`.
#[inline]
unsafe fn tail(row: *const u8, at: usize, bytes: usize) -> [u8; 64] {
    let mut rest = [0; 64];
    // SAFETY: guaranteed by the caller.
    unsafe { std::ptr::copy_nonoverlapping(row.add(at), rest.as_mut_ptr(), bytes - at) };
    rest
}

#[target_feature(enable = "avx512f,avx512bw")]
#[inline]
unsafe fn dot_bf16_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    #[target_feature(enable = "avx512f,avx512bw")]
    fn widened(half: __m256i) -> __m512 {
        _mm512_castsi512_ps(_mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(half)))
    }
    let mut sums = [_mm512_setzero_ps(); 2];
    let whole = bytes / 64 * 64;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 32;
                let x = widened(_mm256_loadu_si256(a.add(at).cast()));
                let y = widened(_mm256_loadu_si256(b.add(at).cast()));
                *sum = _mm512_fmadd_ps(x, y, *sum);
            }
            at += 64;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        for at in [0, 32] {
            let x = widened(_mm256_loadu_si256(a.as_ptr().add(at).cast()));
            let y = widened(_mm256_loadu_si256(b.as_ptr().add(at).cast()));
            sums[0] = _mm512_fmadd_ps(x, y, sums[0]);
        }
    }
    _mm512_reduce_add_ps(_mm512_add_ps(sums[0], sums[1]))
}

/// Computes a dot product. The instruction multiplies unsigned by signed numbers, so it receives `a` + 128, and 128
/// times the sum of `b` is subtracted.
#[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
#[inline]
unsafe fn dot_i8_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let offset = _mm512_set1_epi8(-128);
    let (mut products, mut corrections) = (_mm512_setzero_si512(), _mm512_setzero_si512());
    let mut at = 0;
    // SAFETY: all loads are below `bytes`; masked lanes are not loaded.
    unsafe {
        while at < bytes {
            let left = bytes - at;
            let mask: __mmask64 = if left >= 64 { !0 } else { (1 << left) - 1 };
            let x = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, a.add(at).cast()), offset);
            let y = _mm512_maskz_loadu_epi8(mask, b.add(at).cast());
            products = _mm512_dpbusd_epi32(products, x, y);
            corrections = _mm512_dpbusd_epi32(corrections, offset, y);
            at += 64;
        }
    }
    _mm512_reduce_add_epi32(_mm512_sub_epi32(products, corrections)) as f32
}

#[target_feature(enable = "avx512f,avx512bw,avx512vpopcntdq")]
#[inline]
unsafe fn bits_512(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sum = _mm512_setzero_si512();
    let mut at = 0;
    // SAFETY: all loads are below `bytes`; masked lanes are not loaded.
    unsafe {
        while at < bytes {
            let left = bytes - at;
            let mask: __mmask64 = if left >= 64 { !0 } else { (1 << left) - 1 };
            let x = _mm512_maskz_loadu_epi8(mask, a.add(at).cast());
            let y = _mm512_maskz_loadu_epi8(mask, b.add(at).cast());
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(_mm512_xor_si512(x, y)));
            at += 64;
        }
    }
    _mm512_reduce_add_epi64(sum) as f32
}

#[target_feature(enable = "avx2,fma")]
fn sum_of(lanes: __m256) -> f32 {
    let four = _mm_add_ps(_mm256_castps256_ps128(lanes), _mm256_extractf128_ps::<1>(lanes));
    let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
    _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn dot_f32_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 2];
    let whole = bytes / 64 * 64;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 32;
                let (x, y) = (_mm256_loadu_ps(a.add(at).cast()), _mm256_loadu_ps(b.add(at).cast()));
                *sum = _mm256_fmadd_ps(x, y, *sum);
            }
            at += 64;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        for at in [0, 32] {
            let x = _mm256_loadu_ps(a.as_ptr().add(at).cast());
            sums[0] = _mm256_fmadd_ps(x, _mm256_loadu_ps(b.as_ptr().add(at).cast()), sums[0]);
        }
    }
    sum_of(_mm256_add_ps(sums[0], sums[1]))
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn l2_f32_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sums = [_mm256_setzero_ps(); 2];
    let whole = bytes / 64 * 64;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            for (lane, sum) in sums.iter_mut().enumerate() {
                let at = at + lane * 32;
                let x = _mm256_sub_ps(_mm256_loadu_ps(a.add(at).cast()), _mm256_loadu_ps(b.add(at).cast()));
                *sum = _mm256_fmadd_ps(x, x, *sum);
            }
            at += 64;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        for at in [0, 32] {
            let x = _mm256_loadu_ps(a.as_ptr().add(at).cast());
            let x = _mm256_sub_ps(x, _mm256_loadu_ps(b.as_ptr().add(at).cast()));
            sums[0] = _mm256_fmadd_ps(x, x, sums[0]);
        }
    }
    sum_of(_mm256_add_ps(sums[0], sums[1]))
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn dot_f16_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sum = _mm256_setzero_ps();
    let whole = bytes / 16 * 16;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            let x = _mm256_cvtph_ps(_mm_loadu_si128(a.add(at).cast()));
            sum = _mm256_fmadd_ps(x, _mm256_cvtph_ps(_mm_loadu_si128(b.add(at).cast())), sum);
            at += 16;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        let x = _mm256_cvtph_ps(_mm_loadu_si128(a.as_ptr().cast()));
        sum = _mm256_fmadd_ps(x, _mm256_cvtph_ps(_mm_loadu_si128(b.as_ptr().cast())), sum);
    }
    sum_of(sum)
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn dot_bf16_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    #[target_feature(enable = "avx2")]
    fn widened(half: __m128i) -> __m256 {
        _mm256_castsi256_ps(_mm256_slli_epi32::<16>(_mm256_cvtepu16_epi32(half)))
    }
    let mut sum = _mm256_setzero_ps();
    let whole = bytes / 16 * 16;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            let x = widened(_mm_loadu_si128(a.add(at).cast()));
            sum = _mm256_fmadd_ps(x, widened(_mm_loadu_si128(b.add(at).cast())), sum);
            at += 16;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        let x = widened(_mm_loadu_si128(a.as_ptr().cast()));
        sum = _mm256_fmadd_ps(x, widened(_mm_loadu_si128(b.as_ptr().cast())), sum);
    }
    sum_of(sum)
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn dot_i8_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sum = _mm256_setzero_si256();
    let whole = bytes / 16 * 16;
    let mut at = 0;
    // SAFETY: all loads are below `bytes`.
    unsafe {
        while at < whole {
            let x = _mm256_cvtepi8_epi16(_mm_loadu_si128(a.add(at).cast()));
            let y = _mm256_cvtepi8_epi16(_mm_loadu_si128(b.add(at).cast()));
            sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
            at += 16;
        }
        let (a, b) = (tail(a, at, bytes), tail(b, at, bytes));
        let x = _mm256_cvtepi8_epi16(_mm_loadu_si128(a.as_ptr().cast()));
        let y = _mm256_cvtepi8_epi16(_mm_loadu_si128(b.as_ptr().cast()));
        sum = _mm256_add_epi32(sum, _mm256_madd_epi16(x, y));
    }
    let four = _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256::<1>(sum));
    let two = _mm_add_epi32(four, _mm_shuffle_epi32::<0b01_00_11_10>(four));
    _mm_cvtsi128_si32(_mm_add_epi32(two, _mm_shuffle_epi32::<0b10_11_00_01>(two))) as f32
}

#[target_feature(enable = "avx2,fma,f16c,popcnt")]
#[inline]
unsafe fn bits_256(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sum = 0;
    for at in (0..bytes).step_by(8) {
        // SAFETY: rows of bits are whole words.
        let (x, y) =
            unsafe { (a.add(at).cast::<u64>().read_unaligned(), b.add(at).cast::<u64>().read_unaligned()) };
        sum += (x ^ y).count_ones();
    }
    sum as f32
}
