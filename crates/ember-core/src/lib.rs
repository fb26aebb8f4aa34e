//! The keyspace: shards, entries, expiry, eviction and the commands on them.
//!
//! Reading order: [`keyspace`] (how data is laid out, found and locked), [`keys`] (how a command gets at it),
//! [`spec`] and [`call`] (what a command is), [`commands`].

pub mod algorithms;
pub mod call;
pub mod commands;
pub mod dispatch;
pub mod effects;
pub mod entries;
pub mod error;
pub mod eviction;
pub mod keys;
pub mod keyspace;
pub mod local;
pub mod memory;
pub mod rdb;
pub mod spec;
pub mod sync;
pub mod turn;
pub mod types;

pub use algorithms::glob;
pub use effects::{events, journal, observers};
pub use keyspace::snapshot;
pub use memory::reclaim;
pub use sync::{gate, mailbox};
