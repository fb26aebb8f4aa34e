//! The encoding of states: in the form of DiceDB in RESP2, as a push in RESP3, or as a message of a channel.

use std::sync::Arc;

use ember_protocol::{Protocol, Reply, SHARED_LEN_MIN};
use emberkv_core::live_query::LiveQuery;

use super::{json, version};
use crate::clients::watchers::{Form, State};
use crate::server::Server;

/// A message about a live query: its result at one moment, or a replacement for it.
pub(crate) struct Notification<'t> {
    /// The number by which the client identifies the query: the fingerprint of its call, unless that number was in use.
    pub(crate) number: u32,
    pub(crate) query: &'t LiveQuery,
    pub(crate) version: &'t str,
    pub(crate) result: Result<'t>,
}

/// The result in a message, or its replacement.
pub(crate) enum Result<'t> {
    /// The encoded result.
    Body(&'t Arc<Vec<u8>>),
    /// No result: the caller sends the result after the message.
    Apart,
    /// No result: the client already has the version of this state.
    Unchanged,
    /// An error instead of a result.
    Error(&'t [u8]),
}

impl Notification<'_> {
    /// Writes the reply to the call that has begun the watch; for a channel, the first message.
    pub(crate) fn reply(&self, form: &Form, reply: &mut Reply) {
        if !reply.is_resp3() || matches!(form, Form::Channel(_)) {
            return self.write_array(form, reply);
        }
        reply.map(4);
        reply.bulk(b"command");
        reply.bulk(&self.command());
        reply.bulk(b"fingerprint");
        reply.bulk(self.number.to_string().as_bytes());
        reply.bulk(b"version");
        reply.bulk(self.version.as_bytes());
        reply.bulk(b"result");
        self.result.write(reply);
    }

    /// Writes a state that follows the first one.
    fn push(&self, form: &Form, reply: &mut Reply) {
        if !reply.is_resp3() || matches!(form, Form::Channel(_)) {
            return self.write_array(form, reply);
        }
        reply.push(4);
        reply.bulk(b"watch");
        reply.bulk(self.number.to_string().as_bytes());
        reply.bulk(self.version.as_bytes());
        self.result.write(reply);
    }

    fn write_array(&self, form: &Form, reply: &mut Reply) {
        if let Form::Channel(name) = form {
            reply.push(3);
            reply.bulk(b"message");
            reply.bulk(name);
            let mut result = Reply::new(Protocol::Resp3);
            self.result.write(&mut result);
            return reply.bulk(&json::message(self.version, &result.to_vec()));
        }
        let has_version = *form != Form::Watch;
        reply.array(3 + usize::from(has_version));
        reply.bulk(&self.command());
        reply.bulk(self.number.to_string().as_bytes());
        if has_version {
            reply.bulk(self.version.as_bytes());
        }
        self.result.write(reply);
    }

    fn command(&self) -> Vec<u8> {
        self.query.call().at(0).to_ascii_uppercase()
    }
}

impl Result<'_> {
    fn write(&self, reply: &mut Reply) {
        match self {
            Result::Body(body) => reply.raw_shared(body),
            Result::Apart => {}
            Result::Unchanged => reply.null(),
            Result::Error(text) => reply.error_bytes(text),
        }
    }
}

/// Writes the first state as the reply to the call that has begun the watch. `unchanged` is the version that the client
/// already has, if it is the state's.
pub(crate) fn write_first(
    server: &Server,
    number: u32,
    form: &Form,
    state: &State,
    unchanged: Option<&str>,
    reply: &mut Reply,
) {
    let current = version::text(server, state.sequence, state.hash, state.position);
    let result = if unchanged.is_some() { Result::Unchanged } else { Result::Body(&state.body) };
    Notification { number, query: &state.query, version: unchanged.unwrap_or(&current), result }
        .reply(form, reply);
}

/// An encoded state that follows the first one; connections with the same encoding share it.
#[derive(Debug)]
pub(crate) struct Written {
    number: u32,
    form: Form,
    is_resp3: bool,
    /// The bytes before the result, if the result is long enough to be shared; otherwise empty.
    head: Vec<u8>,
    /// The result, if it is shared; otherwise the whole message.
    body: Arc<Vec<u8>>,
}

impl Written {
    /// Encodes a state for the connections of `protocol` that receive it in this form, under this number.
    pub(crate) fn new(
        server: &Server,
        number: u32,
        form: Form,
        protocol: Protocol,
        state: &State,
    ) -> Written {
        let version = version::text(server, state.sequence, state.hash, state.position);
        let mut reply = Reply::new(protocol);
        let is_apart = state.body.len() >= SHARED_LEN_MIN && !matches!(form, Form::Channel(_));
        let result = if is_apart { Result::Apart } else { Result::Body(&state.body) };
        Notification { number, query: &state.query, version: &version, result }.push(&form, &mut reply);
        let is_resp3 = reply.is_resp3();
        let (head, body) = match is_apart {
            true => (reply.to_vec(), Arc::clone(&state.body)),
            false => (Vec::new(), Arc::new(reply.to_vec())),
        };
        Written { number, form, is_resp3, head, body }
    }

    /// Returns whether the encoding is for this number, form and protocol.
    pub(crate) fn is_for(&self, number: u32, form: &Form, protocol: Protocol) -> bool {
        self.number == number && self.is_resp3 == (protocol == Protocol::Resp3) && self.form == *form
    }

    /// Writes the encoded state to a connection's replies.
    pub(crate) fn write(&self, reply: &mut Reply) {
        reply.raw(&self.head);
        reply.raw_shared(&self.body);
    }
}

/// Writes a message that no more states follow, with the reason and the version of the last state.
pub(crate) fn write_end(
    number: u32,
    form: &Form,
    query: &LiveQuery,
    version: &str,
    error: &[u8],
    reply: &mut Reply,
) {
    let result = Result::Error(error);
    Notification { number, query, version, result }.push(form, reply);
}
