//! REPLICAOF and SLAVEOF: this server is a primary and stays one.

use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

const REPLICAOF: Spec = Spec {
    name: "replicaof",
    summary: "Makes this server a primary with NO ONE, as it is anyway; of another server it cannot be a replica.",
    since: "5.0.0",
    group: Group::Server,
    complexity: "O(1)",
    arity: 3,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE).union(Flags::NO_ASYNC_LOADING),
    syntax: "args:<host-port:<host port> | no-one:<NO ONE>>",
    example: Example { given: &[], call: "REPLICAOF NO ONE", reply: "OK" },
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(REPLICAOF, Some(replicaof)),
    Command::new(
        Spec {
            name: "slaveof",
            since: "1.0.0",
            deprecated: Some(("5.0.0", "`REPLICAOF`")),
            example: Example { given: &[], call: "SLAVEOF NO ONE", reply: "OK" },
            ..REPLICAOF
        },
        Some(replicaof),
    ),
];

fn replicaof(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    if is_word(args, 1, "NO") && is_word(args, 2, "ONE") {
        session.reply.ok();
        return Ok(Outcome::Done);
    }
    let is_port = parse_i64(args.at(2)).is_some_and(|port| (0..=65535).contains(&port));
    if !is_port {
        return Err("ERR Invalid master port".into());
    }
    Err("ERR this server has no replication and cannot be a replica; it takes REPLICAOF NO ONE only".into())
}
