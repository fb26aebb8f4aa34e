//! A counter of open streams, which enforces a limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// The number of open streams of one kind.
pub(crate) struct Streams(AtomicU64);

/// An open stream, which is counted until this value is dropped.
pub(crate) struct StreamPlace(&'static Streams);

impl Streams {
    pub(crate) const fn new() -> Streams {
        Streams(AtomicU64::new(0))
    }

    /// Counts another stream; returns `None` if `max` streams are open already.
    pub(crate) fn take(&'static self, max: u64) -> Option<StreamPlace> {
        let count = |count| (count < max).then_some(count + 1);
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).ok().map(|_| StreamPlace(self))
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        let StreamPlace(Streams(count)) = self;
        count.fetch_sub(1, Ordering::Relaxed);
    }
}
