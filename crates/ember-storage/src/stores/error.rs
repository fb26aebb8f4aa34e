//! Errors of stores.

use std::fmt::{self, Display};
use std::io;

use super::engine::{EngineKind, Table};
use crate::files::DiskError;

/// A store cannot be opened, read or written.
#[derive(Debug)]
pub enum StoreError {
    /// The disk failed.
    Disk(DiskError),
    /// A system call of the engine failed.
    Io {
        /// The engine.
        engine: EngineKind,
        /// The error of the system.
        cause: io::Error,
    },
    /// The engine found damage in its files.
    EngineDamaged {
        /// The engine.
        engine: EngineKind,
        /// The engine's message.
        message: String,
    },
    /// The engine failed for another reason.
    Engine {
        /// The engine.
        engine: EngineKind,
        /// The engine's message.
        message: String,
    },
    /// A row differs from the written one.
    Damaged {
        /// The name of the row's table.
        table: &'static str,
        /// The key of the row.
        row_key: Vec<u8>,
    },
    /// The store's format version, this number, is unknown.
    Version(u8),
    /// This program was built without this engine.
    NotBuilt(EngineKind),
    /// The store is encrypted, and no key is configured.
    NoKey,
    /// The store is encrypted with another key, which has this fingerprint.
    WrongKey(String),
    /// The store is not encrypted, and a key is configured.
    NotEncrypted,
    /// A key is longer than 4 GiB.
    TooLong,
    /// The callback that fills the checkpoint failed with this message.
    Abandoned(String),
}

impl StoreError {
    pub(super) fn damaged(table: Table, row_key: &[u8]) -> StoreError {
        StoreError::Damaged { table: table.name(), row_key: row_key.to_vec() }
    }

    /// Whether the disk is full: the operation can succeed once space is freed.
    pub fn is_full(&self) -> bool {
        match self {
            StoreError::Disk(error) => error.is_full(),
            StoreError::Io { cause, .. } => matches!(
                cause.kind(),
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
            ),
            _ => false,
        }
    }

    /// Whether the stored data can be read, but differs from the written data.
    pub fn is_damage(&self) -> bool {
        matches!(self, StoreError::EngineDamaged { .. } | StoreError::Damaged { .. })
    }
}

impl Display for StoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreError::Disk(error) => error.fmt(f),
            StoreError::Io { engine, cause } => {
                write!(f, "{engine}: {cause}")?;
                if self.is_full() { f.write_str("; free space on that disk") } else { Ok(()) }
            }
            StoreError::EngineDamaged { engine, message } => {
                write!(f, "{engine}: its files are damaged ({message}); restore a backup")
            }
            StoreError::Engine { engine, message } => write!(f, "{engine}: {message}"),
            StoreError::Damaged { table, row_key } => {
                write!(f, "the row {} of {table} differs from what was written", row_key.escape_ascii())
            }
            StoreError::Version(version) => {
                write!(f, "the store is of the unknown version {version}; use a newer program")
            }
            StoreError::NotBuilt(engine) => {
                write!(f, "this program was built without the feature `{engine}`")
            }
            StoreError::NoKey => f.write_str("the store is encrypted and no key is given"),
            StoreError::WrongKey(fingerprint) => write!(
                f,
                "the store is encrypted with a key of fingerprint {fingerprint}, which is not given; add \
                 that key to the key file, after the current one"
            ),
            StoreError::NotEncrypted => {
                f.write_str("a key is given, but the store is not encrypted; import it into a new one")
            }
            StoreError::TooLong => f.write_str("the key is too long for a row"),
            StoreError::Abandoned(reason) => f.write_str(reason),
        }
    }
}

impl std::error::Error for StoreError {}

impl From<DiskError> for StoreError {
    fn from(error: DiskError) -> StoreError {
        StoreError::Disk(error)
    }
}
