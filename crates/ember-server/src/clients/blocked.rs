//! A blocked call: it waits for a key, for a durable write, or for another thread's work.

use std::sync::Arc;
use std::time::Instant;

use ember_protocol::Reply;
use emberkv_core::observers::Waiter;

/// A function that writes the reply to a call that has stopped waiting.
pub(crate) type Answer = Box<dyn Fn(&mut Reply) + Send>;

/// A connection's blocked call.
pub(crate) struct Blocked {
    pub(crate) waiter: Arc<Waiter>,
    /// The time at which the call times out.
    pub(crate) deadline: Option<Instant>,
    /// The function that writes the reply of a call that times out.
    pub(crate) on_timeout: Answer,
    /// The number of the record that must become durable, and the reply once it is.
    pub(crate) durable: Option<(u64, Answer)>,
    /// Whether the call continues after the peer has stopped sending, because its work has begun.
    pub(crate) is_under_way: bool,
    /// The run time in ns, without the time spent waiting.
    pub(crate) run_ns: u64,
    /// The approximate memory of the blocked call, in bytes.
    pub(crate) bytes: usize,
}
