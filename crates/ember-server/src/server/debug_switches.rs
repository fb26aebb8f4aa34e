//! Switches of DEBUG for tests. All are off at startup.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// The switches, which any thread may read at any time.
#[derive(Debug, Default)]
pub(crate) struct DebugSwitches {
    /// Whether expired keys remain until a client accesses them.
    pub(crate) keeps_expired: AtomicBool,
    /// Whether periodic work is paused: expiry, eviction, timeouts, save rules and rewrites.
    pub(crate) pauses_periodic_work: AtomicBool,
    /// Whether the checksums of payloads and RDB files are ignored.
    pub(crate) skips_checksums: AtomicBool,
    /// Whether scripts may call commands with the flag `noscript`, if these commands can run in a script.
    pub(crate) opens_scripts: AtomicBool,
    /// Whether workers leave all reads of cold values to the I/O threads.
    pub(crate) leaves_cached_reads: AtomicBool,
    /// The minimum duration of each write to the append-only file, in µs.
    pub(crate) aof_write_delay_us: AtomicU64,
}
