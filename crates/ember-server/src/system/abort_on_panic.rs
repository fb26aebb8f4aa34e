//! Aborting the process when a thread panics.

use std::thread;

/// Aborts the process when its thread panics: a bug in one worker must not leave a server that serves only some keys.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
