//! Low-level memory functions: size classes of the allocator, prefetching of cache lines, views of shared buffers.
//!
//! This is the lowest layer: it does not depend on entries and types, which compute their memory with [`size_class`].
#![allow(
    unsafe_code,
    reason = "a prefetch is an intrinsic; a view of shared bytes can become an owner of them"
)]

pub mod moving;
pub mod reclaim;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The minimum size in bytes of allocations that are mapped separately, in whole pages; jemalloc serves smaller ones.
pub const MAPPED_MIN_BYTES: usize = 32 << 20;

/// Whether the program's allocator keeps the promise of [`promise_zeros_on_growth`].
static ZEROS_ON_GROWTH: AtomicBool = AtomicBool::new(false);

/// Declares that an allocation of at least [`MAPPED_MIN_BYTES`] contains zeros after its old bytes when it has grown.
/// Values then grow without writing to the new pages.
///
/// # Safety
/// The global allocator must behave like this from now on.
pub unsafe fn promise_zeros_on_growth() {
    ZEROS_ON_GROWTH.store(true, Ordering::Relaxed);
}

/// Returns whether an allocation of `capacity` bytes contains zeros after its old bytes when it has grown.
pub(crate) fn grows_by_zeros(capacity: usize) -> bool {
    capacity >= MAPPED_MIN_BYTES && ZEROS_ON_GROWTH.load(Ordering::Relaxed)
}

/// The size of a memory page in bytes.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The base-2 logarithm of jemalloc's quantum: small allocations are multiples of the quantum. The build sets it
/// (`.cargo/config.toml`); otherwise jemalloc's default of 4 applies, which is 16 bytes.
const LG_QUANTUM: u32 = digit_or(option_env!("JEMALLOC_SYS_WITH_LG_QUANTUM"), 4);

/// The base-2 logarithm of the number of size classes per doubling; 2, for four classes, if the build does not set it.
const LG_CLASSES: u32 = digit_or(option_env!("JEMALLOC_LG_GROUP"), 2);

const _: () = assert!(3 <= LG_QUANTUM && LG_QUANTUM <= 4 && 2 <= LG_CLASSES && LG_CLASSES <= 4);

/// The only size class below the quantum in bytes, which exists only if the quantum is 16 bytes.
const TINY_BYTES: usize = 8;

const fn digit_or(text: Option<&str>, other: u32) -> u32 {
    match text {
        Some(text) => (text.as_bytes()[0] - b'0') as u32,
        None => other,
    }
}

/// Returns the bytes that the allocator reserves for a request of `bytes`, which are at least 1. This is the next of
/// jemalloc's size classes: small classes are multiples of the quantum, larger ones increase by a fraction of the size,
/// at most by a page.
#[inline]
pub const fn size_class(bytes: usize) -> usize {
    if bytes <= 1 << (LG_QUANTUM + LG_CLASSES + 1) {
        return if bytes <= TINY_BYTES { TINY_BYTES } else { bytes.next_multiple_of(1 << LG_QUANTUM) };
    }
    let step = 1 << ((bytes - 1).ilog2() - LG_CLASSES);
    bytes.next_multiple_of(if step < PAGE_BYTES { step } else { PAGE_BYTES })
}

/// Returns the bytes of a vector's buffer, rounded up to the allocator's size class.
pub fn buffer_bytes<T>(vector: &Vec<T>) -> usize {
    if vector.capacity() == 0 { 0 } else { size_class(vector.capacity() * size_of::<T>()) }
}

/// Returns the capacity, for at least `bytes`, of a buffer that grows in steps. A step is a quarter of the size, so
/// that the contents are moved only a few times. From [`MAPPED_MIN_BYTES`] on, steps are whole pages, because growth
/// then moves pages instead of bytes. The capacity is a size class.
pub fn capacity_class(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
    }
    let step = if bytes < MAPPED_MIN_BYTES { 1 << ((bytes - 1).ilog2() - 2) } else { PAGE_BYTES };
    bytes.next_multiple_of(step)
}

/// Prefetches the cache line at `address`, which need not be a valid address.
#[inline]
pub fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it never faults and reads nothing the program can see.
    unsafe {
        std::arch::x86_64::_mm_prefetch::<{ std::arch::x86_64::_MM_HINT_T0 }>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// A view of a byte string that is owned through a shared pointer (`Arc`).
#[derive(Clone, Copy, Debug)]
pub struct LargeRef<'a>(&'a Vec<u8>);

impl<'a> LargeRef<'a> {
    /// Returns a view of shared bytes.
    ///
    /// # Safety
    /// `bytes` must be the result of `Arc::into_raw` for a reference that is not dropped during `'a`.
    #[inline]
    pub(crate) unsafe fn of_shared(bytes: &'a Vec<u8>) -> LargeRef<'a> {
        LargeRef(bytes)
    }

    /// Returns the bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// Returns the pointer that `Arc::into_raw` returned.
    pub(crate) fn as_raw(self) -> *const Vec<u8> {
        self.0
    }

    /// Returns the capacity of the buffer in bytes.
    pub(crate) fn capacity(self) -> usize {
        self.0.capacity()
    }

    /// Returns another owner of the same bytes; while this owner exists, an edit of the bytes copies them.
    pub fn share(self) -> Arc<Vec<u8>> {
        let raw = self.as_raw();
        // SAFETY: as `of_shared` requires, this is the pointer of an Arc that lives as long as 'a.
        unsafe {
            Arc::increment_strong_count(raw);
            Arc::from_raw(raw)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn size_classes_are_idempotent_and_exceed_requests_by_less_than_a_step() {
        assert_eq!([1, 8, 16, 128, 256, 4096].map(size_class), [8, 8, 16, 128, 256, 4096]);
        for bytes in 1..200_000 {
            let class = size_class(bytes);
            assert_eq!(size_class(class), class, "{bytes}");
            let step = (bytes >> LG_CLASSES).clamp(1 << LG_QUANTUM, PAGE_BYTES);
            assert!((bytes..bytes + step).contains(&class), "{bytes}: {class}");
        }
        assert_eq!(size_class(MAPPED_MIN_BYTES + 1), MAPPED_MIN_BYTES + PAGE_BYTES);
    }

    #[test]
    fn a_room_grows_by_a_quarter_at_most_and_is_a_size_class() {
        assert_eq!(
            [1, 17, 128, 129, 1048, (16 << 10) + 1].map(capacity_class),
            [16, 32, 128, 160, 1280, 20 << 10]
        );
        for bytes in 129..200_000 {
            let class = capacity_class(bytes);
            assert!((bytes..=bytes + bytes / 4).contains(&class), "{bytes}: {class}");
            assert_eq!(size_class(class), class, "{bytes}");
        }
        assert_eq!(capacity_class(MAPPED_MIN_BYTES - 1), MAPPED_MIN_BYTES);
        assert_eq!(capacity_class(MAPPED_MIN_BYTES + 1), MAPPED_MIN_BYTES + PAGE_BYTES);
    }
}
