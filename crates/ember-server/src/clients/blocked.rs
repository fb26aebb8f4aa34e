//! A blocked call: it waits for a key, for a durable write, or for another thread's work.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::Reply;
use emberkv_core::observers::Waiter;

/// Writes the reply to a call that has stopped waiting.
pub(crate) type Answer = Box<dyn Fn(&mut Reply) + Send>;

/// A connection's blocked call.
pub(crate) struct Blocked {
    pub(crate) waiter: Arc<Waiter>,
    /// When the call times out.
    pub(crate) deadline: Option<Instant>,
    /// The reply on timeout.
    pub(crate) on_timeout: Answer,
    /// The number of the record whose durability is awaited, and the reply then.
    pub(crate) durable: Option<(u64, Answer)>,
    /// Whether the call continues after the peer has stopped sending: its work has begun.
    pub(crate) is_under_way: bool,
    /// The run time in ns, without the time spent waiting.
    pub(crate) run_ns: u64,
    /// The approximate memory of the wait, in bytes.
    pub(crate) bytes: usize,
}
