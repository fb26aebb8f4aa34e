//! SHUTDOWN.

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::clients::client::Client;
use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::server::Server;
use crate::snapshot::saving::save_before_end;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "shutdown",
        summary: "Saves the data set, if there are save rules or it is asked for, and ends the server. Connections get the \
                  replies that are ready.",
        since: "1.0.0",
        group: Group::Server,
        complexity: "O(N) for N keys when saving, otherwise O(N) for N connections.",
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
    let server = session.server;
    if saves != Some(false)
        && let Some(error) =
            server.scripting.running.busy_error(server.config.snapshot().busy_reply_threshold)
    {
        return Err(error);
    }
    if !server.is_loading() && saves.unwrap_or_else(|| !server.config.snapshot().save.is_empty()) {
        return Ok(Outcome::Continue(save_and_end));
    }
    end(server, session.client)
}

/// Saves, then ends; with FORCE also when that has failed.
fn save_and_end(execution: &mut Execution<'_>) -> SessionResult {
    let server = execution.executor.server;
    if let Err(error) = save_before_end(execution.executor) {
        tracing::error!("the data set is not saved: {error}");
        if !(1..execution.args.len()).any(|arg| is_word(execution.args, arg, "FORCE")) {
            return Err("ERR Errors trying to SHUTDOWN. Check logs.".into());
        }
    }
    end(server, execution.client)
}

fn end(server: &Server, client: &Client) -> SessionResult {
    tracing::info!("client {} asked for the shutdown", client.view.id);
    server.request_stop();
    Ok(Outcome::Close)
}
