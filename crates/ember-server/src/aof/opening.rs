//! Opening the files of an AOF for writing at startup; if the disk is full, as soon as space is free.

use ember_persistence::aof::{AofDirectory, AofError, AofWriter, TornEnd};

use crate::system::clock::unix_ms;

/// The files of an AOF after its data set was loaded.
pub(crate) enum OpenedFiles {
    /// The next increment is created, and is still empty.
    Begun(AofDirectory, AofWriter),
    /// The disk is full: the files must be opened before any record can be written.
    Full(UnopenedFiles, AofError),
}

/// Files that could not be opened yet.
pub(crate) struct UnopenedFiles {
    pub(super) directory: AofDirectory,
    /// The torn end of the last increment, which must be cut off.
    pub(super) torn: Option<TornEnd>,
    /// Whether no file contains the data set, so that all of it must be written as a base.
    pub(super) needs_base: bool,
}

impl OpenedFiles {
    /// Opens the files of a loaded AOF; `torn`, the torn end of the last file, is cut off.
    ///
    /// # Errors
    /// Returns errors of the disk other than a full disk.
    pub(super) fn continue_files(
        directory: AofDirectory,
        torn: Option<TornEnd>,
    ) -> Result<OpenedFiles, AofError> {
        let mut files = UnopenedFiles { directory, torn, needs_base: false };
        match files.open() {
            Ok(writer) => Ok(OpenedFiles::Begun(files.directory, writer)),
            Err(error) if error.is_full() => Ok(OpenedFiles::Full(files, error)),
            Err(error) => Err(error),
        }
    }

    /// Returns the files of an AOF that could not be created because the disk is full.
    ///
    /// # Errors
    /// Returns `error` if its cause is not a full disk.
    pub(super) fn without_base(directory: AofDirectory, error: AofError) -> Result<OpenedFiles, AofError> {
        if !error.is_full() {
            return Err(error);
        }
        Ok(OpenedFiles::Full(UnopenedFiles { directory, torn: None, needs_base: true }, error))
    }
}

impl UnopenedFiles {
    /// Cuts off the torn end and begins the next increment. May be retried after a failure.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub(super) fn open(&mut self) -> Result<AofWriter, AofError> {
        if self.directory.exists() {
            self.directory.settle(self.torn)?;
            self.directory.remove_expired(unix_ms() / 1000)?;
        }
        self.directory.begin_increment()
    }
}
