//! The keyspace: shards, entries, expiry, eviction and the commands on them.
//!
//! Reading order: [`keyspace`] (how data is laid out, found and locked), [`keys`] (how a command gets at it),
//! [`spec`] and [`call`] (what a command is), [`commands`].

pub mod algorithms;
pub mod call;
pub mod commands;
pub mod dispatch;
pub mod error;
pub mod events;
pub mod eviction;
pub mod gate;
pub mod journal;
pub mod keys;
pub mod keyspace;
pub mod local;
pub mod mailbox;
pub mod memory;
pub mod observers;
pub mod rdb;
pub mod reclaim;
pub mod snapshot;
pub mod spec;
pub mod sync;
pub mod turn;
pub mod types;

pub use algorithms::glob;
