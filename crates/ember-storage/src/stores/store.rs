//! A store: rows of one engine, read individually and written in checkpoints.

use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::{Mutex, RwLock};

use super::engine::{Engine, EngineKind, Reading, Table, Writing};
use super::protection::{Protection, parse_name};
use super::rows::{Facts, Position, ValueHead};
use super::{StoreError, engines};
use crate::encryption::Encryption;
#[cfg(feature = "encryption")]
use crate::encryption::RowSeal;
use crate::files::Disk;

const VERSION: u8 = 1;

/// Keys of the rows in `meta`.
const FORMAT: &[u8] = b"format";
const SEAL: &[u8] = b"seal";
const POSITION: &[u8] = b"position";

/// Maximum size of a part in bytes. Longer values are stored in several parts, because engines allocate contiguous
/// space for each row.
const PART_BYTES: usize = 1 << 20;

/// Options of a store: memory limits of the engine, and encryption.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// Memory for the read cache, in bytes.
    pub cache_bytes: u64,
    /// Memory for data not yet sorted into files, in bytes; used by fjall only.
    pub write_buffer_bytes: u64,
    /// Whether rows are encrypted, and with which key.
    pub encryption: Encryption,
}

/// Statistics of a store.
#[derive(Clone, Copy, Debug, Default)]
pub struct StoreStatistics {
    /// Size of the store's files in bytes.
    pub file_bytes: u64,
}

/// The result of [`Store::check`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Keys whose facts and values are intact.
    pub keys: u64,
    /// Size of the values of these keys in bytes.
    pub value_bytes: u64,
}

/// A data set in the files of an engine. All functions may be called from any thread, but not from a callback of one of
/// them.
pub struct Store {
    engine: Box<dyn Engine>,
    kind: EngineKind,
    protection: Protection,
    /// The position of the last checkpoint.
    position: RwLock<Option<Position>>,
    /// Held during a checkpoint.
    checkpoint: Mutex<()>,
    /// Whether there may be rows in `parts`; accessed only during a checkpoint.
    has_parts: AtomicBool,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("engine", &self.engine).finish_non_exhaustive()
    }
}

impl Store {
    /// Returns the engine whose files are in a directory; None if there are none.
    pub fn find(disk: &dyn Disk, directory: &Path) -> Option<EngineKind> {
        EngineKind::ALL.into_iter().find(|&kind| {
            let path = directory.join(kind.file_name());
            disk.open_to_read(&path).is_ok() || path.is_dir()
        })
    }

    /// Opens the store in a directory, or creates one. The directory must be locked, because two processes must not
    /// open it. redb accesses its file through `disk`, the other engines directly through the file system.
    ///
    /// # Errors
    /// Returns an error if the store cannot be read, or its encryption key or format version is not available.
    pub fn open(
        kind: EngineKind,
        disk: &Arc<dyn Disk>,
        directory: &Path,
        options: &StoreOptions,
    ) -> Result<Store, StoreError> {
        disk.create_directory(directory)?;
        let engine = engines::open(kind, disk, directory, options)?;
        let protection = begin(engine.as_ref(), &options.encryption)?;
        let (mut position, mut has_parts) = (None, false);
        engine.read(&mut |reading| {
            let row = opened(reading, &protection, Table::Meta, POSITION)?;
            position = match row {
                Some(row) => {
                    let damaged = || StoreError::damaged(Table::Meta, POSITION);
                    Some(Position::decode(&row).ok_or_else(damaged)?)
                }
                None => None,
            };
            reading.scan(Table::Parts, &[], &mut |_, _| {
                has_parts = true;
                ControlFlow::Break(())
            })
        })?;
        Ok(Store {
            engine,
            kind,
            protection,
            position: RwLock::new(position),
            checkpoint: Mutex::new(()),
            has_parts: AtomicBool::new(has_parts),
        })
    }

    /// Returns the engine of the store.
    pub fn kind(&self) -> EngineKind {
        self.kind
    }

    /// Whether the store's rows are encrypted.
    pub fn is_encrypted(&self) -> bool {
        !matches!(self.protection, Protection::Checked)
    }

    /// Returns the position of the last checkpoint; None if there has been none.
    pub fn position(&self) -> Option<Position> {
        self.position.read().clone()
    }

    /// Reads the value of a key into `value` and returns its kind, or None if the key does not exist.
    ///
    /// # Errors
    /// Returns an error if the value cannot be read, or differs from the written value.
    pub fn read(&self, database: u32, key: &[u8], value: &mut Vec<u8>) -> Result<Option<u8>, StoreError> {
        let mut kind = None;
        self.engine.read(&mut |reading| {
            kind = self.read_one(reading, database, key, value)?;
            Ok(())
        })?;
        Ok(kind)
    }

    /// Reads the values of several keys in one state of the store, and calls `each` with the index, the kind and the
    /// value of each existing key.
    ///
    /// # Errors
    /// Returns the first error; the keys after it have not been read.
    pub fn read_many(
        &self,
        keys: &[(u32, &[u8])],
        each: &mut dyn FnMut(usize, u8, &[u8]),
    ) -> Result<(), StoreError> {
        let mut value = Vec::new();
        self.engine.read(&mut |reading| {
            for (index, (database, key)) in keys.iter().enumerate() {
                if let Some(kind) = self.read_one(reading, *database, key, &mut value)? {
                    each(index, kind, &value);
                }
            }
            Ok(())
        })
    }

    fn read_one(
        &self,
        reading: &dyn Reading,
        database: u32,
        key: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<u8>, StoreError> {
        let mut name = Vec::new();
        self.protection.name(database, key, &mut name);
        self.read_value(reading, &name, value)
    }

    fn read_value(
        &self,
        reading: &dyn Reading,
        name: &[u8],
        value: &mut Vec<u8>,
    ) -> Result<Option<u8>, StoreError> {
        if !copied(reading, Table::Values, name, value)? {
            return Ok(None);
        }
        self.protection.open(Table::Values, name, value)?;
        let damaged = || StoreError::damaged(Table::Values, name);
        let (kind, head, head_bytes) = ValueHead::decode(value).ok_or_else(damaged)?;
        match head {
            ValueHead::Whole => _ = value.drain(..head_bytes),
            ValueHead::Parts { count, len } => {
                value.clear();
                let mut part = Vec::new();
                for number in 0..count {
                    let row_key = part_key(name, number);
                    if !copied(reading, Table::Parts, &row_key, &mut part)? {
                        return Err(StoreError::damaged(Table::Parts, &row_key));
                    }
                    self.protection.open(Table::Parts, &row_key, &mut part)?;
                    value.extend_from_slice(&part);
                }
                if value.len() as u64 != len {
                    return Err(damaged());
                }
            }
        }
        Ok(Some(kind))
    }

    /// Calls `each` with the facts of each key, in the order of databases and names, without reading values.
    ///
    /// # Errors
    /// Returns an error if the facts cannot be read.
    pub fn facts(&self, each: &mut dyn FnMut(Facts<'_>) -> ControlFlow<()>) -> Result<(), StoreError> {
        let mut plain = Vec::new();
        self.engine.read(&mut |reading| {
            let mut failed = None;
            reading.scan(Table::Keys, &[], &mut |name, row| {
                plain.clear();
                plain.extend_from_slice(row);
                let opened = self.protection.open(Table::Keys, name, &mut plain);
                match opened.and_then(|()| Facts::decode(name, &plain)) {
                    Ok(facts) => each(facts),
                    Err(error) => {
                        failed = Some(error);
                        ControlFlow::Break(())
                    }
                }
            })?;
            failed.map_or(Ok(()), Err)
        })
    }

    /// Calls `fill` once, commits its changes and sets the store's position to `position`: on success all of this is
    /// durable, after an error none of it. Changes apply in the order of their calls.
    ///
    /// # Errors
    /// Returns the errors of `fill` and of the engine. After an error of the engine the checkpoint may be retried.
    pub fn checkpoint(
        &self,
        position: &Position,
        fill: &mut dyn FnMut(&mut Checkpoint<'_>) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let _alone = self.checkpoint.lock();
        self.engine.commit(&mut |writing| {
            let mut checkpoint = Checkpoint { store: self, writing, name: Vec::new(), row: Vec::new() };
            fill(&mut checkpoint)?;
            let mut row = position.encode();
            self.protection.protect(Table::Meta, POSITION, &mut row);
            checkpoint.writing.put(Table::Meta, POSITION, &row)
        })?;
        *self.position.write() = Some(position.clone());
        Ok(())
    }

    /// Reads all rows, calls `wrong` for each damaged one, and counts the intact keys.
    ///
    /// # Errors
    /// Returns an error if the engine cannot continue.
    pub fn check(&self, wrong: &mut dyn FnMut(StoreError)) -> Result<Checked, StoreError> {
        if let Err(error) = self.engine.check() {
            if !error.is_damage() {
                return Err(error);
            }
            wrong(error);
        }
        let mut checked = Checked::default();
        let (mut plain, mut value) = (Vec::new(), Vec::new());
        self.engine.read(&mut |reading| {
            reading.scan(Table::Keys, &[], &mut |name, row| {
                plain.clear();
                plain.extend_from_slice(row);
                let opened = self.protection.open(Table::Keys, name, &mut plain);
                let facts = opened.and_then(|()| Facts::decode(name, &plain));
                let is_there = facts.and_then(|facts| {
                    let kind = self.read_value(reading, name, &mut value)?;
                    let matches_facts = kind == Some(facts.kind) && value.len() as u64 == facts.stored_bytes;
                    if matches_facts { Ok(()) } else { Err(StoreError::damaged(Table::Values, name)) }
                });
                match is_there {
                    Ok(()) => {
                        checked.keys += 1;
                        checked.value_bytes += value.len() as u64;
                    }
                    Err(error) => wrong(error),
                }
                ControlFlow::Continue(())
            })?;
            self.check_owners(reading, wrong)
        })?;
        Ok(checked)
    }

    /// Checks that each value and part belongs to a key.
    fn check_owners(
        &self,
        reading: &dyn Reading,
        wrong: &mut dyn FnMut(StoreError),
    ) -> Result<(), StoreError> {
        for (table, owners) in [(Table::Values, Table::Keys), (Table::Parts, Table::Values)] {
            let mut failed = None;
            reading.scan(table, &[], &mut |row_key, _| {
                let name_len =
                    if table == Table::Parts { row_key.len().saturating_sub(4) } else { row_key.len() };
                let name = &row_key[..name_len];
                match reading.get(owners, name, &mut |_| {}) {
                    Ok(true) if parse_name(name).is_some() => {}
                    Ok(_) => wrong(StoreError::damaged(table, row_key)),
                    Err(error) => {
                        failed = Some(error);
                        return ControlFlow::Break(());
                    }
                }
                ControlFlow::Continue(())
            })?;
            if let Some(error) = failed {
                return Err(error);
            }
        }
        Ok(())
    }

    /// Returns the store's statistics.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn statistics(&self) -> Result<StoreStatistics, StoreError> {
        Ok(StoreStatistics { file_bytes: self.engine.file_bytes()? })
    }
}

/// Reads the store's format and protection, or writes them in a new store.
fn begin(engine: &dyn Engine, encryption: &Encryption) -> Result<Protection, StoreError> {
    let (mut format, mut seal) = (Vec::new(), Vec::new());
    let (mut is_there, mut is_sealed) = (false, false);
    engine.read(&mut |reading| {
        is_there = copied(reading, Table::Meta, FORMAT, &mut format)?;
        is_sealed = copied(reading, Table::Meta, SEAL, &mut seal)?;
        Ok(())
    })?;
    if is_there {
        match *format {
            [VERSION] => {}
            [version, ..] => return Err(StoreError::Version(version)),
            [] => return Err(StoreError::damaged(Table::Meta, FORMAT)),
        }
        return resume(encryption, is_sealed.then_some(&seal));
    }
    let (protection, head) = new_protection(encryption);
    engine.commit(&mut |writing| {
        if let Some(head) = &head {
            writing.put(Table::Meta, SEAL, head)?;
        }
        writing.put(Table::Meta, FORMAT, &[VERSION])
    })?;
    Ok(protection)
}

#[cfg(feature = "encryption")]
fn new_protection(encryption: &Encryption) -> (Protection, Option<Vec<u8>>) {
    match encryption.keys() {
        Some(keys) => {
            let (seal, head) = RowSeal::begin(keys);
            (Protection::Sealed(Box::new(seal)), Some(head))
        }
        None => (Protection::Checked, None),
    }
}

#[cfg(feature = "encryption")]
fn resume(encryption: &Encryption, seal: Option<&Vec<u8>>) -> Result<Protection, StoreError> {
    match (encryption.keys(), seal) {
        (None, None) => Ok(Protection::Checked),
        (Some(_), None) => Err(StoreError::NotEncrypted),
        (None, Some(_)) => Err(StoreError::NoKey),
        (Some(keys), Some(seal)) => {
            let seal = RowSeal::resume(keys, seal).map_err(StoreError::WrongKey)?;
            Ok(Protection::Sealed(Box::new(seal)))
        }
    }
}

#[cfg(not(feature = "encryption"))]
fn new_protection(_encryption: &Encryption) -> (Protection, Option<Vec<u8>>) {
    (Protection::Checked, None)
}

#[cfg(not(feature = "encryption"))]
fn resume(_encryption: &Encryption, seal: Option<&Vec<u8>>) -> Result<Protection, StoreError> {
    if seal.is_some() { Err(StoreError::NoKey) } else { Ok(Protection::Checked) }
}

/// Copies a row to `out`; returns whether the row exists.
fn copied(
    reading: &dyn Reading,
    table: Table,
    row_key: &[u8],
    out: &mut Vec<u8>,
) -> Result<bool, StoreError> {
    out.clear();
    reading.get(table, row_key, &mut |row| out.extend_from_slice(row))
}

fn opened(
    reading: &dyn Reading,
    protection: &Protection,
    table: Table,
    row_key: &[u8],
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut row = Vec::new();
    if !copied(reading, table, row_key, &mut row)? {
        return Ok(None);
    }
    protection.open(table, row_key, &mut row)?;
    Ok(Some(row))
}

fn part_key(name: &[u8], number: u32) -> Vec<u8> {
    [name, &number.to_be_bytes()].concat()
}

/// The changes of one checkpoint.
pub struct Checkpoint<'c> {
    store: &'c Store,
    writing: &'c mut dyn Writing,
    name: Vec<u8>,
    row: Vec<u8>,
}

impl fmt::Debug for Checkpoint<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoint").finish_non_exhaustive()
    }
}

impl Checkpoint<'_> {
    /// Removes all keys of all databases.
    ///
    /// # Errors
    /// Returns the errors of the engine; the same holds for all functions of this type.
    pub fn clear(&mut self) -> Result<(), StoreError> {
        self.writing.clear()
    }

    /// Removes all keys of a database.
    ///
    /// # Errors
    /// Returns the errors of the engine.
    pub fn remove_database(&mut self, database: u32) -> Result<(), StoreError> {
        for table in [Table::Keys, Table::Values, Table::Parts] {
            self.writing.remove_prefix(table, &database.to_be_bytes())?;
        }
        Ok(())
    }

    /// Removes a key, if it exists.
    ///
    /// # Errors
    /// Returns the errors of the engine.
    pub fn remove(&mut self, database: u32, key: &[u8]) -> Result<(), StoreError> {
        self.store.protection.name(database, key, &mut self.name);
        self.writing.remove(Table::Keys, &self.name)?;
        self.writing.remove(Table::Values, &self.name)?;
        self.remove_parts()
    }

    /// Removes the parts of `name`.
    fn remove_parts(&mut self) -> Result<(), StoreError> {
        if self.store.has_parts.load(Ordering::Relaxed) {
            // Names of other keys may begin with this name, so each part is looked up by its number.
            for number in 0.. {
                let row_key = part_key(&self.name, number);
                if !self.writing.get(Table::Parts, &row_key, &mut |_| {})? {
                    break;
                }
                self.writing.remove(Table::Parts, &row_key)?;
            }
        }
        Ok(())
    }

    /// Replaces the facts of a key whose value is unchanged; the kind and the stored size in `facts` are ignored.
    /// Returns false, with nothing changed, if the key does not exist.
    ///
    /// # Errors
    /// Returns the errors of the engine, and an error if the existing row is invalid.
    pub fn put_facts(&mut self, facts: &Facts<'_>) -> Result<bool, StoreError> {
        let protection = &self.store.protection;
        protection.name(facts.database, facts.key, &mut self.name);
        self.row.clear();
        let row = &mut self.row;
        if !self.writing.get(Table::Keys, &self.name, &mut |bytes| row.extend_from_slice(bytes))? {
            return Ok(false);
        }
        protection.open(Table::Keys, &self.name, &mut self.row)?;
        let known = Facts::decode(&self.name, &self.row)?;
        let facts = Facts { kind: known.kind, stored_bytes: known.stored_bytes, ..*facts };
        facts.encode(&self.name, &mut self.row);
        protection.protect(Table::Keys, &self.name, &mut self.row);
        self.writing.put(Table::Keys, &self.name, &self.row)?;
        Ok(true)
    }

    /// Adds or replaces a key. `facts.stored_bytes` is ignored: the length of `value` is stored.
    ///
    /// # Errors
    /// Returns the errors of the engine.
    pub fn put(&mut self, facts: &Facts<'_>, value: &[u8]) -> Result<(), StoreError> {
        let protection = &self.store.protection;
        protection.name(facts.database, facts.key, &mut self.name);
        self.remove_parts()?;
        let facts = Facts { stored_bytes: value.len() as u64, ..*facts };
        facts.encode(&self.name, &mut self.row);
        protection.protect(Table::Keys, &self.name, &mut self.row);
        self.writing.put(Table::Keys, &self.name, &self.row)?;
        if value.len() <= PART_BYTES {
            ValueHead::Whole.encode(facts.kind, &mut self.row);
            self.row.extend_from_slice(value);
        } else {
            let count = u32::try_from(value.len().div_ceil(PART_BYTES)).map_err(|_| StoreError::TooLong)?;
            self.store.has_parts.store(true, Ordering::Relaxed);
            for (number, part) in (0..count).zip(value.chunks(PART_BYTES)) {
                let row_key = part_key(&self.name, number);
                self.row.clear();
                self.row.extend_from_slice(part);
                protection.protect(Table::Parts, &row_key, &mut self.row);
                self.writing.put(Table::Parts, &row_key, &self.row)?;
            }
            ValueHead::Parts { count, len: value.len() as u64 }.encode(facts.kind, &mut self.row);
        }
        protection.protect(Table::Values, &self.name, &mut self.row);
        self.writing.put(Table::Values, &self.name, &self.row)
    }
}
