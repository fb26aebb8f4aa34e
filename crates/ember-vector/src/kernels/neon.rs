//! Kernels for AArch64, whose processors all support NEON. The portable kernels cover the rest.
#![allow(unsafe_code, reason = "instructions on bytes of any alignment")]

use std::arch::aarch64::*;

use super::{Measure, Raw, raw};
use crate::config::Scalar;

/// Returns the kernel of a scalar; `None` if only the portable kernel exists.
pub(super) fn kernel(scalar: Scalar, measure: Measure) -> Option<Raw> {
    match (scalar, measure) {
        (Scalar::F32, Measure::Dot) => Some(raw!(dot_f32, "neon")),
        (Scalar::F32, Measure::SquaredL2) => Some(raw!(l2_f32, "neon")),
        (Scalar::Int8, _) => Some(raw!(dot_i8, "neon")),
        (Scalar::Binary, _) => Some(raw!(bits, "neon")),
        (Scalar::F16 | Scalar::Bf16, _) => None,
    }
}

/// # Safety
/// The conditions of [`One`](super::One); the same holds for all following kernels.
#[target_feature(enable = "neon")]
#[inline]
unsafe fn dot_f32(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let (a, b, count) = (a.cast::<f32>(), b.cast::<f32>(), bytes / 4);
    let mut sum = vdupq_n_f32(0.0);
    let whole = count / 4 * 4;
    // SAFETY: all reads are below `count`.
    unsafe {
        for at in (0..whole).step_by(4) {
            sum = vfmaq_f32(sum, vld1q_f32(a.add(at)), vld1q_f32(b.add(at)));
        }
        let rest = (whole..count).map(|at| a.add(at).read_unaligned() * b.add(at).read_unaligned());
        vaddvq_f32(sum) + rest.sum::<f32>()
    }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn l2_f32(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let (a, b, count) = (a.cast::<f32>(), b.cast::<f32>(), bytes / 4);
    let mut sum = vdupq_n_f32(0.0);
    let whole = count / 4 * 4;
    // SAFETY: all reads are below `count`.
    unsafe {
        for at in (0..whole).step_by(4) {
            let x = vsubq_f32(vld1q_f32(a.add(at)), vld1q_f32(b.add(at)));
            sum = vfmaq_f32(sum, x, x);
        }
        let rest = (whole..count).map(|at| (a.add(at).read_unaligned() - b.add(at).read_unaligned()).powi(2));
        vaddvq_f32(sum) + rest.sum::<f32>()
    }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn dot_i8(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let (a, b) = (a.cast::<i8>(), b.cast::<i8>());
    let mut sum = vdupq_n_s32(0);
    let whole = bytes / 16 * 16;
    // SAFETY: all reads are below `bytes`.
    unsafe {
        for at in (0..whole).step_by(16) {
            let (x, y) = (vld1q_s8(a.add(at)), vld1q_s8(b.add(at)));
            sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(x), vget_low_s8(y)));
            sum = vpadalq_s16(sum, vmull_high_s8(x, y));
        }
        let rest = (whole..bytes).map(|at| i32::from(*a.add(at)) * i32::from(*b.add(at)));
        (vaddvq_s32(sum) + rest.sum::<i32>()) as f32
    }
}

#[target_feature(enable = "neon")]
#[inline]
unsafe fn bits(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    let mut sum = vdupq_n_u64(0);
    let whole = bytes / 16 * 16;
    // SAFETY: all reads are below `bytes`; rows of bits are whole words.
    unsafe {
        for at in (0..whole).step_by(16) {
            let ones = vcntq_u8(veorq_u8(vld1q_u8(a.add(at)), vld1q_u8(b.add(at))));
            sum = vpadalq_u32(sum, vpaddlq_u16(vpaddlq_u8(ones)));
        }
        let mut count = vaddvq_u64(sum);
        if whole < bytes {
            let word = |row: *const u8| row.add(whole).cast::<u64>().read_unaligned();
            count += u64::from((word(a) ^ word(b)).count_ones());
        }
        count as f32
    }
}
