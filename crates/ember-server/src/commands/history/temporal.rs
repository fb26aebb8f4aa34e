//! TEMPORAL: the state of the history.

use emberkv_core::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::history::forgetting;
use crate::history::report::Figures;

/// The ember version that introduced the command.
const SINCE: &str = "0.1.0";

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "temporal",
        summary: "Contains subcommands for the history of keys.",
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
                name: "forget",
                summary: "Erases the past of a key from all files of the history.",
                since: SINCE,
                group: Group::Server,
                complexity: "O(N) for the bytes of all files with states of the key, and O(K) for K keys.",
                arity: 3,
                flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_MULTI),
                keys: &[KeySpec::one(2, KeyFlags::RW.union(KeyFlags::DELETE))],
                syntax: "key",
                example: Example {
                    given: &[],
                    call: "TEMPORAL FORGET user:1",
                    reply: "(error) ERR the history is off: set history-keys",
                },
                ..Spec::DEFAULT
            },
            Some(|_| Ok(Outcome::Continue(forgetting::forget))),
        ),
        help_subcommand(
            Group::Server,
            SINCE,
            Example {
                given: &[],
                call: "TEMPORAL HELP",
                reply: "1) TEMPORAL <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
            },
            |session| reply_help(session, HELP),
        ),
        Command::new(
            Spec {
                name: "info",
                summary: "Returns the oldest readable moment, the size of the history and the number of lost states.",
                since: SINCE,
                group: Group::Server,
                complexity: "O(1)",
                arity: 2,
                flags: Flags::LOADING.union(Flags::STALE),
                tips: &["nondeterministic_output"],
                example: Example {
                    given: &[],
                    call: "TEMPORAL INFO",
                    reply: " 1) \"enabled\"\n 2) (integer) 0\n...",
                },
                replies_pairs: true,
                ..Spec::DEFAULT
            },
            Some(info),
        ),
    ],
)];

const HELP: &[&str] = &[
    "FORGET <key>",
    "    Erase the past of a key from all files.",
    "INFO",
    "    Return the oldest readable moment, the size and the number of lost states.",
];

fn info(session: &mut Session<'_>) -> SessionResult {
    let pairs = Figures::of(session.server).pairs();
    session.reply.map(pairs.len());
    for (name, figure) in pairs {
        session.reply.bulk(name.as_bytes());
        session.reply.integer(figure.cast_signed());
    }
    Ok(Outcome::Done)
}
