//! How clients are told of a state: as DiceDB does in RESP2, as a push in RESP3, as a message of a channel.

use std::sync::Arc;

use ember_protocol::{Protocol, Reply};
use emberkv_core::live_query::LiveQuery;

use super::{json, version};
use crate::clients::live_queries::{Form, State};
use crate::server::Server;

/// What is told of a query: the result at one moment, or something in its place.
pub(crate) struct Told<'t> {
    /// The number that the client knows the query by.
    pub(crate) number: u32,
    pub(crate) query: &'t LiveQuery,
    pub(crate) version: &'t str,
    pub(crate) result: Result<'t>,
}

/// What stands in the place of the result.
pub(crate) enum Result<'t> {
    /// The result.
    Body(&'t Arc<Vec<u8>>),
    /// Nothing: it is the one whose version the client has named.
    Unchanged,
    /// An error.
    Error(&'t [u8]),
}

impl Told<'_> {
    /// Writes the reply to the call that has begun to watch; to one of a channel the first message.
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

    /// Writes a later state.
    pub(crate) fn push(&self, form: &Form, reply: &mut Reply) {
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
            Result::Unchanged => reply.null(),
            Result::Error(text) => reply.error_bytes(text),
        }
    }
}

/// Writes the answer to the call that has begun to watch; `unchanged` is the version that the client has, if that is the
/// state.
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
    Told { number, query: &state.query, version: unchanged.unwrap_or(&current), result }.reply(form, reply);
}

/// Writes a later state to a connection.
pub(crate) fn write_state(server: &Server, number: u32, form: &Form, state: &State, reply: &mut Reply) {
    let version = version::text(server, state.sequence, state.hash, state.position);
    let result = Result::Body(&state.body);
    Told { number, query: &state.query, version: &version, result }.push(form, reply);
}

/// Writes that there will be no more states, and why.
pub(crate) fn write_end(
    server: &Server,
    number: u32,
    form: &Form,
    state: &State,
    error: &[u8],
    reply: &mut Reply,
) {
    let version = version::text(server, state.sequence, state.hash, state.position);
    let result = Result::Error(error);
    Told { number, query: &state.query, version: &version, result }.push(form, reply);
}
