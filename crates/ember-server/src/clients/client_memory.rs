//! The memory of clients, counted as it changes by the worker that has the connection.
//!
//! ```text
//! a connection's part of a turn ends → its sizes → its view → the difference → its worker's sum (exact, one writer)
//! the sum has changed by 64 KiB      → the total of all workers, which counts against `maxmemory`
//! ```
//!
//! So no thread walks the clients to sum their memory, and small requests write to no shared cache line.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::client::ClientView;
use crate::observability::stats::Counter;

/// The change of a worker's sum after which it is added to the total.
const PUBLISHED_BYTES: u64 = 64 * 1024;

/// One worker's account of client memory.
pub(crate) struct ClientMemory {
    sum: &'static Counter,
    total: &'static AtomicI64,
    /// The part of the sum that is not in the total yet.
    unpublished: i64,
}

impl ClientMemory {
    /// Creates the account from a worker's sum and the total of all workers.
    pub(crate) fn new(sum: &'static Counter, total: &'static AtomicI64) -> ClientMemory {
        ClientMemory { sum, total, unpublished: 0 }
    }

    /// Counts a new client.
    pub(crate) fn enter(&mut self, view: &ClientView) {
        self.add(view.memory_bytes() as i64);
    }

    /// Removes a client's memory from the sum.
    pub(crate) fn leave(&mut self, view: &ClientView) {
        self.add(-(view.memory_bytes() as i64));
    }

    /// Sets one of a client's sizes to `bytes`.
    #[inline]
    pub(crate) fn set(&mut self, size: &AtomicU64, bytes: usize) {
        let (before, bytes) = (size.load(Ordering::Relaxed), bytes as u64);
        if before != bytes {
            size.store(bytes, Ordering::Relaxed);
            self.add(bytes as i64 - before as i64);
        }
    }

    fn add(&mut self, difference: i64) {
        // The sum shrinks by wrapping around.
        self.sum.add(difference as u64);
        self.unpublished += difference;
        if self.unpublished.unsigned_abs() >= PUBLISHED_BYTES {
            self.total.fetch_add(std::mem::take(&mut self.unpublished), Ordering::Relaxed);
        }
    }

    /// Returns the bytes of the clients of all workers; up to 64 KiB of each other worker may be missing.
    #[inline]
    pub(crate) fn total(&self) -> usize {
        usize::try_from(self.total.load(Ordering::Relaxed) + self.unpublished).unwrap_or(0)
    }
}
