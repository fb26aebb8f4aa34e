//! redb: a copy-on-write B-tree in one file, accessed through [`Disk`].
//!
//! Commits save the state of the allocator ("quick repair"), so that opening after a crash does not scan the whole
//! file. After a disk error redb refuses every operation, and a handle whose sync has failed refuses writes and syncs,
//! so the file is reopened.

use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::redb::{
    Builder, Database, DatabaseError, ReadTransaction, ReadableDatabase, ReadableTable, StorageBackend,
    StorageError, TableDefinition, WriteTransaction,
};
use parking_lot::{Mutex, RwLock};

use crate::files::{Disk, DiskError, StoredFile, directory_of};
use crate::stores::engine::{
    EachRow, Engine, EngineKind, Found, Read, Reading, Table, Write, Writing, end_of_prefix,
};
use crate::stores::{StoreError, StoreOptions};

/// The offset of redb's header, which records the file's length.
const HEADER_OFFSET: u64 = 0;

type Definition = TableDefinition<'static, &'static [u8], &'static [u8]>;

fn definition(table: Table) -> Definition {
    TableDefinition::new(table.name())
}

/// The file as redb accesses it.
///
/// redb syncs a file that has grown before its header may record the new length, and blocks new readers meanwhile. Here
/// that sync runs before a transaction is committed, when no reader is blocked. If the file grows during the commit
/// itself, the sync runs when the header is written, and readers of certain pages wait for the sync.
#[derive(Clone, Debug)]
struct Backend {
    file: Arc<dyn StoredFile>,
    growth: Arc<Mutex<Growth>>,
}

/// Whether the file is longer than its durable length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Growth {
    /// The file is not longer.
    None,
    /// The file has grown, and nothing has been written since.
    New,
    /// The file has grown and was written to; the header must not record the new length before a sync.
    Unsynced,
}

impl Backend {
    fn new(file: Arc<dyn StoredFile>) -> Backend {
        Backend { file, growth: Arc::new(Mutex::new(Growth::None)) }
    }

    /// Makes the file's new length durable, if it has grown.
    fn sync_growth(&self) -> Result<(), io::Error> {
        let growth = *self.growth.lock();
        if growth == Growth::None { Ok(()) } else { self.sync() }
    }

    fn sync(&self) -> Result<(), io::Error> {
        self.file.sync()?;
        *self.growth.lock() = Growth::None;
        Ok(())
    }
}

impl StorageBackend for Backend {
    fn len(&self) -> Result<u64, io::Error> {
        Ok(self.file.size()?)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), io::Error> {
        let mut len = 0;
        while len < out.len() {
            match self.file.read_at(offset + len as u64, &mut out[len..])? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => len += count,
            }
        }
        Ok(())
    }

    fn set_len(&self, len: u64) -> Result<(), io::Error> {
        let is_longer = len > self.file.size()?;
        self.file.set_size(len)?;
        if is_longer {
            *self.growth.lock() = Growth::New;
        }
        Ok(())
    }

    fn sync_data(&self) -> Result<(), io::Error> {
        let mut growth = self.growth.lock();
        if *growth == Growth::New {
            *growth = Growth::Unsynced;
            return Ok(());
        }
        drop(growth);
        self.sync()
    }

    fn write(&self, offset: u64, data: &[u8]) -> Result<(), io::Error> {
        let mut growth = self.growth.lock();
        if *growth == Growth::New {
            *growth = Growth::Unsynced;
        }
        let is_unsynced = *growth == Growth::Unsynced;
        drop(growth);
        if offset == HEADER_OFFSET && is_unsynced {
            self.sync()?;
        }
        Ok(self.file.write_at(offset, data)?)
    }
}

#[derive(Debug)]
pub(super) struct RedbEngine {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    cache_bytes: usize,
    /// The open file; `None` if it could not be reopened after an error.
    opened: RwLock<Option<Opened>>,
}

#[derive(Debug)]
struct Opened {
    database: Database,
    backend: Backend,
}

impl RedbEngine {
    pub(super) fn open(
        disk: &Arc<dyn Disk>,
        path: &Path,
        options: &StoreOptions,
    ) -> Result<RedbEngine, StoreError> {
        let path = path.to_owned();
        let cache_bytes = options.cache_bytes as usize;
        let opened = RwLock::new(Some(open_database(disk, &path, cache_bytes)?));
        Ok(RedbEngine { disk: Arc::clone(disk), path, cache_bytes, opened })
    }

    /// Reopens the file if the database is unusable.
    fn renew(&self) -> Result<(), StoreError> {
        let mut opened = self.opened.write();
        // The open database must be closed first, or two would write to the file.
        drop(opened.take());
        *opened = Some(open_database(&self.disk, &self.path, self.cache_bytes)?);
        Ok(())
    }

    fn with<T>(&self, work: impl FnOnce(&Opened) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.opened.read().is_none() {
            self.renew()?;
        }
        let opened = self.opened.read();
        let result = work(opened.as_ref().ok_or_else(closed)?);
        drop(opened);
        if let Err(StoreError::Disk(_) | StoreError::Io { .. } | StoreError::Engine { .. }) = &result {
            // The original error is reported, not one of the reopening.
            let _ = self.renew();
        }
        result
    }
}

fn closed() -> StoreError {
    error(::redb::Error::DatabaseClosed)
}

fn open_database(disk: &Arc<dyn Disk>, path: &Path, cache_bytes: usize) -> Result<Opened, StoreError> {
    let (file, is_there) = match disk.open(path) {
        Ok(file) => (file, true),
        Err(error) if error.is_missing() => {
            let file = disk.create(path)?;
            disk.sync_directory(directory_of(path))?;
            (file, false)
        }
        Err(error) => return Err(error.into()),
    };
    // A new file is created under another name, so an empty file under this name has lost its contents.
    if is_there && file.size()? == 0 {
        let message = "the file is empty: it was truncated".to_owned();
        return Err(StoreError::EngineDamaged { engine: EngineKind::Redb, message });
    }
    let mut builder = Builder::new();
    builder.set_cache_size(cache_bytes);
    let backend = Backend::new(file);
    let database = builder.create_with_backend(backend.clone()).map_err(open_error)?;
    let write = begin(&database)?;
    for table in Table::ALL {
        write.open_table(definition(table)).map_err(error)?;
    }
    write.commit().map_err(error)?;
    Ok(Opened { database, backend })
}

fn begin(database: &Database) -> Result<WriteTransaction, StoreError> {
    let mut write = database.begin_write().map_err(error)?;
    write.set_quick_repair(true);
    Ok(write)
}

fn open_error(cause: DatabaseError) -> StoreError {
    match cause {
        DatabaseError::Storage(cause) => error(cause),
        other => error(::redb::Error::from(other)),
    }
}

fn error(cause: impl Into<::redb::Error>) -> StoreError {
    let engine = EngineKind::Redb;
    match cause.into() {
        ::redb::Error::Io(cause) => match cause.downcast::<DiskError>() {
            Ok(error) => StoreError::Disk(error),
            // The file is shorter than its header states.
            Err(cause) if cause.kind() == io::ErrorKind::UnexpectedEof => {
                StoreError::EngineDamaged { engine, message: "its file is truncated".to_owned() }
            }
            Err(cause) if cause.kind() == io::ErrorKind::InvalidData => {
                StoreError::EngineDamaged { engine, message: cause.to_string() }
            }
            Err(cause) => StoreError::Io { engine, cause },
        },
        ::redb::Error::Corrupted(message) => StoreError::EngineDamaged { engine, message },
        other => StoreError::Engine { engine, message: other.to_string() },
    }
}

impl Engine for RedbEngine {
    fn read(&self, read: &mut Read<'_>) -> Result<(), StoreError> {
        self.with(|opened| read(&RedbReading(opened.database.begin_read().map_err(error)?)))
    }

    fn commit(&self, write: &mut Write<'_>) -> Result<(), StoreError> {
        self.with(|opened| {
            let transaction = begin(&opened.database)?;
            write(&mut RedbWriting { transaction: &transaction, tables: Default::default() })?;
            opened.backend.sync_growth().map_err(::redb::Error::Io).map_err(error)?;
            transaction.commit().map_err(error)
        })
    }

    fn check(&self) -> Result<(), StoreError> {
        let mut opened = self.opened.write();
        let opened = opened.as_mut().ok_or_else(closed)?;
        match opened.database.check_integrity().map_err(open_error)? {
            true => Ok(()),
            false => {
                let message = "it had to be repaired".to_owned();
                Err(StoreError::EngineDamaged { engine: EngineKind::Redb, message })
            }
        }
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        Ok(self.disk.open_to_read(&self.path)?.size()?)
    }
}

struct RedbReading(ReadTransaction);

impl Reading for RedbReading {
    fn get(&self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        let table = self.0.open_table(definition(table)).map_err(error)?;
        let row = table.get(row_key).map_err(error)?;
        if let Some(row) = &row {
            found(row.value());
        }
        Ok(row.is_some())
    }

    fn scan(&self, table: Table, from: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError> {
        let table = self.0.open_table(definition(table)).map_err(error)?;
        for row in table.range::<&[u8]>(from..).map_err(error)? {
            let (row_key, row) = row.map_err(error)?;
            if let ControlFlow::Break(()) = each(row_key.value(), row.value()) {
                break;
            }
        }
        Ok(())
    }
}

struct RedbWriting<'t> {
    transaction: &'t WriteTransaction,
    /// Open tables, each opened at its first use: opening a table for each row would cost as much as accessing the row.
    tables: [Option<OpenTable<'t>>; Table::ALL.len()],
}

type OpenTable<'t> = ::redb::Table<'t, &'static [u8], &'static [u8]>;

impl<'t> RedbWriting<'t> {
    fn table(&mut self, table: Table) -> Result<&mut OpenTable<'t>, StoreError> {
        let open = &mut self.tables[table as usize];
        match open {
            Some(open) => Ok(open),
            None => Ok(open.insert(self.transaction.open_table(definition(table)).map_err(error)?)),
        }
    }
}

impl Writing for RedbWriting<'_> {
    fn put(&mut self, table: Table, row_key: &[u8], row: &[u8]) -> Result<(), StoreError> {
        self.table(table)?.insert(row_key, row).map_err(error)?;
        Ok(())
    }

    fn remove(&mut self, table: Table, row_key: &[u8]) -> Result<(), StoreError> {
        self.table(table)?.remove(row_key).map_err(error)?;
        Ok(())
    }

    fn get(&mut self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        let row = self.table(table)?.get(row_key).map_err(error)?;
        if let Some(row) = &row {
            found(row.value());
        }
        Ok(row.is_some())
    }

    fn remove_prefix(&mut self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let prefix_end = end_of_prefix(prefix);
        let end = prefix_end.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let removed: Result<(), StorageError> =
            self.table(table)?.retain_in::<&[u8], _>((Bound::Included(prefix), end), |_, _| false);
        removed.map_err(error)
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        self.tables = Default::default();
        for table in [Table::Keys, Table::Values, Table::Parts] {
            self.transaction.delete_table(definition(table)).map_err(error)?;
            // Readers expect all tables to exist.
            self.table(table)?;
        }
        Ok(())
    }
}
