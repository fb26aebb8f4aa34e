//! The append-only file: all data at one moment, and the commands that changed it since.
//!
//! ```text
//! appendonlydir/
//!     appendonly.aof.manifest       which files count, in which order            (manifest.rs)
//!     appendonly.aof.2.base.rdb     all data at one moment: an RDB file, or one with commands behind it;
//!                                   appendonly.aof.2.base.aof: commands that make it, written like an increment
//!     appendonly.aof.4.incr.aof     commands in RESP since then, by increments
//!     appendonly.aof.5.incr.aof
//! increment    [#EMBER:identity] (batch | command | #TS:Unix time in s)…
//! batch        #CRC:checksum length durable check, and as many bytes of commands and times   (batch.rs)
//! ```
//!
//! The layout and the commands are those of Redis 7, which skips our lines: each server starts from the other's files.
//!
//! **What counts when the end is not whole.** Writes that were not synced may be lost in a power cut, in any order. Each
//! batch says how much of its file was durable when it was written. Whatever is unreadable at the end of the last
//! increment, and was not durable according to any batch behind it, was never promised to anybody: it is a torn end, which
//! is cut off. Everything else that is unreadable is damage, and refuses to be loaded. A transaction without its EXEC at
//! the end is a part of the torn end.
//!
//! The design: Redis, `aof.c` by S. Sanfilippo, Y. Zhang, C. Zhao and others.

mod base;
mod batch;
mod directory;
mod error;
mod manifest;
mod reader;
mod tail;
mod writer;

pub use base::{BaseFile, BaseWriter, CommandsWriter};
pub use batch::{BATCH_BYTES_MAX, Batch};
pub use directory::{AofDirectory, Rewrite};
pub use error::AofError;
pub use manifest::{AofFile, FileType, Manifest, ManifestError};
pub use reader::{AofReader, Part, TornEnd};
pub use writer::{AofWriter, RETAINED_BYTES_MAX, SyncOutcome, SyncTask};
