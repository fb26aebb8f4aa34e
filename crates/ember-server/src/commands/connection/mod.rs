//! Commands about the client's own connection.

mod ping;
mod select;

use crate::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[ping::COMMANDS, select::COMMANDS];
