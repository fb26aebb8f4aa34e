//! The allocator of the process and its tuning.
//!
//! The allocator is jemalloc, because its size classes are close to each other, it returns freed memory without being
//! called, and it reports its memory. Before `main`, it reads these options:
//!
//! * `background_thread`: pages are returned by a background thread, even while the server is idle, and never by a
//!   worker during a batch.
//! * `dirty_decay_ms:200`, `muzzy_decay_ms:0`: unused pages are returned within a few tenths of a second.
//! * `thp:default`: the kernel provides small pages, which `huge_pages.rs` collapses into huge pages. The server never
//!   forks, so no huge page is copied for a snapshot.
//! * `cache_oblivious:false`: otherwise each large allocation (a hash table of a large shard, a large value) would take
//!   an additional page.
//! * `narenas_ratio:1`: as many arenas as processors instead of four times as many. With one arena for each of the eleven
//!   threads, a server without data takes 1.2 MiB more.
//! * `tcache_nslots_small_min:8`, `tcache_nslots_small_max:128`: the caches of threads contain fewer free regions of rare
//!   sizes; 0.6 MB less in a server without data.
//! * `slab_sizes`: larger slabs for sizes that a slab of the default size contains only few times, because each slab takes
//!   128 bytes of metadata. With the defaults, a string of 512 bytes takes 16 bytes of metadata, one of 1,024 bytes 32.
//!   Sizes above 2 KiB keep their slabs: hash tables that grow pass through them and would leave more slabs half used
//!   (`docs/decisions/allocator-slabs.md`).
//!
//! The size classes are closer to each other than in other builds of jemalloc: `.cargo/config.toml` sets this, and
//! `size_class` relies on it.
//!
//! Very large allocations ([`MAPPED_MIN_BYTES`]) are mapped directly. The kernel then provides zeroed pages only when
//! they are written. A growing string is resized by moving its pages, so that its bytes are neither copied nor in
//! memory twice. Smaller allocations are made by jemalloc, which reuses pages without a system call.
#![allow(
    unsafe_code,
    reason = "an allocator, and jemalloc reads its options from a symbol with a name of its choice"
)]

use std::alloc::{GlobalAlloc, Layout};
use std::io;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicUsize, Ordering};

use emberkv_core::memory::{MAPPED_MIN_BYTES, size_class};
use rustix::mm::{Advice, MapFlags, MremapFlags, ProtFlags, madvise, mmap_anonymous, mremap, munmap};
use tikv_jemallocator::Jemalloc;

#[global_allocator]
static ALLOCATOR: Allocator = Allocator;

struct Allocator;

/// The total size of direct mappings in bytes.
static MAPPED_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the number of allocated bytes that jemalloc's statistics exclude.
pub(crate) fn mapped_bytes() -> usize {
    MAPPED_BYTES.load(Ordering::Relaxed)
}

/// Whether an allocation is mapped directly. An alignment above that of a page, which no caller requests with such
/// sizes, is left to jemalloc.
#[inline]
fn is_mapped(layout: Layout) -> bool {
    layout.size() >= MAPPED_MIN_BYTES && layout.align() <= PAGE_BYTES
}

/// Returns the layout to request from jemalloc: its smallest size classes are multiples of 8, but its Rust bindings
/// assume multiples of 16.
#[inline]
fn padded(layout: Layout) -> Layout {
    if layout.align() == 16 { layout.pad_to_align() } else { layout }
}

/// The minimum page size of all supported systems, in bytes.
const PAGE_BYTES: usize = 4096;

/// The maximum page size of all supported systems, except huge pages, in bytes.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// Permits stored values to rely on zeroed memory when their allocation grows.
pub(crate) fn promise_zeros_on_growth() {
    // SAFETY: pages that `remap` adds are new and zeroed, and `remap` zeroes the bytes that it cuts off from the last
    // page.
    unsafe { emberkv_core::memory::promise_zeros_on_growth() };
}

#[cold]
fn map(size: usize) -> *mut u8 {
    let size = size_class(size);
    // SAFETY: a new mapping at an address chosen by the system does not overlap an existing one.
    let mapped = unsafe {
        mmap_anonymous(ptr::null_mut(), size, ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE)
    };
    let Ok(mapped) = mapped else { return ptr::null_mut() };
    advise(mapped.addr(), size);
    MAPPED_BYTES.fetch_add(size, Ordering::Relaxed);
    mapped.cast()
}

/// Allows huge pages when memory is first accessed. An error is ignored, because only speed depends on huge pages.
pub(crate) fn advise(place: usize, size: usize) {
    // SAFETY: the advice does not change the contents of pages, whatever the address is.
    let _ = unsafe { madvise(ptr::without_provenance_mut(place), size, Advice::LinuxHugepage) };
}

/// Requests that the kernel replace small pages by huge pages with the same contents.
///
/// # Errors
/// Returns an error if the kernel does not support the request, or has no huge page available.
pub(crate) fn collapse(place: usize, size: usize) -> io::Result<()> {
    // SAFETY: at any address, pages have the same contents afterwards; only their physical location changes.
    let failed = unsafe { libc::madvise(ptr::without_provenance_mut(place), size, libc::MADV_COLLAPSE) };
    if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Whether this kernel supports [`collapse`]. The test uses an empty range, which takes no time.
pub(crate) fn knows_collapse() -> bool {
    collapse(0, 0).is_ok()
}

#[cold]
fn unmap(place: *mut u8, size: usize) {
    let size = size_class(size);
    // SAFETY: the caller passes a mapping of `map` or `remap` with this size, to which no reference exists any more.
    let unmapped = unsafe { munmap(place.cast(), size) };
    debug_assert!(unmapped.is_ok(), "a whole mapping can be removed");
    MAPPED_BYTES.fetch_sub(size, Ordering::Relaxed);
}

/// Resizes a mapping, possibly at a new address. Added bytes are zero.
#[cold]
fn remap(place: *mut u8, old: usize, new: usize) -> *mut u8 {
    if new < old {
        let cut = old.min(new.next_multiple_of(PAGE_BYTES_MAX)) - new;
        // SAFETY: these bytes belong to the caller, which gives up access to them.
        unsafe { place.add(new).write_bytes(0, cut) };
    }
    let (old, new) = (size_class(old), size_class(new));
    // SAFETY: the caller owns the mapping, which has this size, and uses only the new address afterwards.
    let Ok(moved) = (unsafe { mremap(place.cast(), old, new, MremapFlags::MAYMOVE) }) else {
        return ptr::null_mut();
    };
    advise(moved.addr(), new);
    MAPPED_BYTES.fetch_add(new, Ordering::Relaxed);
    MAPPED_BYTES.fetch_sub(old, Ordering::Relaxed);
    moved.cast()
}

// SAFETY: each allocation is created, resized and freed by the same allocator, which follows from its layout: jemalloc,
// which is an allocator, or the system, whose mappings are page-aligned, disjoint, and initially zeroed. If `realloc`
// changes the allocator, it allocates, copies the common bytes, and frees the old allocation.
unsafe impl GlobalAlloc for Allocator {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's guarantees are those that jemalloc requires.
        unsafe { Jemalloc.alloc(padded(layout)) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if is_mapped(layout) {
            return map(layout.size());
        }
        // SAFETY: the caller's guarantees are those that jemalloc requires.
        unsafe { Jemalloc.alloc_zeroed(padded(layout)) }
    }

    #[inline]
    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        if is_mapped(layout) {
            return unmap(place, layout.size());
        }
        // SAFETY: the caller's guarantees are those that jemalloc requires, and jemalloc allocated this memory.
        unsafe { Jemalloc.dealloc(place, padded(layout)) }
    }

    #[inline]
    unsafe fn realloc(&self, place: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller guarantees that the new size is valid with this alignment.
        let new_layout = unsafe { Layout::from_size_align_unchecked(new_size, layout.align()) };
        match (is_mapped(layout), is_mapped(new_layout)) {
            // SAFETY: the caller's guarantees are those that jemalloc requires, and jemalloc allocated this memory.
            (false, false) => unsafe { Jemalloc.realloc(place, padded(layout), padded(new_layout).size()) },
            (true, true) => remap(place, layout.size(), new_size),
            // SAFETY: both allocations are at least as long as the shorter one, and nothing else refers to the new one
            // yet.
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

/// A jemalloc query that returns the occupancy of an allocation's slab.
pub(crate) struct SlabQuery {
    /// The numeric name (MIB) of the query, with which jemalloc finds it faster than with its text.
    mib: [usize; 3],
}

/// The result of the query for one allocation, with the order and types of `experimental.utilization.query`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct SlabUse {
    /// The address of the slab that currently serves allocations of this size.
    current: *const u8,
    /// The number of free regions in the allocation's slab.
    free: usize,
    /// The number of all regions in the allocation's slab.
    regions: usize,
    /// The size of the slab in bytes.
    bytes: usize,
    /// The number of free regions in all slabs for this size in the same arena.
    class_free: usize,
    /// The number of all regions in all slabs for this size in the same arena.
    class_regions: usize,
}

impl SlabQuery {
    /// Creates the query; returns `None` if this jemalloc does not support it.
    pub(crate) fn new() -> Option<SlabQuery> {
        let (mut mib, mut len) = ([0; 3], 3);
        let name = c"experimental.utilization.query";
        // SAFETY: the name is a C string, and `len` is the capacity of the array of numbers.
        let failed =
            unsafe { tikv_jemalloc_sys::mallctlnametomib(name.as_ptr(), mib.as_mut_ptr(), &raw mut len) };
        (failed == 0 && len == mib.len()).then_some(SlabQuery { mib })
    }

    /// Whether moving an allocation would help to empty its slab. This requires that the slab is not the one that
    /// serves new allocations, and that at most three quarters of its regions are used, or no more than the average of
    /// all slabs for this size. `place` must be an allocation of jemalloc.
    pub(crate) fn is_sparse(&self, place: *const u8) -> bool {
        let mut place = place;
        let mut found =
            SlabUse { current: ptr::null(), free: 0, regions: 0, bytes: 0, class_free: 0, class_regions: 0 };
        let mut len = size_of::<SlabUse>();
        // SAFETY: the query reads one pointer, and writes data in the layout of `SlabUse`. It does not dereference the
        // pointer, but looks it up in jemalloc's tables.
        let failed = unsafe {
            tikv_jemalloc_sys::mallctlbymib(
                self.mib.as_ptr(),
                self.mib.len(),
                (&raw mut found).cast(),
                &raw mut len,
                (&raw mut place).cast(),
                size_of::<*const u8>(),
            )
        };
        failed == 0 && found.is_sparse(place)
    }
}

impl SlabUse {
    fn is_sparse(&self, place: *const u8) -> bool {
        let is_current =
            self.current.addr() <= place.addr() && place.addr() - self.current.addr() < self.bytes;
        let used = self.regions - self.free;
        let is_below_average =
            used * self.class_regions <= (self.class_regions - self.class_free) * self.regions;
        // The comparison with the average is not sufficient: it falls as slabs are emptied, and equally full slabs are
        // never below it.
        let is_far_from_full = used * 4 <= self.regions * 3;
        self.free > 0 && !is_current && (is_below_average || is_far_from_full)
    }
}

/// Makes the calling thread bypass its allocation cache, which would otherwise return moved allocations to the same
/// slab.
///
/// # Errors
/// Returns a message if jemalloc refuses.
pub(crate) fn leave_thread_cache() -> Result<(), String> {
    use tikv_jemalloc_ctl::{Access, AsName};

    b"thread.tcache.enabled\0".name().write(false).map_err(|error| error.to_string())
}

/// Returns the freed regions in the calling thread's cache to the allocator. A cached region keeps its slab from being
/// empty, and an idle thread never frees its cache.
pub(crate) fn flush_thread_cache() {
    let name = c"thread.tcache.flush";
    // SAFETY: the name is a C string; this control has no input and no output.
    let failed = unsafe {
        tikv_jemalloc_sys::mallctl(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), 0)
    };
    debug_assert!(failed == 0, "every thread has a cache");
}

/// A pointer to a C string with static lifetime.
#[repr(transparent)]
struct Options(*const std::ffi::c_char);

// SAFETY: the string is constant and never freed.
unsafe impl Sync for Options {}

// SAFETY: jemalloc declares `const char *_rjem_malloc_conf` for the program to define; no other symbol has this name.
#[unsafe(export_name = "_rjem_malloc_conf")]
static OPTIONS: Options = Options(
    c"background_thread:true,dirty_decay_ms:200,muzzy_decay_ms:0,thp:default,cache_oblivious:false,\
      narenas_ratio:1,tcache_nslots_small_min:8,tcache_nslots_small_max:128,\
      slab_sizes:16-16:2|32-32:4|64-64:4|96-96:12|128-128:8|192-192:12|256-256:8|320-320:10|384-384:12|\
      512-512:8|640-640:10|768-768:12|1024-1024:8|1280-1280:10|1536-1536:12|2048-2048:8"
        .as_ptr(),
);

#[cfg(test)]
mod tests {
    use emberkv_core::memory::capacity_class;

    use super::*;

    /// Returns the number of bytes that this thread has allocated from jemalloc and not freed.
    fn handed_out() -> u64 {
        use tikv_jemalloc_ctl::thread;
        thread::allocatedp::read().unwrap().get().wrapping_sub(thread::deallocatedp::read().unwrap().get())
    }

    fn sizes() -> impl Iterator<Item = usize> {
        (1..70_000).chain((70_000..MAPPED_MIN_BYTES).step_by(1_234_567))
    }

    #[test]
    fn counted_bytes_equal_the_size_classes_of_jemalloc() {
        for bytes in sizes() {
            let before = handed_out();
            let buffer = Vec::<u8>::with_capacity(bytes);
            assert_eq!((handed_out() - before) as usize, size_class(bytes), "{bytes} bytes");
            drop(buffer);
            assert_eq!(handed_out(), before);
            assert_eq!(size_class(capacity_class(bytes)), capacity_class(bytes), "{bytes} bytes");
        }
    }

    #[test]
    fn mapped_memory_grows_with_zeros_even_after_it_has_shrunk() {
        const MIN: usize = MAPPED_MIN_BYTES;
        for sizes in [[MIN, MIN + 1, 3 * MIN], [2 * MIN, MIN + 5, MIN + 6], [MIN + 9000, MIN + 100, 2 * MIN]]
        {
            let layout = |bytes| Layout::from_size_align(bytes, 1).unwrap();
            // SAFETY: each address is used with its own layout, and all bytes that are read were written or are
            // guaranteed to be zero.
            unsafe {
                let mut place = ALLOCATOR.alloc(layout(sizes[0]));
                place.write_bytes(7, sizes[0]);
                place = ALLOCATOR.realloc(place, layout(sizes[0]), sizes[1]);
                place = ALLOCATOR.realloc(place, layout(sizes[1]), sizes[2]);
                let bytes = std::slice::from_raw_parts(place, sizes[2]);
                let kept = sizes[0].min(sizes[1]);
                assert!(bytes[..kept].iter().all(|&byte| byte == 7), "{sizes:?}");
                assert!(bytes[kept..].iter().all(|&byte| byte == 0), "{sizes:?}");
                ALLOCATOR.dealloc(place, layout(sizes[2]));
            }
        }
    }

    #[test]
    fn only_allocations_in_sparse_slabs_are_worth_moving() {
        // No other test allocates this size, so the slabs contain only these allocations.
        let scatter = || {
            let query = SlabQuery::new().expect("this jemalloc knows it");
            leave_thread_cache().unwrap();
            let mut boxes: Vec<_> = (0..4000).map(|_| Box::new([1_u8; 1777])).collect();
            let sparse = |boxes: &[Box<[u8; 1777]>]| {
                boxes.iter().filter(|boxed| query.is_sparse(boxed.as_ptr())).count()
            };
            // Initially almost all slabs are full, so almost none is sparse.
            let before = sparse(&boxes);
            let mut number = 0;
            // In the first half, one of twenty allocations is retained; in the second half, all are.
            boxes.retain(|_| {
                number += 1;
                number > 2000 || number % 20 == 0
            });
            // This allocation is too large for a slab.
            let large = query.is_sparse(vec![0_u8; 100_000].as_ptr());
            (before, sparse(&boxes[..100]), sparse(&boxes[100..]), large)
        };
        let (before, sparse, dense, large) = std::thread::spawn(scatter).join().unwrap();
        assert!(before < 40 && sparse >= 50 && dense < 40 && !large, "{before} {sparse} {dense} {large}");
    }

    #[test]
    fn allocations_are_aligned_as_asked_for_whatever_their_size() {
        for align in [1, 2, 4, 8, 16, 32, 64, 4096] {
            for size in 1..600 {
                let layout = Layout::from_size_align(size, align).unwrap();
                // SAFETY: the layout is not empty; each allocation is freed with the layout that it has.
                unsafe {
                    let place = ALLOCATOR.alloc(layout);
                    assert!(!place.is_null() && place.addr().is_multiple_of(align), "{layout:?}");
                    let place = ALLOCATOR.realloc(place, layout, size + 40);
                    assert!(!place.is_null() && place.addr().is_multiple_of(align), "{layout:?}");
                    ALLOCATOR.dealloc(place, Layout::from_size_align(size + 40, align).unwrap());
                }
            }
        }
    }
}
