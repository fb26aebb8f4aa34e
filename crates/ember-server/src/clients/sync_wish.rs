//! The number of replicas that must have a client's writes, where the client requests another number than the server's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of clients that request another number.
#[derive(Clone, Debug, Default)]
pub(crate) struct SyncWishes(Arc<AtomicUsize>);

impl SyncWishes {
    /// Counts one more client until the result is dropped.
    pub(crate) fn add(&self, replicas: u32) -> SyncWish {
        self.0.fetch_add(1, Ordering::Relaxed);
        SyncWish { replicas, all: self.clone() }
    }

    /// Returns whether there are any.
    pub(crate) fn has_any(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// See the module.
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
