//! What DEBUG switches on for tests. All of it is off at the start.

use std::sync::atomic::{AtomicBool, AtomicU64};

/// See the module. Any thread may look at any time.
#[derive(Debug, Default)]
pub(crate) struct DebugSwitches {
    /// Keys whose time has come stay until somebody asks for them.
    pub(crate) keeps_expired: AtomicBool,
    /// Nothing happens by itself: no expiry, eviction, timeouts, save rules or rewrites.
    pub(crate) pauses_periodic_work: AtomicBool,
    /// The checksums of payloads and RDB files are not compared.
    pub(crate) skips_checksums: AtomicBool,
    /// Scripts may call commands that are not for scripts, as far as these can run there.
    pub(crate) opens_scripts: AtomicBool,
    /// Workers leave all values that are away to the threads that read.
    pub(crate) leaves_cached_reads: AtomicBool,
    /// How long each write to the append-only file takes at least, in µs.
    pub(crate) aof_write_delay_us: AtomicU64,
}
