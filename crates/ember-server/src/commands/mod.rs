//! The commands that need the server: its connections, its configuration, its statistics.

mod connection;

use crate::session::ServerCommand;

/// All server commands.
pub(crate) const FAMILIES: &[&[&[ServerCommand]]] = &[connection::COMMANDS];
