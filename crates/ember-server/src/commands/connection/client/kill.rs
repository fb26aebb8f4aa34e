//! CLIENT KILL.

use std::sync::Arc;

use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::list::{ClientType, client_type};
use super::template::ADMIN;
use crate::acl::user::User;
use crate::acl::users::Acl;
use crate::clients::client::ClientView;
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
        ],
        example: Example { given: &[], call: "CLIENT KILL TYPE pubsub", reply: "(integer) 0" },
        ..ADMIN
    },
    Some(kill),
);

/// Which connections to close: those that every filter given admits.
#[derive(Default)]
struct Filters<'a> {
    id: Option<u64>,
    address: Option<&'a [u8]>,
    local_address: Option<&'a [u8]>,
    client_type: Option<ClientType>,
    user: Option<Arc<User>>,
    age_seconds_min: Option<i64>,
    spares_caller: bool,
}

impl Filters<'_> {
    fn parse<'a>(args: Args<'a>, acl: &Acl) -> Result<Filters<'a>, CommandError> {
        let mut filters = Filters { spares_caller: true, ..Filters::default() };
        let mut arg = 2;
        while arg < args.len() {
            let value = args.get(arg + 1).ok_or(CommandError::Syntax)?;
            let number = parse_i64(value);
            if is_word(args, arg, "ID") {
                let id = number.and_then(|id| u64::try_from(id).ok()).filter(|&id| id > 0);
                filters.id = Some(id.ok_or("ERR client-id should be greater than 0")?);
            } else if is_word(args, arg, "TYPE") {
                filters.client_type = Some(client_type(value)?);
            } else if is_word(args, arg, "ADDR") {
                filters.address = Some(value);
            } else if is_word(args, arg, "LADDR") {
                filters.local_address = Some(value);
            } else if is_word(args, arg, "USER") {
                let no_such = || CommandError::quoting("ERR No such user '", value, "'");
                filters.user = Some(acl.find(value).ok_or_else(no_such)?);
            } else if is_word(args, arg, "MAXAGE") {
                let seconds = number.filter(|&seconds| seconds > 0);
                filters.age_seconds_min =
                    Some(seconds.ok_or("ERR maxage is not an integer or out of range")?);
            } else if is_word(args, arg, "SKIPME") {
                filters.spares_caller = match (is_word(args, arg + 1, "yes"), is_word(args, arg + 1, "no")) {
                    (true, _) => true,
                    (_, true) => false,
                    _ => return Err(CommandError::Syntax),
                };
            } else {
                return Err(CommandError::Syntax);
            }
            arg += 2;
        }
        Ok(filters)
    }

    fn admit(&self, view: &ClientView, now_ms: i64) -> bool {
        self.id.is_none_or(|id| view.id == id)
            && self.address.is_none_or(|address| view.peer.remote().as_bytes() == address)
            && self.local_address.is_none_or(|address| view.peer.local().as_bytes() == address)
            && self.client_type.is_none_or(|client_type| client_type == ClientType::of(view))
            && self.user.as_ref().is_none_or(|user| view.user.lock().is_same(user))
            && self.age_seconds_min.is_none_or(|seconds| (now_ms - view.created_ms) / 1000 >= seconds)
    }
}

fn kill(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    if args.len() == 3 {
        let filters = Filters { address: Some(args.at(2)), ..Filters::default() };
        let (killed, outcome) = kill_admitted(session, &filters);
        if killed == 0 {
            return Err("ERR No such client".into());
        }
        session.reply.ok();
        return Ok(outcome);
    }
    let filters = Filters::parse(args, &session.server.acl)?;
    let (killed, outcome) = kill_admitted(session, &filters);
    session.reply.integer(killed);
    Ok(outcome)
}

/// Returns how many connections are closed, and what becomes of the caller's own, which is closed after the reply.
fn kill_admitted(session: &Session<'_>, filters: &Filters<'_>) -> (i64, Outcome) {
    let (mut killed, mut outcome) = (0, Outcome::Done);
    for view in session.server.clients.all() {
        let is_caller = view.id == session.client.view.id;
        if !filters.admit(&view, session.turn.now_ms) || (is_caller && filters.spares_caller) {
            continue;
        }
        killed += 1;
        if is_caller {
            outcome = Outcome::Close;
        } else {
            session.server.kill(&view);
        }
    }
    (killed, outcome)
}
