//! The keyspace: shards, entries, expiry, eviction and the commands on them.
//!
//! Reading order: [`keyspace`] (how data is laid out, found and locked), [`keys`] (how a command gets at it),
//! [`spec`] and [`call`] (what a command is), [`commands`].

pub mod bits;
pub mod call;
pub mod commands;
pub mod dispatch;
pub mod error;
pub mod events;
pub mod eviction;
pub mod gate;
pub mod glob;
pub mod journal;
pub mod keys;
pub mod keyspace;
pub mod lcs;
pub mod local;
pub mod long_double;
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
