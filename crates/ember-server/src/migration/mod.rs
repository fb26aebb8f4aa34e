//! MIGRATE: keys are sent to another server, and removed here once the target has them.
//!
//! ```text
//! worker   MIGRATE ─ holds the existing keys, with exclusive access ─ parks the connection
//! thread   dumps one key after the other ─ sends each as RESTORE ─ reads the replies     (`transfer.rs`, `target.rs`)
//! worker   removes the keys that were accepted ─ releases all held keys ─ replies        (`settling.rs`)
//! ```
//!
//! Clients can read a held key, but calls that name it and may change it wait, as they wait for everything in Redis: so
//! the removed value is the one that was sent. Commands that change keys without naming them (FLUSHALL, SWAPDB, a
//! script that does not declare its keys) do not wait. A watch of each key, as of WATCH, detects them: then the key
//! stays, and the reply says so.
//!
//! A call in a transaction or a script cannot park its connection. There the worker waits for the transfer with
//! exclusive access: all clients wait, as in Redis.

mod beginning;
mod order;
mod service;
mod settling;
mod target;
mod transfer;

pub(crate) use beginning::migrate;
pub(crate) use order::{has_secret_at, key_positions};
pub(crate) use service::Migrations;
