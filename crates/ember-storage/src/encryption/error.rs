//! What can be wrong with an encrypted file.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use super::KEY_VARIABLE;
use crate::files::DiskError;

/// An encrypted file cannot be read.
#[derive(Debug)]
pub struct EncryptionError {
    /// Which.
    pub file: PathBuf,
    /// Where in the file, as it is stored.
    pub offset: u64,
    /// What is wrong there.
    pub problem: EncryptionProblem,
}

/// What is wrong.
#[derive(Debug)]
pub enum EncryptionProblem {
    /// It cannot be read.
    Disk(DiskError),
    /// It is encrypted, and there is no key.
    NoKey,
    /// It is encrypted with another key; that one's fingerprint.
    WrongKey(String),
    /// This program was built without encryption.
    NotBuilt,
    /// Its version is not known.
    Version(u8),
    /// It ends before its last chunk.
    Truncated,
    /// There is something behind its last chunk.
    TooLong,
    /// A chunk of it stands in another's place.
    Moved {
        /// Where it was written.
        from: u64,
    },
    /// Some bits are not what was written.
    Altered,
}

impl EncryptionProblem {
    /// Whether the file is not what was written, as against unreadable.
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

    /// Whether an error of reading says that an encrypted file is not what was written, as against unreadable.
    pub fn is_damage(error: &io::Error) -> bool {
        EncryptionError::inside(error).is_some_and(|error| error.problem.is_damage())
    }

    /// The error of an encrypted file inside one of `std::io`.
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
            EncryptionProblem::NoKey => write!(
                f,
                "it is encrypted and no key is given; name its file with `encryption-key-file` or set {KEY_VARIABLE}"
            ),
            EncryptionProblem::WrongKey(fingerprint) => write!(
                f,
                "it is encrypted with a key of fingerprint {fingerprint}, which is not given; add that key to the \
                 key file, behind the current one"
            ),
            EncryptionProblem::NotBuilt => {
                f.write_str("it is encrypted, and this program was built without the feature `encryption`")
            }
            EncryptionProblem::Version(version) => {
                write!(f, "its encryption is of the unknown version {version}; use a newer program")
            }
            EncryptionProblem::Truncated => {
                f.write_str("it has been cut short: its last chunk is missing; restore a backup")
            }
            EncryptionProblem::TooLong => {
                f.write_str("there is something behind its last chunk; restore a backup")
            }
            EncryptionProblem::Moved { from } => write!(
                f,
                "its chunks have been moved or left out: the one there was written at offset {from}; restore a backup"
            ),
            EncryptionProblem::Altered => {
                f.write_str("it has been altered: a chunk is not what was written; restore a backup")
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
