//! Repairs damaged files by copying their intact part: everything before the damage, or before a given time. The
//! original file is never changed, and no file is overwritten.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ember_protocol::OwnedBatch;
use emberkv_core::keyspace::entry::Slot;
use emberkv_core::rdb::VERSION_MAX;
use emberkv_core::types::limits::EncodingLimits;

use crate::aof::{self, AofReader, Manifest, Part};
use crate::check::{FileError, endings, open_manifest, refuse_unknown};
use crate::encryption::{Encryption, EncryptionError, Ending, FileSink, FileSource};
use crate::files::{Disk, TemporaryFile, directory_of};
use crate::rdb_file::{
    self, Batch, RdbError, RdbProblem, RdbReader, RdbWriter, SaveOptions, Step, VersionCheck,
};
use crate::unsupported_features::UnsupportedFeatures;

const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

/// Which part of a file a repair copies, and how the copy is written.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Whether the part before damage is copied; otherwise damage is an error. A torn end is always cut off.
    pub cuts_damage: bool,
    /// AOF commands with a later timestamp are omitted; Unix time in s.
    pub until_s: Option<i64>,
    /// The encryption of the copy.
    pub encryption: Encryption,
}

/// The result of a repair.
#[derive(Debug, Default)]
pub struct Repaired {
    /// The number of plain bytes copied; 0 for an RDB file whose keys had to be picked.
    pub kept_bytes: u64,
    /// The number of keys picked from a damaged RDB file.
    pub kept_keys: u64,
    /// The names of keys whose values were damaged, each with its error.
    pub lost_keys: Vec<(Vec<u8>, RdbError)>,
    /// The reason why the copy ends before the end of the file, and the offset; `None` if it is complete.
    pub cut: Option<String>,
    /// Features that were omitted because the target server lacks them.
    pub unsupported: UnsupportedFeatures,
    /// The paths of files of the AOF that were not copied, because they are useless after the end of the copy.
    pub left_out: Vec<PathBuf>,
}

/// Copies the part of a file that `plan` selects to `target`.
///
/// # Errors
/// Returns an error if `target` exists, or for any problem with the file if too little or nothing of it can be kept;
/// and errors of the disk.
pub fn repair_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    target: &Path,
    encryption: &Encryption,
    ending: Ending,
    plan: &Plan,
) -> Result<Repaired, FileError> {
    refuse_present(disk, target)?;
    let opened = encryption.open(disk.open_to_read(path)?, ending)?;
    let source = match AofReader::split(opened, path, LIMITS, VersionCheck::Strict)? {
        Err(mut source) => {
            refuse_unknown(&mut source, path)?;
            source
        }
        Ok(mut rdb) => match check_rdb(&mut rdb) {
            Ok(()) => rdb.into_source(),
            Err(error) if plan.cuts_damage && error.problem.is_damage() => {
                return pick_keys(disk, path, target, encryption, plan, error);
            }
            Err(error) => return Err(error.into()),
        },
    };
    let end = good_end(AofReader::new(source, path, ending), plan)?;
    let opened = encryption.open(disk.open_to_read(path)?, ending)?;
    copy(disk, opened, &end, target, plan)?;
    let kept_bytes = end.kept + end.rest.len() as u64;
    Ok(Repaired { kept_bytes, cut: end.cut, ..Repaired::default() })
}

/// Returns the shell command that copies the intact part of a file. For a file that a manifest names, the command
/// copies the whole AOF, because the file is useless alone.
pub fn repair_command(file: &Path) -> String {
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    let is_part = name.contains(".incr.") || name.contains(".base.");
    let what = if is_part { directory_of(file) } else { file };
    let copy = if is_part { "NEW_DIRECTORY" } else { "NEW_FILE" };
    format!("ember-cli repair {} --output {copy}", shell_word(&what.display().to_string()))
}

/// Quotes a word for a shell if necessary.
fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-+=:,@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Describes the torn end of the file that `reader` has read, if there is one.
pub(crate) fn torn_end(reader: &AofReader<FileSource>) -> Option<String> {
    reader
        .torn_end()
        .map(|torn| format!("{} bytes at offset {} are torn: {}", torn.torn_bytes, torn.valid_to, torn.what))
}

pub(crate) fn refuse_present(disk: &Arc<dyn Disk>, target: &Path) -> Result<(), FileError> {
    match disk.open_to_read(target) {
        Ok(_) => Err(FileError::Exists(target.to_owned())),
        Err(error) if error.is_missing() => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Reads all keys and builds their values.
fn check_rdb<R: Read>(reader: &mut RdbReader<R>) -> Result<(), RdbError> {
    let mut batch = Batch::new();
    while reader.next(&mut batch)? != Step::End {
        for index in 0..batch.len() {
            match batch.take(index, &LIMITS) {
                // The server skips this key when it loads the copy.
                Err(RdbError { problem: RdbProblem::EmptyValue, .. }) => {}
                value => drop(value?),
            }
        }
    }
    Ok(())
}

/// The end of the commands that are copied.
#[derive(Debug, Default)]
struct GoodEnd {
    /// The number of bytes that are copied.
    kept: u64,
    /// The commands to write after the copied bytes: those in the middle of a batch that precede the time limit.
    rest: Vec<u8>,
    cut: Option<String>,
}

fn good_end(mut reader: AofReader<FileSource>, plan: &Plan) -> Result<GoodEnd, FileError> {
    let mut end = GoodEnd { kept: reader.valid_to(), ..GoodEnd::default() };
    let mut unit = OwnedBatch::new();
    let mut since_kept = aof::Batch::new();
    loop {
        let part = reader.next(&mut unit);
        if reader.valid_to() > end.kept {
            end.kept = reader.valid_to();
            since_kept.clear();
        }
        match part {
            Ok(Part::Unit) => add_unit(&mut since_kept, &unit),
            Ok(Part::Time(at_s)) if plan.until_s.is_some_and(|until_s| at_s > until_s) => {
                end.rest = since_kept.commands().to_vec();
                end.cut = Some(format!("data marked with the time {at_s} or later is left out"));
                return Ok(end);
            }
            Ok(Part::Time(at_s)) => since_kept.time(at_s),
            // Only commands are written after the copied bytes.
            Ok(Part::Origin(_)) => {}
            Ok(Part::End) => {
                end.cut = torn_end(&reader);
                return Ok(end);
            }
            Err(error) if plan.cuts_damage && error.is_damage() => {
                end.cut = Some(format!("{error:#}"));
                return Ok(end);
            }
            Err(error) => return Err(error.into()),
        }
    }
}

fn add_unit(batch: &mut aof::Batch, unit: &OwnedBatch) {
    let is_transaction = unit.len() > 1;
    if is_transaction {
        batch.command(&[b"MULTI"]);
    }
    for index in 0..unit.len() {
        batch.command(&unit.command(index).iter().collect::<Vec<_>>());
    }
    if is_transaction {
        batch.command(&[b"EXEC"]);
    }
}

fn copy(
    disk: &Arc<dyn Disk>,
    opened: FileSource,
    end: &GoodEnd,
    target: &Path,
    plan: &Plan,
) -> Result<(), FileError> {
    let failed = |error| FileError::Copy(target.to_owned(), error);
    let temporary = TemporaryFile::create(disk, target)?;
    let mut sink = FileSink::begin(Arc::clone(temporary.file()), &plan.encryption).map_err(failed)?;
    let copied = io::copy(&mut opened.take(end.kept), &mut sink).map_err(failed)?;
    if copied < end.kept {
        return Err(failed(io::ErrorKind::UnexpectedEof.into()));
    }
    sink.write_all(&end.rest).map_err(failed)?;
    sink.finish().map_err(failed)?;
    Ok(temporary.publish()?)
}

/// Copies the readable keys of a damaged RDB file to a new RDB file.
fn pick_keys(
    disk: &Arc<dyn Disk>,
    path: &Path,
    target: &Path,
    encryption: &Encryption,
    plan: &Plan,
    damage: RdbError,
) -> Result<Repaired, FileError> {
    let opened = encryption.open(disk.open_to_read(path)?, Ending::Whole)?;
    let mut reader = RdbReader::new(opened, path, LIMITS)?;
    let mut repaired = Repaired { cut: Some(format!("{damage:#}")), ..Repaired::default() };
    let version = reader.version().clamp(rdb_file::FILE_VERSION, VERSION_MAX);
    let options = SaveOptions { version, is_packed: true, encryption: &plan.encryption };
    let written = rdb_file::save(disk, target, &options, |writer| pick(&mut reader, writer, &mut repaired))?;
    repaired.kept_keys = written.keys;
    Ok(repaired)
}

fn pick<R: Read>(
    reader: &mut RdbReader<R>,
    writer: &mut RdbWriter<FileSink>,
    repaired: &mut Repaired,
) -> io::Result<()> {
    let mut batch = Batch::new();
    loop {
        let step = reader.next(&mut batch);
        for index in 0..batch.len() {
            let value = batch.take(index, &LIMITS);
            let (name, facts) = batch.key(index);
            match value {
                Ok(value) => {
                    let mut buffer = Vec::new();
                    let slot = Slot::new(0, name, value.into_new(&mut buffer), None, 0);
                    writer.key(&facts, name, slot.entry())?;
                }
                Err(error) => repaired.lost_keys.push((name.to_vec(), error)),
            }
        }
        match step {
            Ok(Step::End) => return Ok(()),
            Ok(Step::Aux { name, value }) => writer.aux(&name, &value)?,
            Ok(Step::Function(code)) => writer.function(&code)?,
            Ok(Step::Keys | Step::Sizes { .. } | Step::Skipped(_)) => {}
            Err(RdbError { problem: RdbProblem::Io(error), .. }) if !EncryptionError::is_damage(&error) => {
                return Err(error);
            }
            Err(error) => {
                repaired.cut = Some(format!("{error:#}"));
                return Ok(());
            }
        }
    }
}

/// Copies the part of an AOF that `plan` selects to the directory `target`, which must not contain an AOF. Everything
/// after the first cut is omitted.
///
/// # Errors
/// Returns the errors of [`repair_file`] and of [`open_manifest`].
pub fn repair_aof(
    disk: &Arc<dyn Disk>,
    manifest: &Path,
    target: &Path,
    encryption: &Encryption,
    plan: &Plan,
) -> Result<Vec<Repaired>, FileError> {
    copy_aof(disk, manifest, target, plan.cuts_damage, |path, target, ending| {
        repair_file(disk, path, target, encryption, ending, plan)
    })
}

/// Copies the files of an AOF with `copy_file`, and writes a manifest for the copies. A file that is shorter than its
/// manifest records is an error or, with `cuts_damage`, the last file that is copied.
pub(crate) fn copy_aof(
    disk: &Arc<dyn Disk>,
    manifest: &Path,
    target: &Path,
    cuts_damage: bool,
    copy_file: impl Fn(&Path, &Path, Ending) -> Result<Repaired, FileError>,
) -> Result<Vec<Repaired>, FileError> {
    let from = open_manifest(disk.as_ref(), manifest)?;
    let target_manifest = target.join(manifest.file_name().unwrap_or_default());
    refuse_present(disk, &target_manifest)?;
    disk.create_directory(target)?;
    let mut kept = Manifest::default();
    let mut all: Vec<Repaired> = Vec::new();
    let live = from.manifest.live().zip(&from.files);
    for ((file, path), ending) in live.zip(endings(from.files.len())) {
        if let Some(last) = all.last_mut().filter(|last| last.cut.is_some()) {
            last.left_out.push(path.clone());
            continue;
        }
        let found = disk.open_to_read(path)?.size()?;
        // Without its base, an AOF contains no data.
        let is_lost = found == 0 && file.file_type == aof::FileType::Base;
        let cut = match file.check_size(path, found) {
            Err(error) if !cuts_damage || is_lost => return Err(error.into()),
            checked => checked.err().map(|error| format!("{error:#}")),
        };
        let copied = copy_file(path, &target.join(&file.name), ending)?;
        all.push(Repaired { cut: copied.cut.or(cut), ..copied });
        // The size of a copy may differ from the recorded size, and the last file is open again.
        let file = aof::AofFile { size: None, ..file.clone() };
        match file.file_type {
            aof::FileType::Base => kept.base = Some(file),
            _ => kept.increments.push(file),
        }
    }
    let temporary = TemporaryFile::create(disk, &target_manifest)?;
    temporary.file().write_at(0, &kept.to_bytes())?;
    temporary.publish()?;
    disk.sync_directory(directory_of(target))?;
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repair_command_names_a_file_or_an_aof_directory() {
        let commands = ["dump.rdb", "d/appendonlydir/appendonly.aof.2.incr.aof", "it's here/a.aof"];
        let commands = commands.map(|file| repair_command(Path::new(file)));
        assert_eq!(commands[0], "ember-cli repair dump.rdb --output NEW_FILE");
        assert_eq!(commands[1], "ember-cli repair d/appendonlydir --output NEW_DIRECTORY");
        assert_eq!(commands[2], "ember-cli repair 'it'\\''s here/a.aof' --output NEW_FILE");
    }
}
