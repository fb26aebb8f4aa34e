//! Pushes: output that a connection receives independently of its requests, such as messages and invalidations.

use std::sync::Arc;

use ember_protocol::Reply;
use emberkv_core::keyspace::entry::LARGE_VALUE_MIN_BYTES;

use super::subscriptions::Name;

/// Output for connections that is not a reply.
#[derive(Debug)]
pub(crate) enum Push {
    /// A message on a channel.
    Message { channel: Vec<u8>, payload: Arc<Vec<u8>>, is_sharded: bool },
    /// An invalidation of keys that a client may have cached; `None` means all keys.
    Invalidation(Option<Vec<Box<[u8]>>>),
    /// A line of text, for monitors.
    Line(Vec<u8>),
    /// A RESP3 push that is already encoded.
    Encoded(Vec<u8>),
    /// A notice that the client with this id has disconnected, to which the receiver had redirected its invalidations.
    RedirectBroken(u64),
}

impl Push {
    /// Returns the approximate memory in bytes.
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

    /// Returns the approximate memory in bytes, including the list of receivers on one worker.
    pub(crate) fn message_bytes(&self, receivers: &[Receiver]) -> usize {
        self.memory_bytes() + size_of_val(receivers)
    }

    /// Writes the push for one receiver. `pattern` is the pattern through which the receiver is subscribed, if any;
    /// `is_subscribed` says whether the receiver has subscriptions.
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

/// A receiver of a push.
#[derive(Debug)]
pub(crate) struct Receiver {
    pub(crate) token: usize,
    pub(crate) client_id: u64,
    /// The pattern through which the connection is subscribed; `None` if it is subscribed to the channel itself.
    pub(crate) pattern: Option<Name>,
}

/// Writes an invalidation of these keys, or of all keys.
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

/// The channel on which a RESP2 client receives the invalidations that another client redirects to it.
const INVALIDATION_CHANNEL: &[u8] = b"__redis__:invalidate";
