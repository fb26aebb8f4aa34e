//! Commands about the client's own connection, and CLIENT about those of others.

mod auth;
mod client;
mod hello;
mod ping;
mod quit;
mod reset;
mod select;

use emberkv_core::spec::Flags;

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

/// The flags of what a client may do before it is known.
const HANDSHAKE: Flags = Flags::NOSCRIPT
    .union(Flags::LOADING)
    .union(Flags::STALE)
    .union(Flags::FAST)
    .union(Flags::NO_AUTH)
    .union(Flags::ALLOW_BUSY);
