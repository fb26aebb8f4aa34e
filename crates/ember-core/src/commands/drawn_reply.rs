//! Replies with elements that are drawn from a value with repetition. Such a reply may be larger than the value, but
//! not larger than the maximum size of strings.

use ember_protocol::Reply;

use crate::call::CommandResult;

/// The bytes of the shortest element in a reply: `$0\r\n\r\n`.
const ELEMENT_BYTES_MIN: u64 = 6;

/// The length in bytes that a reply must not exceed.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    end: usize,
}

impl Bound {
    /// Returns whether the reply is within this length.
    pub(super) fn holds(self, reply: &Reply) -> bool {
        reply.len_bytes() <= self.end
    }
}

/// Calls `write` to reply with `count` elements, within `bytes_max` bytes; `write` returns early when the reply exceeds
/// the given bound.
///
/// # Errors
/// Returns an error if the reply would exceed `bytes_max`; then nothing remains written.
pub(super) fn bounded(
    reply: &mut Reply,
    count: u64,
    bytes_max: usize,
    write: impl FnOnce(&mut Reply, Bound),
) -> CommandResult {
    let mark = reply.mark();
    let bound = Bound { end: reply.len_bytes() + bytes_max };
    if count.saturating_mul(ELEMENT_BYTES_MIN) <= bytes_max as u64 {
        write(reply, bound);
        if bound.holds(reply) {
            return Ok(());
        }
        reply.truncate_to(mark);
    }
    Err("ERR the reply would be longer than proto-max-bulk-len".into())
}
