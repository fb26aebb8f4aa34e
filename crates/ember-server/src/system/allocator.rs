//! The allocator of the process and how it is tuned.
//!
//! jemalloc, because it has size classes close to each other, gives freed memory back by itself and tells what it holds.
//! Options, read by it before `main`:
//!
//! * `background_thread`: pages are given back by a thread of its own, also while the server is idle, and never by a
//!   worker in the middle of a batch.
//! * `dirty_decay_ms:200`, `muzzy_decay_ms:0`: unused pages go back within a few tenths of a second.
//! * `thp:always`: memory is advised to be backed by huge pages. Looking up random keys among a million is bound by the
//!   translation of addresses; this took 20 % off the user time of a GET (245 → 200 ns at P=64) and cost no memory
//!   (27.1 against 28.0 bytes of overhead for a key). Nothing here forks, so no huge page is ever copied for a snapshot.
//! * `cache_oblivious:false`: without it each allocation of 16 KiB or more (the tables of large shards, large values)
//!   takes a page more than its size.
//!
//! What is very large ([`MAPPED_MIN_BYTES`]) is mapped by itself. The system then gives pages of zeros only when they are
//! written, and lets a string grow by moving its pages, not its bytes: neither is copied, nor there twice. Smaller ones
//! stay with jemalloc, which uses pages again without asking the system for them.
#![allow(
    unsafe_code,
    reason = "an allocator, and jemalloc reads its options from a symbol with a name of its choice"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use emberkv_core::memory::{MAPPED_MIN_BYTES, size_class};
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

/// Bytes that are mapped by themselves.
static MAPPED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are allocated and that jemalloc does not know of.
pub(crate) fn mapped_bytes() -> usize {
    MAPPED_BYTES.load(Ordering::Relaxed)
}

/// Whether it is mapped by itself. No alignment greater than a page's is asked for with such sizes; if it is, jemalloc
/// sees to it.
#[inline]
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_MIN_BYTES && layout.align() <= PAGE_BYTES
}

/// The smallest page of any system.
const PAGE_BYTES: usize = 4096;

#[cold]
fn map(size: usize) -> *mut u8 {
    let size = size_class(size);
    // SAFETY: a new mapping at a place of the system's choice touches nothing that is there.
    let mapped = unsafe {
        mmap_anonymous(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let Ok(mapped) = mapped else { return ptr::null_mut() };
    advise(mapped.cast(), size);
    MAPPED_BYTES.fetch_add(size, Ordering::Relaxed);
    mapped.cast()
}

/// Lets a mapping have huge pages, as jemalloc's have. One without them is as good, but slower.
fn advise(place: *mut u8, size: usize) {
    // SAFETY: the advice changes nothing of what the pages of this mapping hold.
    let _ = unsafe { madvise(place.cast(), size, Advice::LinuxHugepage) };
}

#[cold]
fn unmap(place: *mut u8, size: usize) {
    let size = size_class(size);
    // SAFETY: the caller gives back what `map` or `remap` gave, of this size, and nobody refers to it any more.
    let unmapped = unsafe { munmap(place.cast(), size) };
    debug_assert!(unmapped.is_ok(), "a whole mapping can be removed");
    MAPPED_BYTES.fetch_sub(size, Ordering::Relaxed);
}

/// Gives a mapping another size, perhaps at another place.
#[cold]
fn remap(place: *mut u8, old: usize, new: usize) -> *mut u8 {
    let (old, new) = (size_class(old), size_class(new));
    // SAFETY: the caller owns the mapping, of this size, and uses the new place only from now on.
    let Ok(moved) = (unsafe { mremap(place.cast(), old, new, MremapFlags::MAYMOVE) }) else {
        return ptr::null_mut();
    };
    advise(moved.cast(), new);
    MAPPED_BYTES.fetch_add(new, Ordering::Relaxed);
    MAPPED_BYTES.fetch_sub(old, Ordering::Relaxed);
    moved.cast()
}

// SAFETY: each allocation is made, changed and given back by the same of the two, which follows from its layout: jemalloc,
// which is an allocator, or the system, whose mappings are aligned to pages, apart from each other, and zeros at first.
// When `realloc` goes from one to the other it allocates, copies what is in both, and gives the old one back.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promise is jemalloc's.
        unsafe { Jemalloc.alloc(layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's promise is jemalloc's.
        unsafe { Jemalloc.alloc_zeroed(layout) }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if is_mapped(layout) {
            return unmap(place, layout.size());
        }
        // SAFETY: the caller's promise is jemalloc's, which has allocated it.
        unsafe { Jemalloc.dealloc(place, layout) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller has promised that the new size is possible with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_mapped(layout), is_mapped(new_layout)) {
            // SAFETY: the caller's promise is jemalloc's, which has allocated it.
            (false, false) => unsafe { Jemalloc.realloc(place, layout, new_size) },
            (true, true) => remap(place, layout.size(), new_size),
            // SAFETY: both are at least as long as the shorter one, and the new one is nobody else's yet.
            _ => unsafe {
                let new = self.alloc(new_layout);
                if let Some(new) = NonNull::new(new) {
                    ptr::copy_nonoverlapping(place, new.as_ptr(), layout.size().min(new_size));
                    self.dealloc(place, layout);
                }
                new
            },
        }
    }
}

/// A pointer to a C string that lives as long as the program.
#[repr(transparent)]
struct Options(*const std::ffi::c_char);

// SAFETY: the string is constant and never freed.
unsafe impl Sync for Options {}

// SAFETY: jemalloc declares `const char *_rjem_malloc_conf` for the program to define; nothing else has this name.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: Options = Options(
    c"background_thread:true,dirty_decay_ms:200,muzzy_decay_ms:0,thp:always,cache_oblivious:false".as_ptr(),
);
