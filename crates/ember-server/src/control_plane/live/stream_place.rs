//! How many streams there are.

use std::sync::atomic::{AtomicU64, Ordering};

/// The streams there are.
static STREAMS: AtomicU64 = AtomicU64::new(0);

/// One of as many streams as there may be, until this is dropped.
pub(super) struct StreamPlace;

impl StreamPlace {
    /// One of `max`, if one is free.
    pub(super) fn take(max: u64) -> Option<StreamPlace> {
        let count = |count| (count < max).then_some(count + 1);
        STREAMS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, count).ok().map(|_| StreamPlace)
    }
}

impl Drop for StreamPlace {
    fn drop(&mut self) {
        STREAMS.fetch_sub(1, Ordering::Relaxed);
    }
}
