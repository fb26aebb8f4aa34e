//! Opening the files of an AOF for writing at startup: at once, or on a full disk as soon as it has space.

use ember_persistence::aof::{AofDirectory, AofError, AofWriter, TornEnd};

/// The files of an AOF after its data set is loaded.
pub(crate) enum OpenedFiles {
    /// The next increment has begun, and is still empty.
    Begun(AofDirectory, AofWriter),
    /// The disk was full: the files must be opened before anything is written.
    Full(UnopenedFiles, AofError),
}

/// Files that could not be opened yet.
pub(crate) struct UnopenedFiles {
    pub(super) directory: AofDirectory,
    /// The torn end to cut off the last increment.
    pub(super) torn: Option<TornEnd>,
    /// No file contains the data set: all of it must be written as a base.
    pub(super) needs_base: bool,
}

impl OpenedFiles {
    /// Opens the files of an AOF that is fully loaded; `torn` is cut off at its end.
    ///
    /// # Errors
    /// Those of the disk, unless it is only full.
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

    /// Returns the state of an AOF whose first files could not be written because the disk is full.
    ///
    /// # Errors
    /// The error, if it has another cause.
    pub(super) fn without_base(directory: AofDirectory, error: AofError) -> Result<OpenedFiles, AofError> {
        if !error.is_full() {
            return Err(error);
        }
        Ok(OpenedFiles::Full(UnopenedFiles { directory, torn: None, needs_base: true }, error))
    }
}

impl UnopenedFiles {
    /// Repairs the last increment and begins the next one. After a failure this can be retried.
    ///
    /// # Errors
    /// Those of the disk.
    pub(super) fn open(&mut self) -> Result<AofWriter, AofError> {
        if self.directory.exists() {
            self.directory.settle(self.torn)?;
            self.directory.remove_history()?;
        }
        self.directory.begin_increment()
    }
}
