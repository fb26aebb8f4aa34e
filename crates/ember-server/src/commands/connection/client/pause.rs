//! CLIENT PAUSE and UNPAUSE: delay the commands of all clients for a time.

use emberkv_core::commands::arguments::{is_word, timeout_in_ms};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::template::ADMIN;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const PAUSE: ServerCommand = Command::new(
    Spec {
        name: "pause",
        summary: "Pauses all commands, or only writes, for some time.",
        since: "2.9.50",
        arity: -3,
        syntax: "timeout [WRITE | ALL]@6.2.0",
        history: &[("6.2.0", "Commands that only read may continue: `WRITE`.")],
        example: Example { given: &[], call: "CLIENT PAUSE 1 WRITE", reply: "OK" },
        ..ADMIN
    },
    Some(pause),
);

pub(super) const UNPAUSE: ServerCommand = Command::new(
    Spec {
        name: "unpause",
        summary: "Ends a pause.",
        since: "6.2.0",
        complexity: "O(N) for N connections.",
        arity: 2,
        example: Example { given: &[], call: "CLIENT UNPAUSE", reply: "OK" },
        ..ADMIN
    },
    Some(unpause),
);

fn pause(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let all = match args.len() {
        3 => true,
        4 if is_word(args, 3, "ALL") => true,
        4 if is_word(args, 3, "WRITE") => false,
        4 => return Err("ERR CLIENT PAUSE mode must be WRITE or ALL".into()),
        _ => return Err(CommandError::Syntax),
    };
    let now_ms = session.turn.now_ms;
    let until_ms = now_ms.saturating_add_unsigned(timeout_in_ms(args, 2, now_ms)?);
    session.server.pause.begin(now_ms, until_ms, all);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn unpause(session: &mut Session<'_>) -> SessionResult {
    let server = session.server;
    server.pause.end();
    server.check_paused();
    session.reply.ok();
    Ok(Outcome::Done)
}
