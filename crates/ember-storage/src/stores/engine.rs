//! The interface between a store and a key-value engine: four ordered tables, reads of one consistent state, and atomic
//! commits.

use std::fmt::{self, Debug, Display};
use std::ops::ControlFlow;
use std::str::FromStr;

use super::StoreError;

/// The engines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum EngineKind {
    /// A B-tree in Rust, similar to bolt and bbolt.
    Redb,
    /// A B-tree in C, in a mapped file: LMDB.
    Lmdb,
    /// A log-structured merge tree in Rust, similar to leveldb.
    Fjall,
}

impl EngineKind {
    /// All engines.
    pub const ALL: [EngineKind; 3] = [EngineKind::Redb, EngineKind::Lmdb, EngineKind::Fjall];

    /// Returns the engine's name.
    pub fn name(self) -> &'static str {
        match self {
            EngineKind::Redb => "redb",
            EngineKind::Lmdb => "lmdb",
            EngineKind::Fjall => "fjall",
        }
    }

    /// Returns the name of the engine's file or folder in the directory of a store.
    pub fn file_name(self) -> &'static str {
        match self {
            EngineKind::Redb => "store.redb",
            EngineKind::Lmdb => "store.lmdb",
            EngineKind::Fjall => "store.fjall",
        }
    }

    /// Whether the engine is compiled into this program.
    pub fn is_built(self) -> bool {
        match self {
            EngineKind::Redb => cfg!(feature = "redb"),
            EngineKind::Lmdb => cfg!(feature = "lmdb"),
            EngineKind::Fjall => cfg!(feature = "fjall"),
        }
    }
}

impl Display for EngineKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for EngineKind {
    type Err = ();

    /// Parses an engine's name, or an alias: the name of a similar engine.
    fn from_str(name: &str) -> Result<EngineKind, ()> {
        match name {
            "redb" | "bolt" | "bbolt" => Ok(EngineKind::Redb),
            "lmdb" => Ok(EngineKind::Lmdb),
            "fjall" | "leveldb" | "kv" => Ok(EngineKind::Fjall),
            _ => Err(()),
        }
    }
}

/// The tables, each ordered by the bytes of its row keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Table {
    Meta,
    Keys,
    Values,
    Parts,
}

impl Table {
    #[cfg_attr(
        not(any(feature = "redb", feature = "lmdb", feature = "fjall")),
        expect(dead_code, reason = "engines create the tables")
    )]
    pub(super) const ALL: [Table; 4] = [Table::Meta, Table::Keys, Table::Values, Table::Parts];

    pub(super) fn name(self) -> &'static str {
        match self {
            Table::Meta => "meta",
            Table::Keys => "keys",
            Table::Values => "values",
            Table::Parts => "parts",
        }
    }
}

/// Callback for each row of a scan, with the row key and the contents.
pub(super) type EachRow<'f> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'f;

/// Callback for an existing row, with its contents.
pub(super) type Found<'f> = dyn FnMut(&[u8]) + 'f;

/// One consistent state of the tables, which does not change while it is read.
pub(super) trait Reading {
    /// Calls `found` with a row, if the row exists; returns whether it exists.
    fn get(&self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError>;

    /// Calls `each` with the rows from `from` on, in order.
    fn scan(&self, table: Table, from: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError>;
}

/// Changes that are committed together.
pub(super) trait Writing {
    fn put(&mut self, table: Table, row_key: &[u8], row: &[u8]) -> Result<(), StoreError>;

    fn remove(&mut self, table: Table, row_key: &[u8]) -> Result<(), StoreError>;

    /// Calls `found` with a row as changed so far, if the row exists; returns whether it exists.
    fn get(&mut self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError>;

    /// Removes all rows whose keys begin with `prefix`.
    fn remove_prefix(&mut self, table: Table, prefix: &[u8]) -> Result<(), StoreError>;

    /// Removes all rows except those of `meta`.
    fn clear(&mut self) -> Result<(), StoreError>;
}

/// Callback that reads one state.
pub(super) type Read<'f> = dyn FnMut(&dyn Reading) -> Result<(), StoreError> + 'f;

/// Callback that makes the changes of a commit.
pub(super) type Write<'f> = dyn FnMut(&mut dyn Writing) -> Result<(), StoreError> + 'f;

/// An engine with open files.
pub(super) trait Engine: Debug + Send + Sync {
    /// Calls `read` with the current state.
    fn read(&self, read: &mut Read<'_>) -> Result<(), StoreError>;

    /// Calls `write` once and makes its changes durable: all of them, or none after an error of `write` or the engine.
    fn commit(&self, write: &mut Write<'_>) -> Result<(), StoreError>;

    /// Checks the engine's internal structure.
    fn check(&self) -> Result<(), StoreError>;

    /// Returns the size of the engine's files in bytes.
    fn file_bytes(&self) -> Result<u64, StoreError>;
}

/// Returns the size of the files in a directory and its subdirectories, in bytes.
#[cfg(any(feature = "lmdb", feature = "fjall"))]
pub(super) fn directory_bytes(directory: &std::path::Path) -> std::io::Result<u64> {
    use std::os::unix::fs::MetadataExt;
    const BLOCK_BYTES: u64 = 512;
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory)? {
        let entry = entry?;
        // The file may have been removed since the directory was listed.
        let Ok(metadata) = entry.metadata() else { continue };
        bytes +=
            if metadata.is_dir() { directory_bytes(&entry.path())? } else { metadata.blocks() * BLOCK_BYTES };
    }
    Ok(bytes)
}

/// Returns the smallest possible row key greater than all keys that begin with `prefix`; None if there is none.
#[cfg_attr(
    not(any(feature = "redb", feature = "lmdb")),
    expect(dead_code, reason = "for engines that remove ranges")
)]
pub(super) fn end_of_prefix(prefix: &[u8]) -> Option<Vec<u8>> {
    let last = prefix.iter().rposition(|&byte| byte < u8::MAX)?;
    let mut end = prefix[..=last].to_vec();
    end[last] += 1;
    Some(end)
}
