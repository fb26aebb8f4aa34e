//! HELLO: selects the protocol version, authenticates the client, and returns properties of the server.

use std::sync::atomic::Ordering;

use ember_protocol::number::parse_i64;
use ember_protocol::{Args, Protocol};
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Group, Spec};

use super::auth;
use super::client::names;
use super::handshake::HANDSHAKE;
use crate::catalogue::modules::reply_modules;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::replication::link::Link;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "hello",
        summary: "Selects the protocol version and returns properties of the server and the connection.",
        since: "6.0.0",
        group: Group::Connection,
        complexity: "O(1)",
        arity: -1,
        flags: HANDSHAKE,
        syntax: "[protover [AUTH username password] [SETNAME clientname]]",
        history: &[("6.2.0", "Without arguments it describes the connection and changes nothing.")],
        is_secret: Some(is_secret),
        example: Example { given: &[], call: "HELLO", reply: " 1) \"server\"\n 2) \"redis\"\n..." },
        ..Spec::DEFAULT
    },
    Some(hello),
)];

/// Returns whether argument `arg` is the name or the password after AUTH.
fn is_secret(args: Args<'_>, arg: usize) -> bool {
    (1..=2).any(|before| arg >= before + 2 && is_word(args, arg - before, "AUTH"))
}

const NOT_AUTHENTICATED: &str = "NOAUTH HELLO must be called with the client already authenticated, otherwise the \
                                 HELLO <proto> AUTH <user> <pass> option can be used to authenticate the client and \
                                 select the RESP protocol version at the same time";

fn hello(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let protocol = match args.get(1) {
        None => session.reply.protocol(),
        Some(version) => match parse_i64(version) {
            Some(2) => Protocol::Resp2,
            Some(3) => Protocol::Resp3,
            Some(_) => return Err("NOPROTO unsupported protocol version".into()),
            None => return Err("ERR Protocol version is not an integer or out of range".into()),
        },
    };
    let (mut credentials, mut name) = (None, None);
    let mut arg = 2;
    while arg < args.len() {
        let following = args.len() - arg - 1;
        if is_word(args, arg, "AUTH") && following >= 2 {
            credentials = Some((args.at(arg + 1), args.at(arg + 2)));
            arg += 3;
        } else if is_word(args, arg, "SETNAME") && following >= 1 {
            name = Some(names::valid_name(args.at(arg + 1), "Client names")?);
            arg += 2;
        } else {
            return Err(CommandError::quoting("ERR Syntax error in HELLO option '", args.at(arg), "'"));
        }
    }
    if let Some((user, password)) = credentials {
        auth::authenticate(session, user, password)?;
    }
    if !session.client.identity.has_authenticated() {
        return Err(CommandError::from(NOT_AUTHENTICATED));
    }
    let queries = session.client.view.queries.load(Ordering::Relaxed);
    if protocol != session.reply.protocol() && queries > 0 {
        return Err("ERR the protocol cannot change while the connection watches live queries".into());
    }
    if let Some(name) = name {
        session.client.view.edit_names(|names| names.name = name);
    }
    session.reply.set_protocol(protocol);
    session.client.view.is_resp3.store(protocol == Protocol::Resp3, Ordering::Relaxed);
    reply_about(session);
    Ok(Outcome::Done)
}

/// Replies with the properties of the server. Client libraries read `server` and `version`, so these fields contain the
/// name and version of the server whose behaviour ember follows.
fn reply_about(session: &mut Session<'_>) {
    let config = session.server.config.snapshot();
    let zone = &config.availability_zone;
    let is_replica = Link::report(session.server).is_some();
    let reply = &mut *session.reply;
    reply.map(if zone.is_empty() { 7 } else { 8 });
    reply.bulk(b"server");
    reply.bulk(b"redis");
    reply.bulk(b"version");
    reply.bulk(config.redis_version.to_string().as_bytes());
    reply.bulk(b"proto");
    reply.integer(if reply.is_resp3() { 3 } else { 2 });
    reply.bulk(b"id");
    reply.integer(session.client.view.id as i64);
    reply.bulk(b"mode");
    reply.bulk(if session.server.slots.is_some() { b"cluster" } else { b"standalone" });
    reply.bulk(b"role");
    reply.bulk(if is_replica { b"replica" } else { b"master" });
    reply.bulk(b"modules");
    reply_modules(reply);
    if !zone.is_empty() {
        reply.bulk(b"availability_zone");
        reply.bulk(zone.as_bytes());
    }
}
