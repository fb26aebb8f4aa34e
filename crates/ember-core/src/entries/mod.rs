//! Entries: a key, or the name of an element, with its value in one allocation, and the tables that own them.
//!
//! The keyspace has a table of entries in each shard, and a large set, hash or sorted set has tables of entries for its
//! elements. So this folder and [`crate::types`] are the recursion of this crate: an entry owns a value, and a value owns
//! entries. Neither knows of shards, locks or commands.
//!
//! [`entry`] lays out an entry; [`external`] says where a value is that is not here; [`table`] finds entries; [`hash`]
//! says which bits of a hash find what.

pub mod entry;
pub mod external;
pub mod hash;
pub mod table;
