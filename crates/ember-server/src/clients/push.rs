//! A push: what a connection is sent that it has not asked for just now.

use std::sync::Arc;

use ember_protocol::Reply;
use emberkv_core::keyspace::entry::LARGE_VALUE_MIN_BYTES;

use super::subscriptions::Name;

/// Something for connections that did not ask for it just now.
#[derive(Debug)]
pub(crate) enum Push {
    /// A message on a channel.
    Message { channel: Vec<u8>, payload: Arc<Vec<u8>>, is_sharded: bool },
    /// Keys of which a client may have copies have changed; `None` is all.
    Invalidation(Option<Vec<Box<[u8]>>>),
    /// A line of its own, for monitors.
    Line(Vec<u8>),
    /// A push of RESP3 as it is sent.
    Encoded(Vec<u8>),
    /// The client that was told of changes in place of the receiver is gone.
    RedirectBroken(u64),
}

impl Push {
    /// About the memory in bytes that it takes.
    fn memory_bytes(&self) -> usize {
        size_of::<Push>()
            + match self {
                Push::Message { channel, payload, .. } => channel.len() + payload.len(),
                Push::Invalidation(keys) => {
                    let keys = keys.as_deref().unwrap_or_default();
                    keys.iter().map(|key| size_of_val(key) + key.len()).sum()
                }
                Push::Line(bytes) | Push::Encoded(bytes) => bytes.len(),
                Push::RedirectBroken(_) => 0,
            }
    }

    /// The same with those on one worker that are to get it.
    pub(crate) fn message_bytes(&self, receivers: &[Receiver]) -> usize {
        self.memory_bytes() + size_of_val(receivers)
    }

    /// Writes it for one receiver; `pattern` is what the receiver subscribed to, if not the channel itself, and
    /// `is_subscribed` whether it listens to anything.
    pub(crate) fn write(&self, pattern: Option<&[u8]>, is_subscribed: bool, reply: &mut Reply) {
        match self {
            Push::Invalidation(keys) => write_invalidation(keys.as_deref(), is_subscribed, reply),
            Push::RedirectBroken(id) if reply.is_resp3() => {
                reply.push(2);
                reply.bulk(b"tracking-redir-broken");
                reply.integer(*id as i64);
            }
            Push::RedirectBroken(_) => {}
            Push::Line(line) => reply.simple_bytes(line),
            Push::Encoded(bytes) => reply.raw(bytes),
            Push::Message { channel, payload, is_sharded } => {
                match pattern {
                    Some(pattern) => {
                        reply.push(4);
                        reply.bulk(b"pmessage");
                        reply.bulk(pattern);
                    }
                    None => {
                        reply.push(3);
                        reply.bulk(if *is_sharded { b"smessage" } else { b"message" });
                    }
                }
                reply.bulk(channel);
                if payload.len() >= LARGE_VALUE_MIN_BYTES {
                    reply.bulk_shared(payload);
                } else {
                    reply.bulk(payload);
                }
            }
        }
    }
}

/// A connection that is to get a push.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    /// The pattern that it subscribed to, if not the channel itself.
    pub(crate) pattern: Option<Name>,
}

/// Writes what a client is told: that keys have changed, or all of them.
fn write_invalidation(keys: Option<&[Box<[u8]>]>, is_subscribed: bool, reply: &mut Reply) {
    if reply.is_resp3() {
        reply.push(2);
        reply.bulk(b"invalidate");
    } else if is_subscribed {
        reply.array(3);
        reply.bulk(b"message");
        reply.bulk(INVALIDATION_CHANNEL);
    } else {
        return;
    }
    match keys {
        Some(keys) => {
            reply.array(keys.len());
            keys.iter().for_each(|key| reply.bulk(key));
        }
        None if reply.is_resp3() => reply.null(),
        None => reply.null_array(),
    }
}

/// Where a client that speaks RESP2 is told, on behalf of another.
const INVALIDATION_CHANNEL: &[u8] = b"__redis__:invalidate";
