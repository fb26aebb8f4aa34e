//! Commands about the client's own connection, and CLIENT, which also manages other connections.

mod auth;
mod client;
mod handshake;
mod hello;
mod ping;
mod quit;
mod reset;
mod select;

use crate::executor::session::ServerCommand;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] = &[
    auth::COMMANDS,
    client::COMMANDS,
    hello::COMMANDS,
    ping::COMMANDS,
    quit::COMMANDS,
    reset::COMMANDS,
    select::COMMANDS,
];
