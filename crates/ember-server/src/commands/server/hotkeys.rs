//! HOTKEYS: lists the most accessed keys of the last seconds, with their rates and shares of all accesses.

use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::observability::hot_keys::Access;

/// The Redis version with a command of the same name, which behaves differently.
const SINCE: &str = "8.6.0";

const TEMPLATE: Spec = Spec {
    since: SINCE,
    group: Group::Server,
    flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::LOADING).union(Flags::STALE),
    tips: &["nondeterministic_output", "request_policy:all_nodes", "response_policy:special"],
    ..Spec::DEFAULT
};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "hotkeys",
        summary: "Contains subcommands for the most accessed keys.",
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
                summary: "Returns the most accessed keys of the last seconds.",
                complexity: "O(1)",
                arity: -2,
                syntax: "[COUNT count] [READ | WRITE]",
                example: Example {
                    given: &["HOTKEYS RESET"],
                    call: "HOTKEYS GET COUNT 3 WRITE",
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
                call: "HOTKEYS HELP",
                reply: "1) HOTKEYS <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "reset",
                summary: "Clears the recorded accesses.",
                complexity: "O(1)",
                arity: 2,
                tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
                example: Example { given: &[], call: "HOTKEYS RESET", reply: "OK" },
                ..TEMPLATE
            },
            Some(|session| {
                session.server.workers.iter().for_each(|worker| worker.hot_keys.lock().clear());
                session.reply.ok();
                Ok(Outcome::Done)
            }),
        ),
    ],
)];

const HELP: &[&str] = &[
    "GET [COUNT <count>] [READ|WRITE]",
    "    Return the <count> keys (default: 10) that were accessed most in the last seconds, each with:",
    "    key, database, kind of access, accesses per second, percentage of all accesses.",
    "    The numbers are estimates from one in hotkeys-sampling commands.",
    "RESET",
    "    Clear the recorded accesses.",
];

/// The number of keys in a reply if the call specifies no number.
const COUNT_DEFAULT: usize = 10;

fn get(session: &mut Session<'_>) -> SessionResult {
    let (mut count, mut wanted) = (None, None);
    let mut at = 2;
    while let Some(word) = session.args.get(at) {
        if word.eq_ignore_ascii_case(b"count") && count.is_none() && at + 1 < session.args.len() {
            count = Some(parse_count(session.args.at(at + 1))?);
            at += 1;
        } else if word.eq_ignore_ascii_case(b"read") && wanted.is_none() {
            wanted = Some(Access::Read);
        } else if word.eq_ignore_ascii_case(b"write") && wanted.is_none() {
            wanted = Some(Access::Write);
        } else {
            return Err(CommandError::Syntax);
        }
        at += 1;
    }
    let keys = session.server.hottest_keys(wanted, count.unwrap_or(COUNT_DEFAULT));
    let reply = &mut *session.reply;
    reply.array(keys.len());
    for key in keys {
        reply.map(5);
        reply.bulk(b"key");
        reply.bulk(&key.key);
        reply.bulk(b"database");
        reply.integer(key.database as i64);
        reply.bulk(b"access");
        reply.bulk(key.access.name().as_bytes());
        reply.bulk(b"per-second");
        reply.integer(key.rate.round() as i64);
        reply.bulk(b"percent");
        reply.double((key.share * 10_000.0).round() / 100.0);
    }
    Ok(Outcome::Done)
}

fn parse_count(text: &[u8]) -> Result<usize, CommandError> {
    match parse_i64(text) {
        Some(count @ 1..) => Ok(usize::try_from(count).unwrap_or(usize::MAX)),
        _ => Err("ERR COUNT should be greater than 0".into()),
    }
}
