//! ACL LOG: lists or resets the newest denials.

use ember_protocol::number::parse_i64;
use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::ADMIN;
use crate::catalogue::registry::wrong_subcommand;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};
use crate::system::clock::unix_ms;

pub(super) const LOG: ServerCommand = Command::new(
    Spec {
        name: "log",
        summary: "Returns recently denied commands and logins.",
        complexity: "O(N) for N returned entries.",
        arity: -2,
        syntax: "[operation:<count | RESET>]",
        history: &[("7.2.0", "The entry's number, and the times of its creation and last change.")],
        example: Example { given: &["ACL LOG RESET"], call: "ACL LOG", reply: "(empty array)" },
        ..ADMIN
    },
    Some(log),
);

/// The number of entries in a reply if the call specifies no number.
const COUNT_DEFAULT: usize = 10;

fn log(session: &mut Session<'_>) -> SessionResult {
    let log = &session.server.acl.log;
    let count = match session.args.len() {
        2 => COUNT_DEFAULT,
        3 if is_word(session.args, 2, "RESET") => {
            log.clear();
            session.reply.ok();
            return Ok(Outcome::Done);
        }
        3 => {
            let count = parse_i64(session.args.at(2)).ok_or(CommandError::NotInteger)?;
            usize::try_from(count).unwrap_or(0)
        }
        _ => return Err(wrong_subcommand("ACL", session.args.at(1))),
    };
    let now_ms = unix_ms();
    let entries = log.newest(count);
    let reply = &mut *session.reply;
    reply.array(entries.len());
    for entry in entries {
        reply.map(10);
        reply.bulk(b"count");
        reply.integer(entry.count as i64);
        let age_seconds = (now_ms - entry.updated_ms).max(0) as f64 / 1000.0;
        for (name, value) in [
            ("reason", entry.reason.name().as_bytes()),
            ("context", entry.context.as_bytes()),
            ("object", &entry.object),
            ("username", &entry.user),
        ] {
            reply.bulk(name.as_bytes());
            reply.bulk(value);
        }
        reply.bulk(b"age-seconds");
        reply.double(age_seconds);
        reply.bulk(b"client-info");
        reply.bulk(&entry.client);
        for (name, value) in [
            ("entry-id", entry.id as i64),
            ("timestamp-created", entry.created_ms),
            ("timestamp-last-updated", entry.updated_ms),
        ] {
            reply.bulk(name.as_bytes());
            reply.integer(value);
        }
    }
    Ok(Outcome::Done)
}
