//! Access control lists as in Redis: users with passwords and rules.
//!
//! A [`User`] never changes. Changing its rules creates a new one, replaces the old one in the user table and raises
//! the generation. Each connection holds its user and compares one number per batch to find out whether to look the
//! user up again; running a command takes no lock. An unrestricted user (by default the default user) costs one branch
//! per command: `Client::is_unrestricted`.
//!
//! Every rule about a command follows from its specification: categories, subcommands, key positions and their flags,
//! channels. The only check is `executor::authorization`, for commands of connections, of transactions and of scripts.

pub(crate) mod denial;
mod file;
pub(crate) mod identity;
pub(crate) mod log;
mod password;
pub(crate) mod rule;
pub(crate) mod selector;
pub(crate) mod user;
pub(crate) mod users;
