//! Entries: a key, or the name of an element, with its value in one allocation, and the tables that own them.
//!
//! The keyspace has a table of entries per shard, and a large set, hash or sorted set has tables of entries for its
//! elements. So this folder and [`crate::types`] are the recursion of this crate: an entry owns a value, and a value
//! owns entries. Neither depends on shards, locks or commands.
//!
//! [`entry`] defines the layout of an entry; [`external`] the location of a cold value; [`table`] finds entries;
//! [`hash`] defines which bits of a hash find what.

pub mod entry;
pub mod external;
pub mod hash;
pub mod table;
