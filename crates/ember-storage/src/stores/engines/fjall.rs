//! fjall: a log-structured merge tree in a folder of files.
//!
//! Tables are keyspaces of fjall. To empty them, a commit names a new generation of them, which counts when the commit does;
//! the old one is deleted behind it: fjall can empty a keyspace, but not in one step with other changes, and has had
//! mistakes there. After an error of the disk fjall refuses all writes: it is opened anew then.

use std::collections::BTreeMap;
use std::io;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ::fjall::{
    CompressionType, Database, KeyspaceCreateOptions, KvSeparationOptions, PersistMode, Readable, Snapshot,
};
use parking_lot::RwLock;

use crate::stores::engine::{
    EachRow, Engine, EngineKind, Found, Read, Reading, Table, Write, Writing, directory_bytes,
};
use crate::stores::{StoreError, StoreOptions};

/// Values that are longer stand in files of their own, which compaction does not write again.
const SEPARATED_BYTES: u32 = 1024;

/// The row of `meta` that names the generation.
const GENERATION: &[u8] = b"generation";

/// An open keyspace of fjall.
type Rows = ::fjall::Keyspace;

struct State {
    database: Database,
    generation: u64,
    tables: [Rows; Table::ALL.len()],
}

pub(super) struct FjallEngine {
    path: PathBuf,
    cache_bytes: u64,
    memtable_bytes: u64,
    /// None when it could not be opened again after an error.
    state: RwLock<Option<State>>,
}

impl std::fmt::Debug for FjallEngine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FjallEngine").field("path", &self.path).finish_non_exhaustive()
    }
}

impl FjallEngine {
    pub(super) fn open(path: &Path, options: &StoreOptions) -> Result<FjallEngine, StoreError> {
        let engine = FjallEngine {
            path: path.to_owned(),
            cache_bytes: options.cache_bytes,
            memtable_bytes: options.write_buffer_bytes,
            state: RwLock::new(None),
        };
        engine.renew()?;
        Ok(engine)
    }

    fn renew(&self) -> Result<(), StoreError> {
        let mut state = self.state.write();
        // Its folder is locked as long as it is open.
        drop(state.take());
        *state = Some(self.open_state().map_err(error)?);
        Ok(())
    }

    fn open_state(&self) -> ::fjall::Result<State> {
        let database = Database::builder(&self.path).cache_size(self.cache_bytes).open()?;
        let meta = self.rows(&database, Table::Meta, 0)?;
        let generation = meta.get(GENERATION)?;
        let generation = generation.and_then(|bytes| Some(u64::from_le_bytes((*bytes).try_into().ok()?)));
        let generation = generation.unwrap_or_default();
        let tables = [
            meta,
            self.rows(&database, Table::Keys, generation)?,
            self.rows(&database, Table::Values, generation)?,
            self.rows(&database, Table::Parts, generation)?,
        ];
        // What a crash has left of another generation.
        for name in database.list_keyspace_names() {
            if !tables.iter().any(|table| *table.name() == name) {
                let left = database.keyspace(&name, KeyspaceCreateOptions::default)?;
                database.delete_keyspace(left)?;
            }
        }
        Ok(State { database, generation, tables })
    }

    fn rows(&self, database: &Database, table: Table, generation: u64) -> ::fjall::Result<Rows> {
        let options = || {
            let separation = KvSeparationOptions::default()
                .compression(CompressionType::None)
                .separation_threshold(SEPARATED_BYTES);
            let is_large = matches!(table, Table::Values | Table::Parts);
            KeyspaceCreateOptions::default()
                .max_memtable_size(self.memtable_bytes)
                .with_kv_separation(is_large.then_some(separation))
        };
        database.keyspace(&format!("{}-{generation}", table.name()), options)
    }

    fn with<T>(&self, work: impl FnOnce(&State) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.state.read().is_none() {
            self.renew()?;
        }
        let state = self.state.read();
        let result = work(state.as_ref().ok_or_else(|| error(::fjall::Error::Poisoned))?);
        drop(state);
        if let Err(StoreError::Io { .. } | StoreError::Engine { .. }) = &result {
            // The error that is told is the first one.
            let _ = self.renew();
        }
        result
    }

    /// The tables are those of the next generation.
    fn begin_generation(&self, generation: u64, tables: [Rows; Table::ALL.len()]) -> Result<(), StoreError> {
        let mut state = self.state.write();
        let Some(state) = &mut *state else { return Ok(()) };
        state.generation = generation;
        let old = std::mem::replace(&mut state.tables, tables);
        for table in old.into_iter().skip(1) {
            state.database.delete_keyspace(table).map_err(error)?;
        }
        Ok(())
    }
}

fn error(cause: ::fjall::Error) -> StoreError {
    use ::fjall::{Error, LsmError};
    let engine = EngineKind::Fjall;
    let message = cause.to_string();
    match cause {
        Error::Io(cause) | Error::Storage(LsmError::Io(cause)) => match cause.kind() {
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => {
                StoreError::EngineDamaged { engine, message }
            }
            _ => StoreError::Io { engine, cause },
        },
        Error::Poisoned | Error::Locked | Error::KeyspaceDeleted => StoreError::Engine { engine, message },
        _ => StoreError::EngineDamaged { engine, message },
    }
}

impl Engine for FjallEngine {
    fn read(&self, read: &mut Read<'_>) -> Result<(), StoreError> {
        self.with(|state| read(&FjallReading { snapshot: state.database.snapshot(), tables: &state.tables }))
    }

    fn commit(&self, write: &mut Write<'_>) -> Result<(), StoreError> {
        let begun = self.with(|state| {
            let mut writing = FjallWriting {
                engine: self,
                state,
                rows: Default::default(),
                tables: state.tables.clone(),
                is_cleared: false,
            };
            write(&mut writing)?;
            let FjallWriting { rows, tables, is_cleared, .. } = writing;
            let mut batch = state.database.batch().durability(Some(PersistMode::SyncAll));
            for (table, rows) in tables.iter().zip(rows) {
                for (row_key, row) in rows {
                    match row {
                        Some(row) => batch.insert(table, row_key, row),
                        None => batch.remove(table, row_key),
                    }
                }
            }
            let generation = state.generation + 1;
            if is_cleared {
                batch.insert(&tables[Table::Meta as usize], GENERATION, generation.to_le_bytes());
            }
            batch.commit().map_err(error)?;
            Ok(is_cleared.then_some((generation, tables)))
        })?;
        begun.map_or(Ok(()), |(generation, tables)| self.begin_generation(generation, tables))
    }

    fn check(&self) -> Result<(), StoreError> {
        // A checksum of each block is compared when it is read.
        self.read(&mut |reading| {
            for table in Table::ALL {
                reading.scan(table, &[], &mut |_, _| ControlFlow::Continue(()))?;
            }
            Ok(())
        })
    }

    fn file_bytes(&self) -> Result<u64, StoreError> {
        directory_bytes(&self.path).map_err(|cause| StoreError::Io { engine: EngineKind::Fjall, cause })
    }
}

struct FjallReading<'s> {
    snapshot: Snapshot,
    tables: &'s [Rows; Table::ALL.len()],
}

impl Reading for FjallReading<'_> {
    fn get(&self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        let row = self.snapshot.get(&self.tables[table as usize], row_key).map_err(error)?;
        if let Some(row) = &row {
            found(row);
        }
        Ok(row.is_some())
    }

    fn scan(&self, table: Table, from: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError> {
        for row in self.snapshot.range(&self.tables[table as usize], from..) {
            let (row_key, row) = row.into_inner().map_err(error)?;
            if let ControlFlow::Break(()) = each(&row_key, &row) {
                break;
            }
        }
        Ok(())
    }
}

struct FjallWriting<'s> {
    engine: &'s FjallEngine,
    state: &'s State,
    /// The last change of each row, None for one that is removed: in a batch of fjall no change is later than another.
    rows: [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()],
    /// Those that count when the changes do.
    tables: [Rows; Table::ALL.len()],
    is_cleared: bool,
}

impl Writing for FjallWriting<'_> {
    fn put(&mut self, table: Table, row_key: &[u8], row: &[u8]) -> Result<(), StoreError> {
        self.rows[table as usize].insert(row_key.to_vec(), Some(row.to_vec()));
        Ok(())
    }

    fn remove(&mut self, table: Table, row_key: &[u8]) -> Result<(), StoreError> {
        self.rows[table as usize].insert(row_key.to_vec(), None);
        Ok(())
    }

    fn get(&mut self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        if let Some(changed) = self.rows[table as usize].get(row_key) {
            return Ok(changed.as_deref().map(found).is_some());
        }
        let row = self.tables[table as usize].get(row_key).map_err(error)?;
        Ok(row.map(|row| found(&row)).is_some())
    }

    fn remove_prefix(&mut self, table: Table, prefix: &[u8]) -> Result<(), StoreError> {
        let rows = &mut self.rows[table as usize];
        let begin_so = |row_key: &Vec<u8>| row_key.starts_with(prefix);
        for (_, row) in rows.range_mut(prefix.to_vec()..).take_while(|(row_key, _)| begin_so(row_key)) {
            *row = None;
        }
        for row in self.tables[table as usize].prefix(prefix) {
            rows.insert(row.key().map_err(error)?.to_vec(), None);
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        // What a commit that failed has left under these names must not come back.
        let next = self.state.generation + 1;
        for table in [Table::Keys, Table::Values, Table::Parts] {
            self.rows[table as usize].clear();
            let left = self.engine.rows(&self.state.database, table, next).map_err(error)?;
            if !self.is_cleared && !left.is_empty().map_err(error)? {
                let message = "a generation that was given up is still there".to_owned();
                return Err(StoreError::Engine { engine: EngineKind::Fjall, message });
            }
            self.tables[table as usize] = left;
        }
        self.is_cleared = true;
        Ok(())
    }
}
