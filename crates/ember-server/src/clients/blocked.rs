//! A call of a connection that waits for a key, for a write to be durable, or for another thread to do its work.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::Reply;
use emberkv_core::observers::Waiter;

/// Writes the reply to a call that waits no longer.
pub(crate) type Answer = Box<dyn Fn(&mut Reply) + Send>;

/// A connection's call that waits.
pub(crate) struct Blocked {
    pub(crate) waiter: Arc<Waiter>,
    /// When the waiting times out.
    pub(crate) deadline: Option<Instant>,
    /// What is answered then.
    pub(crate) on_timeout: Answer,
    /// The number of a record that is waited for to be durable, and what is answered then.
    pub(crate) durable: Option<(u64, Answer)>,
    /// Whether it goes on when the peer sends no more: its work is under way.
    pub(crate) is_under_way: bool,
    /// How long it has run, in ns, without the time that it waits.
    pub(crate) run_ns: u64,
    /// About the memory in bytes that the waiting takes.
    pub(crate) bytes: usize,
}
