//! A guard that aborts the process when a thread panics.

use std::thread;

/// Aborts the process if it is dropped during a panic: after a bug in one worker, the server must not continue with
/// only part of the keys.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
