//! Commands of replication, for clients and for replicas.

mod failover;
mod psync;
mod replicaof;
mod role;
mod wait;

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] =
    &[failover::COMMANDS, psync::COMMANDS, replicaof::COMMANDS, role::COMMANDS, wait::COMMANDS];
