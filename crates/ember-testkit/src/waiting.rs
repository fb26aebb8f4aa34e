//! Waiting for what a server does by itself.

use std::thread;
use std::time::{Duration, Instant};

/// After this time it is taken for granted that something never happens.
const PATIENCE: Duration = Duration::from_secs(60);

/// The time between two questions.
const PAUSE: Duration = Duration::from_millis(1);

/// Does something when it is dropped, after a panic too: lets threads end that a scope waits for.
pub struct OnDrop<F: Fn()>(pub F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Asks again and again until the answer is yes. `what` is what the answer says.
///
/// # Panics
/// After a minute.
pub fn wait_until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(becomes_true(is_so), "this never came true: {what}");
}

/// Asks again and again until the answer is yes; whether it was within a minute.
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
