//! The number of replicas that must have a client's writes, if the client has requested another number than the
//! configured one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of clients that have requested another number of replicas.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncWishes(Arc<AtomicUsize>);

impl SyncWishes {
    /// Counts one more client until the returned value is dropped.
    pub(crate) fn add(&self, replicas: u32) -> SyncWish {
        self.0.fetch_add(1, Ordering::Relaxed);
        SyncWish { replicas, all: self.clone() }
    }

    /// Returns whether there are any such clients.
    pub(crate) fn has_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// A client's requested number of replicas. While it exists, the client is counted in [`SyncWishes`].
#[derive(Debug)]
pub(crate) struct SyncWish {
    pub(crate) replicas: u32,
    all: SyncWishes,
}

impl Drop for SyncWish {
    fn drop(&mut self) {
        self.all.0.fetch_sub(1, Ordering::Relaxed);
    }
}
