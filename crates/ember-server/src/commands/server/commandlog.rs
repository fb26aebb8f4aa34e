//! COMMANDLOG: lists calls that were slow, had large requests or replies (as in Valkey 8.1), or made a key large.

use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::observability::command_log::LogKind;

/// The Valkey version that introduced the command, because Redis does not have it.
const SINCE: &str = "8.1.0";

const TEMPLATE: Spec = Spec {
    since: SINCE,
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::LOADING).union(Flags::STALE),
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "commandlog",
        summary: "Contains subcommands for the logs of slow calls, large requests, large replies and large keys.",
        since: SINCE,
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
                summary: "Returns the newest calls in a log.",
                complexity: "O(N) for N returned calls.",
                arity: 4,
                tips: &["request_policy:all_nodes", "nondeterministic_output"],
                syntax: "count <slow | large-request | large-reply | large-key>",
                example: Example {
                    given: &["COMMANDLOG RESET large-reply"],
                    call: "COMMANDLOG GET 10 large-reply",
                    reply: "(empty array)",
                },
                ..TEMPLATE
            },
            Some(get),
        ),
        help_subcommand(
            Group::Server,
            SINCE,
            Example {
                given: &[],
                call: "COMMANDLOG HELP",
                reply: " 1) COMMANDLOG <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "len",
                summary: "Returns the number of calls in a log.",
                arity: 3,
                tips: &["request_policy:all_nodes", "response_policy:agg_sum", "nondeterministic_output"],
                syntax: "<slow | large-request | large-reply | large-key>",
                example: Example {
                    given: &["COMMANDLOG RESET slow"],
                    call: "COMMANDLOG LEN slow",
                    reply: "(integer) 0",
                },
                ..TEMPLATE
            },
            Some(|session| {
                let kind = parse_kind(session.args.at(2))?;
                session.reply.integer(session.server.command_log.len(kind) as i64);
                Ok(Outcome::Done)
            }),
        ),
        Command::new(
            Spec {
                name: "reset",
                summary: "Empties a log.",
                complexity: "O(N) for N calls in it.",
                arity: 3,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                syntax: "<slow | large-request | large-reply | large-key>",
                example: Example { given: &[], call: "COMMANDLOG RESET large-request", reply: "OK" },
                ..TEMPLATE
            },
            Some(|session| {
                session.server.command_log.clear(parse_kind(session.args.at(2))?);
                session.reply.ok();
                Ok(Outcome::Done)
            }),
        ),
    ],
)];

const HELP: &[&str] = &[
    "GET <count> <type>",
    "    Return the newest <count> calls in the log of <type> (-1 means all), each with:",
    "    id, Unix time, an amount, arguments, client's address, client's name.",
    "    The amount is microseconds for slow, bytes for the others.",
    "LEN <type>",
    "    Return the number of calls in the log of <type>.",
    "RESET <type>",
    "    Empty the log of <type>.",
];

fn get(session: &mut Session<'_>) -> SessionResult {
    let count = parse_count(session.args.at(2))?;
    let kind = parse_kind(session.args.at(3))?;
    reply_calls(session, kind, count)
}

fn parse_kind(name: &[u8]) -> Result<LogKind, CommandError> {
    LogKind::find(name).ok_or_else(|| {
        "ERR type should be one of the following: slow, large-request, large-reply, large-key".into()
    })
}

/// Parses the number of calls to return.
pub(super) fn parse_count(text: &[u8]) -> Result<usize, CommandError> {
    match parse_i64(text) {
        Some(-1) => Ok(usize::MAX),
        Some(count @ 0..) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err("ERR count should be greater than or equal to -1".into()),
    }
}

/// Replies with the newest `count` calls in a log.
pub(super) fn reply_calls(session: &mut Session<'_>, kind: LogKind, count: usize) -> SessionResult {
    let calls = session.server.command_log.newest(kind, count);
    let reply = &mut *session.reply;
    reply.array(calls.len());
    for call in calls {
        reply.array(6);
        reply.integer(call.id as i64);
        reply.integer(call.at_seconds);
        reply.integer(call.amount as i64);
        reply.array(call.arguments.len());
        call.arguments.iter().for_each(|argument| reply.bulk(argument));
        reply.bulk(call.address.as_bytes());
        reply.bulk(call.name.as_bytes());
    }
    Ok(Outcome::Done)
}
