//! Pauses requested with `-i`.

use std::time::Duration;

/// Sleeps for `duration`.
pub(crate) fn pause(duration: Duration) {
    if !duration.is_zero() {
        std::thread::sleep(duration);
    }
}
