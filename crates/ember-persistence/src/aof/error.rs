//! Errors of AOFs.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use super::ManifestError;
use crate::encryption::EncryptionError;
use crate::files::DiskError;
use crate::rdb_file::RdbError;
use crate::repair::repair_command;

/// An AOF cannot be read or written.
#[derive(Debug)]
pub enum AofError {
    /// A disk operation failed.
    Disk(DiskError),
    /// The manifest is invalid.
    Manifest {
        /// The manifest's file.
        file: PathBuf,
        /// The error in it.
        error: ManifestError,
    },
    /// A file named by the manifest does not exist.
    Missing(PathBuf),
    /// There are files of an AOF but no manifest.
    NoManifest(PathBuf),
    /// The RDB part of a file cannot be read.
    Rdb(RdbError),
    /// A file is damaged at a place that is followed by valid data.
    Damaged {
        /// The file.
        file: PathBuf,
        /// The offset of the damage.
        offset: u64,
        /// Describes the damage.
        what: &'static str,
    },
    /// A closed file is shorter than it was, or is empty although it never can be.
    Short {
        /// The file.
        file: PathBuf,
        /// Its size in bytes.
        found: u64,
        /// Its size in bytes when it was closed, if the manifest records it.
        recorded: Option<u64>,
    },
    /// A file cannot be read.
    Unreadable {
        /// The file.
        file: PathBuf,
        /// The first offset that cannot be read.
        offset: u64,
        /// The cause.
        cause: io::Error,
    },
    /// The state of unsynced bytes is unknown: a sync failed, and there were too many of them to be retained. A rewrite
    /// is needed.
    Lost(PathBuf),
    /// The increment was closed, and the next one could not be begun yet.
    Closed(PathBuf),
    /// The log does not belong to the store next to it.
    NotOfStore {
        /// The directory of the log.
        directory: PathBuf,
        /// Describes the mismatch.
        what: String,
    },
}

impl AofError {
    /// Whether a file differs, from some position on, from the written bytes, rather than being unreadable.
    pub fn is_damage(&self) -> bool {
        match self {
            AofError::Damaged { .. } | AofError::Short { .. } => true,
            AofError::Unreadable { cause, .. } => EncryptionError::is_damage(cause),
            AofError::Rdb(error) => error.problem.is_damage(),
            _ => false,
        }
    }

    /// Whether the disk is full: the same call succeeds when space is free.
    pub fn is_full(&self) -> bool {
        matches!(self, AofError::Disk(error) if error.is_full())
    }

    pub(super) fn damaged(file: &Path, offset: u64, what: &'static str) -> AofError {
        AofError::Damaged { file: file.to_owned(), offset, what }
    }
}

/// The alternate form (`{:#}`) describes the damage without advice.
impl Display for AofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AofError::Disk(error) => write!(f, "{error}"),
            AofError::Manifest { file, error } => write!(
                f,
                "{} {error}; restore a backup of it, or write one line for each file in the directory",
                file.display()
            ),
            AofError::Missing(file) => write!(
                f,
                "{} is named by the manifest but is missing (No such file or directory); restore it from a \
                 backup of the whole directory",
                file.display()
            ),
            AofError::NoManifest(directory) => write!(
                f,
                "{} has files of an AOF but no manifest; restore a backup of the whole directory",
                directory.display()
            ),
            AofError::Damaged { file, offset, what } if f.alternate() => {
                write!(f, "{} at offset {offset}: {what}", file.display())
            }
            AofError::Short { file, found, recorded } => {
                match recorded {
                    Some(recorded) => write!(
                        f,
                        "{} has {found} bytes but had {recorded} when it was closed: its end is missing",
                        file.display()
                    )?,
                    None => {
                        write!(f, "{} is empty, but a base in RDB format is never empty", file.display())?
                    }
                }
                if f.alternate() {
                    return Ok(());
                }
                write!(f, "; restore a backup of the whole directory")?;
                if *found == 0 {
                    return Ok(());
                }
                write!(f, ", or keep the part before the missing bytes with `{}`", repair_command(file))
            }
            AofError::Unreadable { cause, .. } if self.is_damage() && f.alternate() => write!(f, "{cause}"),
            AofError::Rdb(error) if f.alternate() => write!(f, "{error:#}"),
            AofError::Rdb(error) => write!(f, "{error}"),
            AofError::Damaged { file, offset, what } => write!(
                f,
                "{} at offset {offset}: {what}; restore a backup, or keep the part before the damage with \
                 `{}`",
                file.display(),
                repair_command(file)
            ),
            AofError::Unreadable { file, cause, .. } if self.is_damage() => {
                write!(f, "{cause}, or keep the part before the damage with `{}`", repair_command(file))
            }
            AofError::Unreadable { file, offset, cause } => {
                write!(
                    f,
                    "{} at offset {offset}: {cause}; check the disk and the system's log",
                    file.display()
                )
            }
            AofError::Closed(file) => {
                write!(f, "{} is closed, and the next file could not be created yet", file.display())
            }
            AofError::NotOfStore { directory, what } => write!(
                f,
                "the store and its log in {} do not belong together: {what}; restore both from one backup",
                directory.display()
            ),
            AofError::Lost(file) => write!(
                f,
                "{}: an fsync failed, and the data that it should have made durable is not kept; \
                 BGREWRITEAOF writes all data again",
                file.display()
            ),
        }
    }
}

impl std::error::Error for AofError {}

impl From<DiskError> for AofError {
    fn from(error: DiskError) -> AofError {
        AofError::Disk(error)
    }
}

impl From<RdbError> for AofError {
    fn from(error: RdbError) -> AofError {
        AofError::Rdb(error)
    }
}
