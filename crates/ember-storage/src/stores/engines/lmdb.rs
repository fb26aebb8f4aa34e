//! LMDB: a copy-on-write B-tree in a mapped file, written in C.
//!
//! The map is as large as the address space allows, independent of the file's size: growing the map would require a
//! time without readers, and address space costs nothing. A disk error under a mapped page ends the process with
//! SIGBUS, so a truncated file is detected before it is opened (`length.rs`). LMDB trusts the pages of its file: ember
//! checks the contents of rows above this layer, but not LMDB's own structures.
//!
//! LMDB describes a state in one of two pages, alternately. A reader determines the number of the last state and then
//! reads that state's page. If the reader's thread is descheduled in between for a whole commit, the next commit
//! rewrites the page, and the reader finds a state that is not committed yet, or an incomplete description (mdb.c
//! 0.9.70, `mdb_txn_renew0`). So a read is restarted if a commit has begun in between.

mod length;

use std::fs;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering, fence};

use heed::types::Bytes;
use heed::{CommitOrAbort, Database, Env, EnvFlags, EnvOpenOptions, MdbError, RoTxn, RwTxn, WithoutTls};

use crate::stores::StoreError;
use crate::stores::engine::{
    EachRow, Engine, EngineKind, Found, Read, Reading, Table, Write, Writing, directory_bytes, end_of_prefix,
};

/// Bounds of the map sizes to try, largest first: the address space of a process may be limited.
const MAP_BYTES_MAX: usize = 8 << 40;
const MAP_BYTES_MIN: usize = 1 << 30;

/// The maximum number of concurrent readers.
const READERS_MAX: u32 = 512;

type Rows = Database<'static, Bytes, Bytes>;

#[derive(Debug)]
pub(super) struct LmdbEngine {
    env: Env<WithoutTls>,
    path: PathBuf,
    tables: [Rows; Table::ALL.len()],
    /// Number of commits that have begun; incremented by the writer.
    commits: AtomicU64,
}

impl LmdbEngine {
    pub(super) fn open(path: &Path) -> Result<LmdbEngine, StoreError> {
        length::check(path)?;
        let path = path.to_owned();
        fs::create_dir_all(&path).map_err(|cause| StoreError::Io { engine: EngineKind::Lmdb, cause })?;
        let mut map_bytes = MAP_BYTES_MAX;
        let env = loop {
            match open_env(&path, map_bytes) {
                Err(heed::Error::Io(cause))
                    if cause.kind() == std::io::ErrorKind::OutOfMemory && map_bytes > MAP_BYTES_MIN =>
                {
                    map_bytes /= 2;
                }
                opened => break opened.map_err(error)?,
            }
        };
        // Otherwise the readers of a killed process would prevent the reuse of old pages forever.
        env.clear_stale_readers().map_err(error)?;
        let write = env.write_txn().map_err(error)?;
        let tables = env.create_databases_and_commit(write, |opener, write| {
            let [meta, keys, values, parts] =
                Table::ALL.map(|table| opener.create_database::<Bytes, Bytes>(write, Some(table.name())));
            Ok::<_, heed::Error>(CommitOrAbort::<_, ()>::Commit([meta?, keys?, values?, parts?]))
        });
        let tables = tables.map_err(error)?.unwrap_commit();
        Ok(LmdbEngine { env, path, tables, commits: AtomicU64::new(0) })
    }

    fn table(&self, table: Table) -> &Rows {
        &self.tables[table as usize]
    }
}

#[expect(unsafe_code, reason = "the file is mapped")]
fn open_env(path: &Path, map_bytes: usize) -> heed::Result<Env<WithoutTls>> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_bytes).max_dbs(Table::ALL.len() as u32).max_readers(READERS_MAX);
    // SAFETY: NO_READ_AHEAD is a hint to the kernel; none of the flags that give up durability or locks is set.
    unsafe { options.flags(EnvFlags::NO_READ_AHEAD) };
    // SAFETY: the folder belongs to the store, whose directory the process has locked (`DirectoryLock`), so no other
    // process changes the file under the map; LMDB's lock file excludes processes that ignore that lock.
    unsafe { options.open(path) }
}

fn error(cause: heed::Error) -> StoreError {
    let engine = EngineKind::Lmdb;
    match cause {
        heed::Error::Io(cause) => StoreError::Io { engine, cause },
        heed::Error::Mdb(
            problem @ (MdbError::PageNotFound
            | MdbError::Corrupted
            | MdbError::Panic
            | MdbError::VersionMismatch
            | MdbError::Invalid
            | MdbError::CursorFull
            | MdbError::PageFull
            | MdbError::Incompatible),
        ) => StoreError::EngineDamaged { engine, message: problem.to_string() },
        other => StoreError::Engine { engine, message: other.to_string() },
    }
}

impl Engine for LmdbEngine {
    fn read(&self, read: &mut Read<'_>) -> Result<(), StoreError> {
        read(&LmdbReading::new(self)?)
    }

    fn commit(&self, write: &mut Write<'_>) -> Result<(), StoreError> {
        let transaction = self.env.write_txn().map_err(error)?;
        let mut writing = LmdbWriting { engine: self, transaction };
        write(&mut writing)?;
        self.commits.fetch_add(1, Ordering::SeqCst);
        writing.transaction.commit().map_err(error)
    }

    fn check(&self) -> Result<(), StoreError> {
        // LMDB's pages have no checksums, so the check only verifies that all rows can be read.
        self.read(&mut |reading| {
            for table in Table::ALL {
                reading.scan(table, &[], &mut |_, _| ControlFlow::Continue(()))?;
            }
            Ok(())
        })
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        directory_bytes(&self.path).map_err(|cause| StoreError::Io { engine: EngineKind::Lmdb, cause })
    }
}

struct LmdbReading<'e> {
    engine: &'e LmdbEngine,
    transaction: RoTxn<'e, WithoutTls>,
}

impl<'e> LmdbReading<'e> {
    fn new(engine: &'e LmdbEngine) -> Result<LmdbReading<'e>, StoreError> {
        loop {
            let before = engine.commits.load(Ordering::SeqCst);
            let transaction = engine.env.read_txn().map_err(error)?;
            // Orders the read of the state's description before the read of the commit counter.
            fence(Ordering::SeqCst);
            if engine.commits.load(Ordering::SeqCst) == before {
                return Ok(LmdbReading { engine, transaction });
            }
        }
    }
}

impl Reading for LmdbReading<'_> {
    fn get(&self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        let row = self.engine.table(table).get(&self.transaction, row_key).map_err(error)?;
        if let Some(row) = row {
            found(row);
        }
        Ok(row.is_some())
    }

    fn scan(&self, table: Table, from: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError> {
        // LMDB does not support empty keys.
        let from = if from.is_empty() { Bound::Unbounded } else { Bound::Included(from) };
        let range = (from, Bound::Unbounded);
        for row in self.engine.table(table).range(&self.transaction, &range).map_err(error)? {
            let (row_key, row) = row.map_err(error)?;
            if let ControlFlow::Break(()) = each(row_key, row) {
                break;
            }
        }
        Ok(())
    }
}

struct LmdbWriting<'e> {
    engine: &'e LmdbEngine,
    transaction: RwTxn<'e>,
}

impl Writing for LmdbWriting<'_> {
    fn put(&mut self, table: Table, row_key: &[u8], row: &[u8]) -> Result<(), StoreError> {
        self.engine.table(table).put(&mut self.transaction, row_key, row).map_err(error)
    }

    fn remove(&mut self, table: Table, row_key: &[u8]) -> Result<(), StoreError> {
        self.engine.table(table).delete(&mut self.transaction, row_key).map_err(error).map(|_| ())
    }

    fn get(&mut self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        let row = self.engine.table(table).get(&self.transaction, row_key).map_err(error)?;
        Ok(row.map(found).is_some())
    }

    fn remove_prefix(&mut self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let prefix_end = end_of_prefix(prefix);
        let end = prefix_end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let range = (Bound::Included(prefix), end);
        self.engine.table(table).delete_range(&mut self.transaction, &range).map_err(error).map(|_| ())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        for table in [Table::Keys, Table::Values, Table::Parts] {
            self.engine.table(table).clear(&mut self.transaction).map_err(error)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    #[test]
    fn each_read_sees_the_state_of_its_number() {
        let folder = std::env::temp_dir().join(format!("ember-lmdb-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        let engine = LmdbEngine::open(&folder).unwrap();
        let commit = |count: usize| {
            let row = count.to_le_bytes();
            engine.commit(&mut |writing| writing.put(Table::Meta, b"count", &row))
        };
        let read = || {
            let (reading, mut count) = (LmdbReading::new(&engine).unwrap(), None);
            let mut found = |row: &[u8]| count = row.try_into().ok().map(usize::from_le_bytes);
            reading.get(Table::Meta, b"count", &mut found).unwrap();
            (reading.transaction.id(), count.unwrap())
        };
        commit(0).unwrap();
        let (first, _) = read();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            // There are more threads than cores, so that threads are descheduled at any point.
            for _ in 0..16 {
                scope.spawn(|| {
                    while !is_over.load(Ordering::Relaxed) {
                        let (number, count) = read();
                        assert_eq!(number - first, count);
                    }
                });
            }
            let committed = (1..=5000).try_for_each(commit);
            is_over.store(true, Ordering::Relaxed);
            committed.unwrap();
        });
        fs::remove_dir_all(&folder).unwrap();
    }
}
