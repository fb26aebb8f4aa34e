//! WATCH and UNWATCH: make a transaction conditional on unchanged keys.

use std::sync::atomic::Ordering;

use emberkv_core::spec::{Command, Example, KeyFlags, KeySpec, Spec};

use super::TEMPLATE;
use crate::clients::transaction;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::live_queries::opening;

pub(super) const COMMANDS: &[ServerCommand] = &[
    Command::new(
        Spec {
            name: "watch",
            summary: "Aborts the next transaction if one of the keys changes before it.",
            since: "2.2.0",
            complexity: "O(1) for each key.",
            arity: -2,
            keys: &[KeySpec::from(1, 1, KeyFlags::RO)],
            syntax: "key [key ...]",
            is_immediate: true,
            example: Example { given: &[], call: "WATCH hello", reply: "OK" },
            ..TEMPLATE
        },
        Some(watch),
    ),
    Command::new(
        Spec {
            name: "unwatch",
            summary: "Stops watching keys, or, with fingerprints, the live queries with these fingerprints.",
            since: "2.2.0",
            complexity: "O(N) for N watched keys.",
            arity: -1,
            syntax: "[fingerprint [fingerprint ...]]",
            example: Example { given: &["WATCH hello"], call: "UNWATCH", reply: "OK" },
            ..TEMPLATE
        },
        Some(|session| {
            if session.args.len() > 1 {
                return opening::unwatch(session);
            }
            transaction::unwatch(&session.server.keyspace, session.turn, session.client);
            session.reply.ok();
            Ok(Outcome::Done)
        }),
    ),
];

fn watch(session: &mut Session<'_>) -> SessionResult {
    if session.client.transaction.is_some() {
        return Err("ERR WATCH inside MULTI is not allowed".into());
    }
    let database = session.client.database;
    let watched = session.client.watched.get_or_insert_default();
    watched.add(&session.server.keyspace, session.turn, database, session.args);
    session.client.view.watched_keys.store(watched.len() as u32, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}
