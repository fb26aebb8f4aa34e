//! Waits for effects that a server does not announce.

use std::thread;
use std::time::{Duration, Instant};

/// The timeout after which an expected condition or reply is treated as failed: nearly all take milliseconds, the slowest
/// some seconds, and test machines may have ten times the load. A test that passes never waits that long.
pub(crate) const PATIENCE: Duration = Duration::from_secs(180);

/// The interval of checks.
const PAUSE: Duration = Duration::from_millis(1);

/// A guard that runs a function when it is dropped, even by a panic. Intended for stopping threads for which a scope
/// waits.
pub struct OnDrop<F: Fn()>(pub F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Polls a condition until it is true. `what` describes the condition in the panic message.
///
/// # Panics
/// Panics if the condition is still false after three minutes.
pub fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(becomes_true(is_so), "condition never met: {what}");
}

/// Polls a condition; returns whether it became true within three minutes.
pub fn becomes_true(mut is_so: impl FnMut() -> bool) -> bool {
    let begun = Instant::now();
    while !is_so() {
        if begun.elapsed() >= PATIENCE {
            return false;
        }
        thread::sleep(PAUSE);
    }
    true
}
