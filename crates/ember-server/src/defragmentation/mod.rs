//! Active defragmentation: while too much of the memory that allocations stand in is unused, a thread moves them together.
//!
//! ```text
//! worker 0   with `activedefrag yes`: sees that the thread runs                        (`begin_if_wanted`)
//! thread     how much is unused → effort in per cent, or a pause                       (`Effort`)
//!            walks over all keys: works for `active-defrag-cycle-us`, pauses so long that the effort is kept to
//! worker     after each walk: gives back what the allocator keeps for it               (`flush_if_asked`)
//! ```
//!
//! The thread takes the locks of shards as workers do, for some tens of microseconds each time. It has no cache of the
//! allocator's: what it moves goes to the fullest slabs at once. While the parameter is `no` there is no thread, and a
//! worker looks at no more than that, and at one number, with its periodic work.

mod effort;

use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};

use crate::server::Server;

/// How it goes.
#[derive(Default)]
pub(crate) struct ActiveDefrag {
    is_started: AtomicBool,
    /// The share of a processor that it takes now, in per cent; 0 while it does not run.
    effort_percent: AtomicU64,
    /// Since when it runs, Unix time in ms; 0 while it does not.
    since_ms: AtomicI64,
    /// How long it ran before.
    total_ms: AtomicU64,
    /// Walks over all keys that are over: workers give back then what the allocator keeps for them.
    walks: AtomicU64,
    /// Allocations that were moved, and that were left where they are.
    pub(crate) hits: AtomicU64,
    /// The same.
    pub(crate) misses: AtomicU64,
    /// Keys of which something was moved, and of which nothing was.
    pub(crate) key_hits: AtomicU64,
    /// The same.
    pub(crate) key_misses: AtomicU64,
}

impl ActiveDefrag {
    /// That of a server.
    pub(crate) fn of(server: &Server) -> &ActiveDefrag {
        server.services.get()
    }

    /// The share of a processor that it takes now, in per cent; 0 while it does not run.
    pub(crate) fn effort_percent(&self) -> u64 {
        self.effort_percent.load(Ordering::Relaxed)
    }

    /// For how many milliseconds it has been running; 0 while it does not.
    pub(crate) fn current_ms(&self, now_ms: i64) -> u64 {
        match self.since_ms.load(Ordering::Relaxed) {
            0 => 0,
            since_ms => u64::try_from(now_ms - since_ms).unwrap_or(0),
        }
    }

    /// For how many milliseconds it has ever been running.
    pub(crate) fn total_ms(&self, now_ms: i64) -> u64 {
        self.total_ms.load(Ordering::Relaxed) + self.current_ms(now_ms)
    }

    /// Takes note of the effort; 0 ends a run.
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

/// Gives back what the allocator keeps for the calling worker, if a walk is over since the one of number `seen`.
#[cfg(feature = "jemalloc")]
pub(crate) fn flush_if_asked(server: &Server, seen: &mut u64) {
    let walks = ActiveDefrag::of(server).walks.load(Ordering::Relaxed);
    if walks != *seen {
        *seen = walks;
        crate::system::allocator::flush_thread_cache();
    }
}

/// Nobody asks.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn flush_if_asked(_: &Server, _: &mut u64) {}

/// Starts the thread, if it is wanted and does not run.
#[cfg(feature = "jemalloc")]
pub(crate) fn begin_if_wanted(server: &'static Server, config: &crate::config::Config) {
    if config.activedefrag && !ActiveDefrag::of(server).is_started.swap(true, Ordering::Relaxed) {
        thread::start(server);
    }
}

/// The system's allocator does not say what is worth moving: it cannot be wanted.
#[cfg(not(feature = "jemalloc"))]
pub(crate) fn begin_if_wanted(_: &'static Server, _: &crate::config::Config) {}

#[cfg(feature = "jemalloc")]
mod thread;
