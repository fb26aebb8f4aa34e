//! The commands that need the server: its connections, its configuration, its statistics.

#[cfg(test)]
mod compatibility;
mod connection;
mod pubsub;
mod replication;
mod scripting;
mod server;
mod transactions;

pub(crate) use scripting::{declared_library, replay_function};

use emberkv_core::error::{CommandError, quoted};
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::catalogue::registry::Families;
use crate::executor::session::{Outcome, ServerCommand, ServerHandler, Session, SessionResult};

/// All server commands.
pub(crate) const FAMILIES: Families<ServerHandler> = &[
    connection::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    transactions::COMMANDS,
];

/// The HELP subcommand of a container of `group`; `handler` calls [`reply_help`].
const fn help_subcommand(
    group: Group,
    since: &'static str,
    example: Example,
    handler: ServerHandler,
) -> ServerCommand {
    Command::new(
        Spec {
            name: "help",
            summary: "Describes the subcommands.",
            since,
            group,
            arity: 2,
            flags: Flags::LOADING.union(Flags::STALE),
            example,
            // Redis has all of them in the category of their group but for PUBSUB HELP.
            is_in_group_category: !matches!(group, Group::PubSub),
            ..Spec::DEFAULT
        },
        Some(handler),
    )
}

/// Answers `<container> HELP`: its head, `lines`, and what every container says of HELP itself.
fn reply_help(session: &mut Session<'_>, lines: &[&str]) -> SessionResult {
    let container = String::from_utf8_lossy(session.args.at(0)).to_ascii_uppercase();
    session.reply.array(lines.len() + 3);
    session.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines.iter().chain(&["HELP", "    Print this help."]) {
        session.reply.simple(line);
    }
    Ok(Outcome::Done)
}

/// What Redis says of a subcommand that checks its arguments itself.
fn wrong_subcommand(container: &str, name: &[u8]) -> CommandError {
    let after = format!("'. Try {container} HELP.");
    CommandError::quoting("ERR unknown subcommand or wrong number of arguments for '", quoted(name), &after)
}

#[cfg(test)]
mod tests;
