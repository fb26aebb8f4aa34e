//! Kernels without processor-specific instructions, written so that compilers can vectorize them.
#![allow(unsafe_code, reason = "the signature is that of all kernels")]

use super::{Measure, Raw, raw};
use crate::config::Scalar;
use crate::quantize::{f32_from_bf16, f32_from_f16};

/// The number of parallel sums.
const LANES: usize = 8;

/// Returns the kernel of a scalar.
pub(super) fn kernel(scalar: Scalar, measure: Measure) -> Raw {
    match (scalar, measure) {
        (Scalar::F32, Measure::Dot) => raw!(dot_f32),
        (Scalar::F32, Measure::SquaredL2) => raw!(squared_l2_f32),
        (Scalar::F16, _) => raw!(dot_f16),
        (Scalar::Bf16, _) => raw!(dot_bf16),
        (Scalar::Int8, _) => raw!(dot_i8),
        (Scalar::Binary, _) => raw!(differing_bits),
    }
}

/// # Safety
/// The conditions of [`One`](super::One).
unsafe fn slices<'a>(a: *const u8, b: *const u8, bytes: usize) -> (&'a [u8], &'a [u8]) {
    // SAFETY: guaranteed by the caller.
    unsafe { (std::slice::from_raw_parts(a, bytes), std::slice::from_raw_parts(b, bytes)) }
}

/// Sums the results of `combine` for pairs of scalars of `N` bytes.
fn sum<const N: usize>(a: &[u8], b: &[u8], combine: impl Fn([u8; N], [u8; N]) -> f32) -> f32 {
    let mut lanes = [0.0f32; LANES];
    let (a, b) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    for (a, b) in a.chunks(LANES).zip(b.chunks(LANES)) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += combine(a, b);
        }
    }
    lanes.iter().sum()
}

unsafe fn dot_f32(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    sum(a, b, |a, b| f32::from_le_bytes(a) * f32::from_le_bytes(b))
}

unsafe fn squared_l2_f32(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    sum(a, b, |a, b| {
        let difference = f32::from_le_bytes(a) - f32::from_le_bytes(b);
        difference * difference
    })
}

unsafe fn dot_f16(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    sum(a, b, |a, b| f32_from_f16(u16::from_le_bytes(a)) * f32_from_f16(u16::from_le_bytes(b)))
}

unsafe fn dot_bf16(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    sum(a, b, |a, b| f32_from_bf16(u16::from_le_bytes(a)) * f32_from_bf16(u16::from_le_bytes(b)))
}

unsafe fn dot_i8(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    // 65,536 products of at most 16,384 are below 2^31.
    a.iter().zip(b).map(|(&a, &b)| i32::from(a as i8) * i32::from(b as i8)).sum::<i32>() as f32
}

unsafe fn differing_bits(a: *const u8, b: *const u8, bytes: usize) -> f32 {
    // SAFETY: guaranteed by the caller.
    let (a, b) = unsafe { slices(a, b, bytes) };
    let words = a.as_chunks::<8>().0.iter().zip(b.as_chunks::<8>().0);
    words.map(|(a, b)| (u64::from_le_bytes(*a) ^ u64::from_le_bytes(*b)).count_ones()).sum::<u32>() as f32
}
