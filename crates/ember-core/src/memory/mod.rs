//! Memory as the allocator and the processor see it: size classes, cache lines, bytes behind a shared pointer.
//!
//! This is the lowest module: it knows nothing of entries and types, and all of them account for their memory with
//! [`size_class`].
#![allow(
    unsafe_code,
    reason = "a prefetch is an intrinsic; a view of shared bytes can become an owner of them"
)]

pub mod moving;
pub mod reclaim;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Allocations of at least this many bytes are mapped by themselves, in whole pages; smaller ones are jemalloc's.
pub const MAPPED_MIN_BYTES: usize = 32 << 20;

/// Whether the program's allocator keeps the promise of [`promise_zeros_on_growth`].
static ZEROS_ON_GROWTH: AtomicBool = AtomicBool::new(false);

/// Declares that an allocation of at least [`MAPPED_MIN_BYTES`] that is reallocated with more bytes has zeros behind
/// its old bytes. Values then grow without a write to the new pages.
///
/// # Safety
/// The global allocator does so from now on.
pub unsafe fn promise_zeros_on_growth() {
    ZEROS_ON_GROWTH.store(true, Ordering::Relaxed);
}

/// Whether an allocation of `capacity` bytes that grows has zeros behind its old bytes.
pub(crate) fn grows_by_zeros(capacity: usize) -> bool {
    capacity >= MAPPED_MIN_BYTES && ZEROS_ON_GROWTH.load(Ordering::Relaxed)
}

/// Bytes of a page.
pub(crate) const PAGE_BYTES: usize = 4096;

/// Small allocations are multiples of two to this power, as jemalloc is built (`.cargo/config.toml`); of 16 where the build
/// does not say, as is jemalloc's own choice.
const LG_QUANTUM: u32 = digit_or(option_env!("JEMALLOC_SYS_WITH_LG_QUANTUM"), 4);

/// There are two to this power of size classes for each doubling; four where the build does not say.
const LG_CLASSES: u32 = digit_or(option_env!("JEMALLOC_LG_GROUP"), 2);

const _: () = assert!(3 <= LG_QUANTUM && LG_QUANTUM <= 4 && 2 <= LG_CLASSES && LG_CLASSES <= 4);

/// The one size class below the quantum, which is one only for a quantum of 16.
const TINY_BYTES: usize = 8;

const fn digit_or(text: Option<&str>, other: u32) -> u32 {
    match text {
        Some(text) => (text.as_bytes()[0] - b'0') as u32,
        None => other,
    }
}

/// The bytes that the allocator hands out for a request of `bytes`, at least 1, by jemalloc's size classes: multiples of a
/// quantum first, then in steps of a share of the size, but never of more than a page.
#[inline]
pub const fn size_class(bytes: usize) -> usize {
    if bytes <= 1 << (LG_QUANTUM + LG_CLASSES + 1) {
        return if bytes <= TINY_BYTES { TINY_BYTES } else { bytes.next_multiple_of(1 << LG_QUANTUM) };
    }
    let step = 1 << ((bytes - 1).ilog2() - LG_CLASSES);
    bytes.next_multiple_of(if step < PAGE_BYTES { step } else { PAGE_BYTES })
}

/// The bytes that the buffer of a vector takes, allocator rounding included.
pub fn buffer_bytes<T>(vector: &Vec<T>) -> usize {
    if vector.capacity() == 0 { 0 } else { size_class(vector.capacity() * size_of::<T>()) }
}

/// The size of a room for at least `bytes` that grows step by step: a quarter at a time, so that what it holds is moved a
/// few times only; [`MAPPED_MIN_BYTES`] and more, whose pages are moved and not their bytes, in whole pages. A size class.
pub fn room_class(bytes: usize) -> usize {
    if bytes <= 128 {
        return bytes.next_multiple_of(16);
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
    fn a_size_class_is_its_own_and_takes_no_more_than_a_step_beyond_what_was_asked_for() {
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
            [1, 17, 128, 129, 1048, (16 << 10) + 1].map(room_class),
            [16, 32, 128, 160, 1280, 20 << 10]
        );
        for bytes in 129..200_000 {
            let room = room_class(bytes);
            assert!((bytes..=bytes + bytes / 4).contains(&room), "{bytes}: {room}");
            assert_eq!(size_class(room), room, "{bytes}");
        }
        assert_eq!(room_class(MAPPED_MIN_BYTES - 1), MAPPED_MIN_BYTES);
        assert_eq!(room_class(MAPPED_MIN_BYTES + 1), MAPPED_MIN_BYTES + PAGE_BYTES);
    }
}
