//! SHUTDOWN: saves the data set if required, and stops the server.

use ember_config::ShutdownOptions;
use ember_protocol::{Args, Reply};
use emberkv_core::call::Wait;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::keys::Guards;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Execution, Outcome, ServerCommand, Session, SessionResult};
use crate::replication::shutdown;

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "shutdown",
        summary: "Waits for replicas, saves the data set if there are save rules or SAVE is given, and stops the server. \
                  Connections receive the replies that are ready.",
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
    let server = session.server;
    let Some(options) = options(session.args)? else {
        return if shutdown::abort(server) {
            session.reply.ok();
            Ok(Outcome::Done)
        } else {
            Err("ERR No shutdown in progress.".into())
        };
    };
    let busy_error = server.scripting.running.busy_error(server.config.snapshot().busy_reply_threshold);
    if options.saves != Some(false)
        && let Some(error) = busy_error
    {
        return Err(error);
    }
    tracing::info!("client {} requested the shutdown", session.client.view.id);
    if server.is_loading() || busy_error.is_some() {
        // The server stops at once: during loading there is nothing to save, and during a busy script the workers
        // cannot save.
        server.request_stop();
        return Ok(Outcome::Close);
    }
    Ok(Outcome::Continue(begin))
}

fn begin(execution: &mut Execution<'_>) -> SessionResult {
    let Execution { executor, client, command, args, reply } = execution;
    let Some(options) = options(*args)? else { return Err(CommandError::Syntax) };
    let waiting = Wait { timeout_ms: None, empty_reply: Reply::null, instead: None };
    let mut blocked = executor.enlist(command, waiting, *args, client, &mut Guards::None, reply);
    // The shutdown continues even if the client disconnects.
    blocked.is_under_way = true;
    shutdown::begin(executor, options, Some(&blocked.waiter));
    Ok(Outcome::Wait(blocked))
}

/// Returns the options; `None` if the call aborts a shutdown in progress.
fn options(args: Args<'_>) -> Result<Option<ShutdownOptions>, CommandError> {
    let (mut options, mut aborts) = (ShutdownOptions::default(), false);
    for arg in 1..args.len() {
        let is = |word| is_word(args, arg, word);
        match options.saves {
            None | Some(false) if is("NOSAVE") => options.saves = Some(false),
            None | Some(true) if is("SAVE") => options.saves = Some(true),
            _ if is("NOW") => options.is_immediate = true,
            _ if is("FORCE") => options.is_forced = true,
            _ if is("ABORT") => aborts = true,
            _ => return Err(CommandError::Syntax),
        }
    }
    if aborts && options != ShutdownOptions::default() {
        return Err(CommandError::Syntax);
    }
    Ok((!aborts).then_some(options))
}
