//! The keyspace: shards, entries, expiry, eviction and the commands on them.
//!
//! Reading order: [`entries`] and [`types`] (data layout and lookup), [`keyspace`] (locking), [`keys`] (a command's
//! access to keys), [`spec`] and [`call`] (descriptions of commands), [`commands`].
//!
//! Layers, from the lowest: [`memory`], [`algorithms`], [`sync`], [`redis_version`] · [`effects`] · [`entries`] with
//! [`types`] · [`rdb`] with [`rebuild`] · [`turn`] · [`keyspace`] · [`eviction`] · [`keys`] · [`dispatch`] ·
//! [`commands`] · [`local`]. No module imports a module of a higher layer.

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
pub mod rebuild;
pub mod redis_version;
pub mod spec;
pub mod sync;
pub mod turn;
pub mod types;

pub use algorithms::glob;
pub use effects::{capture, events, journal, live_query, observers};
pub use keyspace::{defragmentation, linking, snapshot};
pub use memory::reclaim;
pub use sync::{gate, lanes, mailbox};
