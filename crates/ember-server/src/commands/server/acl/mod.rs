//! ACL: manages users and their permissions, and lists denied calls.

mod category;
mod file;
mod log;
mod password;
mod rules;
mod users;

use std::sync::Arc;

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::acl::user::User;
use crate::clients::ending::EndReason;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{ServerCommand, Session};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "acl",
        summary: "Contains subcommands for users and their permissions.",
        since: "6.0.0",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        category::CAT,
        users::DELUSER,
        rules::DRYRUN,
        password::GENPASS,
        rules::GETUSER,
        HELP,
        users::LIST,
        file::LOAD,
        log::LOG,
        file::SAVE,
        rules::SETUSER,
        users::USERS,
        users::WHOAMI,
    ],
)];

/// The common part of subcommands that any client may call.
const TEMPLATE: Spec = Spec {
    since: "6.0.0",
    group: Group::Server,
    flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

/// The common part of subcommands about other users.
const ADMIN: Spec = Spec { flags: TEMPLATE.flags.union(Flags::ADMIN), ..TEMPLATE };

const HELP: ServerCommand = help_subcommand(
    Group::Server,
    "6.0.0",
    Example {
        given: &[],
        call: "ACL HELP",
        reply: " 1) ACL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n 2) CAT [<category>]\n...",
    },
    |session| reply_help(session, HELP_LINES),
);

const HELP_LINES: &[&str] = &[
    "CAT [<category>]",
    "    List the commands of <category>, or all categories.",
    "DELUSER <username> [<username> ...]",
    "    Remove users and close their connections.",
    "DRYRUN <username> <command> [<arg> ...]",
    "    Return whether a user may run a command, without running it.",
    "GENPASS [<bits>]",
    "    Generate a password of 256 random bits, or of <bits>.",
    "GETUSER <username>",
    "    Return the rules of a user.",
    "LIST",
    "    List all users with their rules, in the form of the ACL file.",
    "LOAD",
    "    Replace all users by those in the ACL file.",
    "LOG [<count> | RESET]",
    "    List the newest denials, or clear them.",
    "SAVE",
    "    Write the users to the ACL file.",
    "SETUSER <username> <rule> [<rule> ...]",
    "    Create or change a user.",
    "USERS",
    "    List the names of all users.",
    "WHOAMI",
    "    Return the user of this connection.",
];

/// Closes the connections of removed users. The caller's own connection, if affected, is closed after its reply.
fn close_connections(session: &Session<'_>, users: &[Arc<User>]) {
    if users.is_empty() {
        return;
    }
    for view in session.server.clients.all() {
        let is_theirs = users.iter().any(|user| user.is_same(&view.user.lock()));
        if is_theirs && view.id != session.client.view.id {
            session.server.kill(&view, EndReason::Killed);
        }
    }
}
