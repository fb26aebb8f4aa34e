//! CLIENT KILL: closes the connections that match an address or filters.

use emberkv_core::spec::{Command, Example, Spec};

use super::filters::{Condition, Filters};
use super::template::ADMIN;
use crate::clients::ending::EndReason;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const KILL: ServerCommand = Command::new(
    Spec {
        name: "kill",
        summary: "Closes connections.",
        since: "2.4.0",
        complexity: "O(N) for N connections.",
        arity: -3,
        syntax: "<ip:port !2.8.12 | new-format:<[ID client-id]@2.8.12 | [TYPE normal_master_slave_pubsub:<NORMAL | \
                 MASTER @3.2.0 | SLAVE | REPLICA @5.0.0 | PUBSUB>]@2.8.12 | [USER username] | [ADDR ip:port] | \
                 [LADDR ip:port]@6.2.0 | [SKIPME yes/no] | [MAXAGE maxage]@7.4.0> ...>",
        history: &[
            ("2.8.12", "Filters: `ID`, `TYPE`, `ADDR`, `SKIPME`."),
            ("3.2.0", "Type `master`."),
            ("5.0.0", "Type `replica`; `slave` means the same."),
            ("6.2.0", "Filter `LADDR`."),
            ("7.4.0", "Filter `MAXAGE`."),
            ("9.0.0", "Several IDs, the filters of `CLIENT LIST`, and `NOT-` before a filter, as in Valkey."),
        ],
        example: Example { given: &[], call: "CLIENT KILL TYPE pubsub", reply: "(integer) 0" },
        ..ADMIN
    },
    Some(kill),
);

fn kill(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    if args.len() == 3 {
        let (killed, outcome) = kill_chosen(session, &Filters::one(Condition::Address(args.at(2))));
        if killed == 0 {
            return Err("ERR No such client".into());
        }
        session.reply.ok();
        return Ok(outcome);
    }
    let filters = Filters::parse(session, true, "ERR client-id should be greater than 0")?;
    let (killed, outcome) = kill_chosen(session, &filters);
    session.reply.integer(killed);
    Ok(outcome)
}

/// Closes the selected connections. Returns their number, and the outcome for the caller: its own connection, if
/// selected, is closed after the reply.
fn kill_chosen(session: &Session<'_>, filters: &Filters<'_>) -> (i64, Outcome) {
    let (mut killed, mut outcome) = (0, Outcome::Done);
    // An ID that occurs twice in the filter is counted once.
    for view in filters.choose(session) {
        let is_new = if view.id == session.client.view.id {
            outcome = Outcome::Close;
            session.server.begin_ending(&view, EndReason::AfterReplies)
        } else {
            session.server.kill(&view, EndReason::Killed)
        };
        if is_new {
            tracing::debug!("{} has killed {}", session.client.view.log_name(), view.log_name());
        }
        killed += i64::from(is_new);
    }
    (killed, outcome)
}
