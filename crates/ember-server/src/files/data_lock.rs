//! The lock of the data directory: two servers that write to one would destroy what either keeps there.
//!
//! A server takes it before it reads anything if it is to write: with an AOF or save rules. Any other may run beside it, as
//! it keeps nothing; it takes the lock when it is told to write after all, and keeps it then.

use std::io;
use std::path::Path;

use ember_persistence::files::{DirectoryLock, LockError};
use parking_lot::Mutex;

use crate::config::Config;

/// The directory: the server's own.
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
    /// The file system has no locks, which has been said.
    Unsupported,
}

impl DataLock {
    /// Takes the lock if the server is to write by itself. A directory that cannot be written only gives a warning: later
    /// writes there fail.
    ///
    /// # Errors
    /// One line that says who holds it, and what to do.
    pub(crate) fn take_if_writing(&self, config: &Config) -> Result<(), String> {
        if !config.appendonly && config.save.is_empty() {
            return Ok(());
        }
        match self.try_take(config) {
            Err(LockError::Held(holder)) => Err(held(&holder)),
            Err(LockError::Disk(error)) => {
                tracing::warn!("{error}: nothing can be kept there");
                Ok(())
            }
            Ok(()) | Err(LockError::Unsupported(_)) => Ok(()),
        }
    }

    /// Takes the lock if this server does not hold it: before anything is written.
    ///
    /// # Errors
    /// One line that says who holds it, or why it cannot be taken, and what to do.
    pub(crate) fn take(&self, config: &Config) -> Result<(), String> {
        match self.try_take(config) {
            Err(LockError::Held(holder)) => Err(held(&holder)),
            Err(LockError::Disk(error)) => Err(error.to_string()),
            Ok(()) | Err(LockError::Unsupported(_)) => Ok(()),
        }
    }

    /// Whether nobody else writes to the directory.
    pub(crate) fn is_nobody_elses(&self) -> bool {
        let is_free = matches!(*self.state.lock(), State::Free);
        !is_free || DirectoryLock::holder(Path::new(DIRECTORY)).is_none()
    }

    /// Makes `to` the data directory, and locks it if the former one is locked.
    ///
    /// # Errors
    /// One line that says why not; the directory is the former one then.
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
                tracing::warn!("{error}: nothing keeps another server from writing to the same directory");
                *state = State::Unsupported;
            }
            Err(LockError::Disk(error)) => {
                tracing::warn!("{error}: nothing can be kept there");
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
            tracing::warn!("{error}: nothing keeps another server from writing to the same directory");
            *state = State::Unsupported;
        }
        *state = State::Held(taken?);
        Ok(())
    }
}

/// What others are told of this server.
fn holder(config: &Config) -> String {
    match [config.port, config.tls_port].into_iter().find(|&port| port != 0) {
        Some(port) => format!("process {}, port {port}", std::process::id()),
        None => format!("process {}", std::process::id()),
    }
}

/// The system's words, without the number of the error.
fn shown(error: &io::Error) -> String {
    let text = error.to_string();
    text.split_once(" (os error").map_or(text.clone(), |(words, _)| words.to_owned())
}

fn held(holder: &str) -> String {
    let directory = std::env::current_dir().unwrap_or_else(|_| DIRECTORY.into());
    format!(
        "the data directory '{}' is used by another server ({holder}): stop that one, or give this one a directory of \
         its own with `--dir`, or let it keep nothing on disk with `--save '' --appendonly no`",
        directory.display()
    )
}
