//! The number of streams, and its limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// The streams of one kind.
pub(crate) struct Streams(AtomicU64);

/// A place among the allowed streams, until it is dropped.
pub(crate) struct StreamPlace(&'static Streams);

impl Streams {
    pub(crate) const fn new() -> Streams {
        Streams(AtomicU64::new(0))
    }

    /// Takes a place, if there are fewer than `max` streams.
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
