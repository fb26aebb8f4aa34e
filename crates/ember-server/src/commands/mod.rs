//! Commands that need the server: its connections, its configuration, its statistics.

mod cluster;
#[cfg(test)]
mod compatibility;
mod connection;
mod generic;
mod help;
mod history;
mod live_queries;
mod pubsub;
mod replication;
mod scripting;
mod server;
mod transactions;

use crate::catalogue::registry::Families;
use crate::executor::session::ServerHandler;

/// All server commands.
pub(crate) const FAMILIES: Families<ServerHandler> = &[
    cluster::COMMANDS,
    connection::COMMANDS,
    generic::COMMANDS,
    history::COMMANDS,
    live_queries::COMMANDS,
    pubsub::COMMANDS,
    replication::COMMANDS,
    scripting::COMMANDS,
    server::COMMANDS,
    transactions::COMMANDS,
];

#[cfg(test)]
mod tests;
