//! SLOWLOG: lists the newest slow calls.

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use super::commandlog::{parse_count, reply_calls};
use crate::catalogue::registry::wrong_subcommand;
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::observability::command_log::LogKind;

const TEMPLATE: Spec = Spec {
    since: "2.2.12",
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "slowlog",
        summary: "Contains subcommands for the slow log.",
        since: "2.2.12",
        group: Group::Server,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    &[
        Command::new(
            Spec {
                name: "get",
                summary: "Returns the newest slow calls.",
                complexity: "O(N) for N returned calls.",
                arity: -2,
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                syntax: "[count]",
                history: &[("4.0.0", "The client's address and name.")],
                example: Example {
                    given: &["SLOWLOG RESET"],
                    call: "SLOWLOG GET 10",
                    reply: "(empty array)",
                },
                ..TEMPLATE
            },
            Some(get),
        ),
        help_subcommand(
            Group::Server,
            "6.2.0",
            Example {
                given: &[],
                call: "SLOWLOG HELP",
                reply: " 1) SLOWLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "len",
                summary: "Returns the number of calls in the slow log.",
                arity: 2,
                tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
                example: Example { given: &["SLOWLOG RESET"], call: "SLOWLOG LEN", reply: "(integer) 0" },
                ..TEMPLATE
            },
            Some(|session| {
                session.reply.integer(session.server.command_log.len(LogKind::Slow) as i64);
                Ok(Outcome::Done)
            }),
        ),
        Command::new(
            Spec {
                name: "reset",
                summary: "Empties the slow log.",
                complexity: "O(N) for N calls in it.",
                arity: 2,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                example: Example { given: &[], call: "SLOWLOG RESET", reply: "OK" },
                ..TEMPLATE
            },
            Some(|session| {
                session.server.command_log.clear(LogKind::Slow);
                session.reply.ok();
                Ok(Outcome::Done)
            }),
        ),
    ],
)];

const HELP: &[&str] = &[
    "GET [<count>]",
    "    Return the newest <count> calls (default: 10, -1 means all), each with:",
    "    id, Unix time, duration in microseconds, arguments, client's address, client's name",
    "LEN",
    "    Return the number of calls in the slow log.",
    "RESET",
    "    Empty the slow log.",
];

/// The number of calls in a reply if the call specifies no number.
const COUNT_DEFAULT: usize = 10;

fn get(session: &mut Session<'_>) -> SessionResult {
    let count = match session.args.len() {
        2 => COUNT_DEFAULT,
        3 => parse_count(session.args.at(2))?,
        _ => return Err(wrong_subcommand("SLOWLOG", session.args.at(1))),
    };
    reply_calls(session, LogKind::Slow, count)
}
