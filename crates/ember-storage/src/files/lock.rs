//! The lock of a data directory, which ensures that only one process writes to the directory.
//!
//! It is a `flock` on the file `ember.lock` in the directory, which names the holder. The system releases it when the
//! holder's process ends, for whatever reason. The file is never removed: otherwise two processes could lock two
//! different files of this name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::os::MODE;
use super::{DiskError, Operation};

/// The name of the lock file in the directory.
pub const LOCK_FILE: &str = "ember.lock";

/// The maximum number of bytes read from the lock file.
const HOLDER_BYTES_MAX: u64 = 200;

/// Attempts to acquire a held lock: a process that only reads the holder also holds the lock briefly.
const ATTEMPTS: u32 = 5;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// Exclusive write access to a directory until this is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// The reason why a directory cannot be locked.
#[derive(Debug)]
pub enum LockError {
    /// Another process holds the lock; the text is the lock file's description of that process.
    Held(String),
    /// The file system does not support locks.
    Unsupported(DiskError),
    /// The lock file cannot be written.
    Disk(DiskError),
}

impl DirectoryLock {
    /// Locks `directory`; `holder` is a short description shown to other processes.
    ///
    /// # Errors
    /// Returns an error if the directory is locked, or cannot be locked.
    pub fn take(directory: &Path, holder: &str) -> Result<DirectoryLock, LockError> {
        let path = directory.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(MODE);
        let failed = |cause| LockError::Disk(DiskError::new(Operation::Lock, &path, cause));
        let mut file = options.open(&path).map_err(failed)?;
        for attempt in 1.. {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::WouldBlock) if attempt < ATTEMPTS => thread::sleep(ATTEMPT_PAUSE),
                Err(TryLockError::WouldBlock) => return Err(LockError::Held(holder_in(&mut file))),
                Err(TryLockError::Error(cause)) if is_unsupported(&cause) => {
                    return Err(LockError::Unsupported(DiskError::new(Operation::Lock, &path, cause)));
                }
                Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            }
        }
        // On a full disk the description cannot be written, but the lock is still held.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{holder}"));
        Ok(DirectoryLock { _file: file })
    }

    /// Describes the process that has locked `directory`, if any. The lock and its file are unchanged.
    pub fn holder(directory: &Path) -> Option<String> {
        let mut file = File::open(directory.join(LOCK_FILE)).ok()?;
        match file.try_lock_shared() {
            Err(TryLockError::WouldBlock) => Some(holder_in(&mut file)),
            Ok(()) | Err(TryLockError::Error(_)) => None,
        }
    }
}

fn holder_in(file: &mut File) -> String {
    let mut text = Vec::new();
    // If the contents cannot be read, the description is empty.
    let _ = file.take(HOLDER_BYTES_MAX).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let text: String = text.trim().chars().filter(|character| !character.is_control()).collect();
    if text.is_empty() { "which has not identified itself".to_owned() } else { text }
}

/// ENOLCK: a network file system without lock support.
const ENOLCK: i32 = 37;

fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_and_errors_name_it() {
        let directory = std::env::temp_dir().join(format!("ember-lock-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        assert_eq!(DirectoryLock::holder(&directory), None);
        let lock = DirectoryLock::take(&directory, "process 7, port 1").unwrap();
        let taken = DirectoryLock::take(&directory, "process 8");
        assert!(matches!(taken, Err(LockError::Held(holder)) if holder == "process 7, port 1"));
        assert_eq!(DirectoryLock::holder(&directory).as_deref(), Some("process 7, port 1"));
        drop(lock);
        assert_eq!(DirectoryLock::holder(&directory), None);
        drop(DirectoryLock::take(&directory, "8").unwrap());
        assert_eq!(std::fs::read_to_string(directory.join(LOCK_FILE)).unwrap(), "8\n");
        std::fs::remove_dir_all(&directory).unwrap();
        let missing = DirectoryLock::take(&directory, "8").unwrap_err();
        assert!(matches!(missing, LockError::Disk(error) if error.is_missing()));
    }
}
