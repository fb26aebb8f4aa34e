//! REPLICAOF and SLAVEOF: make this server a replica of another server, or a primary.

use ember_config::PrimaryAddress;
use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::replication::failover::stage::{Failover, FailoverStage};
use crate::replication::link::role::{self, Changed};

/// The maximum length of a host name in the DNS, in bytes.
const HOST_BYTES_MAX: usize = 253;

const REPLICAOF: Spec = Spec {
    name: "replicaof",
    summary: "Makes this server a replica of another, or with NO ONE a primary.",
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
    if session.server.slots.is_some() {
        return Err("ERR REPLICAOF not allowed in cluster mode.".into());
    }
    primary_of(session.args)?;
    Ok(Outcome::Continue(|execution| {
        let primary = primary_of(execution.args)?;
        if Failover::of(execution.executor.server).stage() != FailoverStage::Off {
            return Err("ERR REPLICAOF not allowed while failing over.".into());
        }
        let client_id = Some(execution.client.view.id);
        let why = format!("REPLICAOF of {}", execution.client.view.log_name());
        match role::change(execution.executor, client_id, primary.clone(), &why)? {
            Changed::No if primary.get().is_some() => {
                execution.reply.simple("OK Already connected to specified master");
            }
            _ => execution.reply.ok(),
        }
        Ok(Outcome::Done)
    }))
}

/// Returns the primary that the arguments specify.
fn primary_of(args: Args<'_>) -> Result<PrimaryAddress, CommandError> {
    if is_word(args, 1, "NO") && is_word(args, 2, "ONE") {
        return Ok(PrimaryAddress::NONE);
    }
    let port = parse_i64(args.at(2)).and_then(|port| u16::try_from(port).ok());
    let port = port.ok_or("ERR Invalid master port")?;
    let host = std::str::from_utf8(args.at(1)).ok().filter(|host| is_host(host));
    Ok(PrimaryAddress::new(host.ok_or("ERR Invalid master host")?.to_owned(), port))
}

/// Returns whether a text may be a host name or address, and can be a word in a configuration file.
fn is_host(text: &str) -> bool {
    let is_fit = |letter: char| !letter.is_whitespace() && !letter.is_control() && !"\"'\\#".contains(letter);
    !text.is_empty() && text.len() <= HOST_BYTES_MAX && text.chars().all(is_fit)
}
