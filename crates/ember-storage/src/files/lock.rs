//! The lock of a data directory: only one process writes there.
//!
//! It is a `flock` of the file `ember.lock` in the directory, which says who holds it. The system releases it when its
//! holder ends, however that comes about. The file stays: if it were removed, two could hold locks of two files of its name.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::Duration;

use super::os::MODE;
use super::{DiskError, Operation};

/// Its name in the directory.
pub const LOCK_FILE: &str = "ember.lock";

/// How much of what the file says is read.
const HOLDER_BYTES_MAX: u64 = 200;

/// How often a lock that is held is asked for again: whoever only looks holds it for a moment.
const ATTEMPTS: u32 = 5;
const ATTEMPT_PAUSE: Duration = Duration::from_millis(10);

/// A directory that nobody else writes to, until this is dropped.
#[derive(Debug)]
pub struct DirectoryLock {
    _file: File,
}

/// Why a directory cannot be locked.
#[derive(Debug)]
pub enum LockError {
    /// Somebody else holds the lock: what the file says of that.
    Held(String),
    /// There are no locks on this file system.
    Unsupported(DiskError),
    /// The file cannot be written.
    Disk(DiskError),
}

impl DirectoryLock {
    /// Locks `directory`; `holder` is what others are told, in a few words.
    ///
    /// # Errors
    /// If it is locked, or cannot be.
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
        // On a full disk it is a lock all the same.
        let _ = file.set_len(0).and_then(|()| writeln!(file, "{holder}"));
        Ok(DirectoryLock { _file: file })
    }

    /// Who has locked `directory`, if anybody has; looking changes nothing.
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
    // What cannot be read is not said.
    let _ = file.take(HOLDER_BYTES_MAX).read_to_end(&mut text);
    let text = String::from_utf8_lossy(&text);
    let text: String = text.trim().chars().filter(|character| !character.is_control()).collect();
    if text.is_empty() { "which has not said who it is".to_owned() } else { text }
}

/// ENOLCK: a file system of the network whose locks nobody keeps.
const ENOLCK: i32 = 37;

fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == Some(ENOLCK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_has_one_holder_who_is_named() {
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
