//! Errors of restoring, which name the moments that can be restored.

use std::fmt::{self, Display};
use std::path::PathBuf;

use ember_protocol::moment::format_moment;

use crate::aof::AofError;
use crate::check::FileError;
use crate::encryption::EncryptionError;
use crate::files::DiskError;
use crate::rdb_file::RdbError;

/// The first and the last moment that the files contain, as Unix times in s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// The earliest moment that can be restored.
    pub oldest_s: i64,
    /// The last timestamp.
    pub newest_s: i64,
}

impl Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Range { oldest_s, newest_s } = *self;
        let (oldest, newest) = (format_moment(oldest_s), format_moment(newest_s));
        write!(f, "from {oldest} ({oldest_s}) to {newest} ({newest_s})")
    }
}

/// The reason why a moment cannot be restored, although all files are intact. All times are Unix times in s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unknown {
    /// The moment is later than now.
    Future,
    /// The moment is earlier than the oldest data.
    TooOld,
    /// The AOF was off, or an increment was lost, so that changes between these times are missing.
    Gap {
        /// The last timestamp before the gap, if there is one.
        after_s: Option<i64>,
        /// The time of the data after the gap, if it is known.
        before_s: Option<i64>,
    },
    /// There are changes between these times whose own times are not known.
    Undated {
        /// The last known time before the changes.
        after_s: Option<i64>,
        /// The first known time after the changes.
        before_s: Option<i64>,
    },
}

/// The reason why a data set cannot be restored.
#[derive(Debug)]
pub enum RestoreError {
    /// A file cannot be read or written, or is damaged.
    File(FileError),
    /// A file contains a command that cannot be run.
    Command {
        /// The path of the file.
        file: PathBuf,
        /// The offset after the command.
        offset: u64,
        /// The command and its error.
        what: String,
    },
    /// The files do not determine the data set of this moment.
    Moment {
        /// The moment, as Unix time in s.
        to_s: i64,
        /// The reason.
        why: Unknown,
        /// What the files contain; `None` if they contain no time.
        range: Option<Range>,
    },
    /// The operating system provides no random numbers for the hash function of keys.
    Random(String),
}

impl Display for RestoreError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RestoreError::File(error) => write!(f, "{error}"),
            RestoreError::Random(error) => write!(f, "{error}"),
            RestoreError::Command { file, offset, what } => {
                write!(f, "{} before offset {offset}: {what}; restore a backup", file.display())
            }
            RestoreError::Moment { to_s, why, range } => {
                write!(f, "{} ({to_s}) cannot be restored: {why}; ", format_moment(*to_s))?;
                match range {
                    Some(range) => write!(f, "the files contain {range}"),
                    None => write!(
                        f,
                        "the files contain no times: set aof-keep-seconds, so that the server writes them"
                    ),
                }
            }
        }
    }
}

impl Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let between = |f: &mut fmt::Formatter<'_>, after_s: Option<i64>, before_s: Option<i64>| {
            if let Some(after_s) = after_s {
                write!(f, " after {}", format_moment(after_s))?;
            }
            before_s.map_or(Ok(()), |before_s| write!(f, " until {}", format_moment(before_s)))
        };
        match *self {
            Unknown::Future => write!(f, "it is in the future"),
            Unknown::TooOld => write!(f, "it is before the oldest data"),
            Unknown::Gap { after_s, before_s } => {
                write!(f, "changes are missing")?;
                between(f, after_s, before_s)?;
                write!(f, ", because the AOF was off or could not be written")
            }
            Unknown::Undated { after_s, before_s } => {
                write!(f, "there are changes without times")?;
                between(f, after_s, before_s)?;
                write!(f, ", because aof-keep-seconds and aof-timestamp-enabled were off")
            }
        }
    }
}

impl std::error::Error for RestoreError {}

impl RestoreError {
    /// Whether the error is that a file differs from the bytes written to it or is missing.
    pub fn is_damage(&self) -> bool {
        match self {
            RestoreError::File(error) => error.is_damage(),
            RestoreError::Command { .. } => true,
            RestoreError::Moment { .. } | RestoreError::Random(_) => false,
        }
    }
}

impl From<FileError> for RestoreError {
    fn from(error: FileError) -> RestoreError {
        RestoreError::File(error)
    }
}

impl From<DiskError> for RestoreError {
    fn from(error: DiskError) -> RestoreError {
        RestoreError::File(error.into())
    }
}

impl From<AofError> for RestoreError {
    fn from(error: AofError) -> RestoreError {
        RestoreError::File(error.into())
    }
}

impl From<RdbError> for RestoreError {
    fn from(error: RdbError) -> RestoreError {
        RestoreError::File(error.into())
    }
}

impl From<EncryptionError> for RestoreError {
    fn from(error: EncryptionError) -> RestoreError {
        RestoreError::File(error.into())
    }
}
