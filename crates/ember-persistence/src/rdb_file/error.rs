//! Errors of RDB files.

use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;

use emberkv_core::rdb::{LoadError, VERSION_MAX};

use crate::encryption::EncryptionError;
use crate::repair::repair_command;

/// The reason why an RDB file cannot be read.
#[derive(Debug)]
pub struct RdbError {
    /// The path of the file.
    pub file: PathBuf,
    /// The offset of the problem; in an encrypted file, the offset in the plain contents.
    pub offset: u64,
    /// The problem at that offset.
    pub problem: RdbProblem,
}

/// The problem with an RDB file.
#[derive(Debug)]
pub enum RdbProblem {
    /// Reading has failed; for an encrypted file, possibly because its bytes differ from the written ones.
    Io(io::Error),
    /// The file ends too early.
    Truncated,
    /// The file does not begin like an RDB file.
    NotRdb,
    /// The file has this version, which is unknown.
    Version(u16),
    /// The contents are inconsistent; the text describes how.
    Corrupt(&'static str),
    /// The type byte of a value is unknown.
    UnknownKind(u8),
    /// A value has no elements. The server skips such a key when it loads a file.
    EmptyValue,
    /// The file contains data that only the module with this name can read.
    Module(String),
    /// The file contains a function in the format of release candidates of Redis 7.0.
    FunctionOfCandidate,
    /// The checksum at the end of the file does not match its contents.
    Checksum {
        /// The checksum computed from the contents.
        computed: u64,
        /// The checksum stored in the file.
        stored: u64,
    },
    /// The file contains this key twice, or the key already exists.
    DuplicateKey(Vec<u8>),
    /// The file contains keys of a database with this number, which does not exist.
    Database(u64),
    /// The caller refused the data; the text gives the reason.
    Refused(String),
}

impl RdbProblem {
    /// Returns advice for the operator. For damage, see also [`repair_command`].
    pub fn advice(&self) -> &'static str {
        match self {
            RdbProblem::Io(_) if !self.is_damage() => "check the disk and the system's log",
            // The inner error contains the advice.
            RdbProblem::Io(_) => "",
            RdbProblem::Truncated
            | RdbProblem::Corrupt(_)
            | RdbProblem::EmptyValue
            | RdbProblem::Checksum { .. }
            | RdbProblem::DuplicateKey(_) => "restore a backup",
            RdbProblem::NotRdb => "check that this is the right file, and whether it is encrypted",
            RdbProblem::Version(_) | RdbProblem::UnknownKind(_) => {
                "it was written by a newer server: load it there, or let that server write an older format"
            }
            RdbProblem::Module(_) => {
                "remove the module's keys with the server that wrote it and save again, or skip them with \
                 `rdb-skip-unknown-modules yes`"
            }
            RdbProblem::FunctionOfCandidate => {
                "load it with the server that wrote it, delete its functions and save again"
            }
            RdbProblem::Database(_) => "raise `databases`",
            RdbProblem::Refused(_) => "see the message before",
        }
    }

    /// Whether the bytes of the file are damaged, rather than unreadable or in an unknown format.
    pub fn is_damage(&self) -> bool {
        if let RdbProblem::Io(error) = self {
            return EncryptionError::is_damage(error);
        }
        matches!(
            self,
            RdbProblem::Truncated
                | RdbProblem::Corrupt(_)
                | RdbProblem::Checksum { .. }
                | RdbProblem::DuplicateKey(_)
                | RdbProblem::UnknownKind(_)
                | RdbProblem::EmptyValue
        )
    }
}

impl Display for RdbProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RdbProblem::Io(error) => write!(f, "{error}"),
            RdbProblem::Truncated => f.write_str("the file ends too early"),
            RdbProblem::NotRdb => {
                f.write_str("this is not an RDB file: it does not begin with REDIS and a version")
            }
            RdbProblem::Version(version) => {
                write!(
                    f,
                    "the format's version is {version}; versions 1 to {VERSION_MAX} are read, and 80 of Valkey"
                )
            }
            RdbProblem::Corrupt(what) => f.write_str(what),
            RdbProblem::UnknownKind(kind) => write!(f, "a value has the unknown type {kind}"),
            RdbProblem::EmptyValue => f.write_str("a value has no elements"),
            RdbProblem::Module(name) => {
                write!(f, "it contains data of the module '{name}', which cannot be read")
            }
            RdbProblem::FunctionOfCandidate => {
                f.write_str("it contains a function in the format of a release candidate of Redis 7.0")
            }
            RdbProblem::Checksum { computed, stored } => {
                write!(
                    f,
                    "RDB CRC error: the checksum is {stored:016x} but that of the bytes is {computed:016x}"
                )
            }
            RdbProblem::DuplicateKey(key) => write!(f, "the key '{}' occurs twice", key.escape_ascii()),
            RdbProblem::Database(number) => write!(f, "there is no database {number}"),
            RdbProblem::Refused(why) => f.write_str(why),
        }
    }
}

/// The alternate form (`{:#}`) describes the problem without advice on how to solve it.
impl Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RdbError { file, offset, problem } = self;
        match problem {
            // The inner error already contains the path and the stored offset.
            RdbProblem::Io(error) if problem.is_damage() => write!(f, "{error}")?,
            _ => write!(f, "{} at offset {offset}: {problem}", file.display())?,
        }
        if f.alternate() {
            return Ok(());
        }
        if !problem.advice().is_empty() {
            write!(f, "; {}", problem.advice())?;
        }
        if problem.is_damage() {
            write!(f, ", or keep the intact part with `{}`", repair_command(file))?;
        }
        Ok(())
    }
}

impl std::error::Error for RdbError {}

impl From<io::Error> for RdbProblem {
    fn from(error: io::Error) -> RdbProblem {
        match error.kind() {
            // An error of a lower layer contains more details than `Truncated`.
            io::ErrorKind::UnexpectedEof if error.get_ref().is_none() => RdbProblem::Truncated,
            _ => RdbProblem::Io(error),
        }
    }
}

impl From<LoadError> for RdbProblem {
    fn from(error: LoadError) -> RdbProblem {
        match error {
            LoadError::Io(error) => error.into(),
            LoadError::Corrupt(what) => RdbProblem::Corrupt(what),
            LoadError::UnknownKind(kind) => RdbProblem::UnknownKind(kind),
            LoadError::Empty => RdbProblem::EmptyValue,
        }
    }
}
