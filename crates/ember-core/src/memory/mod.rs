//! Memory as the allocator and the processor see it: size classes, cache lines, bytes behind a shared pointer.
//!
//! This is the lowest module: it knows nothing of entries and types, and all of them account for their memory with
//! [`size_class`].
#![allow(
    unsafe_code,
    reason = "a prefetch is an intrinsic; a view of shared bytes can become an owner of them"
)]

pub mod reclaim;

use std::sync::Arc;

/// Allocations of at least this many bytes are mapped by themselves, in whole pages; smaller ones are jemalloc's.
pub const MAPPED_MIN_BYTES: usize = 32 << 20;

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The size of the allocation that serves a request for `bytes`: by jemalloc's classes, multiples of 16 up to 128, then
/// four classes for each doubling; from [`MAPPED_MIN_BYTES`] on in whole pages.
pub fn size_class(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.next_multiple_of(16).max(16);
    }
    let step = if bytes < MAPPED_MIN_BYTES { 1 << ((bytes - 1).ilog2() - 2) } else { PAGE_BYTES };
    bytes.next_multiple_of(step)
}

/// Asks the processor to fetch the cache line at `address`, which need not be valid.
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

/// A view of a value that lives behind a shared pointer.
#[derive(Clone, Copy, Debug)]
pub struct LargeRef<'a>(&'a Vec<u8>);

impl<'a> LargeRef<'a> {
    /// A view of shared bytes.
    ///
    /// # Safety
    /// `bytes` is what `Arc::into_raw` gave for a reference that nobody drops during `'a`.
    #[inline]
    pub(crate) unsafe fn of_shared(bytes: &'a Vec<u8>) -> LargeRef<'a> {
        LargeRef(bytes)
    }

    /// The bytes.
    pub fn bytes(self) -> &'a [u8] {
        self.0
    }

    /// The pointer that `Arc::into_raw` gave.
    pub(crate) fn as_raw(self) -> *const Vec<u8> {
        self.0
    }

    /// Bytes that the buffer has room for.
    pub(crate) fn capacity(self) -> usize {
        self.0.capacity()
    }

    /// Another owner of the same bytes; a later edit copies them if this owner still lives.
    pub fn share(self) -> Arc<Vec<u8>> {
        let raw = self.as_raw();
        // SAFETY: by the promise that `of_shared` asks for, this is the pointer of an Arc that lives as long as 'a.
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
    fn size_classes_are_those_of_jemalloc_up_to_whole_pages() {
        let expected =
            [(1, 16), (16, 16), (17, 32), (88, 96), (128, 128), (129, 160), (161, 192), (256, 256)];
        for (bytes, class) in expected {
            assert_eq!(size_class(bytes), class, "{bytes}");
        }
        assert_eq!(size_class(1048), 1280);
        assert_eq!(size_class(16 * 1024 + 1), 20 * 1024);
        assert_eq!(size_class(MAPPED_MIN_BYTES - 1), MAPPED_MIN_BYTES);
        assert_eq!(size_class(MAPPED_MIN_BYTES), MAPPED_MIN_BYTES);
        assert_eq!(size_class(MAPPED_MIN_BYTES + 1), MAPPED_MIN_BYTES + PAGE_BYTES);
    }
}
