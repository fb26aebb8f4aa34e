//! The file layer: every read, write, sync, rename and removal of what ember keeps goes through a [`Disk`].
//!
//! [`OsDisk`] is the real one. [`SimulatedDisk`] keeps files in memory, forgets what was not synced when its power is
//! cut, and fails where a test wants it to.
//!
//! Writes name their offset, so that a caller that knows its last good length can write over what a failed write has
//! left. Nothing is known to be on the disk before [`StoredFile::sync`] (contents) and [`Disk::sync_directory`] (names)
//! have succeeded. Once a sync of a handle has failed, the handle refuses to write and sync: the kernel may have dropped
//! the pages and marked them clean, and the next sync would succeed without them (see P. Rebello and others, "Can
//! Applications Recover from fsync Failures?", USENIX ATC 2020). What was not durable is to be written again through a
//! handle that is opened anew.

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

/// What was tried with a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// To open one that is there.
    Open,
    /// To create one, or empty the one of that name.
    Create,
    /// To read.
    Read,
    /// To write.
    Write,
    /// To shorten or lengthen.
    Truncate,
    /// To make what was written durable.
    Sync,
    /// To rename.
    Rename,
    /// To remove.
    Remove,
    /// To create a directory.
    CreateDirectory,
    /// To make the names in a directory durable.
    SyncDirectory,
    /// To list a directory.
    List,
    /// To lock a directory.
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
    /// What was tried.
    pub operation: Operation,
    /// With which file or directory.
    pub path: PathBuf,
    /// Why it failed.
    pub cause: io::Error,
}

impl DiskError {
    /// The error of `operation` on `path`.
    pub fn new(operation: Operation, path: &Path, cause: io::Error) -> DiskError {
        DiskError { operation, path: path.to_owned(), cause }
    }

    /// Whether there is no room: freeing some is enough to go on.
    pub fn is_full(&self) -> bool {
        matches!(
            self.cause.kind(),
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge
        )
    }

    /// Whether the file or directory is not there.
    pub fn is_missing(&self) -> bool {
        self.cause.kind() == io::ErrorKind::NotFound
    }

    /// What whoever runs the server can do about it.
    pub fn advice(&self) -> &'static str {
        match self.cause.kind() {
            _ if self.is_full() => "free space on that disk",
            io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => {
                "make the data directory readable and writable for the server's user"
            }
            io::ErrorKind::NotFound => "check that the data directory is there",
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
    /// The same error where only those of `std::io` can pass; [`disk_error`] gives it back.
    fn from(error: DiskError) -> io::Error {
        io::Error::new(error.cause.kind(), error)
    }
}

/// The error of the disk inside one of `std::io`, or that one as an error of `operation` on `path`.
pub fn disk_error(error: io::Error, operation: Operation, path: &Path) -> DiskError {
    match error.downcast::<DiskError>() {
        Ok(error) => error,
        Err(error) => DiskError::new(operation, path, error),
    }
}

/// A place for files.
pub trait Disk: Debug + Send + Sync {
    /// Opens a file that is there, for reading and writing.
    ///
    /// # Errors
    /// Those of the disk; so for all of these functions.
    fn open(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Opens a file that is there, for reading only.
    ///
    /// # Errors
    /// Those of the disk.
    fn open_to_read(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Creates a file, or empties the one of that name. The name is durable after [`Disk::sync_directory`].
    ///
    /// # Errors
    /// Those of the disk.
    fn create(&self, path: &Path) -> Result<Arc<dyn StoredFile>, DiskError>;

    /// Gives a file another name in one step; a file that had that name is gone.
    ///
    /// # Errors
    /// Those of the disk.
    fn rename(&self, from: &Path, to: &Path) -> Result<(), DiskError>;

    /// Removes a file.
    ///
    /// # Errors
    /// Those of the disk.
    fn remove(&self, path: &Path) -> Result<(), DiskError>;

    /// Creates a directory and those above it, if they are not there.
    ///
    /// # Errors
    /// Those of the disk.
    fn create_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// Makes the names in a directory durable: files that were created, renamed and removed.
    ///
    /// # Errors
    /// Those of the disk.
    fn sync_directory(&self, path: &Path) -> Result<(), DiskError>;

    /// The names of the files in a directory, in order.
    ///
    /// # Errors
    /// Those of the disk.
    fn list(&self, path: &Path) -> Result<Vec<OsString>, DiskError>;
}

/// A file that is open. All functions may be called from any thread: a sync need not stop the one that writes.
pub trait StoredFile: Debug + Send + Sync {
    /// The name it was opened by.
    fn path(&self) -> &Path;

    /// Its length in bytes.
    ///
    /// # Errors
    /// Those of the disk; so for all of these functions.
    fn size(&self) -> Result<u64, DiskError>;

    /// What its owner, its group and others may do with it: the nine bits of POSIX.
    ///
    /// # Errors
    /// Those of the disk.
    fn permissions(&self) -> Result<u32, DiskError>;

    /// Reads at `offset`; how many bytes came, 0 at the end.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<usize, DiskError>;

    /// As [`StoredFile::read_at`], if that needs no waiting for the disk: `None` if it may, or nobody can tell.
    ///
    /// # Errors
    /// Those of the disk.
    fn read_ready(&self, _offset: u64, _buffer: &mut [u8]) -> Result<Option<usize>, DiskError> {
        Ok(None)
    }

    /// Writes all of `bytes` at `offset`. After an error any part of them may be there.
    ///
    /// # Errors
    /// Those of the disk, and that a sync of this handle has failed before.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<(), DiskError>;

    /// Cuts or lengthens it to `len` bytes.
    ///
    /// # Errors
    /// Those of the disk, and that a sync of this handle has failed before.
    fn set_size(&self, len: u64) -> Result<(), DiskError>;

    /// Makes what has been written before the call durable.
    ///
    /// # Errors
    /// Those of the disk, and that a sync of this handle has failed before.
    fn sync(&self) -> Result<(), DiskError>;
}

/// The error of a handle whose sync has failed before.
fn refused_after_failed_sync() -> io::Error {
    io::Error::other("an fsync of this file has failed before, so what it holds is not known")
}

/// The directory that a file is in.
pub fn directory_of(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}
