//! CLIENT ID, INFO and LIST: show the caller's connection, or list connections.

use std::sync::atomic::Ordering;

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::filters::Filters;
use super::template::{ADMIN, OWN};
use crate::clients::client::ClientView;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const ID: ServerCommand = Command::new(
    Spec {
        name: "id",
        summary: "Returns the connection's unique ID.",
        since: "5.0.0",
        arity: 2,
        example: Example { given: &[], call: "CLIENT ID", reply: "..." },
        ..OWN
    },
    Some(|session| {
        session.reply.integer(session.client.view.id as i64);
        Ok(Outcome::Done)
    }),
);

pub(super) const INFO: ServerCommand = Command::new(
    Spec {
        name: "info",
        summary: "Describes the connection.",
        since: "6.2.0",
        arity: 2,
        tips: &["nondeterministic_output"],
        example: Example { given: &[], call: "CLIENT INFO", reply: "..." },
        ..OWN
    },
    Some(info),
);

pub(super) const LIST: ServerCommand = Command::new(
    Spec {
        name: "list",
        summary: "Returns information about all or some connections.",
        since: "2.4.0",
        complexity: "O(N) for N connections.",
        arity: -2,
        tips: &["nondeterministic_output"],
        syntax: "[TYPE <NORMAL | MASTER | REPLICA | PUBSUB>]@5.0.0 [ID id:<client-id [client-id ...]>]@6.2.0 \
                 [USER username]@9.0.0 [ADDR ip:port]@9.0.0 [LADDR ip:port]@9.0.0 [IP ip]@9.0.0 [NAME name]@9.0.0 \
                 [LIB-NAME lib-name]@9.0.0 [LIB-VER lib-ver]@9.0.0 [FLAGS flags]@9.0.0 [CAPA capa]@9.0.0 [DB db]@9.0.0 \
                 [IDLE idle]@9.0.0 [MAXAGE maxage]@9.0.0 [SKIPME yes/no]@9.0.0",
        history: &[
            ("2.8.12", "Field `id`."),
            ("5.0.0", "Filter `TYPE`."),
            ("6.0.0", "Field `user`."),
            ("6.2.0", "Fields `argv-mem`, `tot-mem`, `laddr` and `redir`; filter `ID`."),
            ("7.0.0", "Fields `resp`, `multi-mem`, `rbs` and `rbp`."),
            ("7.0.3", "Field `ssub`."),
            ("7.2.0", "Fields `lib-name` and `lib-ver`."),
            ("7.4.0", "Field `watch`."),
            ("8.0.0", "Fields `tot-net-in`, `tot-net-out` and `tot-cmds`."),
            (
                "9.0.0",
                "Filters `ADDR`, `LADDR`, `IP`, `USER`, `NAME`, `LIB-NAME`, `LIB-VER`, `FLAGS`, `CAPA`, `DB`, `IDLE`, `MAXAGE` \
                 and `SKIPME`, and `NOT-` before a filter, as in Valkey.",
            ),
        ],
        example: Example { given: &[], call: "CLIENT LIST TYPE pubsub", reply: "\"\"" },
        ..ADMIN
    },
    Some(list),
);

/// The types of connections that filters can name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientType {
    /// A client that runs commands.
    Normal,
    /// A client with subscriptions.
    Subscriber,
    /// The primary of this server.
    Primary,
    /// A replica of this server.
    Replica,
}

impl ClientType {
    /// Returns the type of a connection.
    pub(super) fn of(view: &ClientView) -> ClientType {
        match view {
            _ if view.is_primary => ClientType::Primary,
            _ if view.is_replica.load(Ordering::Relaxed) => ClientType::Replica,
            _ if view.is_subscribed() => ClientType::Subscriber,
            _ => ClientType::Normal,
        }
    }
}

/// Returns the type with this name, ignoring case.
///
/// # Errors
/// Returns the error reply if there is no such type.
pub(super) fn client_type(name: &[u8]) -> Result<ClientType, CommandError> {
    let is_one_of = |names: &[&str]| names.iter().any(|known| name.eq_ignore_ascii_case(known.as_bytes()));
    if is_one_of(&["normal"]) {
        Ok(ClientType::Normal)
    } else if is_one_of(&["pubsub"]) {
        Ok(ClientType::Subscriber)
    } else if is_one_of(&["master", "primary"]) {
        Ok(ClientType::Primary)
    } else if is_one_of(&["slave", "replica"]) {
        Ok(ClientType::Replica)
    } else {
        Err(CommandError::quoting("ERR Unknown client type '", name, "'"))
    }
}

fn describe(session: &Session<'_>, view: &ClientView, lines: &mut Vec<u8>) {
    let registry = &session.server.registry;
    let command = view.last_command().map_or("NULL", |index| &registry.get(index).full_name);
    let is_own = view.id == session.client.view.id;
    let mut running = Vec::new();
    if is_own {
        session.args.encode(&mut running);
    }
    view.describe(session.turn.now_ms, command, running.len() as u64, lines);
    lines.push(b'\n');
}

fn info(session: &mut Session<'_>) -> SessionResult {
    let mut line = Vec::new();
    describe(session, &session.client.view, &mut line);
    session.reply.verbatim(b"txt", &line);
    Ok(Outcome::Done)
}

fn list(session: &mut Session<'_>) -> SessionResult {
    let views = Filters::parse(session, false, "ERR Invalid client ID")?.choose(session);
    let mut lines = Vec::new();
    for view in views {
        describe(session, &view, &mut lines);
    }
    session.reply.verbatim(b"txt", &lines);
    Ok(Outcome::Done)
}
