//! QUIT: closes the client's connection.

use emberkv_core::spec::{Command, Example, Group, Spec};

use super::handshake::HANDSHAKE;
use crate::executor::session::{Outcome, ServerCommand};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "quit",
        summary: "Replies OK and closes the connection.",
        since: "1.0.0",
        group: Group::Connection,
        complexity: "O(1)",
        arity: -1,
        flags: HANDSHAKE,
        is_immediate: true,
        example: Example { given: &[], call: "QUIT", reply: "OK" },
        ..Spec::DEFAULT
    },
    Some(|session| {
        session.reply.ok();
        Ok(Outcome::Close)
    }),
)];
