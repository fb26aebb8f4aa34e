//! SHUTDOWN.

use std::sync::atomic::Ordering;

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use super::save::save;
use crate::client::Client;
use crate::server::Server;
use crate::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "shutdown",
        summary: "Ends the server. Connections get the replies that are ready.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(N) for N connections.",
        arity: -1,
        flags: Flags::ADMIN
            .union(Flags::NOSCRIPT)
            .union(Flags::LOADING)
            .union(Flags::STALE)
            .union(Flags::NO_MULTI)
            .union(Flags::ALLOW_BUSY),
        syntax: "[NOSAVE | SAVE] [NOW]@7.0.0 [FORCE]@7.0.0 [ABORT]@7.0.0",
        history: &[("7.0.0", "`NOW`, `FORCE` and `ABORT`.")],
        example: Example {
            given: &[],
            call: "SHUTDOWN ABORT",
            reply: "(error) ERR No shutdown in progress.",
        },
        ..Spec::DEFAULT
    },
    Some(shutdown),
)];

fn shutdown(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let (mut saves, mut aborts) = (None, false);
    for arg in 1..args.len() {
        let is = |word| is_word(args, arg, word);
        match saves {
            None | Some(false) if is("NOSAVE") => saves = Some(false),
            None | Some(true) if is("SAVE") => saves = Some(true),
            _ if is("NOW") || is("FORCE") => {}
            _ if is("ABORT") => aborts = true,
            _ => return Err(CommandError::Syntax),
        }
    }
    if aborts {
        // A shutdown that has begun lets no new command in, this one included.
        let error = if args.len() > 2 { CommandError::Syntax } else { "ERR No shutdown in progress.".into() };
        return Err(error);
    }
    if saves == Some(true) {
        return Ok(Outcome::Continue(|execution| {
            save(execution)?;
            // What is written until the connections are drained is saved again then.
            execution.executor.server.snapshots.saves_at_end.store(true, Ordering::Relaxed);
            end(execution.executor.server, execution.client)
        }));
    }
    end(session.server, session.client)
}

fn end(server: &Server, client: &Client) -> SessionResult {
    tracing::info!("client {} asked for the shutdown", client.view.id);
    server.request_stop();
    Ok(Outcome::Close)
}
