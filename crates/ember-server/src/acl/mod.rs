//! Access control lists as in Redis: users with passwords and rules.
//!
//! A [`User`] is immutable. Changing the rules creates a new [`User`], which replaces the old one in the user table,
//! and increments the generation. Each connection holds its user and compares the generation once per batch to find out
//! whether to look the user up again; running a command takes no lock. An unrestricted user (by default the default
//! user) costs one branch per command: `Client::is_unrestricted`.
//!
//! Every rule about a command follows from its specification: categories, subcommands, key positions and their flags,
//! channels. `executor::authorization` is the only check, for commands of connections, transactions and scripts alike.

pub(crate) mod denial;
mod file;
pub(crate) mod identity;
pub(crate) mod log;
mod password;
pub(crate) mod rule;
pub(crate) mod selector;
pub(crate) mod user;
pub(crate) mod users;
