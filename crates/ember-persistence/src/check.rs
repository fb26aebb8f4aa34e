//! Checks the integrity of files and reports their contents.

use std::fmt::{self, Display};
use std::io;
use std::path::{Path, PathBuf};

use ember_protocol::OwnedBatch;
use emberkv_core::rdb::Target;
use emberkv_core::types::limits::EncodingLimits;

use crate::aof::{AofError, AofReader, Manifest, Part, TornEnd};
use crate::encryption::{Encryption, EncryptionError, Ending, FileSource, is_encrypted};
use crate::files::{Disk, DiskError, directory_of, read_whole};
use crate::rdb_file::{Batch, RdbError, RdbProblem, RdbReader, SkippedData, Source, Step, VersionCheck};
use crate::unsupported_features::UnsupportedFeatures;

/// The reason why a file cannot be checked, repaired or converted.
#[derive(Debug)]
pub enum FileError {
    /// A disk operation failed.
    Disk(DiskError),
    /// The file cannot be decrypted.
    Encryption(EncryptionError),
    /// The RDB part of the file is damaged or cannot be read.
    Rdb(RdbError),
    /// The commands in the file are damaged or cannot be read.
    Aof(AofError),
    /// The file is neither an RDB file nor an AOF.
    Unknown(PathBuf),
    /// The target file already exists; the tools overwrite nothing.
    Exists(PathBuf),
    /// The server that is to read the copy lacks features that the file uses.
    UnsupportedFeatures(PathBuf, Target, UnsupportedFeatures),
    /// Reading or writing failed during a copy.
    Copy(PathBuf, io::Error),
}

impl Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FileError::Disk(error) => write!(f, "{error}"),
            FileError::Encryption(error) => write!(f, "{error}"),
            FileError::Rdb(error) => write!(f, "{error}"),
            FileError::Aof(error) => write!(f, "{error}"),
            FileError::Unknown(path) => write!(
                f,
                "{} is not an RDB file, AOF or manifest; check that this is the right file",
                path.display()
            ),
            FileError::Exists(path) => {
                write!(f, "{} already exists and is not overwritten; choose another name", path.display())
            }
            FileError::UnsupportedFeatures(path, target, unsupported) => write!(
                f,
                "{}: {} has no {unsupported}; --leave-out copies the rest",
                path.display(),
                target.name()
            ),
            FileError::Copy(path, error) => write!(f, "{}: {error}", path.display()),
        }
    }
}

impl std::error::Error for FileError {}

impl FileError {
    /// Whether the error is that a file differs from the bytes written to it or is missing from its AOF, rather than
    /// that it is unreadable or of an unknown type.
    pub fn is_damage(&self) -> bool {
        match self {
            FileError::Encryption(error) => error.problem.is_damage(),
            FileError::Rdb(error) => error.problem.is_damage(),
            FileError::Aof(error) => {
                let is_incomplete = matches!(
                    error,
                    AofError::Manifest { .. } | AofError::Missing(_) | AofError::NoManifest(_)
                );
                is_incomplete || error.is_damage()
            }
            FileError::Disk(_)
            | FileError::Unknown(_)
            | FileError::Exists(_)
            | FileError::UnsupportedFeatures(..)
            | FileError::Copy(..) => false,
        }
    }
}

impl From<DiskError> for FileError {
    fn from(error: DiskError) -> FileError {
        FileError::Disk(error)
    }
}

impl From<EncryptionError> for FileError {
    fn from(error: EncryptionError) -> FileError {
        FileError::Encryption(error)
    }
}

impl From<RdbError> for FileError {
    fn from(error: RdbError) -> FileError {
        FileError::Rdb(error)
    }
}

impl From<AofError> for FileError {
    fn from(error: AofError) -> FileError {
        FileError::Aof(error)
    }
}

/// The type and contents of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The path of the file.
    pub file: PathBuf,
    /// The stored size of the file in bytes.
    pub size: u64,
    /// Whether the file is encrypted.
    pub is_encrypted: bool,
    /// The contents of the RDB part, if the file has one.
    pub rdb: Option<RdbFacts>,
    /// The contents of the AOF part, if the file has one.
    pub commands: Option<CommandFacts>,
}

/// The contents of an RDB file or of the RDB part of an AOF.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RdbFacts {
    /// The version of the RDB format.
    pub version: u16,
    /// Number of keys.
    pub keys: u64,
    /// Number of keys with an expiry.
    pub expiring: u64,
    /// Number of further keys whose values have no elements: the server skips them when it loads the file.
    pub empty: u64,
    /// Number of function libraries.
    pub functions: u64,
    /// The aux fields: name and value of each.
    pub aux: Vec<(Vec<u8>, Vec<u8>)>,
    /// The data of modules that the server skips when it loads the file.
    pub skipped: Vec<SkippedData>,
    /// The end of the RDB part, as an offset in the plain contents.
    pub end: u64,
}

/// The commands in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CommandFacts {
    /// Number of commands, without MULTI and EXEC.
    pub commands: u64,
    /// Number of units: transactions, and single commands outside of transactions.
    pub units: u64,
    /// The first and the last timestamp, Unix time in s.
    pub times: Option<(i64, i64)>,
    /// Whether ember wrote the commands, so that its batches have checksums.
    pub is_checked: bool,
    /// The torn end of the file, if there is one.
    pub torn: Option<TornEnd>,
}

/// Reads a whole file and builds every value in it.
///
/// # Errors
/// Returns an error for any problem with the file. A torn end is not an error if the file may have one.
pub fn check_file(
    disk: &dyn Disk,
    path: &Path,
    encryption: &Encryption,
    ending: Ending,
) -> Result<Report, FileError> {
    let file = disk.open_to_read(path)?;
    let mut report = Report {
        file: path.to_owned(),
        size: file.size()?,
        is_encrypted: is_encrypted(file.as_ref())?,
        ..Report::default()
    };
    let opened = encryption.open(file, ending)?;
    let mut source = match AofReader::split(opened, path, EncodingLimits::DEFAULT, VersionCheck::Strict)? {
        Err(source) => source,
        Ok(mut rdb) => {
            report.rdb = Some(check_rdb(&mut rdb)?);
            rdb.into_source()
        }
    };
    if report.rdb.is_none() {
        refuse_unknown(&mut source, path)?;
    } else if next_byte(&mut source, path)?.is_none() {
        return Ok(report);
    }
    report.commands = Some(check_commands(source, path, ending)?);
    Ok(report)
}

/// Returns an error if the contents of a file without an RDB part do not begin like AOF commands.
pub(crate) fn refuse_unknown(source: &mut Source<FileSource>, path: &Path) -> Result<(), FileError> {
    match next_byte(source, path)? {
        None | Some(b'*' | b'#') => Ok(()),
        Some(_) => Err(FileError::Unknown(path.to_owned())),
    }
}

fn next_byte(source: &mut Source<FileSource>, path: &Path) -> Result<Option<u8>, FileError> {
    let next = source.buffered().map_err(|cause| {
        let offset = 0;
        AofError::Unreadable { file: path.to_owned(), offset, cause }
    })?;
    Ok(next.first().copied())
}

fn check_rdb<R: io::Read>(reader: &mut RdbReader<R>) -> Result<RdbFacts, RdbError> {
    let mut facts = RdbFacts { version: reader.version(), ..RdbFacts::default() };
    let mut batch = Batch::new();
    loop {
        match reader.next(&mut batch)? {
            Step::Keys => {
                for index in 0..batch.len() {
                    match batch.take(index, &EncodingLimits::DEFAULT) {
                        Err(RdbError { problem: RdbProblem::EmptyValue, .. }) => {
                            facts.empty += 1;
                            continue;
                        }
                        value => drop(value?),
                    }
                    facts.keys += 1;
                    facts.expiring += u64::from(batch.key(index).1.expire_at_ms.is_some());
                }
            }
            Step::Aux { name, value } => facts.aux.push((name, value)),
            Step::Function(_) => facts.functions += 1,
            Step::Sizes { .. } => {}
            Step::Skipped(data) => facts.skipped.push(data),
            Step::End => {
                facts.end = reader.offset();
                return Ok(facts);
            }
        }
    }
}

fn check_commands(source: Source<FileSource>, path: &Path, ending: Ending) -> Result<CommandFacts, AofError> {
    let mut reader = AofReader::new(source, path, ending);
    let mut facts = CommandFacts::default();
    let mut unit = OwnedBatch::new();
    loop {
        match reader.next(&mut unit)? {
            Part::Unit => {
                facts.units += 1;
                facts.commands += unit.len() as u64;
            }
            Part::Time(at_s) => {
                let first = facts.times.map_or(at_s, |(first, _)| first);
                facts.times = Some((first, at_s));
            }
            Part::Origin(_) => {}
            Part::End => {
                facts.is_checked = reader.is_checked();
                facts.torn = reader.torn_end();
                return Ok(facts);
            }
        }
    }
}

/// The files of an AOF as listed in its manifest. Unlike at server startup, nothing on the disk is changed.
#[derive(Clone, Debug)]
pub struct Listing {
    /// The manifest.
    pub manifest: Manifest,
    /// The paths of the files to load, in order.
    pub files: Vec<PathBuf>,
}

/// Opens the AOF of a manifest for reading.
///
/// # Errors
/// Returns an error if `path` does not have a manifest's name, the manifest is invalid, or a file that it names is
/// missing; and errors of the disk.
pub fn open_manifest(disk: &dyn Disk, path: &Path) -> Result<Listing, FileError> {
    let name =
        path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".manifest"));
    let name = name.ok_or_else(|| FileError::Unknown(path.to_owned()))?;
    let manifest = Manifest::parse(&read_whole(disk, path, Manifest::MAX_BYTES)?)
        .map_err(|error| AofError::Manifest { file: path.to_owned(), error })?;
    let directory = directory_of(path);
    let mut files = Vec::new();
    for file in manifest.live() {
        let mut candidates = vec![directory.join(&file.name)];
        if file.name == name {
            // During its adoption as a base, a single-file AOF is still next to the directory.
            candidates.push(directory_of(directory).join(name));
        }
        let mut found = None;
        for candidate in &candidates {
            match disk.open_to_read(candidate) {
                Ok(_) => found = found.or(Some(candidate)),
                Err(error) if error.is_missing() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let found = found.ok_or_else(|| AofError::Missing(candidates[0].clone()))?;
        files.push(found.clone());
    }
    Ok(Listing { manifest, files })
}

/// Reads all files of the AOF with this manifest, in order, and returns the contents or the error of each file. Only
/// the last file may have a torn end.
///
/// # Errors
/// Returns the errors of [`open_manifest`].
pub fn check_aof(
    disk: &dyn Disk,
    manifest: &Path,
    encryption: &Encryption,
) -> Result<Vec<Result<Report, FileError>>, FileError> {
    let Listing { manifest, files } = open_manifest(disk, manifest)?;
    let checked = manifest.live().zip(&files).zip(endings(files.len()));
    let checked = checked.map(|((file, path), ending)| {
        file.check_size(path, disk.open_to_read(path)?.size()?)?;
        check_file(disk, path, encryption, ending)
    });
    Ok(checked.collect())
}

/// Returns, for each of the `count` files of an AOF, how the file may end.
pub(crate) fn endings(count: usize) -> impl Iterator<Item = Ending> {
    (1..=count).map(move |number| if number == count { Ending::MayBeTorn } else { Ending::Whole })
}
