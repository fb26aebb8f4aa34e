//! Converts files between encrypted and plain form, between keys, and to the formats of other servers.

use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use ember_protocol::{Args, OwnedBatch};
pub use emberkv_core::rdb::Target;
use emberkv_core::rdb::{
    self, Features, PayloadChecks, Value, is_version_of_valkey, library_for_redis, plain_library,
};
use emberkv_core::types::limits::EncodingLimits;

use crate::aof::{self, AofReader, Part};
use crate::check::{FileError, refuse_unknown};
use crate::encryption::{Encryption, Ending, FileSink, FileSource};
use crate::files::{Disk, TemporaryFile};
use crate::rdb_file::{Batch, RdbReader, RdbWriter, Step, VersionCheck};
use crate::repair::{Plan, Repaired, copy_aof, refuse_present, repair_aof, repair_file, torn_end};
use crate::unsupported_features::UnsupportedFeatures;

const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

/// Length in bytes from which collected commands are written to the copy.
const WRITTEN_BYTES: usize = 1024 * 1024;

/// Copies an RDB file to `target`, encrypted according to `to`. The whole file is checked first.
///
/// # Errors
/// Returns an error for any problem with the file, or if `target` exists; and errors of the disk.
pub fn convert_file(
    disk: &Arc<dyn Disk>,
    path: &Path,
    target: &Path,
    from: &Encryption,
    to: &Encryption,
) -> Result<Repaired, FileError> {
    repair_file(disk, path, target, from, Ending::Whole, &plan(to))
}

/// Copies the AOF with this manifest to the directory `target`, encrypted according to `to`. A torn end is cut off.
///
/// # Errors
/// Returns an error for any problem with one of the files, or if there is an AOF in `target`; and errors of the disk.
pub fn convert_aof(
    disk: &Arc<dyn Disk>,
    manifest: &Path,
    target: &Path,
    from: &Encryption,
    to: &Encryption,
) -> Result<Vec<Repaired>, FileError> {
    repair_aof(disk, manifest, target, from, &plan(to))
}

fn plan(to: &Encryption) -> Plan {
    Plan { encryption: to.clone(), ..Plan::default() }
}

/// The server that is to read a copy, and how the copy is adapted to it.
#[derive(Clone, Debug)]
pub struct Reader {
    /// The type of server.
    pub target: Target,
    /// Whether features that the server lacks are omitted from the copy; otherwise they are an error.
    pub leaves_out: bool,
    /// The encryption of the copy.
    pub encryption: Encryption,
}

/// Copies a file to `target` in a form that the server `reader` can read.
///
/// # Errors
/// Returns an error for any problem with the file, or if `target` exists; [`FileError::UnsupportedFeatures`]; and
/// errors of the disk.
pub fn convert_file_for(
    disk: &Arc<dyn Disk>,
    path: &Path,
    target: &Path,
    from: &Encryption,
    ending: Ending,
    reader: &Reader,
) -> Result<Repaired, FileError> {
    refuse_present(disk, target)?;
    let failed = |error: io::Error| FileError::Copy(target.to_owned(), error);
    let temporary = TemporaryFile::create(disk, target)?;
    let mut sink = FileSink::begin(Arc::clone(temporary.file()), &reader.encryption).map_err(failed)?;
    let opened = from.open(disk.open_to_read(path)?, ending)?;
    let mut copy = Conversion {
        target: reader.target,
        unsupported: UnsupportedFeatures::default(),
        kept_keys: 0,
        failed: &failed,
    };
    let source = match AofReader::split(opened, path, LIMITS, VersionCheck::Strict)? {
        Err(mut source) => {
            refuse_unknown(&mut source, path)?;
            source
        }
        Ok(mut rdb) => {
            let version = reader.target.file_version();
            let mut writer = RdbWriter::new(sink, version, true).map_err(failed)?;
            copy.keys(&mut rdb, &mut writer)?;
            sink = writer.finish_as_begun().map_err(failed)?.0;
            rdb.into_source()
        }
    };
    let mut commands = AofReader::new(source, path, ending);
    copy.commands(&mut commands, &mut sink)?;
    sink.finish().map_err(failed)?;
    let Conversion { unsupported, kept_keys, .. } = copy;
    if !unsupported.is_empty() && !reader.leaves_out {
        return Err(FileError::UnsupportedFeatures(path.to_owned(), reader.target, unsupported));
    }
    temporary.publish()?;
    let cut = torn_end(&commands);
    Ok(Repaired { kept_bytes: commands.valid_to(), kept_keys, cut, unsupported, ..Repaired::default() })
}

/// Copies the AOF with this manifest to the directory `target` in a form that the server `reader` can read. A torn end
/// is cut off.
///
/// # Errors
/// Returns the errors of [`convert_file_for`], or an error if there is an AOF in `target`.
pub fn convert_aof_for(
    disk: &Arc<dyn Disk>,
    manifest: &Path,
    target: &Path,
    from: &Encryption,
    reader: &Reader,
) -> Result<Vec<Repaired>, FileError> {
    copy_aof(disk, manifest, target, false, |path, target, ending| {
        convert_file_for(disk, path, target, from, ending, reader)
    })
}

/// The state of a conversion.
struct Conversion<'c> {
    target: Target,
    unsupported: UnsupportedFeatures,
    kept_keys: u64,
    failed: &'c dyn Fn(io::Error) -> FileError,
}

impl Conversion<'_> {
    fn keys<R: Read>(
        &mut self,
        reader: &mut RdbReader<R>,
        writer: &mut RdbWriter<FileSink>,
    ) -> Result<(), FileError> {
        let failed = self.failed;
        let mut batch = Batch::new();
        loop {
            let step = reader.next(&mut batch)?;
            for index in 0..batch.len() {
                let mut value = batch.take(index, &LIMITS)?;
                let (name, facts) = batch.key(index);
                if self.fit(name, &mut value) {
                    writer.key(&facts, name, value.as_value()).map_err(failed)?;
                    self.kept_keys += 1;
                }
            }
            match step {
                Step::End => return Ok(()),
                Step::Aux { name, value } => writer.aux(&name, &value).map_err(failed)?,
                Step::Function(code) => writer.function(&code).map_err(failed)?,
                // No other server could use the data of the module.
                Step::Keys | Step::Sizes { .. } | Step::Skipped(_) => {}
            }
        }
    }

    /// Removes everything that the server lacks from a value; returns false if nothing is left of the value.
    fn fit(&mut self, name: &[u8], value: &mut Value) -> bool {
        let unsupported = Features::of(value.as_value()).common(self.target.unsupported());
        if unsupported.is_empty() {
            return true;
        }
        self.unsupported.add_key(unsupported, name);
        value.remove_field_expiries()
    }

    fn commands(&mut self, reader: &mut AofReader<FileSource>, sink: &mut FileSink) -> Result<(), FileError> {
        let failed = self.failed;
        let mut unit = OwnedBatch::new();
        let mut written = aof::Batch::new();
        loop {
            match reader.next(&mut unit)? {
                Part::Unit => self.unit(&unit, &mut written),
                Part::Time(at_s) => written.time(at_s),
                // The converted data no longer belong to a replication history.
                Part::Origin(_) => {}
                Part::End => break,
            }
            if written.len() >= WRITTEN_BYTES {
                sink.write_all(written.commands()).map_err(failed)?;
                written.clear();
            }
        }
        sink.write_all(written.commands()).map_err(failed)
    }

    fn unit(&mut self, unit: &OwnedBatch, written: &mut aof::Batch) {
        let is_transaction = unit.len() > 1;
        if is_transaction {
            written.command(&[b"MULTI"]);
        }
        for index in 0..unit.len() {
            self.command(unit.command(index), written);
        }
        if is_transaction {
            written.command(&[b"EXEC"]);
        }
    }

    fn command(&mut self, args: Args<'_>, written: &mut aof::Batch) {
        let mut words: Vec<&[u8]> = args.iter().collect();
        let unsupported = Features::of_command(words[0]).common(self.target.unsupported());
        if !unsupported.is_empty() {
            self.unsupported.features = self.unsupported.features.and(unsupported);
            self.unsupported.commands += 1;
            return;
        }
        let is = |number: usize, name: &str| {
            args.get(number).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
        };
        if is(0, "RESTORE") && words.len() > 3 {
            let checks = PayloadChecks { version_max: u16::MAX, ..PayloadChecks::ALL };
            if let Ok(mut value) = rdb::restore(words[3], &LIMITS, checks) {
                if !self.fit(words[1], &mut value) {
                    return;
                }
                let payload = rdb::dump_read(&value, self.target.payload_version());
                words[3] = &payload;
                return written.command(&words);
            }
        }
        if is(0, "FUNCTION") && is(1, "LOAD") {
            let text = words[words.len() - 1];
            let of_valkey = is_version_of_valkey(self.target.file_version());
            let text = if of_valkey { plain_library(text) } else { library_for_redis(text) };
            let last = words.len() - 1;
            words[last] = &text;
            return written.command(&words);
        }
        written.command(&words);
    }
}
