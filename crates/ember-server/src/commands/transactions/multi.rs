//! MULTI, EXEC and DISCARD: queue commands, and execute or discard them.

use std::sync::atomic::Ordering;

use emberkv_core::spec::{Command, Example, Flags, Spec};

use super::TEMPLATE;
use crate::clients::transaction::{self, Transaction};
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "multi",
            summary: "Starts a transaction: commands are queued until EXEC.",
            since: "1.2.0",
            complexity: "O(1)",
            is_immediate: true,
            example: Example { given: &[], call: "MULTI", reply: "OK" },
            ..TEMPLATE
        },
        Some(multi),
    ),
    Command::new(
        Spec {
            name: "exec",
            summary: "Runs the queued commands atomically, unless a watched key has changed.",
            since: "1.2.0",
            complexity: "Depends on the calls.",
            flags: Flags::NOSCRIPT.union(Flags::LOADING).union(Flags::STALE).union(Flags::SKIP_SLOWLOG),
            is_immediate: true,
            example: Example {
                given: &["MULTI", "SET hello world", "GET hello"],
                call: "EXEC",
                reply: "1) OK\n2) \"world\"",
            },
            ..TEMPLATE
        },
        Some(|_| {
            Ok(Outcome::Continue(|execution| {
                let Execution { executor, client, command, args, reply } = execution;
                executor.run_transaction(client, command, *args, reply)
            }))
        }),
    ),
    Command::new(
        Spec {
            name: "discard",
            summary: "Discards the queued commands and stops watching.",
            since: "2.0.0",
            complexity: "O(N) for N queued calls.",
            is_immediate: true,
            example: Example { given: &["MULTI", "SET hello world"], call: "DISCARD", reply: "OK" },
            ..TEMPLATE
        },
        Some(discard),
    ),
];

fn multi(session: &mut Session<'_>) -> SessionResult {
    if session.client.transaction.is_some() {
        return Err("ERR MULTI calls can not be nested".into());
    }
    session.client.transaction = Some(Box::<Transaction>::default());
    session.client.view.queued.store(0, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn discard(session: &mut Session<'_>) -> SessionResult {
    if session.client.transaction.is_none() {
        return Err("ERR DISCARD without MULTI".into());
    }
    transaction::discard(&session.server.keyspace, session.turn, session.client);
    session.reply.ok();
    Ok(Outcome::Done)
}
