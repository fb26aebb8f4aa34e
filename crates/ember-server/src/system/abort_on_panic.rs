//! The end of the process when a thread panics.

use std::thread;

/// Ends the process when its thread panics: a bug in one worker must not leave a server that answers for some keys only.
pub(crate) struct AbortOnPanic;

impl Drop for AbortOnPanic {
    fn drop(&mut self) {
        if thread::panicking() {
            std::process::abort();
        }
    }
}
