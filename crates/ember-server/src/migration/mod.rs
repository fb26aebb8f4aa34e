//! MIGRATE: keys are given to another server, and removed here once it has them.
//!
//! ```text
//! worker   MIGRATE ─ holds the keys that are there, with exclusive access ─ parks the connection
//! thread   dumps one key after the other ─ sends each as RESTORE ─ reads the answers     (`transfer.rs`, `target.rs`)
//! worker   removes the keys that were taken ─ lets the keys go ─ answers                 (`settling.rs`)
//! ```
//!
//! A key that is held is read by all, but calls that name it and may change it wait, as they wait for everything in Redis:
//! so the value that is removed is the value that was sent. What changes keys without naming them (FLUSHALL, SWAPDB, a
//! script that does not declare its keys) does not wait. It is found out by a watch of each key, as of WATCH: then the key
//! stays, and the answer says so.
//!
//! A call of a transaction or a script cannot park its connection. There the transfer is waited for, with exclusive access:
//! everybody waits, as in Redis.

mod beginning;
mod order;
mod service;
mod settling;
mod target;
mod transfer;

pub(crate) use beginning::migrate;
pub(crate) use order::{has_secret_at, key_positions};
pub(crate) use service::Migrations;
