//! CLIENT UNBLOCK and GETREDIR, whose answers are known: no command blocks, and nothing is tracked.

use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::{ADMIN, OWN};
use crate::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const UNBLOCK: ServerCommand = Command::new(
    Spec {
        name: "unblock",
        summary: "Ends the waiting of a client that waits in a blocking command.",
        since: "5.0.0",
        arity: -3,
        syntax: "client-id [TIMEOUT | ERROR]",
        example: Example { given: &[], call: "CLIENT UNBLOCK 1 TIMEOUT", reply: "(integer) 0" },
        ..ADMIN
    },
    Some(unblock),
);

pub(super) const GETREDIR: ServerCommand = Command::new(
    Spec {
        name: "getredir",
        summary: "Tells which client gets the connection's tracking notifications; -1 while tracking is off.",
        since: "6.0.0",
        arity: 2,
        example: Example { given: &[], call: "CLIENT GETREDIR", reply: "(integer) -1" },
        ..OWN
    },
    Some(|session| {
        session.reply.integer(-1);
        Ok(Outcome::Done)
    }),
);

fn unblock(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    match args.len() {
        3 => {}
        4 if is_word(args, 3, "TIMEOUT") || is_word(args, 3, "ERROR") => {}
        4 => return Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()),
        _ => return Err(CommandError::Syntax),
    }
    integer(args, 2)?;
    session.reply.integer(0);
    Ok(Outcome::Done)
}
