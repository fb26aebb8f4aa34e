//! Replies with members and scores: an array of pairs in RESP3, a flat array in RESP2.

use ember_protocol::Reply;

use crate::types::listpack::Element;

/// Writes the head of an array of `count` members; the array also contains their scores if `with_scores`.
pub(super) fn members_head(reply: &mut Reply, count: usize, with_scores: bool) {
    reply.array(if with_scores && !reply.is_resp3() { count * 2 } else { count });
}

/// Writes a member as a bulk string.
#[inline]
pub(super) fn member(reply: &mut Reply, member: Element<'_>) {
    match member {
        Element::Integer(number) => reply.bulk_integer(number),
        Element::Bytes(bytes) => reply.bulk(bytes),
    }
}

/// Writes a member of an array whose head [`members_head`] has written, with its score if `with_scores`.
#[inline]
pub(super) fn element(reply: &mut Reply, element: Element<'_>, score: f64, with_scores: bool) {
    if !with_scores {
        return member(reply, element);
    }
    if reply.is_resp3() {
        reply.array(2);
    }
    member(reply, element);
    reply.double(score);
}
