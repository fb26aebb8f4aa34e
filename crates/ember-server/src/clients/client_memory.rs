//! The memory of clients, counted by each connection's worker whenever it changes.
//!
//! ```text
//! a connection's part of a turn ends → its sizes → its view → the difference → its worker's sum (exact, one writer)
//! the sum has changed by 64 KiB      → the total of all workers, which counts against `maxmemory`
//! ```
//!
//! So no thread iterates over all clients to sum their memory, and small requests do not write to shared cache lines.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::client::ClientView;
use crate::observability::stats::Counter;

/// The change in bytes of a worker's sum after which the change is added to the total of all workers.
const PUBLISHED_BYTES: u64 = 64 * 1024;

/// One worker's account of client memory.
pub(crate) struct ClientMemory {
    sum: &'static Counter,
    total: &'static AtomicI64,
    /// The part of the sum, in bytes, that is not yet in the total.
    unpublished: i64,
}

impl ClientMemory {
    /// Creates the account of a worker whose clients take `sum` bytes; changes are published to `total`, the sum of all
    /// workers.
    pub(crate) fn new(sum: &'static Counter, total: &'static AtomicI64) -> ClientMemory {
        ClientMemory { sum, total, unpublished: 0 }
    }

    /// Adds a new client's memory to the sum.
    pub(crate) fn enter(&mut self, view: &ClientView) {
        self.add(view.memory_bytes() as i64);
    }

    /// Removes a client's memory from the sum.
    pub(crate) fn leave(&mut self, view: &ClientView) {
        self.add(-(view.memory_bytes() as i64));
    }

    /// Sets one of the sizes that make up a client's memory to `bytes`, and updates the sum.
    #[inline]
    pub(crate) fn set(&mut self, size: &AtomicU64, bytes: usize) {
        let (before, bytes) = (size.load(Ordering::Relaxed), bytes as u64);
        if before != bytes {
            size.store(bytes, Ordering::Relaxed);
            self.add(bytes as i64 - before as i64);
        }
    }

    fn add(&mut self, difference: i64) {
        // A negative difference is subtracted by wrapping addition.
        self.sum.add(difference as u64);
        self.unpublished += difference;
        if self.unpublished.unsigned_abs() >= PUBLISHED_BYTES {
            self.total.fetch_add(std::mem::take(&mut self.unpublished), Ordering::Relaxed);
        }
    }

    /// Returns the bytes of the clients of all workers; it may miss up to 64 KiB of each other worker.
    #[inline]
    pub(crate) fn total(&self) -> usize {
        usize::try_from(self.total.load(Ordering::Relaxed) + self.unpublished).unwrap_or(0)
    }
}
