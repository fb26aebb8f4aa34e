//! SELECT: changes the database of the connection.

use std::sync::atomic::Ordering;

use emberkv_core::commands::arguments;
use emberkv_core::keyspace::expiry::DATABASES_MAX;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "select",
        summary: "Selects the database that the connection's commands use.",
        since: "1.0.0",
        group: Group::Connection,
        arity: 2,
        flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
        syntax: "index",
        example: Example { given: &[], call: "SELECT 1", reply: "OK" },
        ..Spec::DEFAULT
    },
    Some(select),
)];

fn select(session: &mut Session<'_>) -> SessionResult {
    let databases = session.server.keyspace.databases();
    let is_alone = session.server.slots.is_some() && databases == 1;
    let index = arguments::database(session.args, 1, if is_alone { DATABASES_MAX } else { databases })?;
    if index >= databases {
        return Err("ERR SELECT is not allowed in cluster mode".into());
    }
    session.client.database = index;
    session.client.view.database.store(session.client.database as u32, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}
