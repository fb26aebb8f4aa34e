//! Writes the increment of an AOF that is currently appended to.
//!
//! Writing and syncing are separate: a [`SyncTask`] can run on another thread while batches are appended, and makes all
//! batches durable that were appended before it was created. So batches of many writers share one sync.
//!
//! **After a failed write**, the file is cut back to the end of the last batch, and synced; until both succeed, nothing
//! is appended. **After a failed sync**, the kernel may have dropped any of the unsynced pages, and the next sync would
//! report success. So the bytes appended since the last successful sync are retained in memory, are written again at
//! the same offsets through a new file handle ([`AofWriter::recover`]), and are durable once that handle has been
//! synced. The written bytes are identical, so bytes that had reached the disk stay valid throughout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::{identity_line, new_identity};
use super::{AofError, Batch};
use crate::encryption::Encryption;
#[cfg(feature = "encryption")]
use crate::encryption::Sealer;
use crate::files::{Disk, DiskError, StoredFile};

/// The maximum number of unsynced bytes retained in case a sync fails. With more unsynced bytes, a failed sync requires
/// a rewrite. Few servers write that much in a second, and a higher limit would slow those servers down: memory that is
/// written once and not read evicts useful data from the processor's caches.
pub const RETAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Appends batches to an increment.
#[derive(Debug)]
pub struct AofWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn StoredFile>,
    /// The number of the file handle, which identifies outcomes of syncs of older handles.
    handle: u64,
    identity: u64,
    #[cfg(feature = "encryption")]
    sealer: Option<Sealer>,
    /// A buffer for the encrypted bytes of the current write.
    #[cfg(feature = "encryption")]
    sealed: Vec<u8>,
    /// The end of the valid part of the file.
    good: Place,
    /// The end of the durable part of the file.
    durable: Place,
    /// The bytes between `durable` and `good`.
    retained: Retained,
    state: State,
    /// Whether the increment is closed.
    is_closed: bool,
}

/// An offset in the stored file, and in its plain contents. They differ for encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    stored: u64,
    said: u64,
}

/// A copy of the bytes that were appended and are not durable, unless they exceed the limit.
#[derive(Debug)]
struct Retained {
    bytes: Vec<u8>,
    /// The file offset of the first retained byte.
    start: u64,
    /// The maximum length of `bytes`.
    max: usize,
    /// Whether the limit was exceeded: no bytes are retained until the next sync begins.
    is_full: bool,
}

impl Retained {
    fn add(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.max && !self.is_full {
            // A part of the unsynced bytes would be useless for recovery. Its memory is freed, because a server that
            // has written more than the limit between two syncs is likely to do so again.
            (self.bytes, self.is_full) = (Vec::new(), true);
        }
        if !self.is_full {
            if needed > self.bytes.capacity() {
                let capacity = (2 * self.bytes.capacity()).clamp(needed, self.max);
                self.bytes.reserve_exact(capacity - self.bytes.len());
            }
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// Begins a sync of everything up to `offset`. If the limit was exceeded before, the bytes after `offset` are
    /// retained from now on: they suffice once the sync has succeeded.
    fn begin_sync(&mut self, offset: u64) {
        if self.is_full {
            self.begin_at(offset);
        }
    }

    /// Drops all retained bytes; the next retained byte is at `offset`. The allocation is kept.
    fn begin_at(&mut self, offset: u64) {
        self.bytes.clear();
        (self.start, self.is_full) = (offset, false);
    }

    /// Drops the bytes up to `offset`, which are durable.
    fn remove_until(&mut self, offset: u64) {
        let durable = offset.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.bytes.drain(..durable as usize);
        self.start += durable;
    }

    /// Returns all bytes appended after offset `durable`, if they are retained.
    fn unsynced(&self, durable: u64) -> Option<&[u8]> {
        (!self.is_full && self.start == durable).then_some(&self.bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Well,
    /// The file may contain bytes of a failed write after its valid part.
    HasRest,
    /// A sync has failed, so it is unknown which unsynced bytes are on the disk.
    SyncFailed,
}

/// A sync to be run on any thread.
#[derive(Debug)]
pub struct SyncTask {
    file: Arc<dyn StoredFile>,
    handle: u64,
    upto: Place,
}

/// The outcome of a [`SyncTask`].
#[derive(Debug)]
pub struct SyncOutcome {
    handle: u64,
    upto: Place,
    result: Result<(), DiskError>,
}

impl SyncTask {
    /// Runs the sync. Blocks for as long as the disk takes.
    pub fn run(self) -> SyncOutcome {
        SyncOutcome { handle: self.handle, upto: self.upto, result: self.file.sync() }
    }
}

impl AofWriter {
    /// Creates an increment at `path` that contains only its first line, and syncs the file. The file's name is durable
    /// only after a sync of the directory.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub fn create(disk: &Arc<dyn Disk>, path: &Path, encryption: &Encryption) -> Result<AofWriter, AofError> {
        let identity = new_identity();
        let identity =
            identity.map_err(|cause| AofError::Unreadable { file: path.to_owned(), offset: 0, cause })?;
        let file = disk.create(path)?;
        let nothing = Place { stored: 0, said: 0 };
        let mut writer = AofWriter {
            disk: Arc::clone(disk),
            path: path.to_owned(),
            file,
            handle: 0,
            identity,
            #[cfg(feature = "encryption")]
            sealer: None,
            #[cfg(feature = "encryption")]
            sealed: Vec::new(),
            good: nothing,
            durable: nothing,
            retained: Retained { bytes: Vec::new(), start: 0, max: RETAINED_BYTES_MAX, is_full: false },
            state: State::Well,
            is_closed: false,
        };
        #[cfg(feature = "encryption")]
        if let Some(keys) = encryption.keys() {
            let (sealer, head) = Sealer::begin(keys);
            writer.put(&head, 0)?;
            writer.sealer = Some(sealer);
        }
        debug_assert!(cfg!(feature = "encryption") || !encryption.is_on(), "with keys the file is encrypted");
        writer.write(&identity_line(identity), false)?;
        writer.sync()?;
        Ok(writer)
    }

    /// Sets the limit for retained unsynced bytes ([`RETAINED_BYTES_MAX`] by default).
    pub fn set_retained_max(&mut self, bytes: usize) {
        self.retained.max = bytes;
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the length of the valid part of the file, in stored bytes.
    pub fn size(&self) -> u64 {
        self.good.stored
    }

    /// Returns the length of the durable part of the file, in stored bytes.
    pub fn durable_size(&self) -> u64 {
        self.durable.stored
    }

    /// Whether a sync has failed and [`AofWriter::recover`] has not succeeded yet.
    pub fn needs_recovery(&self) -> bool {
        self.state == State::SyncFailed
    }

    /// Whether the increment is closed, so that the next one must be begun.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Appends a batch and returns the new size of the file in stored bytes. The batch is not durable yet. An empty
    /// batch writes nothing. The batch is unchanged, so that it can be appended again if this fails.
    ///
    /// # Errors
    /// Returns errors of the disk; the batch is then not part of the file, and the next call first tries to remove what
    /// was written of it. After a failed sync, [`AofWriter::recover`] must be called first.
    pub fn append(&mut self, batch: &mut Batch) -> Result<u64, AofError> {
        if self.is_closed {
            return Err(AofError::Closed(self.path.clone()));
        }
        if !batch.is_empty() {
            self.remove_failed_write()?;
            let bytes = batch.seal(self.identity, self.good.said, self.durable.said);
            self.write(bytes, false)?;
        }
        Ok(self.good.stored)
    }

    /// Removes the bytes of a failed write from the file.
    fn remove_failed_write(&mut self) -> Result<(), AofError> {
        match self.state {
            State::Well => Ok(()),
            State::SyncFailed => Err(AofError::Lost(self.path.clone())),
            State::HasRest => {
                self.file.set_size(self.good.stored)?;
                self.state = State::Well;
                // Without this sync, a power failure could restore the removed bytes after bytes that are appended
                // later.
                self.sync()
            }
        }
    }

    /// Appends plain bytes, encrypted if the file is. `is_last` marks the end of an encrypted file.
    fn write(&mut self, said: &[u8], is_last: bool) -> Result<(), AofError> {
        #[cfg(feature = "encryption")]
        if let Some(sealer) = &mut self.sealer {
            let mut sealed = std::mem::take(&mut self.sealed);
            sealed.clear();
            let offset = sealer.offset();
            sealer.seal(said, self.durable.said, is_last, &mut sealed);
            let result = self.put(&sealed, said.len() as u64);
            self.sealed = sealed;
            if let (Err(_), Some(sealer)) = (&result, &mut self.sealer) {
                sealer.back_to(offset);
            }
            return result;
        }
        // Only encrypted files have an end mark.
        let _ = is_last;
        self.put(said, said.len() as u64)
    }

    fn put(&mut self, stored: &[u8], said_bytes: u64) -> Result<(), AofError> {
        if let Err(error) = self.file.write_at(self.good.stored, stored) {
            self.state = State::HasRest;
            return Err(error.into());
        }
        self.good.stored += stored.len() as u64;
        self.good.said += said_bytes;
        self.retained.add(stored);
        Ok(())
    }

    /// Returns a task that makes everything appended so far durable. Any thread may run it; its outcome must be passed
    /// to [`AofWriter::finish_sync`].
    pub fn sync_task(&mut self) -> SyncTask {
        self.retained.begin_sync(self.good.stored);
        SyncTask { file: Arc::clone(&self.file), handle: self.handle, upto: self.good }
    }

    /// Records the outcome of a [`SyncTask`].
    ///
    /// # Errors
    /// Returns an error if the sync failed.
    pub fn finish_sync(&mut self, outcome: SyncOutcome) -> Result<(), AofError> {
        if outcome.handle != self.handle {
            // The outcome belongs to an older handle. The current handle was created after a failed sync, and has
            // synced at least as much.
            return Ok(());
        }
        if let Err(error) = outcome.result {
            self.state = State::SyncFailed;
            return Err(error.into());
        }
        if outcome.upto > self.durable {
            if outcome.upto == self.good {
                self.retained.begin_at(self.good.stored);
            } else {
                self.retained.remove_until(outcome.upto.stored);
            }
            self.durable = outcome.upto;
        }
        Ok(())
    }

    /// Makes everything appended so far durable.
    ///
    /// # Errors
    /// Returns an error if the sync failed.
    pub fn sync(&mut self) -> Result<(), AofError> {
        let outcome = self.sync_task().run();
        self.finish_sync(outcome)
    }

    /// After a failed sync, writes the bytes that were not durable again through a new file handle, and syncs it. May
    /// be retried any number of times.
    ///
    /// # Errors
    /// Returns errors of the disk, or [`AofError::Lost`] if there were too many bytes to retain: the AOF must then be
    /// rewritten.
    pub fn recover(&mut self) -> Result<(), AofError> {
        if self.state != State::SyncFailed {
            return self.remove_failed_write();
        }
        let retained =
            self.retained.unsynced(self.durable.stored).ok_or_else(|| AofError::Lost(self.path.clone()))?;
        let file = self.disk.open(&self.path)?;
        file.write_at(self.durable.stored, retained)?;
        file.set_size(self.good.stored)?;
        file.sync()?;
        self.file = file;
        self.handle += 1;
        self.durable = self.good;
        self.retained.begin_at(self.good.stored);
        self.state = State::Well;
        Ok(())
    }

    /// Closes the increment: all of it becomes durable and is marked as durable. Nothing can be appended afterwards,
    /// even if this fails: the next increment may be begun only when this has succeeded, so it must be retried.
    ///
    /// # Errors
    /// Returns errors of the disk; after a failed sync, [`AofWriter::recover`] must be called first. The call may be
    /// retried.
    pub fn close(&mut self) -> Result<(), AofError> {
        self.remove_failed_write()?;
        self.sync()?;
        if self.is_closed {
            return Ok(());
        }
        // An empty batch records that everything before it is durable.
        let mut batch = Batch::new();
        let bytes = batch.seal(self.identity, self.good.said, self.durable.said);
        self.write(bytes, true)?;
        self.is_closed = true;
        self.sync()
    }
}
