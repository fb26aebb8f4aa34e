//! COMMAND: describes the commands of the server, based on their specifications.

mod docs;
mod getkeys;
mod info;
mod list;

use emberkv_core::spec::{Category, Command, Example, Flags, Group, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::ServerCommand;

pub(super) const COMMANDS: &[ServerCommand] = &[Command {
    spec: Spec {
        name: "command",
        summary: "Returns information about all commands.",
        since: "2.8.13",
        complexity: "O(N) for N commands.",
        arity: -1,
        tips: UNORDERED,
        example: Example { given: &[], call: "COMMAND", reply: "..." },
        ..TEMPLATE
    },
    run: Some(info::all),
    subcommands: &[
        list::COUNT,
        docs::DOCS,
        getkeys::GETKEYS,
        getkeys::GETKEYSANDFLAGS,
        HELP,
        info::INFO,
        list::LIST,
    ],
}];

/// The common part of COMMAND's subcommands.
const TEMPLATE: Spec = Spec {
    group: Group::Server,
    categories: Category::CONNECTION,
    flags: Flags::LOADING.union(Flags::STALE),
    ..Spec::DEFAULT
};

const UNORDERED: &[&str] = &["nondeterministic_output_order"];

const HELP: ServerCommand = {
    let help = help_subcommand(
        Group::Server,
        "5.0.0",
        Example {
            given: &[],
            call: "COMMAND HELP",
            reply: " 1) COMMAND <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
        },
        |session| reply_help(session, HELP_LINES),
    );
    Command { spec: Spec { categories: Category::CONNECTION, ..help.spec }, ..help }
};

const HELP_LINES: &[&str] = &[
    "(no subcommand)",
    "    Return information about all commands.",
    "COUNT",
    "    Return the number of commands.",
    "DOCS [<command-name> ...]",
    "    Return the documentation of these commands, or of all.",
    "GETKEYS <full-command>",
    "    Return the keys among the arguments of a command.",
    "GETKEYSANDFLAGS <full-command>",
    "    Return the keys among the arguments of a command, with their access flags.",
    "INFO [<command-name> ...]",
    "    Return information about these commands, or about all.",
    "LIST [FILTERBY (MODULE <module-name>|ACLCAT <category>|PATTERN <pattern>)]",
    "    Return the names of all commands, or of those that match the filter.",
];
