//! CLIENT GETNAME, SETNAME and SETINFO: names that clients set for themselves.

use emberkv_core::commands::arguments::is_word;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::template::OWN;
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const GETNAME: ServerCommand = Command::new(
    Spec {
        name: "getname",
        summary: "Returns the name of the connection.",
        since: "2.6.9",
        arity: 2,
        example: Example { given: &["CLIENT SETNAME me"], call: "CLIENT GETNAME", reply: "\"me\"" },
        ..OWN
    },
    Some(getname),
);

pub(super) const SETNAME: ServerCommand = Command::new(
    Spec {
        name: "setname",
        summary: "Sets the name of the connection.",
        since: "2.6.9",
        arity: 3,
        syntax: "connection-name",
        example: Example { given: &[], call: "CLIENT SETNAME me", reply: "OK" },
        ..OWN
    },
    Some(setname),
);

pub(super) const SETINFO: ServerCommand = Command::new(
    Spec {
        name: "setinfo",
        summary: "Sets the name or the version of the client library.",
        since: "7.2.0",
        arity: 4,
        syntax: "<LIB-NAME libname | LIB-VER libver>",
        example: Example { given: &[], call: "CLIENT SETINFO LIB-NAME mine", reply: "OK" },
        ..OWN
    },
    Some(setinfo),
);

/// Converts a name that fits into a line of `CLIENT LIST`: visible ASCII characters without spaces.
///
/// # Errors
/// Returns an error that names `what` if `name` contains other characters.
pub(in crate::commands::connection) fn valid_name(name: &[u8], what: &str) -> Result<Box<str>, CommandError> {
    match std::str::from_utf8(name) {
        Ok(text) if name.iter().all(u8::is_ascii_graphic) => Ok(text.into()),
        _ => Err(format!("ERR {what} cannot contain spaces, newlines or special characters.").into()),
    }
}

fn getname(session: &mut Session<'_>) -> SessionResult {
    let names = session.client.view.names.lock();
    match &*names.name {
        "" => session.reply.null(),
        name => session.reply.bulk(name.as_bytes()),
    }
    Ok(Outcome::Done)
}

fn setname(session: &mut Session<'_>) -> SessionResult {
    let name = valid_name(session.args.at(2), "Client names")?;
    session.client.view.edit_names(|names| names.name = name);
    session.reply.ok();
    Ok(Outcome::Done)
}

fn setinfo(session: &mut Session<'_>) -> SessionResult {
    let args = session.args;
    let is_name = is_word(args, 2, "LIB-NAME");
    if !is_name && !is_word(args, 2, "LIB-VER") {
        return Err(CommandError::quoting("ERR Unrecognized option '", args.at(2), "'"));
    }
    let value = valid_name(args.at(3), &String::from_utf8_lossy(args.at(2)))?;
    session.client.view.edit_names(|names| {
        *(if is_name { &mut names.library_name } else { &mut names.library_version }) = value;
    });
    session.reply.ok();
    Ok(Outcome::Done)
}
