//! The HELP subcommand of container commands.

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, ServerHandler, Session, SessionResult};

/// Declares the HELP subcommand of a container in `group`; `handler` must call [`reply_help`].
pub(super) const fn help_subcommand(
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
            // In Redis, every HELP subcommand except PUBSUB HELP is in the category of its group.
            is_in_group_category: !matches!(group, Group::PubSub),
            ..Spec::DEFAULT
        },
        Some(handler),
    )
}

/// Replies to `<container> HELP` with a heading, `lines`, and the common lines about HELP itself.
pub(super) fn reply_help(session: &mut Session<'_>, lines: &[&str]) -> SessionResult {
    let container = String::from_utf8_lossy(session.args.at(0)).to_ascii_uppercase();
    session.reply.array(lines.len() + 3);
    session.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines.iter().chain(&["HELP", "    Print this help."]) {
        session.reply.simple(line);
    }
    Ok(Outcome::Done)
}
