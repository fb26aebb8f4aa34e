//! What can be wrong with an RDB file.

use std::fmt::{self, Display};
use std::io;
use std::path::PathBuf;

use emberkv_core::rdb::{LoadError, VERSION_MAX};

use crate::encryption::EncryptionError;
use crate::repair::repair_command;

/// An RDB file cannot be read.
#[derive(Debug)]
pub struct RdbError {
    /// Which.
    pub file: PathBuf,
    /// Where: bytes before what is wrong. For encrypted files of what was encrypted.
    pub offset: u64,
    /// What is wrong there.
    pub problem: RdbProblem,
}

/// What is wrong.
#[derive(Debug)]
pub enum RdbProblem {
    /// It cannot be read; with encrypted files also that it is not what was written.
    Io(io::Error),
    /// It ends too early.
    Truncated,
    /// It does not begin as an RDB file.
    NotRdb,
    /// Its version is not known.
    Version(u16),
    /// It contradicts itself; in words how.
    Corrupt(&'static str),
    /// A value of a kind that is not known.
    UnknownKind(u8),
    /// A value without elements: a key that is skipped when data are loaded.
    EmptyValue,
    /// Data that only a module can read; its name.
    Module(String),
    /// A function as release candidates of Redis 7.0 wrote them.
    FunctionOfCandidate,
    /// The checksum at its end is not that of its bytes.
    Checksum {
        /// Of the bytes.
        computed: u64,
        /// In the file.
        stored: u64,
    },
    /// A key is there twice.
    DuplicateKey(Vec<u8>),
    /// A database that is not there.
    Database(u64),
    /// What was read was not taken; in words why.
    Refused(String),
}

impl RdbProblem {
    /// What can be done about it.
    ///
    /// For damage see [`repair_command`] too.
    pub fn advice(&self) -> &'static str {
        match self {
            RdbProblem::Io(_) if !self.is_damage() => "check the disk and the system's log",
            // What is inside says it already.
            RdbProblem::Io(_) => "",
            RdbProblem::Truncated
            | RdbProblem::Corrupt(_)
            | RdbProblem::EmptyValue
            | RdbProblem::Checksum { .. }
            | RdbProblem::DuplicateKey(_) => "restore a backup",
            RdbProblem::NotRdb => "check that this is the right file, and whether it is encrypted",
            RdbProblem::Version(_) | RdbProblem::UnknownKind(_) => {
                "a newer server wrote it: load it there, or have that server write an older form"
            }
            RdbProblem::Module(_) => "remove the module's keys with the server that wrote it and save again",
            RdbProblem::FunctionOfCandidate => {
                "load it with the server that wrote it, delete its functions and save again"
            }
            RdbProblem::Database(_) => "raise `databases`",
            RdbProblem::Refused(_) => "see the message before",
        }
    }

    /// Whether the bytes are damaged, as against unknown or unreadable.
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
            RdbProblem::UnknownKind(kind) => write!(f, "a value is of the unknown kind {kind}"),
            RdbProblem::EmptyValue => f.write_str("a value has no elements"),
            RdbProblem::Module(name) => {
                write!(f, "there is data of the module '{name}', which cannot be read")
            }
            RdbProblem::FunctionOfCandidate => {
                f.write_str("there is a function in the form of a release candidate of Redis 7.0")
            }
            RdbProblem::Checksum { computed, stored } => {
                write!(
                    f,
                    "RDB CRC error: the checksum is {stored:016x} but that of the bytes is {computed:016x}"
                )
            }
            RdbProblem::DuplicateKey(key) => write!(f, "the key '{}' is there twice", key.escape_ascii()),
            RdbProblem::Database(number) => write!(f, "there is no database {number}"),
            RdbProblem::Refused(why) => f.write_str(why),
        }
    }
}

/// The alternate form (`{:#}`) says what is wrong without what can be done.
impl Display for RdbError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RdbError { file, offset, problem } = self;
        match problem {
            // It says the file itself, and where in the file as it is stored.
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
            write!(f, ", or keep what is good with `{}`", repair_command(file))?;
        }
        Ok(())
    }
}

impl std::error::Error for RdbError {}

impl From<io::Error> for RdbProblem {
    fn from(error: io::Error) -> RdbProblem {
        match error.kind() {
            // An error of a lower layer says more.
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
