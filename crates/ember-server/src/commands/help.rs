//! The HELP subcommand of containers.

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, ServerHandler, Session, SessionResult};

/// Declares the HELP subcommand of a container of `group`; `handler` calls [`reply_help`].
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
            // Redis has all of them in the category of their group except PUBSUB HELP.
            is_in_group_category: !matches!(group, Group::PubSub),
            ..Spec::DEFAULT
        },
        Some(handler),
    )
}

/// Replies to `<container> HELP`: its head, `lines`, and the common lines about HELP itself.
pub(super) fn reply_help(session: &mut Session<'_>, lines: &[&str]) -> SessionResult {
    let container = String::from_utf8_lossy(session.args.at(0)).to_ascii_uppercase();
    session.reply.array(lines.len() + 3);
    session.reply.simple(&format!("{container} <subcommand> [<arg> [value] [opt] ...]. Subcommands are:"));
    for line in lines.iter().chain(&["HELP", "    Print this help."]) {
        session.reply.simple(line);
    }
    Ok(Outcome::Done)
}
