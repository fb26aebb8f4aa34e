//! What clients make the server keep: counted as it changes, by the worker that has the connection.
//!
//! ```text
//! a connection's part of a turn ends ─ its sizes now → its view → the difference → its worker's sum (exact, one writer)
//! the sum has changed by 64 KiB      → the total of all workers, which `maxmemory` is held against
//! ```
//!
//! So nobody walks over the clients to know what they take together, and small requests write to no shared line.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use super::client::ClientView;
use crate::observability::stats::Counter;

/// A change of a worker's sum that the total is told of.
const PUBLISHED_BYTES: u64 = 64 * 1024;

/// The account of one worker's clients.
pub(crate) struct ClientMemory {
    sum: &'static Counter,
    total: &'static AtomicI64,
    /// What the sum has that the total does not know of.
    unpublished: i64,
}

impl ClientMemory {
    /// The account of a worker whose sum this is, and the total of all workers.
    pub(crate) fn new(sum: &'static Counter, total: &'static AtomicI64) -> ClientMemory {
        ClientMemory { sum, total, unpublished: 0 }
    }

    /// Counts a new client.
    pub(crate) fn enter(&mut self, view: &ClientView) {
        self.add(view.memory_bytes() as i64);
    }

    /// Counts a client no longer.
    pub(crate) fn leave(&mut self, view: &ClientView) {
        self.add(-(view.memory_bytes() as i64));
    }

    /// Notes that one of a client's sizes is `bytes` now.
    #[inline]
    pub(crate) fn set(&mut self, size: &AtomicU64, bytes: usize) {
        let (before, bytes) = (size.load(Ordering::Relaxed), bytes as u64);
        if before != bytes {
            size.store(bytes, Ordering::Relaxed);
            self.add(bytes as i64 - before as i64);
        }
    }

    fn add(&mut self, difference: i64) {
        // A sum that wraps around shrinks.
        self.sum.add(difference as u64);
        self.unpublished += difference;
        if self.unpublished.unsigned_abs() >= PUBLISHED_BYTES {
            self.total.fetch_add(std::mem::take(&mut self.unpublished), Ordering::Relaxed);
        }
    }

    /// Bytes that the clients of all workers take, but for 64 KiB of each other worker.
    #[inline]
    pub(crate) fn total(&self) -> usize {
        usize::try_from(self.total.load(Ordering::Relaxed) + self.unpublished).unwrap_or(0)
    }
}
