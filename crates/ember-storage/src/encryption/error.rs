//! Errors of encrypted files.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use super::KEY_VARIABLE;
use crate::files::DiskError;

/// An encrypted file cannot be read.
#[derive(Debug)]
pub struct EncryptionError {
    /// The file.
    pub file: PathBuf,
    /// The offset in the file, as stored.
    pub offset: u64,
    /// The problem at that offset.
    pub problem: EncryptionProblem,
}

/// The problem with an encrypted file.
#[derive(Debug)]
pub enum EncryptionProblem {
    /// The file cannot be read.
    Disk(DiskError),
    /// The file is encrypted, and no key is configured.
    NoKey,
    /// The file is encrypted with another key, which has this fingerprint.
    WrongKey(String),
    /// This program was built without encryption.
    NotBuilt,
    /// The format version is unknown.
    Version(u8),
    /// The file ends before its last chunk.
    Truncated,
    /// There are bytes after the last chunk.
    TooLong,
    /// A chunk is not at the offset it was written for.
    Moved {
        /// The offset for which the chunk was written.
        from: u64,
    },
    /// Some bits of the file differ from the written ones.
    Altered,
}

impl EncryptionProblem {
    /// Whether the file can be read, but its contents differ from the written bytes.
    pub fn is_damage(&self) -> bool {
        matches!(
            self,
            EncryptionProblem::Truncated
                | EncryptionProblem::TooLong
                | EncryptionProblem::Moved { .. }
                | EncryptionProblem::Altered
        )
    }
}

impl EncryptionError {
    pub(super) fn new(file: &Path, offset: u64, problem: EncryptionProblem) -> EncryptionError {
        EncryptionError { file: file.to_owned(), offset, problem }
    }

    /// Whether a read error means that an encrypted file can be read, but its contents differ from the written bytes.
    pub fn is_damage(error: &io::Error) -> bool {
        EncryptionError::inside(error).is_some_and(|error| error.problem.is_damage())
    }

    /// Returns the encryption error inside an error of `std::io`.
    pub fn inside(error: &io::Error) -> Option<&EncryptionError> {
        error.get_ref().and_then(|inner| inner.downcast_ref::<EncryptionError>())
    }

    pub(super) fn disk(file: &Path, error: DiskError) -> EncryptionError {
        EncryptionError::new(file, 0, EncryptionProblem::Disk(error))
    }
}

impl Display for EncryptionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let EncryptionProblem::Disk(error) = &self.problem {
            return write!(f, "{error}");
        }
        write!(f, "{} at offset {}: ", super::shown(&self.file), self.offset)?;
        match &self.problem {
            EncryptionProblem::Disk(_) => Ok(()),
            EncryptionProblem::NoKey => {
                write!(f, "it is encrypted, but no key is given; set `encryption-key-file` or {KEY_VARIABLE}")
            }
            EncryptionProblem::WrongKey(fingerprint) => write!(
                f,
                "it is encrypted with a key of fingerprint {fingerprint}, which is not given; add that key \
                 to the key file, after the current one"
            ),
            EncryptionProblem::NotBuilt => {
                f.write_str("it is encrypted, and this program was built without the feature `encryption`")
            }
            EncryptionProblem::Version(version) => {
                write!(f, "its encryption is of the unknown version {version}; use a newer program")
            }
            EncryptionProblem::Truncated => {
                f.write_str("it is truncated: its last chunk is missing; restore a backup")
            }
            EncryptionProblem::TooLong => f.write_str("it has data after its last chunk; restore a backup"),
            EncryptionProblem::Moved { from } => write!(
                f,
                "its chunks were moved or removed: this one was written at offset {from}; restore a backup"
            ),
            EncryptionProblem::Altered => {
                f.write_str("it was altered: a chunk differs from what was written; restore a backup")
            }
        }
    }
}

impl std::error::Error for EncryptionError {}

impl From<EncryptionError> for io::Error {
    fn from(error: EncryptionError) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, error)
    }
}
