//! How many streams there are.

use std::sync::atomic::{AtomicU64, Ordering};

/// Streams of one kind.
pub(crate) struct Streams(AtomicU64);

/// One of as many streams as there may be, until this is dropped.
pub(crate) struct StreamPlace(&'static Streams);

impl Streams {
    pub(crate) const fn new() -> Streams {
        Streams(AtomicU64::new(0))
    }

    /// A place, if there are not `max` of them.
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
