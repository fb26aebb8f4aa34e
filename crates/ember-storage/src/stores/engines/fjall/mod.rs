//! fjall: a log-structured merge tree in a folder of files.
//!
//! Tables are keyspaces of fjall. To empty them, a commit names a new generation of tables, which becomes valid with
//! the commit; the old one is deleted afterwards. fjall can empty a keyspace, but not atomically with other changes,
//! and that function has had bugs. After a disk error fjall refuses all writes, so it is reopened.
//!
//! fjall holds a whole batch in memory. If the changes of a commit exceed the memory limit, they are *staged*:
//!
//! ```text
//! stage    changes go to separate keyspaces, some at a time; no reader uses them yet
//! count    one synced batch: the rows of `meta`, with a marker. All staged changes are valid from here on
//! apply    staged changes are moved into the tables, some at a time; the last batch removes the marker
//! ```
//!
//! Readers between the last two steps read staged rows over the tables. If the marker exists at startup, applying
//! continues; otherwise staged changes are removed. The staging keyspaces are never deleted: fjall may assign the
//! number of a deleted keyspace to another while its journal still contains changes under that number. After
//! [`Writing::clear`] nothing is staged: the next generation has no readers yet, so the changes are written to it
//! directly.

mod batches;
mod keyspaces;

use std::cmp::Ordering::{Greater, Less};
use std::collections::BTreeMap;
use std::io;
use std::ops::{Bound, ControlFlow};
use std::path::{Path, PathBuf};

use ::fjall::{
    CompressionType, Database, KeyspaceCreateOptions, KvSeparationOptions, PersistMode, Readable, Snapshot,
    UserKey,
};
use parking_lot::{Mutex, RwLock};

use self::batches::Batches;
use self::keyspaces::Keyspaces;
use crate::stores::engine::{
    EachRow, Engine, EngineKind, Found, Read, Reading, Table, Write, Writing, directory_bytes,
};
use crate::stores::{StoreError, StoreOptions};

/// Size in bytes from which values are stored in separate files, which compaction does not rewrite.
const SEPARATED_BYTES: u32 = 1024;

/// The row of `meta` that names the generation.
const GENERATION: &[u8] = b"generation";

/// The marker in `meta`: staged changes are valid.
const STAGED: &[u8] = b"staged";

/// The first byte of a staged row.
const STAGED_REMOVAL: u8 = 0;
const STAGED_ROW: u8 = 1;

/// Approximate memory overhead of a change, beyond its row and the copy of the row in a batch, in bytes.
const CHANGE_BYTES: usize = 128;

/// Maximum number of rows with a prefix that are removed per batch.
const REMOVED_AT_ONCE: usize = 1024;

/// The tables whose changes are staged; `meta` has few changes.
const STAGED_TABLES: [Table; 3] = [Table::Keys, Table::Values, Table::Parts];

/// An open keyspace of fjall.
type Rows = ::fjall::Keyspace;

/// The staging keyspaces, in the order of [`STAGED_TABLES`].
type Staged = [Rows; STAGED_TABLES.len()];

/// Returns the staging keyspace of a table.
fn staged_for(staged: &Staged, table: Table) -> Option<&Rows> {
    STAGED_TABLES.iter().position(|&other| other == table).map(|at| &staged[at])
}

/// Returns the name of a table's keyspace.
fn name_of(table: Table, generation: u64) -> String {
    format!("{}-{generation}", table.name())
}

/// Returns the contents of a staged row; None if it stages a removal.
fn unstaged(staged: &[u8]) -> Option<&[u8]> {
    staged.split_first().filter(|(first, _)| **first == STAGED_ROW).map(|(_, row)| row)
}

struct State {
    database: Database,
    keyspaces: Keyspaces,
    generation: u64,
    tables: [Rows; Table::ALL.len()],
    /// The staging keyspaces; empty outside a commit.
    staged: Staged,
}

pub(super) struct FjallEngine {
    path: PathBuf,
    cache_bytes: u64,
    /// Memory limit in bytes of a memtable, and of the changes of a commit that are not staged.
    memtable_bytes: u64,
    batches: Batches,
    /// The lock that serializes commits.
    writer: Mutex<()>,
    /// The open database; `None` if it could not be reopened after an error.
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
            batches: Batches::new(),
            writer: Mutex::new(()),
            state: RwLock::new(None),
        };
        engine.renew()?;
        Ok(engine)
    }

    fn renew(&self) -> Result<(), StoreError> {
        let mut state = self.state.write();
        // The folder is locked while the database is open.
        drop(state.take());
        *state = Some(self.open_state().map_err(error)?);
        Ok(())
    }

    fn open_state(&self) -> ::fjall::Result<State> {
        let database = Database::builder(&self.path).cache_size(self.cache_bytes).open()?;
        let meta = database.keyspace(&name_of(Table::Meta, 0), || self.options(Table::Meta))?;
        let keyspaces = Keyspaces::new(&database, &meta);
        let generation = meta.get(GENERATION)?;
        let generation = generation.and_then(|bytes| Some(u64::from_le_bytes((*bytes).try_into().ok()?)));
        let generation = generation.unwrap_or_default();
        let tables = [
            meta,
            self.rows(&keyspaces, Table::Keys, generation)?,
            self.rows(&keyspaces, Table::Values, generation)?,
            self.rows(&keyspaces, Table::Parts, generation)?,
        ];
        let staged = |table: Table| self.keyspace(&keyspaces, table, &format!("staged-{}", table.name()));
        let [keys, values, parts] = STAGED_TABLES;
        let staged = [staged(keys)?, staged(values)?, staged(parts)?];
        // Staged rows exist if a crash or an error occurred before all staged changes were applied, or before they were
        // valid.
        let counts = tables[Table::Meta as usize].get(STAGED)?.is_some();
        self.empty_staged(&database, &staged, counts.then_some(&tables))?;
        // Deletes keyspaces of other generations that a crash has left.
        for name in database.list_keyspace_names() {
            if !tables.iter().chain(&staged).any(|table| *table.name() == name) {
                keyspaces.delete_named(&self.batches, &name)?;
            }
        }
        Ok(State { database, keyspaces, generation, tables, staged })
    }

    fn rows(&self, keyspaces: &Keyspaces, table: Table, generation: u64) -> ::fjall::Result<Rows> {
        self.keyspace(keyspaces, table, &name_of(table, generation))
    }

    /// Moves staged changes into the tables, or discards them.
    fn empty_staged(
        &self,
        database: &Database,
        staged: &Staged,
        tables: Option<&[Rows; Table::ALL.len()]>,
    ) -> ::fjall::Result<()> {
        for (table, rows) in STAGED_TABLES.into_iter().zip(staged) {
            let table = tables.map(|tables| &tables[table as usize]);
            let mut from = Bound::Unbounded;
            // Each scan covers few rows: fjall keeps all tables in memory that were created during a scan.
            while let Some(last) = self.move_staged(database, rows, table, from)? {
                from = Bound::Excluded(last);
            }
        }
        if let Some(tables) = tables {
            // This sync makes all previous changes durable: they are in the same journal, or in one that was synced
            // when it was full.
            let mut batch = database.batch().durability(Some(PersistMode::SyncAll));
            batch.remove(&tables[Table::Meta as usize], STAGED);
            self.batches.commit(database, batch)?;
        }
        Ok(())
    }

    /// Like [`FjallEngine::empty_staged`] for some rows of one table; returns the key of the last of these rows, if
    /// there may be more.
    fn move_staged(
        &self,
        database: &Database,
        staged: &Rows,
        table: Option<&Rows>,
        from: Bound<UserKey>,
    ) -> ::fjall::Result<Option<UserKey>> {
        let (mut batch, mut bytes) = (database.batch(), 0);
        let mut last = None;
        for row in staged.range((from, Bound::Unbounded)) {
            let (row_key, row) = row.into_inner()?;
            bytes += row_key.len() + row.len() + CHANGE_BYTES;
            batch.remove(staged, row_key.clone());
            match (table, unstaged(&row)) {
                (Some(table), Some(row)) => batch.insert(table, row_key.clone(), row),
                (Some(table), None) => batch.remove(table, row_key.clone()),
                (None, _) => {}
            }
            if bytes as u64 >= self.memtable_bytes {
                last = Some(row_key);
                break;
            }
        }
        self.batches.commit(database, batch)?;
        Ok(last)
    }

    fn keyspace(&self, keyspaces: &Keyspaces, table: Table, name: &str) -> ::fjall::Result<Rows> {
        keyspaces.open(&self.batches, name, || self.options(table))
    }

    fn options(&self, table: Table) -> KeyspaceCreateOptions {
        let separation = KvSeparationOptions::default()
            .compression(CompressionType::None)
            .separation_threshold(SEPARATED_BYTES);
        let is_large = matches!(table, Table::Values | Table::Parts);
        KeyspaceCreateOptions::default()
            .max_memtable_size(self.memtable_bytes)
            .with_kv_separation(is_large.then_some(separation))
    }

    fn with<T>(&self, work: impl FnOnce(&State) -> Result<T, StoreError>) -> Result<T, StoreError> {
        if self.state.read().is_none() {
            self.renew()?;
        }
        let state = self.state.read();
        let result = work(state.as_ref().ok_or_else(|| error(::fjall::Error::Poisoned))?);
        drop(state);
        if let Err(StoreError::Io { .. } | StoreError::Engine { .. }) = &result {
            // The original error is reported, not one of the reopening.
            let _ = self.renew();
        }
        result
    }

    /// Switches to the given tables of the next generation.
    fn begin_generation(&self, generation: u64, tables: [Rows; Table::ALL.len()]) -> Result<(), StoreError> {
        let mut state = self.state.write();
        let Some(state) = &mut *state else { return Ok(()) };
        state.generation = generation;
        let old = std::mem::replace(&mut state.tables, tables);
        for table in old.into_iter().skip(1) {
            state.keyspaces.delete(&self.batches, table).map_err(error)?;
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
        self.with(|state| {
            let (snapshot, may_be_staged) = self.batches.snapshot(&state.database);
            let meta = &state.tables[Table::Meta as usize];
            let is_staged = may_be_staged && snapshot.contains_key(meta, STAGED).map_err(error)?;
            read(&FjallReading {
                snapshot,
                tables: &state.tables,
                staged: is_staged.then_some(&state.staged),
            })
        })
    }

    fn commit(&self, write: &mut Write<'_>) -> Result<(), StoreError> {
        let _writer = self.writer.lock();
        let (mut is_spilled, mut is_several, mut counts) = (false, false, false);
        let begun = self.with(|state| {
            let mut writing = FjallWriting {
                engine: self,
                state,
                rows: Default::default(),
                rows_bytes: 0,
                tables: state.tables.clone(),
                is_cleared: false,
                is_staged: false,
                is_spilled: &mut is_spilled,
            };
            write(&mut writing)?;
            if writing.is_staged {
                writing.spill()?;
            }
            let FjallWriting { rows, tables, is_cleared, is_staged, .. } = writing;
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
            if is_staged {
                batch.insert(&tables[Table::Meta as usize], STAGED, []);
            }
            if !is_staged {
                self.batches.commit(&state.database, batch).map_err(error)?;
                return Ok(is_cleared.then_some((generation, tables)));
            }
            self.batches.begin_several();
            is_several = true;
            self.batches.commit(&state.database, batch).map_err(error)?;
            counts = true;
            self.empty_staged(&state.database, &state.staged, Some(&tables)).map_err(error)?;
            Ok(None)
        });
        let done = match begun {
            Ok(begun) => {
                begun.map_or(Ok(()), |(generation, tables)| self.begin_generation(generation, tables))
            }
            // Reopening applies the remaining staged changes.
            Err(_) if counts => self.renew(),
            Err(error) => {
                if is_spilled {
                    // Reopening discards staged changes. The original error is reported, not one of the reopening.
                    let _ = self.renew();
                }
                Err(error)
            }
        };
        if is_several {
            self.batches.end_several();
        }
        done
    }

    fn check(&self) -> Result<(), StoreError> {
        // Reading a block checks its checksum.
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
    /// Staged rows that override the tables.
    staged: Option<&'s Staged>,
}

impl Reading for FjallReading<'_> {
    fn get(&self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        if let Some(staged) = self.staged.and_then(|staged| staged_for(staged, table))
            && let Some(row) = self.snapshot.get(staged, row_key).map_err(error)?
        {
            return Ok(unstaged(&row).map(found).is_some());
        }
        let row = self.snapshot.get(&self.tables[table as usize], row_key).map_err(error)?;
        if let Some(row) = &row {
            found(row);
        }
        Ok(row.is_some())
    }

    fn scan(&self, table: Table, from: &[u8], each: &mut EachRow<'_>) -> Result<(), StoreError> {
        let rows_of = |rows: &Rows| {
            let rows = self.snapshot.range(rows, from..);
            rows.map(|row| row.into_inner().map_err(error))
        };
        let mut rows = rows_of(&self.tables[table as usize]);
        let staged = self.staged.and_then(|staged| staged_for(staged, table));
        let mut staged = staged.into_iter().flat_map(rows_of);
        let (mut next, mut next_staged) = (rows.next().transpose()?, staged.next().transpose()?);
        loop {
            let order = match (&next, &next_staged) {
                (None, None) => break,
                (Some(_), None) => Less,
                (None, Some(_)) => Greater,
                (Some((row_key, _)), Some((staged_key, _))) => row_key.cmp(staged_key),
            };
            let row = if order == Less { &next } else { &next_staged };
            let row = row.as_ref().and_then(|(row_key, row)| {
                let row = if order == Less { Some(&**row) } else { unstaged(row) };
                row.map(|row| (&**row_key, row))
            });
            if let Some((row_key, row)) = row
                && let ControlFlow::Break(()) = each(row_key, row)
            {
                break;
            }
            if order != Greater {
                next = rows.next().transpose()?;
            }
            if order != Less {
                next_staged = staged.next().transpose()?;
            }
        }
        Ok(())
    }
}

struct FjallWriting<'s> {
    engine: &'s FjallEngine,
    state: &'s State,
    /// The last change of each row, None for a removal: fjall does not apply the changes of a batch in order.
    rows: [BTreeMap<Vec<u8>, Option<Vec<u8>>>; Table::ALL.len()],
    /// A low estimate of the memory of `rows`, in bytes.
    rows_bytes: usize,
    /// The tables that are valid after the commit.
    tables: [Rows; Table::ALL.len()],
    is_cleared: bool,
    /// Whether earlier changes of this commit than those in `rows` are staged.
    is_staged: bool,
    /// Whether any changes of this commit have been written to files.
    is_spilled: &'s mut bool,
}

impl FjallWriting<'_> {
    fn stage(&mut self, table: Table, row_key: &[u8], row: Option<&[u8]>) -> Result<(), StoreError> {
        self.rows_bytes += row_key.len() + row.map_or(0, <[u8]>::len) + CHANGE_BYTES;
        self.rows[table as usize].insert(row_key.to_vec(), row.map(<[u8]>::to_vec));
        if self.rows_bytes as u64 >= self.engine.memtable_bytes { self.spill() } else { Ok(()) }
    }

    /// Writes the changes in memory to files.
    fn spill(&mut self) -> Result<(), StoreError> {
        *self.is_spilled = true;
        self.is_staged = !self.is_cleared;
        let mut batch = self.state.database.batch();
        let mut staged_row = Vec::new();
        for (number, table) in STAGED_TABLES.into_iter().enumerate() {
            for (row_key, row) in std::mem::take(&mut self.rows[table as usize]) {
                if self.is_staged {
                    staged_row.clear();
                    staged_row.push(if row.is_some() { STAGED_ROW } else { STAGED_REMOVAL });
                    staged_row.extend(row.into_iter().flatten());
                    batch.insert(&self.state.staged[number], row_key, &*staged_row);
                    continue;
                }
                match row {
                    Some(row) => batch.insert(&self.tables[table as usize], row_key, row),
                    None => batch.remove(&self.tables[table as usize], row_key),
                }
            }
        }
        self.rows_bytes = 0;
        self.engine.batches.commit(&self.state.database, batch).map_err(error)
    }

    /// Returns the keyspace with the staged rows of a table.
    fn staged(&self, table: Table) -> Option<&Rows> {
        staged_for(&self.state.staged, table).filter(|_| self.is_staged)
    }
}

impl Writing for FjallWriting<'_> {
    fn put(&mut self, table: Table, row_key: &[u8], row: &[u8]) -> Result<(), StoreError> {
        self.stage(table, row_key, Some(row))
    }

    fn remove(&mut self, table: Table, row_key: &[u8]) -> Result<(), StoreError> {
        self.stage(table, row_key, None)
    }

    fn get(&mut self, table: Table, row_key: &[u8], found: &mut Found<'_>) -> Result<bool, StoreError> {
        if let Some(changed) = self.rows[table as usize].get(row_key) {
            return Ok(changed.as_deref().map(found).is_some());
        }
        if let Some(staged) = self.staged(table)
            && let Some(row) = staged.get(row_key).map_err(error)?
        {
            return Ok(unstaged(&row).map(found).is_some());
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
        let there = [self.staged(table).cloned(), Some(self.tables[table as usize].clone())];
        for rows in there.into_iter().flatten() {
            let mut from = Bound::Included(UserKey::from(prefix));
            loop {
                // In steps of few rows, for the reason given in `move_staged`.
                let row_keys =
                    rows.range((from, Bound::Unbounded)).take(REMOVED_AT_ONCE).map(|row| row.key());
                let row_keys: Vec<UserKey> = row_keys.collect::<::fjall::Result<_>>().map_err(error)?;
                for row_key in row_keys.iter().filter(|row_key| row_key.starts_with(prefix)) {
                    self.stage(table, row_key, None)?;
                }
                match row_keys.into_iter().nth(REMOVED_AT_ONCE - 1) {
                    Some(last) if last.starts_with(prefix) => from = Bound::Excluded(last),
                    _ => break,
                }
            }
        }
        Ok(())
    }

    fn clear(&mut self) -> Result<(), StoreError> {
        // Rows that a failed commit has left in keyspaces of these names must not reappear.
        let next = self.state.generation + 1;
        if self.is_cleared {
            return STAGED_TABLES.into_iter().try_for_each(|table| self.remove_prefix(table, &[]));
        }
        if std::mem::take(&mut self.is_staged) {
            let State { database, staged, .. } = self.state;
            self.engine.empty_staged(database, staged, None).map_err(error)?;
        }
        self.rows_bytes = 0;
        for table in STAGED_TABLES {
            self.rows[table as usize].clear();
            let left = self.engine.rows(&self.state.keyspaces, table, next).map_err(error)?;
            if !left.is_empty().map_err(error)? {
                let message = "an abandoned generation still exists".to_owned();
                return Err(StoreError::Engine { engine: EngineKind::Fjall, message });
            }
            self.tables[table as usize] = left;
        }
        self.is_cleared = true;
        Ok(())
    }
}
