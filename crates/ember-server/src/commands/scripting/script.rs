//! SCRIPT: manages cached and running scripts.

use std::sync::Arc;

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use super::{TEMPLATE, eval};
use crate::commands::help::{help_subcommand, reply_help};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use ember_scripting::scripts::{Scripts, sha_of};
use ember_scripting::sha1;

const SUBCOMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "debug",
            summary: "Sets the debugger mode for following scripts; only `NO` is supported.",
            since: "3.2.0",
            arity: 3,
            syntax: "mode:<YES | SYNC | NO>",
            example: Example { given: &[], call: "SCRIPT DEBUG NO", reply: "OK" },
            ..TEMPLATE
        },
        Some(debug),
    ),
    Command::new(
        Spec {
            name: "exists",
            summary: "Returns whether scripts are loaded.",
            since: "2.6.0",
            complexity: "O(N) for N digests.",
            arity: -3,
            tips: &["request_policy:all_shards", "response_policy:agg_logical_and"],
            syntax: "sha1 ...",
            example: Example {
                given: &["SCRIPT LOAD \"return 1\""],
                call: "SCRIPT EXISTS e0e1f9fabfc9d4800c877a703b823ac0578ff8db ffffffffffffffffffffffffffffffffffffffff",
                reply: "1) (integer) 1\n2) (integer) 0",
            },
            ..TEMPLATE
        },
        Some(|session| {
            session.reply.array(session.args.len() - 2);
            for sha in session.args.iter().skip(2) {
                let is_known =
                    sha1::parse(sha).is_some_and(|sha| session.server.scripting.scripts.contains(&sha));
                session.reply.integer(i64::from(is_known));
            }
            Ok(Outcome::Done)
        }),
    ),
    Command::new(
        Spec {
            name: "flush",
            summary: "Removes all scripts.",
            since: "2.6.0",
            complexity: "O(N) for N scripts.",
            arity: -2,
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            syntax: "[async:<ASYNC | SYNC>@6.2.0]",
            history: &[("6.2.0", "Options `ASYNC` and `SYNC`.")],
            example: Example { given: &[], call: "SCRIPT FLUSH", reply: "OK" },
            ..TEMPLATE
        },
        Some(flush),
    ),
    help_subcommand(
        Group::Scripting,
        "5.0.0",
        Example {
            given: &[],
            call: "SCRIPT HELP",
            reply: " 1) SCRIPT <subcommand> [<arg> [value] [opt] ...]. Subcommands are:\n...",
        },
        |session| reply_help(session, HELP),
    ),
    Command::new(
        Spec {
            name: "kill",
            summary: "Ends a long-running script that has not written.",
            since: "2.6.0",
            arity: 2,
            flags: TEMPLATE.flags.union(Flags::ALLOW_BUSY),
            tips: &["request_policy:all_shards", "response_policy:one_succeeded"],
            example: Example {
                given: &[],
                call: "SCRIPT KILL",
                reply: "(error) NOTBUSY No scripts in execution right now.",
            },
            ..TEMPLATE
        },
        Some(|session| {
            super::kill(session.server, false)?;
            session.reply.ok();
            Ok(Outcome::Done)
        }),
    ),
    Command::new(
        Spec {
            name: "load",
            summary: "Loads a script without running it; returns its SHA-1 digest.",
            since: "2.6.0",
            complexity: "O(N) for N bytes of the script.",
            arity: 3,
            flags: TEMPLATE.flags.union(Flags::STALE),
            tips: &["request_policy:all_nodes", "response_policy:all_succeeded"],
            syntax: "script",
            example: Example {
                given: &[],
                call: "SCRIPT LOAD \"return 1\"",
                reply: "\"e0e1f9fabfc9d4800c877a703b823ac0578ff8db\"",
            },
            ..TEMPLATE
        },
        Some(|_| {
            Ok(Outcome::Continue(|execution| {
                let text = execution.args.at(2);
                let sha = sha_of(text);
                let server = execution.executor.server;
                let scripts = &server.scripting.scripts;
                let script = match scripts.get(&sha) {
                    Some(script) => script,
                    None => {
                        let script = Arc::new(Scripts::parse(&server.registry, text, sha)?);
                        eval::compile(execution, &script)?;
                        script
                    }
                };
                scripts.keep(script, true);
                execution.reply.bulk(sha1::hex(&sha).as_bytes());
                Ok(Outcome::Done)
            }))
        }),
    ),
    Command::new(
        Spec {
            name: "show",
            summary: "Returns the text of a loaded script.",
            since: "8.0.0",
            complexity: "O(N) for N bytes of the script.",
            arity: 3,
            syntax: "sha1",
            example: Example {
                given: &["SCRIPT LOAD \"return 1\""],
                call: "SCRIPT SHOW e0e1f9fabfc9d4800c877a703b823ac0578ff8db",
                reply: "\"return 1\"",
            },
            ..TEMPLATE
        },
        Some(|session| {
            let sha = sha1::parse(session.args.at(2));
            let script = sha.and_then(|sha| session.server.scripting.scripts.peek(&sha));
            session.reply.bulk(script.ok_or(eval::NO_SCRIPT)?.text());
            Ok(Outcome::Done)
        }),
    ),
];

pub(super) const COMMANDS: &[ServerCommand] = &[Command::container(
    Spec {
        name: "script",
        summary: "Contains subcommands for scripts.",
        since: "2.6.0",
        group: Group::Scripting,
        complexity: "Depends on the subcommand.",
        arity: -2,
        ..Spec::DEFAULT
    },
    None,
    SUBCOMMANDS,
)];

const HELP: &[&str] = &[
    "DEBUG (YES|SYNC|NO)",
    "    Set the mode of the debugger. Only NO is supported.",
    "EXISTS <sha1> [<sha1> ...]",
    "    Return for each digest whether its script is loaded.",
    "FLUSH [ASYNC|SYNC]",
    "    Remove all scripts.",
    "KILL",
    "    End a long-running script that has not written.",
    "LOAD <script>",
    "    Load a script without running it; return its SHA-1 digest.",
    "SHOW <sha1>",
    "    Return the text of a script.",
];

fn debug(session: &mut Session<'_>) -> SessionResult {
    let mode = session.args.at(2);
    if mode.eq_ignore_ascii_case(b"no") {
        session.reply.ok();
        Ok(Outcome::Done)
    } else if mode.eq_ignore_ascii_case(b"yes") || mode.eq_ignore_ascii_case(b"sync") {
        Err("ERR this server has no script debugger".into())
    } else {
        Err("ERR Use SCRIPT DEBUG YES/SYNC/NO".into())
    }
}

fn flush(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let is_mode = |mode: &[u8]| mode.eq_ignore_ascii_case(b"sync") || mode.eq_ignore_ascii_case(b"async");
    if args.len() > 3 || args.get(2).is_some_and(|mode| !is_mode(mode)) {
        return Err("ERR SCRIPT FLUSH only support SYNC|ASYNC option".into());
    }
    session.server.scripting.scripts.clear();
    session.server.scripting.forget_compiled();
    session.reply.ok();
    Ok(Outcome::Done)
}
