//! The system clock.

use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};

/// The clock of [`boot_ms`]: on Linux it also advances while the machine sleeps.
#[cfg(target_os = "linux")]
const BOOT_CLOCK: ClockId = ClockId::Boottime;
#[cfg(not(target_os = "linux"))]
const BOOT_CLOCK: ClockId = ClockId::Monotonic;

/// Returns the Unix time in µs.
pub(crate) fn unix_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_micros()).unwrap_or(u64::MAX)
}

/// Returns the time in ms since the machine started, at least 1. Unlike the time of day, it is never set.
pub(crate) fn boot_ms() -> u64 {
    let time = clock_gettime(BOOT_CLOCK);
    let ms = time.tv_sec.saturating_mul(1_000) + time.tv_nsec / 1_000_000;
    u64::try_from(ms).unwrap_or(0).max(1)
}

/// Returns the Unix time in ms.
pub(crate) fn unix_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_millis()).unwrap_or(i64::MAX)
}
