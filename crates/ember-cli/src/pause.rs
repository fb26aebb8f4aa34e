//! Pauses that were asked for with `-i`.

use std::time::Duration;

/// Does nothing for so long.
pub(crate) fn pause(duration: Duration) {
    if !duration.is_zero() {
        std::thread::sleep(duration);
    }
}
