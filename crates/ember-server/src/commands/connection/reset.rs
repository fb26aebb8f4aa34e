//! RESET: the connection becomes what it was when it was made.

use std::sync::atomic::Ordering;

use ember_protocol::Protocol;
use emberkv_core::spec::{Command, Example, Group, Spec};

use super::HANDSHAKE;
use crate::client::ReplyMode;
use crate::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "reset",
        summary: "Makes the connection as it was when it was new.",
        since: "6.2.0",
        group: Group::Connection,
        complexity: "O(1)",
        arity: 1,
        flags: HANDSHAKE,
        example: Example { given: &[], call: "RESET", reply: "RESET" },
        ..Spec::DEFAULT
    },
    Some(reset),
)];

fn reset(session: &mut Session<'_>) -> SessionResult {
    let view = &session.client.view;
    view.database.store(0, Ordering::Relaxed);
    view.is_resp3.store(false, Ordering::Relaxed);
    view.no_evict.store(false, Ordering::Relaxed);
    view.no_touch.store(false, Ordering::Relaxed);
    view.names.lock().name = Box::default();
    session.client.log_out();
    session.client.database = 0;
    session.client.reply_mode = ReplyMode::On;
    session.reply.set_protocol(Protocol::Resp2);
    session.reply.simple("RESET");
    Ok(Outcome::Done)
}
