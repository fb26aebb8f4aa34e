//! BGREWRITEAOF: starts a rewrite of the append-only file.

use std::sync::atomic::Ordering;

use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::aof::rewriting;
use crate::aof::service::Aof;
use crate::executor::Section;
use crate::executor::session::{Execution, Outcome, ServerCommand, SessionResult};
use crate::snapshot::point_in_time::Purpose;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "bgrewriteaof",
        summary: "Rewrites the append-only file in the background.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(1); the rewrite itself is O(N) for N keys.",
        arity: 1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::NO_ASYNC_LOADING),
        example: Example {
            given: &[],
            call: "BGREWRITEAOF",
            reply: "Background append only file rewriting started",
        },
        ..Spec::DEFAULT
    },
    Some(|_| Ok(Outcome::Continue(rewrite))),
)];

fn rewrite(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, reply, .. } = execution;
    let server = executor.server;
    let aof = &Aof::of(server).state;
    if aof.is_rewriting() {
        return Err("ERR Background append only file rewriting already in progress".into());
    }
    // In a transaction, the rewrite is scheduled, so that the file contains the state after the transaction.
    if executor.section != Section::Shared {
        aof.is_rewrite_scheduled.store(true, Ordering::Relaxed);
        reply.simple("Background append only file rewriting scheduled");
        return Ok(Outcome::Done);
    }
    match rewriting::begin(executor) {
        Ok(()) => reply.simple("Background append only file rewriting started"),
        Err(Ok(Purpose::AofBase)) => {
            return Err("ERR Background append only file rewriting already in progress".into());
        }
        Err(Ok(Purpose::Save | Purpose::Sync)) => {
            aof.is_rewrite_scheduled.store(true, Ordering::Relaxed);
            reply.simple("Background append only file rewriting scheduled");
        }
        Err(Err(error)) => {
            tracing::error!("BGREWRITEAOF failed: {error}");
            return Err(
                "ERR Can't execute an AOF background rewriting. Please check the server logs for more \
                        information."
                    .into(),
            );
        }
    }
    Ok(Outcome::Done)
}
