//! The file layer: every read, write, sync, rename and removal of ember's files goes through a [`Disk`].
//!
//! [`OsDisk`] is the disk of the operating system. [`SimulatedDisk`] stores files in memory, loses unsynced data at a
//! simulated power cut, and injects the faults that a test sets.
//!
//! Each write specifies its offset, so that a caller that knows its last good length can overwrite the remains of a
//! failed write. Nothing is known to be on the disk before [`StoredFile::sync`] (contents) and [`Disk::sync_directory`]
//! (names) have succeeded. Once a sync of a handle has failed, the handle refuses to write and sync: the kernel may
//! have dropped the pages and marked them clean, and the next sync would succeed without them (see P. Rebello and
//! others, "Can Applications Recover from fsync Failures?", USENIX ATC 2020). Data that was not durable must be written
//! again through a new handle.

mod adapters;
mod lock;
mod os;
mod sectors;
mod simulated;

use std::ffi::OsString;
use std::fmt::{self, Debug, Display};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

pub use adapters::{
    FileReader, FileWriter, Reread, TemporaryFile, read_whole, remove_leftovers, unfinished_target,
};
pub use lock::{DirectoryLock, LOCK_FILE, LockError};
pub use os::OsDisk;
pub use sectors::LostSector;
pub use simulated::{Faults, SimulatedDisk, SyncHook};

/// The kind of file operation that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Open an existing file.
    Open,
    /// Create a file, or truncate the existing one.
    Create,
    /// Read.
    Read,
    /// Write.
    Write,
    /// Shorten or lengthen.
    Truncate,
    /// Make written data durable.
    Sync,
    /// Rename.
    Rename,
    /// Remove.
    Remove,
    /// Create a directory.
    CreateDirectory,
    /// Make the names in a directory durable.
    SyncDirectory,
    /// List a directory.
    List,
    /// Lock a directory.
    Lock,
}

impl Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Operation::Open => "open",
            Operation::Create => "create",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Truncate => "truncate",
            Operation::Sync => "fsync",
            Operation::Rename => "rename",
            Operation::Remove => "remove",
            Operation::CreateDirectory => "create directory",
            Operation::SyncDirectory => "fsync directory",
            Operation::List => "list directory",
            Operation::Lock => "lock",
        })
    }
}

/// An operation on a file failed.
#[derive(Debug)]
pub struct DiskError {
    /// The operation.
    pub operation: Operation,
    /// The file or directory.
    pub path: PathBuf,
    /// The cause.
    pub cause: io::Error,
}

impl DiskError {
    /// Creates the error of `operation` on `path`.
    pub fn new(operation: Operation, path: &Path, cause: io::Error) -> DiskError {
        DiskError { operation, path: path.to_owned(), cause }
    }

    /// Whether the disk is full: the operation can succeed once space is freed.
    pub fn is_full(&self) -> bool {
        matches!(
            self.cause.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// Whether the file or directory does not exist.
    pub fn is_missing(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }

    /// Returns advice for the operator of the server.
    pub fn advice(&self) -> &'static str {
        match self.cause.kind() {
            _ if self.is_full() => "free space on that disk",
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                "make the data directory readable and writable for the server's user"
            }
            io::ErrorKind::NotFound => "check that the data directory exists",
            _ => "check the disk and the system's log",
        }
    }
}

impl Display for DiskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot {} {}: {}; {}", self.operation, self.path.display(), self.cause, self.advice())
    }
}

impl std::error::Error for DiskError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

impl From<DiskError> for io::Error {
    /// Wraps the error for interfaces that return only errors of `std::io`; [`disk_error`] unwraps it.
    fn from(error: DiskError) -> io::Error {
        io::Error::new(error.cause.kind(), error)
    }
}

/// Returns the disk error inside an error of `std::io`, or wraps another error as one of `operation` on `path`.
pub fn disk_error(error: io::Error, operation: Operation, path: &Path) -> DiskError {
    match error.downcast::<DiskError>() {
        Ok(error) => error,
        Err(error) => DiskError::new(operation, path, error),
    }
}

/// A file system.
pub trait Disk: Debug + Send + Sync {
    /// Opens an existing file for reading and writing.
    ///
    /// # Errors
    /// Returns the errors of the disk; the same holds for all functions of this trait.
    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Opens an existing file for reading only.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn open_to_read(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Creates a file, or truncates the existing one. The name is durable after [`Disk::sync_directory`].
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn create(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Renames a file atomically, replacing any file with the new name.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Creates a directory and its missing parents.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory durable: files that were created, renamed and removed.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn sync_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Returns the names of the files in a directory, in order.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn list(&self, path: &Path) -> Result<Vec<OsString>, DiskError>;
}

/// An open file. All functions may be called from any thread: a sync does not have to block the writing thread.
pub trait StoredFile: Debug + Send + Sync {
    /// Returns the path with which the file was opened.
    fn path(&self) -> &Path;

    /// Returns the length of the file in bytes.
    ///
    /// # Errors
    /// Returns the errors of the disk; the same holds for all functions of this trait.
    fn size(&self) -> Result<u64, DiskError>;

    /// Returns the nine POSIX permission bits of the file, for its owner, its group and others.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn permissions(&self) -> Result<u32, DiskError>;

    /// Reads at `offset` and returns the number of bytes read, 0 at the end.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;

    /// Like [`StoredFile::read_at`], but without waiting for the disk: returns `None` if the read would have to wait,
    /// or if that is not known.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    fn read_ready(&self, _offset: u64, _buffer: &mut [u8]) -> Result<Option<usize>, DiskError> {
        Ok(None)
    }

    /// Writes all of `bytes` at `offset`. After an error any part of them may be in the file.
    ///
    /// # Errors
    /// Returns the errors of the disk, and an error if a sync of this handle has failed before.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Shortens or lengthens the file to `len` bytes.
    ///
    /// # Errors
    /// Returns the errors of the disk, and an error if a sync of this handle has failed before.
    fn set_size(&self, len: u64) -> Result<(), DiskError>;

    /// Makes all writes before the call durable.
    ///
    /// # Errors
    /// Returns the errors of the disk, and an error if a sync of this handle has failed before.
    fn sync(&self) -> Result<(), DiskError>;
}

/// Returns the error for a handle whose sync has failed before.
fn refused_after_failed_sync() -> io::Error {
    io::Error::other("an earlier fsync of this file failed, so its contents are unknown")
}

/// Returns the directory of a file.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
