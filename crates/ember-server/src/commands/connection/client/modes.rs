//! CLIENT REPLY, NO-EVICT, NO-TOUCH, IMPORT-SOURCE, SYNC-REPLICAS and CAPA: the modes of a connection.

use std::sync::atomic::{AtomicBool, Ordering};

use ember_config::SYNC_REPLICAS_MAX;
use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::template::{ADMIN, OWN};
use crate::clients::client::ReplyMode;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::replication::primary::{Primary, good_replicas};

pub(super) const REPLY: ServerCommand = Command::new(
    Spec {
        name: "reply",
        summary: "Sets which replies the connection receives.",
        since: "3.2.0",
        arity: 3,
        syntax: "<ON | OFF | SKIP>",
        example: Example { given: &[], call: "CLIENT REPLY ON", reply: "OK" },
        ..OWN
    },
    Some(reply),
);

pub(super) const NO_EVICT: ServerCommand = Command::new(
    Spec {
        name: "no-evict",
        summary: "Sets whether the connection is protected from eviction.",
        since: "7.0.0",
        arity: 3,
        syntax: "<ON | OFF>",
        example: Example { given: &[], call: "CLIENT NO-EVICT ON", reply: "OK" },
        ..ADMIN
    },
    Some(|session| switch(session, |session| &session.client.view.no_evict)),
);

pub(super) const NO_TOUCH: ServerCommand = Command::new(
    Spec {
        name: "no-touch",
        summary: "Sets whether the connection's commands update the LRU and LFU clocks of keys.",
        since: "7.2.0",
        arity: 3,
        syntax: "<ON | OFF>",
        example: Example { given: &[], call: "CLIENT NO-TOUCH ON", reply: "OK" },
        ..OWN
    },
    Some(|session| switch(session, |session| &session.client.view.no_touch)),
);

pub(super) const IMPORT_SOURCE: ServerCommand = Command::new(
    Spec {
        name: "import-source",
        summary: "Marks the connection as an import source, for which no key expires, or clears the mark.",
        since: "8.1.0",
        arity: 3,
        syntax: "<ON | OFF>",
        example: Example { given: &[], call: "CLIENT IMPORT-SOURCE OFF", reply: "OK" },
        ..OWN
    },
    Some(|session| {
        if !session.server.config.snapshot().import_mode && !is_word(session.args, 2, "OFF") {
            return Err("ERR Server is not in import mode".into());
        }
        switch(session, |session| &session.client.view.is_import_source)
    }),
);

pub(super) const SYNC_REPLICAS: ServerCommand = Command::new(
    Spec {
        name: "sync-replicas",
        summary: "Sets the number of replicas that must confirm the connection's writes before the reply.",
        since: "8.1.0",
        arity: 3,
        syntax: "<numreplicas | DEFAULT>",
        example: Example { given: &[], call: "CLIENT SYNC-REPLICAS DEFAULT", reply: "OK" },
        ..OWN
    },
    Some(|session| {
        session.client.sync_wish = if is_word(session.args, 2, "DEFAULT") {
            None
        } else {
            let replicas = u32::try_from(integer(session.args, 2)?).ok();
            let replicas = replicas.filter(|&replicas| replicas as usize <= SYNC_REPLICAS_MAX);
            let replicas = replicas.ok_or("ERR the number of replicas must be from 0 to 4")?;
            Some(Primary::of(session.server).sync_wishes.add(replicas))
        };
        good_replicas::refuse_writes(session.server, &session.server.config.snapshot());
        session.reply.ok();
        Ok(Outcome::Done)
    }),
);

pub(super) const CAPA: ServerCommand = Command::new(
    Spec {
        name: "capa",
        summary: "Declares capabilities of the client.",
        since: "8.0.0",
        arity: -3,
        syntax: "capability [capability ...]",
        example: Example { given: &[], call: "CLIENT CAPA redirect", reply: "OK" },
        ..OWN
    },
    Some(capa),
);

/// Handles CLIENT CAPA. Accepts unknown capabilities, because they may belong to a newer server.
fn capa(session: &mut Session<'_>) -> SessionResult {
    if session.args.iter().skip(2).any(|capability| capability.eq_ignore_ascii_case(b"redirect")) {
        session.client.view.follows_redirects.store(true, Ordering::Relaxed);
    }
    session.reply.ok();
    Ok(Outcome::Done)
}

fn reply(session: &mut Session<'_>) -> SessionResult {
    let mode = &mut session.client.reply_mode;
    if is_word(session.args, 2, "ON") {
        *mode = ReplyMode::On;
        session.reply.ok();
    } else if is_word(session.args, 2, "OFF") {
        *mode = ReplyMode::Off;
    } else if is_word(session.args, 2, "SKIP") {
        // SKIP has no effect on a connection whose replies are off.
        if *mode != ReplyMode::Off {
            *mode = ReplyMode::SkipNext;
        }
    } else {
        return Err(CommandError::Syntax);
    }
    Ok(Outcome::Done)
}

fn switch(
    session: &mut Session<'_>,
    which: impl for<'s> FnOnce(&'s Session<'_>) -> &'s AtomicBool,
) -> SessionResult {
    let is_on = on_or_off(session.args, 2)?;
    which(session).store(is_on, Ordering::Relaxed);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn on_or_off(args: Args<'_>, arg: usize) -> Result<bool, CommandError> {
    match (is_word(args, arg, "ON"), is_word(args, arg, "OFF")) {
        (true, _) => Ok(true),
        (_, true) => Ok(false),
        _ => Err(CommandError::Syntax),
    }
}
