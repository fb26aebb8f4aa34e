//! Replies of elements drawn from a value with repetition. Such a reply may be larger than the value, but not larger
//! than the largest string.

use ember_protocol::Reply;

use crate::call::CommandResult;

/// The bytes of the shortest element in a reply: `$0\r\n\r\n`.
const ELEMENT_BYTES_MIN: u64 = 6;

/// The maximum length of a reply.
#[derive(Clone, Copy)]
pub(super) struct Bound {
    end: usize,
}

impl Bound {
    /// Returns whether the reply is within the bound.
    pub(super) fn holds(self, reply: &Reply) -> bool {
        reply.len_bytes() <= self.end
    }
}

/// Calls `write` to reply with `count` elements, within `bytes_max` bytes; `write` ends early when the bound is
/// exceeded.
///
/// # Errors
/// If the reply would be longer; nothing of it is left.
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
