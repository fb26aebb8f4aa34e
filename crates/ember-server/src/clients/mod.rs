//! The state of clients and their connections, without the code that acts on it.

pub(crate) mod assembly;
pub(crate) mod blocked;
pub(crate) mod client;
pub(crate) mod client_memory;
pub(crate) mod connection;
pub(crate) mod ending;
pub(crate) mod listener;
pub(crate) mod listening;
pub(crate) mod mailbox;
pub(crate) mod monitors;
pub(crate) mod pause;
pub(crate) mod primary;
pub(crate) mod push;
pub(crate) mod replica;
pub(crate) mod round;
pub(crate) mod subscriptions;
pub(crate) mod sync_wish;
pub(crate) mod tracking;
pub(crate) mod transaction;
pub(crate) mod watchers;
