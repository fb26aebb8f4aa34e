//! Commands about replicas, as far as they have a meaning while there are none.

mod replicaof;
mod role;
mod wait;

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[replicaof::COMMANDS, role::COMMANDS, wait::COMMANDS];
