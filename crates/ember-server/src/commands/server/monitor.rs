//! MONITOR: streams the commands of all other connections to the client.

use std::sync::atomic::Ordering;

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::clients::subscriptions::Address;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "monitor",
        summary: "Shows the commands of all clients as they run.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1), and the cost of sending each command.",
        arity: 1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
        example: Example { given: &[], call: "MONITOR", reply: "OK" },
        ..Spec::DEFAULT
    },
    Some(monitor),
)];

fn monitor(session: &mut Session<'_>) -> SessionResult {
    let view = &session.client.view;
    if !view.is_monitor.swap(true, Ordering::Relaxed) {
        session.server.monitors.add(Address::of(view));
    }
    session.reply.ok();
    Ok(Outcome::Done)
}
