//! Switches of DEBUG for tests. All are off at startup.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// See the module. Any thread may read them at any time.
#[derive(Debug, Default)]
pub(crate) struct DebugSwitches {
    /// Expired keys stay until a client accesses them.
    pub(crate) keeps_expired: AtomicBool,
    /// No periodic work is done: no expiry, eviction, timeouts, save rules or rewrites.
    pub(crate) pauses_periodic_work: AtomicBool,
    /// The checksums of payloads and RDB files are not compared.
    pub(crate) skips_checksums: AtomicBool,
    /// Scripts may call commands that are not for scripts, where these can run.
    pub(crate) opens_scripts: AtomicBool,
    /// Workers leave all reads of cold values to the I/O threads.
    pub(crate) leaves_cached_reads: AtomicBool,
    /// The minimum time of each write to the append-only file, in µs.
    pub(crate) aof_write_delay_us: AtomicU64,
}
