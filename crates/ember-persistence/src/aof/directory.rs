//! The files of an AOF: which of them are valid, when a new one begins, and when an old one is removed.
//!
//! Every change writes a new manifest, which replaces the old manifest atomically. Before a manifest names a file, that
//! file and its name are durable; a file is removed after the manifest stops naming it. So after a crash at any moment,
//! the manifest names files that exist, and files that no manifest names are overwritten later. A closed file is
//! durable before a manifest records its size, so no crash leaves it shorter than that.
//!
//! When replacing the manifest fails, it is unknown which of the two manifests a crash would leave on the disk. So both
//! must remain valid: an increment that was closed stays closed, no file is removed, and the next change first writes
//! the manifest held in memory until that has succeeded.
//!
//! Files that a rewrite has replaced are removed at once, or kept for some time ([`AofDirectory::set_keep_s`]), so that
//! the data set can be restored to an earlier moment ([`crate::restore`]).

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{AofError, AofFile, AofWriter, BaseFile, BaseWriter, FileType, Manifest, TornEnd};
use crate::encryption::Encryption;
use crate::files::{Disk, DiskError, TemporaryFile, directory_of, read_whole, remove_leftovers};
use crate::rdb_file::KeyForm;

/// The maximum number of replaced files that are kept. It keeps the manifest, which each rewrite writes again, far
/// below [`Manifest::MAX_BYTES`], even with names of the maximum length.
pub const KEPT_FILES_MAX: usize = 10_000;

/// The ends of the names of increments.
const INCREMENT_ENDING: &str = ".incr.aof";

/// Part of the names of bases, before `rdb` or `aof`.
const BASE_MARK: &str = ".base.";

/// Whether a file of this name is an increment.
pub(crate) fn is_increment(name: &str) -> bool {
    name.ends_with(INCREMENT_ENDING)
}

/// Whether a file of this name is a base. A base that was the single file of an older AOF has another name.
pub(crate) fn is_base(name: &str) -> bool {
    name.contains(BASE_MARK)
}

/// The AOF in a directory: its files, and the manifest that names the valid ones.
#[derive(Debug)]
pub struct AofDirectory {
    disk: Arc<dyn Disk>,
    directory: PathBuf,
    /// The prefix of the names of the AOF's files (`appendfilename`).
    name: String,
    encryption: Encryption,
    /// The number of seconds for which replaced files are kept; 0 if they are removed at once.
    keep_s: u64,
    manifest: Manifest,
    /// Whether a manifest is on the disk.
    has_manifest: bool,
    /// Whether the manifest on the disk is known to be the one in memory.
    is_certain: bool,
}

/// A rewrite in progress: the increments from number `first` on are kept, and a base replaces all earlier files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    first: u64,
    /// The new increment of an AOF that is enabled or replaced, which the manifest does not name yet.
    apart: Option<AofFile>,
    /// The Unix time in s at which the data of the base were taken.
    taken_s: Option<i64>,
}

impl Rewrite {
    /// Returns the number of the first increment that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Sets when the data of the base were taken, as Unix time in s: all records whose effects the base contains were
    /// written at this time or earlier, and all records in the increments that are kept are written at this time or
    /// later. Replaced files are kept only if this is known.
    #[must_use]
    pub fn taken_at(self, now_s: i64) -> Rewrite {
        Rewrite { taken_s: Some(now_s), ..self }
    }
}

impl AofDirectory {
    /// Opens the AOF in `directory` whose file names begin with `name`, or an AOF without files if there is none.
    /// Removes files that a completed rewrite no longer needs.
    ///
    /// # Errors
    /// Returns errors of the disk, or an error if the manifest is invalid or names missing files, or if there are files
    /// without a manifest.
    pub fn open(
        disk: &Arc<dyn Disk>,
        directory: &Path,
        name: &str,
        encryption: &Encryption,
    ) -> Result<AofDirectory, AofError> {
        let mut aof = AofDirectory {
            disk: Arc::clone(disk),
            directory: directory.to_owned(),
            name: name.to_owned(),
            encryption: encryption.clone(),
            keep_s: 0,
            manifest: Manifest::default(),
            has_manifest: false,
            is_certain: true,
        };
        let path = aof.manifest_path();
        let names: Vec<String> = match disk.list(directory) {
            Ok(names) => names.into_iter().filter_map(|name| name.into_string().ok()).collect(),
            Err(error) if error.is_missing() => return Ok(aof),
            Err(error) => return Err(error.into()),
        };
        match read_whole(disk.as_ref(), &path, Manifest::MAX_BYTES) {
            Ok(bytes) => {
                let manifest = Manifest::parse(&bytes);
                aof.manifest = manifest.map_err(|error| AofError::Manifest { file: path, error })?;
                aof.has_manifest = true;
            }
            Err(error) if error.is_missing() => {
                let is_part =
                    |name: &String| name.starts_with(&aof.name) && (is_increment(name) || is_base(name));
                if names.iter().any(is_part) {
                    return Err(AofError::NoManifest(directory.to_owned()));
                }
            }
            Err(error) => return Err(error.into()),
        }
        for file in aof.manifest.live() {
            if !names.contains(&file.name) {
                if file.name == aof.name && disk.open_to_read(&aof.single_file()).is_ok() {
                    // A crash occurred during [`AofDirectory::adopt`].
                    aof.move_single()?;
                    continue;
                }
                return Err(AofError::Missing(directory.join(&file.name)));
            }
        }
        Ok(aof)
    }

    /// Whether the AOF has a manifest.
    pub fn exists(&self) -> bool {
        self.manifest.live().next().is_some()
    }

    /// Returns the manifest in memory.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// Returns the directory of the AOF.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Returns the paths of the files to load, in order.
    pub fn live_files(&self) -> Vec<PathBuf> {
        self.manifest.live().map(|file| self.directory.join(&file.name)).collect()
    }

    /// Checks that no file to load is shorter than the manifest records, before any of them is read.
    ///
    /// # Errors
    /// Returns [`AofError::Short`], and errors of the disk.
    pub fn check_sizes(&self) -> Result<(), AofError> {
        for file in self.manifest.live() {
            let path = self.directory.join(&file.name);
            file.check_size(&path, self.disk.open_to_read(&path)?.size()?)?;
        }
        Ok(())
    }

    /// Sets the encryption of new files.
    pub fn set_encryption(&mut self, encryption: &Encryption) {
        self.encryption = encryption.clone();
    }

    /// Sets for how many seconds files are kept after they were replaced; 0 to remove them at once. Files that are kept
    /// already are removed by the next call of [`AofDirectory::remove_expired`].
    pub fn set_keep_s(&mut self, keep_s: u64) {
        self.keep_s = keep_s;
    }

    fn manifest_path(&self) -> PathBuf {
        self.directory.join(format!("{}.manifest", self.name))
    }

    /// Writes `manifest` and makes it the valid one.
    fn write_manifest(&mut self, manifest: Manifest) -> Result<(), AofError> {
        let temporary = TemporaryFile::create(&self.disk, &self.manifest_path())?;
        self.is_certain = false;
        temporary.file().write_at(0, &manifest.to_bytes())?;
        temporary.publish()?;
        self.manifest = manifest;
        self.has_manifest = true;
        self.is_certain = true;
        Ok(())
    }

    /// Ensures that the manifest on the disk, if any, is the one in memory.
    fn confirm_manifest(&mut self) -> Result<(), AofError> {
        if self.is_certain || !self.has_manifest {
            Ok(())
        } else {
            self.write_manifest(self.manifest.clone())
        }
    }

    /// Returns the path of the single-file AOF of Redis before 7, next to the directory.
    pub fn single_file(&self) -> PathBuf {
        directory_of(&self.directory).join(&self.name)
    }

    /// Moves the single-file AOF of Redis before 7, with or without an RDB preamble, into this AOF as its base; this
    /// AOF must have no files. After a crash at any moment, [`AofDirectory::open`] finds the file at its old path, or
    /// completes the move.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn adopt(&mut self) -> Result<(), AofError> {
        assert!(!self.exists(), "an AOF with files has its own base");
        let single = self.single_file();
        let file = self.disk.open(&single)?;
        file.sync()?;
        let size = Some(file.size()?);
        self.disk.create_directory(&self.directory)?;
        let base = AofFile { size, ..AofFile::new(self.name.clone(), 1, FileType::Base) };
        self.write_manifest(Manifest { base: Some(base), ..Manifest::default() })?;
        self.move_single()
    }

    fn move_single(&self) -> Result<(), AofError> {
        self.disk.rename(&self.single_file(), &self.directory.join(&self.name))?;
        self.disk.sync_directory(&self.directory)?;
        Ok(self.disk.sync_directory(directory_of(&self.directory))?)
    }

    /// Ensures that a manifest exists, so that AOF files without a manifest show that the manifest was lost. A manifest
    /// must name at least one file.
    fn begin_manifest(&mut self) -> Result<(), AofError> {
        if self.has_manifest {
            return Ok(());
        }
        let nothing = AofFile::new(format!("{}.none", self.name), 1, FileType::History);
        self.write_manifest(Manifest { history: vec![nothing], ..Manifest::default() })
    }

    /// Cuts the torn end, if any, off the last increment, and syncs the increment, so that another one can follow.
    ///
    /// # Errors
    /// Returns errors of the disk; for an encrypted file, also an error if the torn end begins inside a chunk, which
    /// only a repair can cut.
    pub fn settle(&self, torn: Option<TornEnd>) -> Result<(), AofError> {
        let Some(last) = self.manifest.live().last() else { return Ok(()) };
        let path = self.directory.join(&last.name);
        let file = self.disk.open(&path)?;
        #[cfg(feature = "encryption")]
        if crate::encryption::is_encrypted(file.as_ref()).map_err(|error| unreadable(&path, error))? {
            return self.settle_encrypted(&path, file, torn);
        }
        if let Some(torn) = torn {
            file.set_size(torn.valid_to)?;
        }
        // The sync also covers bytes that a killed process had written and not synced.
        Ok(file.sync()?)
    }

    #[cfg(feature = "encryption")]
    fn settle_encrypted(
        &self,
        path: &Path,
        file: Arc<dyn crate::files::StoredFile>,
        torn: Option<TornEnd>,
    ) -> Result<(), AofError> {
        use std::io::Read;

        use crate::encryption::{Ending, Unsealer};
        let open = || Unsealer::open(Arc::clone(&file), &self.encryption, Ending::MayBeTorn);
        let failed = |error| unreadable(path, error);
        let said = match torn {
            Some(torn) => torn.valid_to,
            None => {
                let counted = std::io::copy(&mut open().map_err(failed)?.by_ref(), &mut std::io::sink());
                counted.map_err(|cause| AofError::Unreadable { file: path.to_owned(), offset: 0, cause })?
            }
        };
        let found = open().map_err(failed)?.sealer_at(said).map_err(failed)?;
        let Some(mut sealer) = found else {
            return Err(AofError::damaged(
                path,
                said,
                "the torn end begins in the middle of an encrypted chunk",
            ));
        };
        if torn.is_none() && sealer.is_over() {
            return Ok(file.sync()?);
        }
        let stored = sealer.offset();
        file.set_size(stored)?;
        file.sync()?;
        let mut last = Vec::new();
        sealer.seal(&[], said, true, &mut last);
        file.write_at(stored, &last)?;
        Ok(file.sync()?)
    }

    /// Begins the next increment, which is valid at once. The previous increment must be closed or settled first;
    /// [`AofDirectory::rotate`] closes an increment that is being written.
    ///
    /// # Errors
    /// Returns errors of the disk. The previous increment is then still the last one.
    pub fn begin_increment(&mut self) -> Result<AofWriter, AofError> {
        let (writer, file) = self.create_increment()?;
        let mut manifest = self.manifest.clone();
        if let Some(last) = manifest.increments.last_mut() {
            // The size may have changed, because a torn end may have been cut off.
            last.size = None;
        }
        for closed in manifest.base.iter_mut().chain(&mut manifest.increments) {
            if closed.size.is_none() {
                closed.size = Some(self.disk.open_to_read(&self.directory.join(&closed.name))?.size()?);
            }
        }
        manifest.increments.push(file);
        self.write_manifest(manifest)?;
        Ok(writer)
    }

    /// Closes the current increment and begins the next one, which `writer` then writes. After a failure, this must be
    /// retried before any other append, after [`AofWriter::recover`] if necessary.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn rotate(&mut self, writer: &mut AofWriter) -> Result<(), AofError> {
        writer.close()?;
        *writer = self.begin_increment()?;
        Ok(())
    }

    /// Creates the next increment; the manifest does not name it yet.
    fn create_increment(&mut self) -> Result<(AofWriter, AofFile), AofError> {
        self.disk.create_directory(&self.directory)?;
        self.begin_manifest()?;
        self.confirm_manifest()?;
        let file = self.increment(self.last_sequence(&self.manifest.increments, is_increment) + 1);
        let writer = AofWriter::create(&self.disk, &self.directory.join(&file.name), &self.encryption)?;
        self.disk.sync_directory(&self.directory)?;
        Ok((writer, file))
    }

    fn increment(&self, sequence: u64) -> AofFile {
        AofFile::new(format!("{}.{sequence}{INCREMENT_ENDING}", self.name), sequence, FileType::Increment)
    }

    /// Returns the highest number of the files that are loaded (`live`) and of the kept files of the same type, so that
    /// no new file overwrites a kept one; 0 without such files.
    fn last_sequence<'f>(
        &'f self,
        live: impl IntoIterator<Item = &'f AofFile>,
        is_same_type: impl Fn(&str) -> bool,
    ) -> u64 {
        let kept = self.manifest.history.iter().filter(|file| is_same_type(&file.name));
        live.into_iter().chain(kept).map(|file| file.sequence).max().unwrap_or(0)
    }

    /// Begins an increment that becomes valid only when the rewrite that begins with it is finished; all other files
    /// are then dropped. Used for an AOF that is enabled, and for one whose last increment is [`AofError::Lost`]. Until
    /// the rewrite is finished, a crash leaves the AOF unchanged.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn begin_replacement(&mut self) -> Result<(AofWriter, Rewrite), AofError> {
        let (writer, file) = self.create_increment()?;
        Ok((writer, Rewrite { first: file.sequence, apart: Some(file), taken_s: None }))
    }

    /// Begins a rewrite whose base contains the data as of the beginning of the last increment.
    pub fn begin_rewrite(&self) -> Rewrite {
        let first = self.manifest.increments.last().map_or(1, |last| last.sequence);
        Rewrite { first, apart: None, taken_s: None }
    }

    /// Creates a file for the base of a rewrite. Dropping it before it is passed to [`AofDirectory::finish_rewrite`]
    /// removes the file.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn begin_base(&mut self, form: KeyForm) -> Result<BaseFile, AofError> {
        self.confirm_manifest()?;
        self.disk.create_directory(&self.directory)?;
        let file = TemporaryFile::create(&self.disk, &self.directory.join(self.next_base(form).name))?;
        Ok(BaseFile { file, form })
    }

    /// Writes the base of a rewrite with [`BaseFile::write`], encrypted like all new files.
    ///
    /// # Errors
    /// Returns errors of `fill` and of the disk.
    pub fn write_base(
        &self,
        base: &BaseFile,
        fill: impl FnOnce(&mut BaseWriter<'_>) -> std::io::Result<()>,
    ) -> Result<(), DiskError> {
        base.write(&self.encryption, fill).map(drop)
    }

    fn next_base(&self, form: KeyForm) -> AofFile {
        let sequence = self.last_sequence(&self.manifest.base, is_base) + 1;
        let ending = match form {
            KeyForm::Rdb { .. } => "rdb",
            KeyForm::Commands => "aof",
            KeyForm::Rows => unreachable!("rows are no file"),
        };
        AofFile::new(format!("{}.{sequence}{BASE_MARK}{ending}", self.name), sequence, FileType::Base)
    }

    /// Replaces the old base and all increments before the rewrite with the new base. Removes the old files, unless they
    /// are kept.
    ///
    /// # Errors
    /// Returns errors of the disk. The AOF is then unchanged, unless only the removal of files has failed, which the
    /// next rewrite repeats.
    pub fn finish_rewrite(&mut self, rewrite: Rewrite, base: BaseFile) -> Result<(), AofError> {
        // If the manifest on the disk named another base, the new base could overwrite it.
        self.confirm_manifest()?;
        let size = Some(base.file().size()?);
        let new = AofFile { size, ..self.next_base(base.form) };
        base.file.publish()?;
        self.replace(rewrite, Some(new))
    }

    /// Finishes a rewrite whose data are stored durably elsewhere: unlike after [`AofDirectory::finish_rewrite`], there
    /// is no base, and no file before the rewrite is valid.
    ///
    /// # Errors
    /// Returns errors of the disk. The AOF is then unchanged, unless only the removal of files has failed.
    pub fn finish_without_base(&mut self, rewrite: Rewrite) -> Result<(), AofError> {
        self.confirm_manifest()?;
        self.replace(rewrite, None)
    }

    /// Makes increment `first` the first one, because all earlier data are stored elsewhere. If the increment was
    /// created by [`AofDirectory::begin_replacement`], also drops the base. Returns false, with nothing changed, if the
    /// increment does not exist or has a base before it.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn resume_at(&mut self, first: u64) -> Result<bool, AofError> {
        let mut apart = None;
        if self.manifest.increments.iter().any(|file| file.sequence == first) {
            if self.manifest.base.is_some() {
                return Ok(false);
            }
        } else {
            // A crash may have occurred before the manifest named the increment of [`AofDirectory::begin_replacement`].
            let file = self.increment(first);
            let last = self.manifest.increments.last().map_or(0, |last| last.sequence);
            if last + 1 != first || self.disk.open_to_read(&self.directory.join(&file.name)).is_err() {
                return Ok(false);
            }
            apart = Some(file);
        }
        self.replace(Rewrite { first, apart, taken_s: None }, None)?;
        Ok(true)
    }

    fn replace(&mut self, rewrite: Rewrite, base: Option<AofFile>) -> Result<(), AofError> {
        let mut manifest = self.manifest.clone();
        let replaced_s = rewrite.taken_s.filter(|_| self.keep_s > 0);
        let old = std::mem::take(&mut manifest.increments);
        let (stay, go): (Vec<AofFile>, Vec<AofFile>) =
            old.into_iter().partition(|file| file.sequence >= rewrite.first);
        let replaced = manifest.base.take().into_iter().chain(go);
        let replaced = replaced.map(|file| AofFile { file_type: FileType::History, replaced_s, ..file });
        manifest.history.extend(replaced);
        manifest.base = base.map(|base| AofFile {
            time_s: rewrite.taken_s,
            begins_chain: rewrite.apart.is_some() && replaced_s.is_some(),
            ..base
        });
        manifest.increments = stay;
        manifest.increments.extend(rewrite.apart);
        self.write_manifest(manifest)?;
        // Files that are not kept are removed whatever the time is.
        self.remove_expired(rewrite.taken_s.unwrap_or(i64::MIN))
    }

    /// Removes unfinished bases and manifests that a crashed server has left, and returns the number of removed files.
    /// Only the process that writes this AOF may call it.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn remove_leftovers(&self) -> Result<usize, AofError> {
        let is_own = |name: &str| {
            let kind = name.strip_prefix(&self.name).and_then(|rest| rest.strip_prefix('.'));
            kind.is_some_and(|kind| {
                kind == "manifest" || kind.ends_with(".base.rdb") || kind.ends_with(".base.aof")
            })
        };
        match remove_leftovers(self.disk.as_ref(), &self.directory, is_own) {
            Err(error) if error.is_missing() => Ok(0),
            removed => Ok(removed?),
        }
    }

    /// Removes the replaced files that are not kept any longer at the Unix time `now_s` in s. Does nothing before the AOF
    /// has files to load, because a manifest must name at least one file.
    ///
    /// # Errors
    /// Returns errors of the disk. Files that were not removed remain in the manifest, and the call may be repeated.
    pub fn remove_expired(&mut self, now_s: i64) -> Result<(), AofError> {
        self.confirm_manifest()?;
        if !self.exists() {
            return Ok(());
        }
        let surplus = self.manifest.history.len().saturating_sub(KEPT_FILES_MAX);
        let mut kept = Vec::new();
        for (index, file) in self.manifest.history.iter().enumerate() {
            if index >= surplus && self.expiry_s(file) > now_s {
                kept.push(file.clone());
                continue;
            }
            match self.disk.remove(&self.directory.join(&file.name)) {
                Err(error) if error.is_missing() => {}
                result => result?,
            }
        }
        if kept.len() == self.manifest.history.len() {
            return Ok(());
        }
        self.write_manifest(Manifest { history: kept, ..self.manifest.clone() })
    }

    /// Returns the Unix time in s from which on a replaced file is not kept any longer.
    fn expiry_s(&self, file: &AofFile) -> i64 {
        match file.replaced_s {
            Some(replaced_s) if self.keep_s > 0 => replaced_s.saturating_add_unsigned(self.keep_s),
            _ => i64::MIN,
        }
    }

    /// Returns the Unix time in s at which [`AofDirectory::remove_expired`] has files to remove; `None` if no replaced
    /// file exists.
    pub fn next_expiry_s(&self) -> Option<i64> {
        let history = self.manifest.history.iter().filter(|_| self.exists());
        history.map(|file| self.expiry_s(file)).min()
    }

    /// Returns the size in bytes of all replaced files that are kept.
    pub fn kept_bytes(&self) -> u64 {
        let size = |file: &AofFile| {
            let stored = || self.disk.open_to_read(&self.directory.join(&file.name))?.size();
            // A file that does not exist takes no space; other errors are found by the next use of the directory.
            file.size.unwrap_or_else(|| stored().unwrap_or(0))
        };
        self.manifest.history.iter().map(size).sum()
    }
}

#[cfg(feature = "encryption")]
fn unreadable(path: &Path, error: crate::encryption::EncryptionError) -> AofError {
    AofError::Unreadable { file: path.to_owned(), offset: error.offset, cause: error.into() }
}
