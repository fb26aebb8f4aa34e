//! PING and ECHO: reply with their argument.

use std::sync::atomic::Ordering;

use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "ping",
            summary: "Returns PONG, or its argument.",
            since: "1.0.0",
            group: Group::Connection,
            arity: -1,
            flags: Flags::FAST,
            tips: &["request_policy:all_shards", "response_policy:all_succeeded"],
            syntax: "[message]",
            example: Example { given: &[], call: "PING", reply: "PONG" },
            ..Spec::DEFAULT
        },
        Some(ping),
    ),
    Command::new(
        Spec {
            name: "echo",
            summary: "Returns its argument.",
            since: "1.0.0",
            group: Group::Connection,
            arity: 2,
            flags: Flags::LOADING.union(Flags::STALE).union(Flags::FAST),
            syntax: "message",
            example: Example { given: &[], call: "ECHO hello", reply: "\"hello\"" },
            ..Spec::DEFAULT
        },
        Some(echo),
    ),
];

fn ping(session: &mut Session<'_>) -> SessionResult {
    // In RESP2, the reply to a subscriber has the form of a pushed message. The client's protocol decides, not the
    // protocol of replies to a script.
    let has_messages =
        session.client.subscriptions.is_some() && !session.client.view.is_resp3.load(Ordering::Relaxed);
    if has_messages && session.args.len() <= 2 {
        session.reply.array(2);
        session.reply.bulk(b"pong");
        session.reply.bulk(session.args.get(1).unwrap_or_default());
        return Ok(Outcome::Done);
    }
    match session.args.len() {
        1 => session.reply.simple("PONG"),
        2 => session.reply.bulk(session.args.at(1)),
        _ => return Err(CommandError::WrongArity("ping".into())),
    }
    Ok(Outcome::Done)
}

fn echo(session: &mut Session<'_>) -> SessionResult {
    session.reply.bulk(session.args.at(1));
    Ok(Outcome::Done)
}
