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
#![allow(unsafe_code, reason = "jemalloc reads its options from a symbol with a name of its choice")]

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

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
