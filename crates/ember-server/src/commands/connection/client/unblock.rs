//! CLIENT UNBLOCK: ends the blocking command of another client.

use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::template::ADMIN;
use crate::clients::mailbox::Message;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const UNBLOCK: ServerCommand = Command::new(
    Spec {
        name: "unblock",
        summary: "Unblocks a client that waits in a blocking command.",
        since: "5.0.0",
        arity: -3,
        syntax: "client-id [TIMEOUT | ERROR]",
        example: Example { given: &[], call: "CLIENT UNBLOCK 1 TIMEOUT", reply: "(integer) 0" },
        ..ADMIN
    },
    Some(unblock),
);

fn unblock(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let with_error = match args.len() {
        3 => false,
        4 if is_word(args, 3, "TIMEOUT") => false,
        4 if is_word(args, 3, "ERROR") => true,
        4 => return Err("ERR CLIENT UNBLOCK reason should be TIMEOUT or ERROR".into()),
        _ => return Err(CommandError::Syntax),
    };
    let id = integer(args, 2)?;
    let view = u64::try_from(id).ok().and_then(|id| session.server.clients.get(id));
    let unblocked = view.is_some_and(|view| {
        let is_mine = view.waiter.get().is_some_and(|waiter| waiter.cancel());
        if is_mine {
            let message = Message::Unblock(view.token, view.id, with_error);
            session.server.workers[view.worker].mailbox.send(message);
        }
        is_mine
    });
    session.reply.integer(unblocked.into());
    Ok(Outcome::Done)
}
