//! MIGRATE sends keys to another server, and removes them here once the target has accepted them.
//!
//! ```text
//! worker   MIGRATE ─ holds the existing keys, with exclusive access ─ parks the connection
//! thread   dumps one key after the other ─ sends each as RESTORE ─ reads the replies     (`transfer.rs`, `target.rs`)
//! worker   removes the keys that were accepted ─ releases all held keys ─ replies        (`settling.rs`)
//! ```
//!
//! Clients can read a held key, but commands that name the key and may change it wait until the migration ends (in
//! Redis, all commands wait). So the removed value is the value that was sent. Commands that change keys without naming
//! them (FLUSHALL, SWAPDB, a script that does not declare its keys) do not wait. A watch of each key, as set by WATCH,
//! detects their changes: a changed key is not removed, and the reply is an error.
//!
//! A MIGRATE in a transaction or a script cannot park its connection. In that case, the worker waits for the transfer
//! with exclusive access, so all clients wait, as in Redis.

mod beginning;
mod order;
mod service;
mod settling;
mod target;
mod transfer;

pub(crate) use beginning::migrate;
pub(crate) use order::{has_secret_at, key_positions};
pub(crate) use service::Migrations;
