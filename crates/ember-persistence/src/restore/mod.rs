//! Restores the data set of an AOF to an earlier moment, from the files that the server loads and those that it keeps
//! (`aof-keep-seconds`).
//!
//! ```text
//!             base 1 ─ incr 1 ─ incr 2 ─ base 2 ─ incr 3 ─ base 3 ─ incr 4
//!                                          ↑ the newest base that is not later than the moment is loaded,
//!                                             └──↑ then the increments up to the first later timestamp
//! ```
//!
//! **Precision.** Timestamps are in seconds: the result is the state at the end of the second that contains the moment.
//! Units are never cut: a transaction is restored as a whole or not at all.
//!
//! **Exact, or an error.** If the files do not determine the data set of the moment, the result is an error that names
//! the moments that they contain: changes between two chains of increments are missing ([`segments`]), and changes
//! before a file's first timestamp have no known time. A base is used only for moments that are not earlier than its
//! time, because it contains all changes up to then.
//!
//! **Expiry.** Nothing expires during the replay. Keys that have expired since the moment are written like all others,
//! but a server that loads the file does not load them.

mod error;
mod replay;
mod segments;

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ember_protocol::{Args, OwnedBatch};
pub use emberkv_core::keyspace::expiry::DATABASES_MAX;
use emberkv_core::keyspace::shard::ShardData;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions, SHARDS};
use emberkv_core::rdb::KeyFacts;
use emberkv_core::types::limits::EncodingLimits;

use crate::aof::{AofError, AofFile, AofReader, Manifest, Part, TornEnd, is_base};
use crate::check::FileError;
use crate::encryption::{Encryption, Ending, FileSink, FileSource, is_encrypted};
use crate::files::{Disk, directory_of, read_whole};
use crate::key_writer::KeyWriter;
use crate::rdb_file::{
    self, Batch, FILE_VERSION, RdbReader, RdbWriter, SaveOptions, Step, VersionCheck, Written,
};
use crate::repair::refuse_present;
pub use error::{Range, RestoreError, Unknown};
use replay::Player;
use segments::{Segment, segments};

/// The libraries of functions, as far as a replay needs them: their texts.
pub trait LibraryTexts {
    /// Adds the library with this code.
    ///
    /// # Errors
    /// Returns an error if the code is not that of a library.
    fn add(&mut self, code: &[u8]) -> Result<(), String>;

    /// Applies a change: a call of FUNCTION with a subcommand.
    ///
    /// # Errors
    /// Returns an error if the call changes no libraries.
    fn change(&mut self, args: Args<'_>) -> Result<(), String>;

    /// Returns the code of each library.
    fn codes(&self) -> Vec<Vec<u8>>;
}

/// The data set to restore.
#[derive(Clone, Copy, Debug)]
pub struct Target<'t> {
    /// The path of the AOF's manifest.
    pub manifest: &'t Path,
    /// The moment, as Unix time in s.
    pub to_s: i64,
    /// The present time, as Unix time in s.
    pub now_s: i64,
    /// The keys of encrypted files.
    pub encryption: &'t Encryption,
    /// The number of databases, 1..=[`DATABASES_MAX`].
    pub databases: usize,
}

/// The files and the time that a restored data set is from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    /// The base that was loaded; `None` if the AOF began empty.
    pub base: Option<PathBuf>,
    /// The increments that were read, in order.
    pub increments: Vec<PathBuf>,
    /// The last timestamp that is not after the moment, or the time of the base, as Unix time in s; `None` without one.
    pub last_s: Option<i64>,
    /// The number of commands that were run.
    pub commands: u64,
    /// The number of commands of Redis's files that have failed, as they did when they first ran, and the first one.
    pub failed: (u64, Option<String>),
    /// The torn end of the last file, if the moment is after it.
    pub torn: Option<TornEnd>,
    /// Whether one of the files is encrypted.
    pub is_encrypted: bool,
}

/// A restored data set.
pub struct Restored {
    keyspace: Keyspace,
    /// What the data set was restored from.
    pub origin: Origin,
}

/// The numbers of keys in a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// All keys.
    pub total: u64,
    /// Keys whose expiry has passed at the present time: a server does not load them.
    pub expired: u64,
}

/// Builds the data set of a moment in memory; `libraries` receives its functions.
///
/// # Errors
/// Returns an error for any problem with the files that are needed, and [`RestoreError::Moment`] if they do not
/// determine the data set.
pub fn restore(
    disk: &dyn Disk,
    target: &Target<'_>,
    libraries: &mut dyn LibraryTexts,
) -> Result<Restored, RestoreError> {
    let files = Files::open(disk, target)?;
    let all = segments(&files.manifest, files.name);
    if target.to_s > target.now_s {
        return Err(files.unknown(&all, Unknown::Future));
    }
    let options = KeyspaceOptions { databases: target.databases, ..KeyspaceOptions::default() };
    let keyspace = Keyspace::new(&options).map_err(|error| RestoreError::Random(error.to_string()))?;
    let found = Run::new(&files, &keyspace, libraries).all(&all)?;
    let origin = found.map_err(|why| files.unknown(&all, why))?;
    Ok(Restored { keyspace, origin })
}

/// The manifest, and access to the files that it names.
struct Files<'f> {
    disk: &'f dyn Disk,
    target: &'f Target<'f>,
    directory: &'f Path,
    /// The prefix of the names of the AOF's files.
    name: &'f str,
    manifest: Manifest,
}

/// A file that is being read: its RDB part, or its commands.
type Opened = Result<RdbReader<FileSource>, AofReader<FileSource>>;

impl<'f> Files<'f> {
    fn open(disk: &'f dyn Disk, target: &'f Target<'f>) -> Result<Files<'f>, RestoreError> {
        let path = target.manifest;
        let name =
            path.file_name().and_then(|name| name.to_str()).and_then(|name| name.strip_suffix(".manifest"));
        let name = name.ok_or_else(|| FileError::Unknown(path.to_owned()))?;
        let manifest = Manifest::parse(&read_whole(disk, path, Manifest::MAX_BYTES)?)
            .map_err(|error| AofError::Manifest { file: path.to_owned(), error })?;
        Ok(Files { disk, target, directory: directory_of(path), name, manifest })
    }

    fn path(&self, file: &AofFile) -> PathBuf {
        self.directory.join(&file.name)
    }

    /// Opens a file; [`AofError::Missing`] if the manifest names a file that does not exist.
    fn reader(&self, file: &AofFile, ending: Ending) -> Result<Opened, RestoreError> {
        let path = self.path(file);
        let stored = match self.disk.open_to_read(&path) {
            Err(error) if error.is_missing() => return Err(AofError::Missing(path).into()),
            opened => opened?,
        };
        if ending == Ending::Whole {
            file.check_size(&path, stored.size()?)?;
        }
        let opened = self.target.encryption.open(stored, ending)?;
        Ok(match AofReader::split(opened, &path, EncodingLimits::DEFAULT, VersionCheck::Strict)? {
            Ok(rdb) => Ok(rdb),
            Err(source) => Err(AofReader::new(source, &path, ending)),
        })
    }

    /// Returns the time of a base: that of the manifest; otherwise the one in its RDB part, or its first timestamp if
    /// that precedes its commands. `None` if it has none, or does not exist any more.
    fn time_of(&self, base: &AofFile) -> Result<Option<i64>, RestoreError> {
        let path = self.path(base);
        match self.disk.open_to_read(&path) {
            Err(error) if error.is_missing() => return Ok(None),
            opened => drop(opened?),
        }
        if base.time_s.is_some() {
            return Ok(base.time_s);
        }
        match self.reader(base, Ending::Whole)? {
            Ok(mut rdb) => creation_time(&mut rdb),
            Err(mut commands) => Ok(match commands.next(&mut OwnedBatch::new())? {
                Part::Time(at_s) => Some(at_s),
                Part::Unit | Part::Origin(_) | Part::End => None,
            }),
        }
    }

    /// Returns the error for a moment that the files do not determine.
    fn unknown(&self, segments: &[Segment<'_>], why: Unknown) -> RestoreError {
        RestoreError::Moment { to_s: self.target.to_s, why, range: self.range(segments) }
    }

    /// Returns the times of the oldest data and of the last change; `None` if a file cannot be read.
    fn range(&self, segments: &[Segment<'_>]) -> Option<Range> {
        let begin = |segment: &Segment<'_>| match segment.base {
            Some(base) => self.time_of(base).ok().flatten(),
            None => segment.increments.iter().find_map(|file| self.first_time(file)),
        };
        let oldest_s = segments.iter().find_map(begin)?;
        let end = |segment: &Segment<'_>| {
            let of_increments = segment.increments.iter().rev().find_map(|file| self.last_time(file));
            of_increments.or_else(|| begin(segment))
        };
        let newest_s = segments.iter().rev().find_map(end)?;
        Some(Range { oldest_s, newest_s: newest_s.max(oldest_s) })
    }

    /// Returns the timestamp that precedes all commands of an increment, if there is one.
    fn first_time(&self, file: &AofFile) -> Option<i64> {
        let Err(mut commands) = self.reader(file, Ending::MayBeTorn).ok()? else { return None };
        match commands.next(&mut OwnedBatch::new()) {
            Ok(Part::Time(at_s)) => Some(at_s),
            _ => None,
        }
    }

    /// Returns the last timestamp of an increment, if there is one.
    fn last_time(&self, file: &AofFile) -> Option<i64> {
        let Err(mut commands) = self.reader(file, Ending::MayBeTorn).ok()? else { return None };
        let (mut last_s, mut unit) = (None, OwnedBatch::new());
        loop {
            match commands.next(&mut unit) {
                Ok(Part::Time(at_s)) => last_s = Some(at_s),
                Ok(Part::Unit | Part::Origin(_)) => {}
                // Data before the damage can be restored.
                Ok(Part::End) | Err(_) => return last_s,
            }
        }
    }
}

/// Returns the time at which an RDB file was written, which precedes its keys.
fn creation_time(rdb: &mut RdbReader<FileSource>) -> Result<Option<i64>, RestoreError> {
    let mut batch = Batch::new();
    loop {
        match rdb.next(&mut batch)? {
            Step::Aux { name, value } if name == b"ctime" => {
                return Ok(ember_protocol::number::parse_i64(&value));
            }
            Step::Aux { .. } | Step::Function(_) => {}
            Step::Sizes { .. } | Step::Keys | Step::Skipped(_) | Step::End => return Ok(None),
        }
    }
}

/// The times of the changes that were applied.
#[derive(Clone, Copy, Debug, Default)]
struct Clock {
    /// The time of the base, or the last timestamp.
    last_s: Option<i64>,
    /// Whether changes after that time have no timestamp, so far.
    is_undated: bool,
}

/// Whether reading continues after a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reached {
    /// The file has no timestamp after the moment.
    End,
    /// The next change has this time, which is after the moment.
    Later(i64),
}

struct Run<'r, 'f> {
    files: &'r Files<'f>,
    player: Player<'r>,
    clock: Clock,
    origin: Origin,
}

impl<'r, 'f> Run<'r, 'f> {
    fn new(files: &'r Files<'f>, keyspace: &'r Keyspace, libraries: &'r mut dyn LibraryTexts) -> Run<'r, 'f> {
        let player = Player::new(keyspace, libraries);
        Run { files, player, clock: Clock::default(), origin: Origin::default() }
    }

    /// Loads the base and replays the increments; returns why the moment is not determined, if it is not.
    fn all(mut self, all: &[Segment<'_>]) -> Result<Result<Origin, Unknown>, RestoreError> {
        if let Err(why) = self.replay(all)? {
            return Ok(Err(why));
        }
        let Run { player, clock, origin, .. } = self;
        let failed = (player.failed, player.first_failure);
        Ok(Ok(Origin { last_s: clock.last_s, commands: player.played, failed, ..origin }))
    }

    fn replay(&mut self, all: &[Segment<'_>]) -> Result<Result<(), Unknown>, RestoreError> {
        let to_s = self.files.target.to_s;
        let Some(first) = self.begin(all)? else { return Ok(Err(Unknown::TooOld)) };
        for (index, segment) in all.iter().enumerate().skip(first) {
            if index > first
                && let Some(reached) = self.cross(segment)?
            {
                return Ok(reached);
            }
            let is_chain_end = all.get(index + 1).is_none_or(Segment::begins_chain);
            for (number, file) in segment.increments.iter().enumerate() {
                let is_last = is_chain_end && number + 1 == segment.increments.len();
                let ending = if is_last { Ending::MayBeTorn } else { Ending::Whole };
                if let Reached::Later(at_s) = self.increment(file, ending)? {
                    return Ok(self.settled(Some(at_s)));
                }
            }
        }
        // All changes until now are in the files, whatever their times.
        if to_s >= self.files.target.now_s { Ok(Ok(())) } else { Ok(self.settled(None)) }
    }

    /// Loads the newest base that is not later than the moment, and returns the index of its segment.
    fn begin(&mut self, all: &[Segment<'_>]) -> Result<Option<usize>, RestoreError> {
        let to_s = self.files.target.to_s;
        for (index, segment) in all.iter().enumerate().rev() {
            let Some(base) = segment.base else {
                if segment.begins_empty() {
                    return Ok(Some(index));
                }
                continue;
            };
            if let Some(time_s) = self.files.time_of(base)?.filter(|&time_s| time_s <= to_s) {
                self.clock.last_s = Some(time_s);
                self.player.set_time(time_s);
                self.base(base)?;
                return Ok(Some(index));
            }
        }
        Ok(None)
    }

    /// Decides whether the increments of the next segment must be read; returns the result if not.
    fn cross(&self, next: &Segment<'_>) -> Result<Option<Result<(), Unknown>>, RestoreError> {
        let time_s = next.base.map(|base| self.files.time_of(base)).transpose()?.flatten();
        let to_s = self.files.target.to_s;
        if next.begins_chain() {
            let Clock { last_s, is_undated } = self.clock;
            let is_known = !is_undated && last_s.is_some_and(|last_s| to_s <= last_s);
            let gap = Unknown::Gap { after_s: last_s, before_s: time_s };
            return Ok(Some(if is_known { Ok(()) } else { Err(gap) }));
        }
        // All changes after the base are later, too.
        Ok(time_s.filter(|&time_s| time_s > to_s).map(|time_s| self.settled(Some(time_s))))
    }

    /// Returns the result after all changes up to the moment, of which the next one has the time `next_s`.
    fn settled(&self, next_s: Option<i64>) -> Result<(), Unknown> {
        match self.clock {
            Clock { is_undated: true, last_s } => Err(Unknown::Undated { after_s: last_s, before_s: next_s }),
            Clock { is_undated: false, last_s: Some(_) } => Ok(()),
            // The AOF began empty, at an unknown time before its first change.
            Clock { is_undated: false, last_s: None } => Err(Unknown::TooOld),
        }
    }

    fn base(&mut self, base: &AofFile) -> Result<(), RestoreError> {
        self.record_encryption(base)?;
        self.origin.base = Some(self.files.path(base));
        let commands = match self.files.reader(base, Ending::Whole)? {
            Err(commands) => commands,
            Ok(mut rdb) => {
                self.player.load(&mut rdb)?;
                AofReader::new(rdb.into_source(), &self.files.path(base), Ending::Whole)
            }
        };
        // Commands of a base that a rewrite wrote build the data of its time; those of an AOF of Redis before 7 have
        // times of their own.
        let is_rewritten = is_base(&base.name);
        self.commands(commands, &self.files.path(base), is_rewritten).map(drop)
    }

    fn increment(&mut self, file: &AofFile, ending: Ending) -> Result<Reached, RestoreError> {
        self.record_encryption(file)?;
        let path = self.files.path(file);
        self.origin.increments.push(path.clone());
        match self.files.reader(file, ending)? {
            Ok(_) => Err(FileError::Unknown(path).into()),
            Err(commands) => self.commands(commands, &path, false),
        }
    }

    fn record_encryption(&mut self, file: &AofFile) -> Result<(), RestoreError> {
        let path = self.files.path(file);
        let stored = match self.files.disk.open_to_read(&path) {
            Err(error) if error.is_missing() => return Err(AofError::Missing(path).into()),
            opened => opened?,
        };
        self.origin.is_encrypted |= is_encrypted(stored.as_ref())?;
        Ok(())
    }

    /// Runs the commands of a file up to the first timestamp after the moment. Without `is_rewritten`, the file's
    /// timestamps are the times of its commands.
    fn commands(
        &mut self,
        mut commands: AofReader<FileSource>,
        path: &Path,
        is_rewritten: bool,
    ) -> Result<Reached, RestoreError> {
        let mut unit = OwnedBatch::new();
        let mut has_time = is_rewritten;
        self.player.begin_file();
        loop {
            match commands.next(&mut unit)? {
                Part::Unit => {
                    self.player.play(&unit, path, commands.offset(), commands.is_checked())?;
                    self.clock.is_undated |= !has_time;
                }
                Part::Time(_) if is_rewritten => {}
                Part::Time(at_s) if at_s > self.files.target.to_s => return Ok(Reached::Later(at_s)),
                Part::Time(at_s) => {
                    has_time = true;
                    self.clock = Clock { last_s: self.clock.last_s.max(Some(at_s)), is_undated: false };
                    self.player.set_time(at_s);
                }
                Part::Origin(_) => {}
                Part::End => {
                    self.origin.torn = commands.torn_end();
                    return Ok(Reached::End);
                }
            }
        }
    }
}

impl Restored {
    /// Returns the numbers of keys; the present Unix time is `now_s` in s. O(keys).
    pub fn keys(&self, now_s: i64) -> Keys {
        let mut keys = Keys::default();
        let now_ms = now_s.saturating_mul(1000);
        for database in self.databases() {
            for shard in 0..SHARDS {
                for entry in self.keyspace.lock(shard).database(database).table().iter() {
                    keys.total += 1;
                    keys.expired += u64::from(entry.expire_at_ms().is_some_and(|at_ms| at_ms <= now_ms));
                }
            }
        }
        keys
    }

    /// Writes the data set to the new RDB file `path`, which appears only when it is complete and durable.
    ///
    /// # Errors
    /// Returns [`FileError::Exists`] if the file exists, and errors of the disk.
    pub fn save(
        &self,
        disk: &Arc<dyn Disk>,
        path: &Path,
        libraries: &dyn LibraryTexts,
        now_s: i64,
        encryption: &Encryption,
    ) -> Result<Written, FileError> {
        refuse_present(disk, path)?;
        let options = SaveOptions { version: FILE_VERSION, is_packed: true, encryption };
        Ok(rdb_file::save(disk, path, &options, |writer| self.write(writer, libraries, now_s))?)
    }

    fn write(
        &self,
        writer: &mut RdbWriter<FileSink>,
        libraries: &dyn LibraryTexts,
        now_s: i64,
    ) -> io::Result<()> {
        writer.usual_aux(env!("CARGO_PKG_VERSION"), now_s, self.keyspace.used_bytes() as u64, false)?;
        libraries.codes().iter().try_for_each(|code| writer.function(code))?;
        for database in self.databases() {
            let (keys, volatile) = (self.keyspace.len(database), self.keyspace.volatile(database));
            writer.sizes(database, keys as u64, volatile as u64)?;
            for shard in 0..SHARDS {
                write_keys(&self.keyspace.lock(shard), database, writer)?;
            }
        }
        Ok(())
    }

    /// Returns the numbers of the databases with keys.
    fn databases(&self) -> impl Iterator<Item = usize> {
        (0..self.keyspace.databases()).filter(|&number| self.keyspace.len(number) > 0)
    }
}

fn write_keys(data: &ShardData, database: usize, writer: &mut impl KeyWriter) -> io::Result<()> {
    data.database(database).table().iter().try_for_each(|entry| {
        let facts = KeyFacts { database, expire_at_ms: entry.expire_at_ms(), ..KeyFacts::default() };
        writer.key(&facts, entry.key(), entry)
    })
}
