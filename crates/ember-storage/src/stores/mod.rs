//! Stores: a data set in the files of a key-value engine, brought from one checkpoint to the next.
//!
//! A checkpoint is one transaction of the engine: all its rows are there after a crash, or none, and it says to which
//! position of a log it belongs. What was written since is in that log, which is none of this crate's business.
//!
//! ```text
//! table    row key                    row
//! meta     "format"                   version, 1 byte
//!          "seal"                     fingerprint of the key, 16 bytes | salt, 32 bytes               encrypted stores
//!          "position"                 number, 8 | increment, 8 | how far an import is, 1 | notes
//! keys     name                       kind, 1 | encoding, 1 | which of the next, 1 | size in memory | stored size
//!                                     | expiry | when an element expires first | the key, if the name does not say it
//! values   name                       kind, 1 | 0 | the value              or: kind, 1 | 1 | number of parts | length
//! parts    name | number, 4           a part of the value, 1 MiB but for the last
//! name     database, 4 bytes | 0 | key            or: database | 1 | SHA-256 of the key, if that is longer than 480 bytes
//!          encrypted: database | 2 | HMAC-SHA-256 of the key
//! ```
//!
//! Numbers in names and of databases are big-endian, so that the rows of one database and of one value stand together; the
//! others are LEB128, or little-endian where a width is given. Behind each row but the first two of `meta` stands a CRC-32C
//! of table, row key and row; in an encrypted store the row is under AES-256-GCM, bound to table and row key, with its
//! nonce before it. So no row counts for another key, whatever the engine says.
//!
//! Keys and values have tables of their own because engines keep values in the leaves: a start, which needs no value, would
//! read all of them otherwise.

mod engine;
mod engines;
mod error;
mod protection;
mod rows;
mod store;

pub use engine::EngineKind;
pub use error::StoreError;
pub use store::{Checked, Checkpoint, Store, StoreOptions, StoreStatistics};

pub use rows::{Facts, Import, Position};
