//! The append-only file (AOF): the data set at one moment, and the commands that have changed it since.
//!
//! ```text
//! appendonlydir/
//!     appendonly.aof.manifest       which files are valid, in which order         (manifest.rs)
//!     appendonly.aof.2.base.rdb     all data at one moment: an RDB file, or one with commands after it;
//!                                   appendonly.aof.2.base.aof: commands that build it, written like an increment
//!     appendonly.aof.4.incr.aof     commands in RESP since then, by increments
//!     appendonly.aof.5.incr.aof
//! increment    [#EMBER:identity] (batch | command | #TS:Unix time in s)…
//! batch        #CRC:checksum length durable check, and as many bytes of commands and times   (batch.rs)
//! ```
//!
//! The layout and the commands are those of Redis 7, which skips ember's lines: each server starts from the other's
//! files.
//!
//! **Torn ends.** A power cut may lose unsynced writes, in any order. Each batch records how many bytes of its file
//! were durable when the batch was written. If the last increment ends with unreadable bytes that no later batch
//! records as durable, those bytes were never acknowledged to a client: they are a torn end, which is cut off. All
//! other unreadable bytes are damage, and the file is refused. An unfinished transaction at the end is part of the torn
//! end.
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
pub use directory::{AofDirectory, KEPT_FILES_MAX, Rewrite};
pub(crate) use directory::{is_base, is_increment};
pub use error::AofError;
pub use manifest::{AofFile, FileType, Manifest, ManifestError};
pub use reader::{AofReader, Part, TornEnd};
pub use writer::{AofWriter, RETAINED_BYTES_MAX, SyncOutcome, SyncTask};
