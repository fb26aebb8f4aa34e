//! `check` for stores: data sets in the files of an engine.
//!
//! Opening a store may change its files, as at startup after a crash, and an engine that detects damage may abort the
//! process. So the store is copied to a folder next to it, and a separate process checks the copy.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::sync::Arc;

use ember_client::put_line;
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{DirectoryLock, Disk, OsDisk, directory_of};
use ember_storage::stores::{EngineKind, Import, Store, StoreError, StoreOptions};

use super::check::counted;
use super::outcome::{Outcome, encryption, print_problem};
use crate::arguments::{Check, KeyOption};

/// Memory for the read cache, and for the data of fjall's journal, in bytes.
const CACHE_BYTES: u64 = 64 << 20;

/// The maximum number of errors that are printed individually.
const PRINTED_MAX: u64 = 20;

/// Returns the engine and the files of the store at a path, which is its directory or those files.
pub(super) fn store_at(path: &Path) -> Option<(EngineKind, PathBuf)> {
    if let Some(kind) = Store::find(&OsDisk, path).filter(|_| path.is_dir()) {
        return Some((kind, path.join(kind.file_name())));
    }
    let is_it = |kind: &EngineKind| path.file_name().is_some_and(|name| name == kind.file_name());
    let kind = EngineKind::ALL.into_iter().find(is_it).filter(|_| path.exists())?;
    Some((kind, path.to_owned()))
}

/// Checks the store with these files.
pub(super) fn check_store(files: &Path, key: &KeyOption) -> Outcome {
    let directory = directory_of(files);
    if let Some(holder) = DirectoryLock::holder(directory) {
        print_problem(format_args!(
            "{} is in use by a server ({holder}): stop it first, or check a backup",
            files.display()
        ));
        return Outcome::Failed;
    }
    match check_copy(files, directory, key) {
        Ok(status) => match status.code() {
            Some(0) => Outcome::Fine,
            Some(1) => Outcome::Damaged,
            Some(2) => Outcome::Failed,
            _ => {
                let path = files.display();
                print_problem(format_args!(
                    "{path}: its files are damaged: the process that reads them ended with {status}; restore a backup"
                ));
                Outcome::Damaged
            }
        },
        Err(error) => {
            print_problem(format_args!("cannot copy {} for the check: {error}", files.display()));
            Outcome::Failed
        }
    }
}

/// A folder that is removed when this is dropped.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn check_copy(files: &Path, directory: &Path, key: &KeyOption) -> io::Result<ExitStatus> {
    let folder = Folder(directory.join(format!("check-{}", std::process::id())));
    fs::create_dir(&folder.0)?;
    copy(files, &folder.0.join(files.file_name().unwrap_or_default()))?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("check").arg("--opened-as").arg(files).arg(&folder.0);
    if let Some(file) = &key.encryption_key_file {
        command.arg("--encryption-key-file").arg(file);
    }
    command.status()
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if !from.is_dir() {
        return fs::copy(from, to).map(|_| ());
    }
    fs::create_dir(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        copy(&entry.path(), &to.join(entry.file_name()))?;
    }
    Ok(())
}

/// Checks the store in a private directory, whose files are a copy of `files`.
pub(super) fn check_opened(arguments: &Check, files: &Path) -> Outcome {
    // The exit status reports panics of an engine, so their messages are not printed.
    std::panic::set_hook(Box::new(|_| ()));
    let encryption = match encryption(&arguments.key) {
        Ok(encryption) => encryption,
        Err(outcome) => return outcome,
    };
    let found =
        arguments.paths.first().and_then(|directory| Some((directory, Store::find(&OsDisk, directory)?)));
    let Some((directory, kind)) = found else {
        print_problem(format_args!("{} is not a store", files.display()));
        return Outcome::Failed;
    };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let open = |encryption| {
        let options = StoreOptions { cache_bytes: CACHE_BYTES, write_buffer_bytes: CACHE_BYTES, encryption };
        Store::open(kind, &disk, directory, &options)
    };
    let opened = match open(encryption) {
        // The configured key may be for other files.
        Err(StoreError::NotEncrypted) => open(Encryption::off()),
        opened => opened,
    };
    match opened.and_then(|store| check_all(&store, files)) {
        Ok(outcome) => outcome,
        Err(error) => {
            print_problem(format_args!("{}: {error}", files.display()));
            if error.is_damage() { Outcome::Damaged } else { Outcome::Failed }
        }
    }
}

fn check_all(store: &Store, files: &Path) -> Result<Outcome, StoreError> {
    let path = files.display();
    let mut mistakes = 0;
    let checked = store.check(&mut |error| {
        mistakes += 1;
        if mistakes <= PRINTED_MAX {
            print_problem(format_args!("{path}: {error}"));
        }
    })?;
    if mistakes > PRINTED_MAX {
        print_problem(format_args!("{path}: and {} more", mistakes - PRINTED_MAX));
    }
    let (keys, bytes) = (counted(checked.keys, "key", "keys"), checked.value_bytes);
    if mistakes > 0 {
        print_problem(format_args!("{path} is damaged: {keys} can be read; restore a backup"));
        return Ok(Outcome::Damaged);
    }
    let position = store.position();
    if position.as_ref().is_some_and(|position| position.import == Import::UnderWay) {
        print_problem(format_args!(
            "{path}: its import is incomplete: a server that starts with the store and \
             the imported files repeats the import"
        ));
        return Ok(Outcome::Damaged);
    }
    let log = position.map_or("all data are in its log".to_owned(), |position| {
        format!("its log continues with increment {}", position.increment)
    });
    let form = if store.is_encrypted() { ", encrypted" } else { "" };
    let (size, kind) = (store.statistics()?.file_bytes, store.kind());
    put_line(format!(
        "{path}: intact, {size} bytes{form}: {kind} store, {keys}, {bytes} bytes of values; {log}"
    ));
    Ok(Outcome::Fine)
}
