//! The lock of the data directory: two servers that write to one directory would destroy each other's files.
//!
//! A server that is configured to write (with an AOF, save rules, or as a node of a cluster) takes the lock before it
//! reads any file. Other servers may share the directory, because they write nothing. Such a server takes the lock when
//! a command makes it write a file, and then keeps the lock.

use std::io;
use std::path::Path;

use ember_config::Config;
use ember_persistence::files::{DirectoryLock, LockError};
use parking_lot::Mutex;

/// The data directory: the server's working directory.
const DIRECTORY: &str = ".";

/// Whether this server may write to its data directory.
#[derive(Debug, Default)]
pub(crate) struct DataLock {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Free,
    Held(#[expect(dead_code, reason = "it is released when it is dropped")] DirectoryLock),
    /// The file system does not support locks; this is already logged.
    Unsupported,
}

impl DataLock {
    /// Takes the lock if the configuration makes the server write. A directory that cannot be written only causes a
    /// warning, although later writes to it fail.
    ///
    /// # Errors
    /// Returns one line that names the holder of the lock and the solution.
    pub(crate) fn take_if_writing(&self, config: &Config) -> Result<(), String> {
        if !config.appendonly && config.save.is_empty() && !config.cluster_enabled {
            return Ok(());
        }
        match self.try_take(config) {
            Err(LockError::Held(holder)) => Err(held(&holder)),
            Err(LockError::Disk(error)) => {
                tracing::warn!("{error}: no data can be saved in this directory");
                Ok(())
            }
            Ok(()) | Err(LockError::Unsupported(_)) => Ok(()),
        }
    }

    /// Takes the lock if this server does not hold it. Must be called before any file is written.
    ///
    /// # Errors
    /// Returns one line that names the holder of the lock, or why the lock cannot be taken, and the solution.
    pub(crate) fn take(&self, config: &Config) -> Result<(), String> {
        match self.try_take(config) {
            Err(LockError::Held(holder)) => Err(held(&holder)),
            Err(LockError::Disk(error)) => Err(error.to_string()),
            Ok(()) | Err(LockError::Unsupported(_)) => Ok(()),
        }
    }

    /// Returns whether no other process writes to the data directory.
    pub(crate) fn is_exclusive(&self) -> bool {
        let is_free = matches!(*self.state.lock(), State::Free);
        !is_free || DirectoryLock::holder(Path::new(DIRECTORY)).is_none()
    }

    /// Makes `to` the data directory, and locks it if the previous directory is locked.
    ///
    /// # Errors
    /// Returns one line with the reason; the data directory is then unchanged.
    pub(crate) fn change_directory(&self, to: &Path, config: &Config) -> Result<(), String> {
        let mut state = self.state.lock();
        let shown = |error: io::Error| shown(&error);
        let former = std::env::current_dir().map_err(shown)?;
        let target = std::fs::canonicalize(to).map_err(shown)?;
        if std::fs::canonicalize(&former).is_ok_and(|former| former == target) {
            return Ok(());
        }
        std::env::set_current_dir(&target).map_err(shown)?;
        if matches!(*state, State::Free) {
            return Ok(());
        }
        match DirectoryLock::take(Path::new(DIRECTORY), &holder(config)) {
            Ok(lock) => *state = State::Held(lock),
            Err(LockError::Unsupported(error)) => {
                tracing::warn!(
                    "{error}: this server cannot prevent another one from writing to the same directory"
                );
                *state = State::Unsupported;
            }
            Err(LockError::Disk(error)) => {
                tracing::warn!("{error}: no data can be saved in this directory");
                *state = State::Free;
            }
            Err(LockError::Held(holder)) => {
                let error = held(&holder);
                std::env::set_current_dir(&former).map_err(shown)?;
                return Err(error);
            }
        }
        Ok(())
    }

    fn try_take(&self, config: &Config) -> Result<(), LockError> {
        let mut state = self.state.lock();
        if !matches!(*state, State::Free) {
            return Ok(());
        }
        let taken = DirectoryLock::take(Path::new(DIRECTORY), &holder(config));
        if let Err(LockError::Unsupported(error)) = &taken {
            tracing::warn!(
                "{error}: this server cannot prevent another one from writing to the same directory"
            );
            *state = State::Unsupported;
        }
        *state = State::Held(taken?);
        Ok(())
    }
}

/// Returns the description of this server that other processes see as the holder of the lock.
fn holder(config: &Config) -> String {
    match [config.port, config.tls_port].into_iter().find(|&port| port != 0) {
        Some(port) => format!("process {}, port {port}", std::process::id()),
        None => format!("process {}", std::process::id()),
    }
}

/// Returns the system's error text without the error number.
fn shown(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

fn held(holder: &str) -> String {
    let directory = std::env::current_dir().unwrap_or_else(|_| DIRECTORY.into());
    format!(
        "the data directory '{}' is used by another server ({holder}): stop that server, set another \
         directory with `--dir`, or disable persistence with `--save '' --appendonly no`",
        directory.display()
    )
}
