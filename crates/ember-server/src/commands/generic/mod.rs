//! Commands on keys of any type that need the server in addition to the keyspace.

mod migrate;

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[migrate::COMMANDS];
