//! Writes the current increment.
//!
//! Writing and syncing are separate: a [`SyncTask`] can run on another thread while batches are appended, and makes
//! everything appended before it durable. Batches of many writers share one sync that way.
//!
//! **After a failed write** the file is cut back to the end of the last batch, and synced, before anything else is
//! written to it; until that succeeds nothing is appended. **After a failed sync** the kernel may have dropped any of
//! the pages, and the next sync would report success. So the bytes appended since the last successful sync are retained
//! in memory, are rewritten in their place through a new handle ([`AofWriter::recover`]), and are durable when that
//! handle has been synced. The bytes are identical, so those that had survived stay valid throughout.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::{identity_line, new_identity};
use super::{AofError, Batch};
use crate::encryption::Encryption;
#[cfg(feature = "encryption")]
use crate::encryption::Sealer;
use crate::files::{Disk, DiskError, StoredFile};

/// The maximum number of unsynced bytes retained in case a sync fails. With more unsynced bytes, a failed sync requires
/// a rewrite. Few servers write that much in a second, and a higher limit would slow those that do: memory that is
/// written once and not read evicts useful data from the caches.
pub const RETAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Appends batches to an increment.
#[derive(Debug)]
pub struct AofWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn StoredFile>,
    /// Number of the handle, which identifies outcomes of older ones.
    handle: u64,
    identity: u64,
    #[cfg(feature = "encryption")]
    sealer: Option<Sealer>,
    /// Encrypted bytes of the current write.
    #[cfg(feature = "encryption")]
    sealed: Vec<u8>,
    /// The end of the valid part of the file.
    good: Place,
    /// The end of the durable part.
    durable: Place,
    /// The bytes between the two.
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

/// The bytes that were appended and are not durable, unless they exceed the limit.
#[derive(Debug)]
struct Retained {
    bytes: Vec<u8>,
    /// The file offset of the first retained byte.
    start: u64,
    /// The limit, in bytes.
    max: usize,
    /// The limit was exceeded: nothing is retained until the next sync begins.
    is_full: bool,
}

impl Retained {
    fn add(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.max && !self.is_full {
            // A part of the bytes would be useless, and so is its memory for a server that writes more than that
            // between two syncs.
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

    /// Begins a sync of everything up to `offset`. If that exceeded the limit, the bytes after it are retained instead,
    /// for use once the sync has succeeded.
    fn begin_sync(&mut self, offset: u64) {
        if self.is_full {
            self.begin_at(offset);
        }
    }

    /// Drops all retained bytes; the next ones begin at `offset`. The allocation stays.
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

    /// Returns everything appended after `durable`, if it is retained.
    fn unsynced(&self, durable: u64) -> Option<&[u8]> {
        (!self.is_full && self.start == durable).then_some(&self.bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Well,
    /// There may be bytes after the valid part.
    HasRest,
    /// The state of the unsynced bytes is unknown.
    SyncFailed,
}

/// A sync to be run on any thread.
#[derive(Debug)]
pub struct SyncTask {
    file: Arc<dyn StoredFile>,
    handle: u64,
    upto: Place,
}

/// The outcome of a sync.
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
    /// Creates an increment at `path` with only its first line, which is durable when this returns; its name is durable
    /// after a sync of the directory.
    ///
    /// # Errors
    /// Those of the disk.
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

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Length of the valid part of the file, in stored bytes.
    pub fn size(&self) -> u64 {
        self.good.stored
    }

    /// Length of the durable part, in stored bytes.
    pub fn durable_size(&self) -> u64 {
        self.durable.stored
    }

    /// Whether a sync has failed and [`AofWriter::recover`] has not succeeded yet.
    pub fn needs_recovery(&self) -> bool {
        self.state == State::SyncFailed
    }

    /// Whether the increment was closed, so that another must be begun.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Appends a batch and returns the new size of the file. The batch is not durable yet. Nothing is written for an
    /// empty batch. The batch is unchanged, so that it can be appended again if this fails.
    ///
    /// # Errors
    /// Those of the disk; the batch is not part of the file then. The next call first tries to remove its remains.
    /// After a failed sync, [`AofWriter::recover`] is needed.
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

    /// Removes the remains of a failed write.
    fn remove_failed_write(&mut self) -> Result<(), AofError> {
        match self.state {
            State::Well => Ok(()),
            State::SyncFailed => Err(AofError::Lost(self.path.clone())),
            State::HasRest => {
                self.file.set_size(self.good.stored)?;
                self.state = State::Well;
                // Otherwise a power cut could restore the removed bytes after the next ones.
                self.sync()
            }
        }
    }

    /// Appends plain bytes to the file.
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
        // Plain files have no end mark.
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

    /// Returns the sync of everything appended so far, to be run on any thread; its outcome must be passed to
    /// [`AofWriter::finish_sync`].
    pub fn sync_task(&mut self) -> SyncTask {
        self.retained.begin_sync(self.good.stored);
        SyncTask { file: Arc::clone(&self.file), handle: self.handle, upto: self.good }
    }

    /// Records the outcome of a sync.
    ///
    /// # Errors
    /// If it failed.
    pub fn finish_sync(&mut self, outcome: SyncOutcome) -> Result<(), AofError> {
        if outcome.handle != self.handle {
            // After a failed sync there is a new handle, which has synced more than this one could have.
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
    /// If the sync failed.
    pub fn sync(&mut self) -> Result<(), AofError> {
        let outcome = self.sync_task().run();
        self.finish_sync(outcome)
    }

    /// Rewrites the bytes that were not durable when a sync failed, through a new handle, and syncs that. May be
    /// retried any number of times.
    ///
    /// # Errors
    /// Those of the disk; and [`AofError::Lost`], if there were too many bytes to retain: a rewrite is needed then.
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

    /// Closes the increment: all of it is durable and marked as such. Nothing can be appended afterwards, even if the
    /// last step fails: another increment may be begun only when this has succeeded, so it must be retried until then.
    ///
    /// # Errors
    /// Those of the disk; after a failed sync, [`AofWriter::recover`] is needed. May be retried.
    pub fn close(&mut self) -> Result<(), AofError> {
        self.remove_failed_write()?;
        self.sync()?;
        if self.is_closed {
            return Ok(());
        }
        // An empty batch, which records the durable offset.
        let mut batch = Batch::new();
        let bytes = batch.seal(self.identity, self.good.said, self.durable.said);
        self.write(bytes, true)?;
        self.is_closed = true;
        self.sync()
    }
}
