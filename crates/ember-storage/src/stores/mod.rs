//! Stores: a data set in the files of a key-value engine, updated by checkpoints.
//!
//! A checkpoint is one transaction of the engine: after a crash either all of its rows exist or none. It records its
//! position in a log that contains all later writes and is not managed by this crate.
//!
//! ```text
//! table    row key                    row
//! meta     "format"                   version, 1 byte
//!          "seal"                     fingerprint of the key, 16 bytes | salt, 32 bytes               encrypted stores
//!          "position"                 number, 8 | increment, 8 | how far an import is, 1 | notes
//! keys     name                       kind, 1 | encoding, 1 | which of the next, 1 | size in memory | stored size
//!                                     | expiry | when the first element expires | the key, if the name does not contain it
//! values   name                       kind, 1 | 0 | the value              or: kind, 1 | 1 | number of parts | length
//! parts    name | number, 4           a part of the value, 1 MiB except the last
//! name     database, 4 bytes | 0 | key            or: database | 1 | SHA-256 of the key, if that is longer than 480 bytes
//!          encrypted: database | 2 | HMAC-SHA-256 of the key
//! ```
//!
//! Numbers in names and of databases are big-endian, so that the rows of one database and of one value are adjacent;
//! the others are LEB128, or little-endian where a width is given. Each row except the first two of `meta` is followed
//! by a CRC-32C of table, row key and row; in an encrypted store the row is under AES-256-GCM, bound to table and row
//! key, with its nonce before it. So no row is accepted for another key, whatever the engine returns.
//!
//! Keys and values have separate tables because engines store values in the leaves: startup, which needs no values,
//! would otherwise read all of them.

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
