//! MODULE: lists the modules of Redis Stack whose commands are built in, and loads none.

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::catalogue::modules::reply_modules;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand};

const NOT_LOADED: &str = "ERR Error loading the extension: this server loads no modules.";

const TEMPLATE: Spec = Spec {
    since: "4.0.0",
    group: Group::Server,
    complexity: "O(1)",
    flags: Flags::ADMIN.union(Flags::NOSCRIPT),
    ..Spec::DEFAULT
};

const CHANGES: Spec = Spec { flags: TEMPLATE.flags.union(Flags::NO_ASYNC_LOADING), ..TEMPLATE };

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "module",
        summary: "Contains subcommands for modules.",
        complexity: "Depends on the subcommand.",
        arity: -2,
        flags: Flags::empty(),
        ..TEMPLATE
    },
    None,
    &[
        help_subcommand(
            Group::Server,
            "5.0.0",
            Example {
                given: &[],
                call: "MODULE HELP",
                reply: " 1) MODULE <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "list",
                summary: "Returns the modules whose commands are built in, with their versions.",
                arity: 2,
                tips: &["nondeterministic_output_order"],
                example: Example {
                    given: &[],
                    call: "MODULE LIST",
                    reply: "1) 1) \"name\"\n   2) \"ReJSON\"\n   3) \"ver\"\n   4) (integer) 20803\n   5) \"path\"\n   6) \"\"\n   7) \"args\"\n   8) (empty array)\n2) 1) \"name\"\n   2) \"bf\"\n   3) \"ver\"\n   4) (integer) 20802\n   5) \"path\"\n   6) \"\"\n   7) \"args\"\n   8) (empty array)",
                },
                ..TEMPLATE
            },
            Some(|session| {
                reply_modules(session.reply);
                Ok(Outcome::Done)
            }),
        ),
        Command::new(
            Spec {
                name: "load",
                summary: "Returns an error: modules cannot be loaded.",
                arity: -3,
                syntax: "path [arg [arg ...]]",
                example: Example {
                    given: &[],
                    call: "MODULE LOAD module.so",
                    reply: "(error) ERR Error loading the extension: this server loads no modules.",
                },
                ..CHANGES
            },
            Some(|_| Err(NOT_LOADED.into())),
        ),
        Command::new(
            Spec {
                name: "loadex",
                summary: "Returns an error: modules cannot be loaded.",
                since: "7.0.0",
                arity: -3,
                syntax: "path [CONFIG configs:<name value> [CONFIG name value ...]] [ARGS args [args ...]]",
                example: Example {
                    given: &[],
                    call: "MODULE LOADEX module.so",
                    reply: "(error) ERR Error loading the extension: this server loads no modules.",
                },
                ..CHANGES
            },
            Some(|_| Err(NOT_LOADED.into())),
        ),
        Command::new(
            Spec {
                name: "unload",
                summary: "Returns an error: there are no modules.",
                arity: 3,
                syntax: "name",
                example: Example {
                    given: &[],
                    call: "MODULE UNLOAD module",
                    reply: "(error) ERR Error unloading module: no such module with that name",
                },
                ..CHANGES
            },
            Some(|_| Err("ERR Error unloading module: no such module with that name".into())),
        ),
    ],
)];

const HELP: &[&str] = &[
    "LIST",
    "    List the modules whose commands are built in.",
    "LOAD <path> [<arg> ...]",
    "    Return an error: this server loads no modules.",
    "LOADEX <path> [[CONFIG NAME VALUE] [CONFIG NAME VALUE]] [ARGS ...]",
    "    Return an error: this server loads no modules.",
    "UNLOAD <name>",
    "    Return an error: there is no such module.",
];
