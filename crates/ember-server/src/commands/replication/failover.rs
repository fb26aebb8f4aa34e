//! FAILOVER: makes a replica the primary, and this server its replica.

use ember_protocol::Args;
use emberkv_core::commands::arguments::{integer, is_word};
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Flags, Group, Spec};

use crate::executor::session::{Outcome, ServerCommand};
use crate::replication::failover;
use crate::replication::failover::stage::{Failover, FailoverStage, Wish};

pub(super) const COMMANDS: &[ServerCommand] = &[Command::new(
    Spec {
        name: "failover",
        summary: "Makes a replica the primary once it has all writes, and this server its replica; writes wait \
                  until then.",
        since: "6.2.0",
        group: Group::Server,
        complexity: "O(1)",
        arity: -1,
        flags: Flags::ADMIN.union(Flags::NOSCRIPT).union(Flags::STALE),
        syntax: "[TO target:<host port [FORCE]>] [ABORT] [TIMEOUT milliseconds]",
        example: Example {
            given: &[],
            call: "FAILOVER ABORT",
            reply: "(error) ERR No failover in progress.",
        },
        ..Spec::DEFAULT
    },
    Some(|session| {
        if session.server.slots.is_some() {
            return Err("ERR FAILOVER not allowed in cluster mode.".into());
        }
        Ok(Outcome::Continue(|execution| {
            let server = execution.executor.server;
            match wish(execution.args)? {
                Some(wish) => {
                    let who = &execution.client.view;
                    failover::begin(server, who, wish, execution.executor.turn.now_ms)?;
                }
                None if Failover::of(server).stage() == FailoverStage::Off => {
                    return Err("ERR No failover in progress.".into());
                }
                None => {
                    let why = format!("FAILOVER ABORT of {}", execution.client.view.log_name());
                    let client_id = Some(execution.client.view.id);
                    failover::abort(execution.executor, client_id, &why)?;
                }
            }
            execution.reply.ok();
            Ok(Outcome::Done)
        }))
    }),
)];

/// Returns the requested failover; `None` if the call aborts the failover in progress.
fn wish(args: Args<'_>) -> Result<Option<Wish>, CommandError> {
    if args.len() == 2 && is_word(args, 1, "ABORT") {
        return Ok(None);
    }
    let mut wish = Wish::default();
    let mut at = 1;
    while at < args.len() {
        if is_word(args, at, "TIMEOUT") && at + 1 < args.len() && wish.timeout_ms.is_none() {
            let timeout_ms = integer(args, at + 1)?;
            if timeout_ms <= 0 {
                return Err("ERR FAILOVER timeout must be greater than 0".into());
            }
            wish.timeout_ms = Some(timeout_ms);
            at += 2;
        } else if is_word(args, at, "TO") && at + 2 < args.len() && wish.target.is_none() {
            // An invalid port becomes 0, which matches no replica.
            let port = u16::try_from(integer(args, at + 2)?).unwrap_or(0);
            wish.target = Some((String::from_utf8_lossy(args.at(at + 1)).into_owned(), port));
            at += 3;
        } else if is_word(args, at, "FORCE") && !wish.is_forced {
            wish.is_forced = true;
            at += 1;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    Ok(Some(wish))
}
