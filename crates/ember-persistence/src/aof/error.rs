//! Errors of AOFs.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use super::ManifestError;
use crate::encryption::EncryptionError;
use crate::files::DiskError;
use crate::rdb_file::RdbError;
use crate::repair::repair_command;

/// The reason why an AOF cannot be read or written.
#[derive(Debug)]
pub enum AofError {
    /// A disk operation failed.
    Disk(DiskError),
    /// The manifest is invalid.
    Manifest {
        /// The path of the manifest.
        file: PathBuf,
        /// The error in the manifest.
        error: ManifestError,
    },
    /// A file named by the manifest does not exist.
    Missing(PathBuf),
    /// There are files of an AOF but no manifest.
    NoManifest(PathBuf),
    /// The RDB part of a file cannot be read.
    Rdb(RdbError),
    /// A file is damaged at an offset that is followed by valid data.
    Damaged {
        /// The path of the file.
        file: PathBuf,
        /// The offset of the damage.
        offset: u64,
        /// A description of the damage.
        what: &'static str,
    },
    /// A closed file is shorter than when it was closed, or is empty although a file of its type never is.
    Short {
        /// The path of the file.
        file: PathBuf,
        /// The size of the file in bytes.
        found: u64,
        /// The size of the file in bytes when it was closed, if the manifest records it.
        recorded: Option<u64>,
    },
    /// A file cannot be read.
    Unreadable {
        /// The path of the file.
        file: PathBuf,
        /// The first offset that cannot be read.
        offset: u64,
        /// The error of the read.
        cause: io::Error,
    },
    /// A sync failed, and too many bytes were unsynced to be retained, so their state on the disk is unknown. The AOF
    /// must be rewritten.
    Lost(PathBuf),
    /// The increment was closed, but the next one has not been created yet.
    Closed(PathBuf),
    /// The log does not belong to the store in the same directory.
    NotOfStore {
        /// The directory of the log.
        directory: PathBuf,
        /// A description of the mismatch.
        what: String,
    },
}

impl AofError {
    /// Whether the error is that a file differs from the bytes written to it, rather than that it is unreadable.
    pub fn is_damage(&self) -> bool {
        match self {
            AofError::Damaged { .. } | AofError::Short { .. } => true,
            AofError::Unreadable { cause, .. } => EncryptionError::is_damage(cause),
            AofError::Rdb(error) => error.problem.is_damage(),
            _ => false,
        }
    }

    /// Whether the disk is full, so that the same call can succeed once space is free.
    pub fn is_full(&self) -> bool {
        matches!(self, AofError::Disk(error) if error.is_full())
    }

    pub(super) fn damaged(file: &Path, offset: u64, what: &'static str) -> AofError {
        AofError::Damaged { file: file.to_owned(), offset, what }
    }
}

/// The alternate form (`{:#}`) describes the damage without advice on how to repair it.
impl Display for AofError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AofError::Disk(error) => write!(f, "{error}"),
            AofError::Manifest { file, error } => write!(
                f,
                "{} {error}; restore a backup of it, or rewrite it with one line for each file in the directory",
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
