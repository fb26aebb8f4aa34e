//! Active defragmentation: while too much memory between allocations is unused, a thread moves allocations to fuller
//! slabs.
//!
//! ```text
//! worker 0   with `activedefrag yes`: makes sure that the thread runs                  (`start_if_enabled`)
//! thread     reads how much memory is unused → effort in per cent, or a pause          (`Effort`)
//!            walks all keys: works for `active-defrag-cycle-us`, then pauses to keep within the effort
//! worker     after each walk: flushes its cache of the allocator                       (`flush_after_walk`)
//! ```
//!
//! The thread takes the locks of shards as workers do, for some tens of microseconds each time. It has no allocator
//! cache: moved allocations go to the fullest slabs immediately. With `activedefrag no` there is no thread, and a
//! worker's periodic work only reads the parameter and the number of walks.

#[cfg(feature = "jemalloc")]
mod effort;

#[cfg(feature = "jemalloc")]
use std::sync::atomic::AtomicBool;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use crate::server::Server;

/// The state of active defragmentation.
#[derive(Default)]
pub(crate) struct ActiveDefrag {
    #[cfg(feature = "jemalloc")]
    is_started: AtomicBool,
    /// The share of a processor that defragmentation currently uses, in per cent; 0 while it does not run.
    effort_percent: AtomicU64,
    /// When the current run began, Unix time in ms; 0 while defragmentation does not run.
    since_ms: AtomicI64,
    /// The duration of earlier runs in ms.
    total_ms: AtomicU64,
    /// The number of completed walks over all keys; after each, workers flush their allocator caches.
    #[cfg(feature = "jemalloc")]
    walks: AtomicU64,
    /// The number of allocations that were moved.
    pub(crate) hits: AtomicU64,
    /// The number of allocations that were not moved.
    pub(crate) misses: AtomicU64,
    /// The number of keys of which at least one allocation was moved.
    pub(crate) key_hits: AtomicU64,
    /// The number of keys of which no allocation was moved.
    pub(crate) key_misses: AtomicU64,
}

impl ActiveDefrag {
    /// Returns the defragmentation state of the server.
    pub(crate) fn of(server: &Server) -> &ActiveDefrag {
        server.services.get()
    }

    /// Returns the share of a processor that defragmentation currently uses, in per cent; 0 while it does not run.
    pub(crate) fn effort_percent(&self) -> u64 {
        self.effort_percent.load(Ordering::Relaxed)
    }

    /// Returns the duration of the current run in ms; 0 while defragmentation does not run.
    pub(crate) fn current_ms(&self, now_ms: i64) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(now_ms - since_ms).unwrap_or(0),
        }
    }

    /// Returns the duration of all runs in ms.
    pub(crate) fn total_ms(&self, now_ms: i64) -> u64 {
        self.total_ms.load(Ordering::Relaxed) + self.current_ms(now_ms)
    }

    /// Sets the effort in per cent of a processor; 0 ends the current run.
    #[cfg(feature = "jemalloc")]
    fn set_effort(&self, percent: u64, now_ms: i64) {
        self.effort_percent.store(percent, Ordering::Relaxed);
        let is_running = self.since_ms.load(Ordering::Relaxed) != 0;
        if percent > 0 && !is_running {
            self.since_ms.store(now_ms, Ordering::Relaxed);
        } else if percent == 0 && is_running {
            self.total_ms.fetch_add(self.current_ms(now_ms), Ordering::Relaxed);
            self.since_ms.store(0, Ordering::Relaxed);
        }
    }
}

/// Flushes the allocator cache of the calling worker, if a walk has ended since walk number `seen`, which is updated.
#[cfg(feature = "jemalloc")]
pub(crate) fn flush_after_walk(server: &Server, seen: &mut u64) {
    let walks = ActiveDefrag::of(server).walks.load(Ordering::Relaxed);
    if walks != *seen {
        *seen = walks;
        crate::system::allocator::flush_thread_cache();
    }
}

/// Does nothing: without jemalloc, no walk runs.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn flush_after_walk(_: &Server, _: &mut u64) {}

/// Starts the defragmentation thread, if it is enabled and not running.
#[cfg(feature = "jemalloc")]
pub(crate) fn start_if_enabled(server: &'static Server, config: &ember_config::Config) {
    if config.activedefrag && !ActiveDefrag::of(server).is_started.swap(true, Ordering::Relaxed) {
        thread::start(server);
    }
}

/// Does nothing: the system's allocator does not report which allocations are worth moving, so defragmentation cannot
/// be enabled.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn start_if_enabled(_: &'static Server, _: &ember_config::Config) {}

#[cfg(feature = "jemalloc")]
mod thread;
