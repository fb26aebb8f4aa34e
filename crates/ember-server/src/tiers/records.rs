//! The records of cold values, in a log of segments in the directory `tiered-path`, or as the rows of a store.

use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use ember_config::Config;
use ember_persistence::files::{DirectoryLock, LockError, OsDisk};
use ember_storage::segments::{
    self, AppendSource, LogFull, LogOptions, RecordHead, SegmentLog, Which, WriteFailed,
};
use ember_storage::stores::Store;
use emberkv_core::keyspace::external::{Location, Record, live_bytes};
use emberkv_core::keyspace::shard::cold_values::Encoded;
use emberkv_core::rdb::Kind;

use crate::files::encryption::FileEncryption;

/// The maximum size, in bytes, of a value that is appended: its record, including the key, must fit into a segment.
const VALUE_BYTES_MAX: usize = 60 << 20;

/// The maximum size, in bytes, of a record that a worker reads.
const READY_BYTES_MAX: u64 = 16 << 10;

/// A log of records in a directory that only this server uses.
pub(crate) struct Log {
    segments: SegmentLog,
    /// The directory's absolute path, which does not depend on the working directory.
    directory: PathBuf,
    #[expect(dead_code, reason = "it is released when it is dropped")]
    lock: Option<DirectoryLock>,
}

/// The storage of records; the variant is fixed after startup.
pub(crate) enum Records {
    /// Tiering is off: values cannot be cold.
    Nowhere,
    /// A log of segments, used as a cache.
    Log(Box<Log>),
    /// A store, which contains the data set. It is opened once this server has exclusive use of the directory.
    Store(OnceLock<Store>),
}

/// A segment of the log.
pub(crate) struct Segment {
    pub(crate) number: segments::SegmentNumber,
    pub(crate) stored_bytes: u64,
    pub(crate) live_bytes: u64,
    /// Whether records are still appended to the segment.
    pub(crate) is_open: bool,
}

impl Records {
    /// Opens the log in `tiered-path`, which is emptied, or prepares a store that is opened later. Returns `Nowhere` if
    /// neither is configured.
    ///
    /// # Errors
    /// Returns one line that names the problem and its solution.
    pub(crate) fn open(config: &Config, encryption: &FileEncryption) -> Result<Records, String> {
        if config.store.engine().is_some() {
            return Ok(Records::Store(OnceLock::new()));
        }
        if config.tiered_path.is_empty() {
            return Ok(Records::Nowhere);
        }
        if config.maxmemory == 0 {
            return Err("tiered-path needs a memory limit: set maxmemory".to_owned());
        }
        let directory = Path::new(&config.tiered_path);
        let problem = |error: String| format!("tiered-path '{}': {error}", config.tiered_path);
        std::fs::create_dir_all(directory).map_err(|error| problem(error.to_string()))?;
        let lock = match DirectoryLock::take(directory, &format!("{} {}", std::process::id(), config.port)) {
            Ok(lock) => Some(lock),
            Err(LockError::Unsupported(_)) => None,
            Err(LockError::Held(holder)) => {
                return Err(problem(format!(
                    "the directory is used by another server ({holder}); use a separate directory"
                )));
            }
            Err(LockError::Disk(error)) => return Err(problem(error.to_string())),
        };
        let directory = std::fs::canonicalize(directory).map_err(|error| problem(error.to_string()))?;
        let options = LogOptions {
            directory: directory.clone(),
            limit_bytes: size_limit(config, &directory),
            encryption: encryption.current(),
        };
        let opened = SegmentLog::open(Arc::new(OsDisk), options);
        let segments = opened.map_err(|error| problem(error.to_string()))?;
        Ok(Records::Log(Box::new(Log { segments, directory, lock })))
    }

    /// Returns whether values can be cold.
    pub(crate) fn is_on(&self) -> bool {
        !matches!(self, Records::Nowhere)
    }

    /// Returns the store, once it is open.
    pub(crate) fn store(&self) -> Option<&Store> {
        match self {
            Records::Store(store) => store.get(),
            Records::Nowhere | Records::Log(_) => None,
        }
    }

    /// Sets the store, once.
    pub(crate) fn set_store(&self, store: Store) -> &Store {
        match self {
            Records::Store(place) => place.get_or_init(|| store),
            Records::Nowhere | Records::Log(_) => unreachable!("the configuration asks for a store"),
        }
    }

    fn log(&self) -> Option<&SegmentLog> {
        match self {
            Records::Log(log) => Some(&log.segments),
            Records::Nowhere | Records::Store(_) => None,
        }
    }

    /// Appends a value to a buffer, without waiting for the disk.
    pub(crate) fn append(&self, encoded: &Encoded<'_>, source: AppendSource) -> Result<Record, LogFull> {
        let log = self.log().ok_or(LogFull::Limit)?;
        if encoded.bytes.len() > VALUE_BYTES_MAX {
            return Err(LogFull::TooLarge);
        }
        let database = u32::try_from(encoded.database_name).map_err(|_| LogFull::TooLarge)?;
        let head = RecordHead { database, kind: encoded.kind as u8, key: encoded.key };
        let location = log.append(&head, encoded.bytes, source)?;
        match location.stored_bytes() {
            Some(_) => Ok(Record::new(Location::from_bits(location.to_bits()))),
            // The key takes many megabytes. The appended record is not referenced, so its segment can be removed.
            None => Err(LogFull::TooLarge),
        }
    }

    /// Reads the record of a key into `buffer`, and calls `take` with the kind and the bytes of its value.
    ///
    /// # Errors
    /// Returns why the value cannot be read.
    pub(crate) fn read<R>(
        &self,
        location: Location,
        (database_name, key): (usize, &[u8]),
        buffer: &mut Vec<u8>,
        take: impl FnOnce(Kind, &[u8]) -> R,
    ) -> Result<R, String> {
        if let Some(store) = self.store() {
            let kind = read_row(store, database_name, key, buffer)?;
            return Ok(take(kind, buffer));
        }
        let log = self.log().ok_or("there are no files for values")?;
        let record = log.read(segments::Location::from_bits(location.bits()), buffer);
        take_value(&record.map_err(|error| error.to_string())?, database_name, key, take)
    }

    /// Does what [`Records::read`] does, if the record is small and can be read without waiting for the disk.
    pub(crate) fn read_ready<R>(
        &self,
        location: Location,
        (database_name, key): (usize, &[u8]),
        buffer: &mut Vec<u8>,
        take: impl FnOnce(Kind, &[u8]) -> R,
    ) -> Option<R> {
        let location = segments::Location::from_bits(location.bits());
        location.stored_bytes().filter(|&bytes| bytes <= READY_BYTES_MAX)?;
        let record = self.log()?.read_ready(location, buffer).ok()??;
        take_value(&record, database_name, key, take).ok()
    }

    /// Returns whether a record is still in a buffer, not in a file.
    pub(crate) fn is_buffered(&self, location: Location) -> bool {
        let location = segments::Location::from_bits(location.bits());
        self.log().is_some_and(|log| log.is_buffered(location))
    }

    /// Writes buffers to disk.
    ///
    /// # Errors
    /// Returns the error of the disk; the contents of the buffers remain readable, and the next call writes them.
    pub(crate) fn write(&self, which: Which) -> Result<u64, WriteFailed> {
        self.log().map_or(Ok(0), |log| log.write_buffers(which))
    }

    /// Returns whether there is a full buffer to be written.
    pub(crate) fn has_full_buffer(&self) -> bool {
        self.log().is_some_and(SegmentLog::has_full_buffer)
    }

    /// Returns all segments.
    pub(crate) fn segments(&self) -> Vec<Segment> {
        let all = self.log().map(SegmentLog::segments).unwrap_or_default();
        let segment = |info: segments::SegmentInfo| Segment {
            number: info.number,
            stored_bytes: info.stored_bytes,
            live_bytes: live_bytes(info.number.get() as usize),
            is_open: !info.is_sealed,
        };
        all.into_iter().map(segment).collect()
    }

    /// Returns the records of a segment in order; `None` if the segment was removed.
    pub(crate) fn of_segment(&self, segment: segments::SegmentNumber) -> Option<segments::Records<'_>> {
        self.log().and_then(|log| log.records(segment).ok())
    }

    /// Seals the open segment.
    pub(crate) fn seal(&self) {
        if let Some(log) = self.log() {
            log.seal();
        }
    }

    /// Removes a segment that has no references.
    pub(crate) fn remove(&self, segment: segments::SegmentNumber) {
        if let Some(Err(error)) = self.log().map(|log| log.remove(segment)) {
            tracing::warn!("a segment cannot be removed: {error}");
        }
    }

    /// Sets the size limit of the files.
    pub(crate) fn set_limit(&self, config: &Config) {
        if let Records::Log(log) = self {
            log.segments.set_limit(size_limit(config, &log.directory));
        }
    }

    /// Returns the log's statistics.
    pub(crate) fn statistics(&self) -> Option<segments::LogStatistics> {
        self.log().map(SegmentLog::statistics)
    }
}

/// Calls `take` with the value of a record, if the record belongs to the key.
fn take_value<R>(
    record: &segments::Record<'_>,
    database_name: usize,
    key: &[u8],
    take: impl FnOnce(Kind, &[u8]) -> R,
) -> Result<R, String> {
    if record.head.key != key || u64::from(record.head.database) != database_name as u64 {
        return Err("the record belongs to another key".to_owned());
    }
    let kind = Kind::from_byte(record.head.kind).ok_or("the record has an unknown kind")?;
    Ok(take(kind, record.value))
}

fn read_row(store: &Store, database_name: usize, key: &[u8], bytes: &mut Vec<u8>) -> Result<Kind, String> {
    let database = u32::try_from(database_name).map_err(|_| "there is no such database")?;
    let kind = store.read(database, key, bytes).map_err(|error| error.to_string())?;
    let kind = kind.ok_or("the store has no such key")?;
    Kind::from_byte(kind).ok_or_else(|| "the row has an unknown kind".to_owned())
}

/// Returns the size limit of the files in bytes: by default, nine tenths of the free bytes on their disk.
fn size_limit(config: &Config, directory: &Path) -> u64 {
    if config.tiered_max_size > 0 {
        return config.tiered_max_size;
    }
    let free = rustix::fs::statvfs(directory);
    free.map_or(u64::MAX, |disk| disk.f_bavail.saturating_mul(disk.f_frsize) / 10 * 9)
}
