//! Entries, each of which stores a key (or the name of an element) with its value, and the tables that own them.
//!
//! The keyspace has tables of entries in each shard, and a large set, hash or sorted set has tables of entries for its
//! elements. So this folder and [`crate::types`] depend on each other: an entry owns a value, and a value owns entries.
//! Neither of the two depends on shards, locks or commands.
//!
//! [`entry`] defines the layout of an entry; [`external`] the location of a cold value; [`table`] finds entries;
//! [`hash`] defines which bits of a hash select the shard and the position in a table.

pub mod entry;
pub mod external;
pub mod hash;
pub mod table;
