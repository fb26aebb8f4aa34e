//! A call of a connection that waits for a key, or for a write to be durable.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::Reply;
use emberkv_core::observers::Waiter;

/// Writes a reply that is known beforehand.
pub(crate) type Answer = fn(&mut Reply);

/// A connection's call that waits.
pub(crate) struct Blocked {
    pub(crate) waiter: Arc<Waiter>,
    /// When the waiting times out.
    pub(crate) deadline: Option<Instant>,
    /// What is answered then.
    pub(crate) on_timeout: Answer,
    /// The number of a record that is waited for to be durable, and what is answered then.
    pub(crate) durable: Option<(u64, Answer)>,
    /// About the memory in bytes that the waiting takes.
    pub(crate) bytes: usize,
}
