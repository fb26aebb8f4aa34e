//! Who may do what: users with passwords and rules, as Redis's access control lists have them.
//!
//! A [`User`] never changes. A change of its rules makes another one, puts it into the table of users and raises the
//! generation. Each connection holds the user it is and, once for each batch, compares one number to learn whether to
//! look its user up again; no lock is taken to run a command. A user that may do everything (the default one, unless it is
//! configured otherwise) costs one branch for each command: `Client::is_unrestricted`.
//!
//! Every rule about a command follows from its specification: categories, subcommands, key positions and their flags,
//! channels. The one check is `executor::authorization`, for commands of connections, of transactions and of scripts.

pub(crate) mod denial;
mod file;
pub(crate) mod identity;
pub(crate) mod log;
mod password;
pub(crate) mod rule;
pub(crate) mod selector;
pub(crate) mod user;
pub(crate) mod users;
