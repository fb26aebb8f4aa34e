//! ACL LOAD and SAVE: read and write the ACL file.

use std::ffi::OsStr;
use std::path::Path;

use ember_persistence::full_path::full_path;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Command, Example, Spec};

use super::{ADMIN, close_connections};
use crate::executor::session::{Outcome, ServerCommand, Session, SessionResult};

pub(super) const LOAD: ServerCommand = Command::new(
    Spec {
        name: "load",
        summary: "Replaces all users by those in the ACL file and closes the connections of users that were changed or removed.",
        complexity: "O(N) for N users and their connections.",
        arity: 2,
        example: Example { given: &[], call: "ACL LOAD", reply: NO_FILE_SHOWN },
        ..ADMIN
    },
    Some(load),
);

pub(super) const SAVE: ServerCommand = Command::new(
    Spec {
        name: "save",
        summary: "Writes all users to the ACL file.",
        complexity: "O(N) for N users.",
        arity: 2,
        example: Example { given: &[], call: "ACL SAVE", reply: NO_FILE_SHOWN },
        ..ADMIN
    },
    Some(save),
);

const NO_FILE: &str = "ERR This Redis instance is not configured to use an ACL file. You may want to specify users via \
                       the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you have a Redis \
                       configuration file set) in order to store users in the Redis configuration.";

/// The error without an ACL file, as redis-cli shows it in examples.
const NO_FILE_SHOWN: &str = "(error) ERR This Redis instance is not configured to use an ACL file. You may want to \
                             specify users via the ACL SETUSER command and then issue a CONFIG REWRITE (assuming you \
                             have a Redis configuration file set) in order to store users in the Redis configuration.";

const NOT_SAVED: &str = "ERR There was an error trying to save the ACLs. Please check the server logs for more \
                         information";

/// Returns the path of the ACL file.
fn path(session: &Session<'_>) -> Result<String, CommandError> {
    let path = session.server.config.snapshot().aclfile.clone();
    if path.is_empty() { Err(NO_FILE.into()) } else { Ok(path) }
}

fn load(session: &mut Session<'_>) -> SessionResult {
    let (server, path) = (session.server, path(session)?);
    // The client receives only the name of the file; its full path is logged.
    let name = Path::new(&path).file_name().map_or(path.as_str().into(), OsStr::to_string_lossy);
    let replaced = server.acl.load_file(&path, &name, server.grammar());
    let replaced = replaced.map_err(|error| {
        tracing::warn!("ACL LOAD of {}: {}", full_path(&path), String::from_utf8_lossy(&error));
        [b"ERR ", &*error].concat()
    })?;
    session.reply.ok();
    close_connections(session, &replaced);
    Ok(Outcome::Done)
}

fn save(session: &mut Session<'_>) -> SessionResult {
    let path = path(session)?;
    session.server.acl.save_file(Path::new(&path)).map_err(|error| {
        tracing::warn!("ACL SAVE cannot write '{path}': {error}");
        NOT_SAVED
    })?;
    session.reply.ok();
    Ok(Outcome::Done)
}
