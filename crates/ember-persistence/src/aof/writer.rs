//! The increment that is being written.
//!
//! Writing and syncing are apart: a [`SyncTask`] can run on another thread while batches are appended, and makes what was
//! appended before it durable. Many writers' batches share one sync that way.
//!
//! **After a failed write** the file is cut back to the end of the last batch, and synced, before anything else is written
//! to it; until that works nothing is appended. **After a failed sync** the kernel may have dropped any of the pages, and
//! would say that all is well the next time. So what was appended since the last sync that succeeded is kept in memory, is
//! written again in its place through a handle that is opened anew ([`AofWriter::recover`]), and is durable when that
//! handle has been synced. The bytes are the same, so whatever of them had survived stays valid at every moment of it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::batch::{identity_line, new_identity};
use super::{AofError, Batch};
use crate::encryption::Encryption;
#[cfg(feature = "encryption")]
use crate::encryption::Sealer;
use crate::files::{Disk, DiskError, StoredFile};

/// How much of what is not synced is kept for the case that a sync fails. With more, a failed sync needs a rewrite. Few
/// servers write so much in a second, and to keep more would cost those that do: memory that is written once and not read
/// takes the caches from what is.
pub const RETAINED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Appends batches to an increment.
#[derive(Debug)]
pub struct AofWriter {
    disk: Arc<dyn Disk>,
    path: PathBuf,
    file: Arc<dyn StoredFile>,
    /// Counts the handles, so that the outcome for an old one is known as such.
    handle: u64,
    identity: u64,
    #[cfg(feature = "encryption")]
    sealer: Option<Sealer>,
    /// What was sealed for the write that is under way.
    #[cfg(feature = "encryption")]
    sealed: Vec<u8>,
    /// The file is good up to here.
    good: Place,
    /// And durable up to here.
    durable: Place,
    /// What is between the two.
    retained: Retained,
    state: State,
    /// Nothing more is appended.
    is_closed: bool,
}

/// An offset in the file, and in what it says. They differ for encrypted files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    stored: u64,
    said: u64,
}

/// What was appended and is not durable, if it is not too much.
#[derive(Debug)]
struct Retained {
    bytes: Vec<u8>,
    /// The offset in the file where they begin.
    start: u64,
    /// More bytes are not kept.
    max: usize,
    /// It was more: nothing is kept until the next sync begins.
    is_full: bool,
}

impl Retained {
    fn add(&mut self, bytes: &[u8]) {
        let needed = self.bytes.len() + bytes.len();
        if needed > self.max && !self.is_full {
            // A part of it is of no use, nor is its memory, to a server that writes more than that between two syncs.
            (self.bytes, self.is_full) = (Vec::new(), true);
        }
        if !self.is_full {
            if needed > self.bytes.capacity() {
                let room = (2 * self.bytes.capacity()).clamp(needed, self.max);
                self.bytes.reserve_exact(room - self.bytes.len());
            }
            self.bytes.extend_from_slice(bytes);
        }
    }

    /// A sync begins of all up to `offset`. If that is more than what is kept, what comes behind it is kept instead, for
    /// when the sync has succeeded.
    fn begin_sync(&mut self, offset: u64) {
        if self.is_full {
            self.begin_at(offset);
        }
    }

    /// Nothing is kept, and what comes next stands at `offset`. The memory stays.
    fn begin_at(&mut self, offset: u64) {
        self.bytes.clear();
        (self.start, self.is_full) = (offset, false);
    }

    /// All up to `offset` is durable.
    fn remove_until(&mut self, offset: u64) {
        let durable = offset.saturating_sub(self.start).min(self.bytes.len() as u64);
        self.bytes.drain(..durable as usize);
        self.start += durable;
    }

    /// All that was appended behind `durable`, if it is kept.
    fn behind(&self, durable: u64) -> Option<&[u8]> {
        (!self.is_full && self.start == durable).then_some(&self.bytes)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Well,
    /// There may be something behind the good part.
    HasRest,
    /// What is not durable is not known.
    SyncFailed,
}

/// A sync that is to be run, on any thread.
#[derive(Debug)]
pub struct SyncTask {
    file: Arc<dyn StoredFile>,
    handle: u64,
    upto: Place,
}

/// What came of it.
#[derive(Debug)]
pub struct SyncOutcome {
    handle: u64,
    upto: Place,
    result: Result<(), DiskError>,
}

impl SyncTask {
    /// Runs it. It blocks for as long as the disk takes.
    pub fn run(self) -> SyncOutcome {
        SyncOutcome { handle: self.handle, upto: self.upto, result: self.file.sync() }
    }
}

impl AofWriter {
    /// Begins an increment at `path`, empty but for its first line, which is durable when this returns; its name is when
    /// the directory has been synced.
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

    /// Keeps at most `bytes` of what is not synced ([`RETAINED_BYTES_MAX`] unless said otherwise).
    pub fn set_retained_max(&mut self, bytes: usize) {
        self.retained.max = bytes;
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many bytes of the file are good, as it is stored.
    pub fn size(&self) -> u64 {
        self.good.stored
    }

    /// How many of them are durable.
    pub fn durable_size(&self) -> u64 {
        self.durable.stored
    }

    /// Whether a sync has failed and [`AofWriter::recover`] has not yet succeeded.
    pub fn needs_recovery(&self) -> bool {
        self.state == State::SyncFailed
    }

    /// Whether it was closed: another increment is to be begun.
    pub fn is_closed(&self) -> bool {
        self.is_closed
    }

    /// Appends a batch; the size of the file with it. It is not durable. Nothing is written for an empty batch. The batch
    /// is as it was, so that it can be appended again if this fails.
    ///
    /// # Errors
    /// Those of the disk; nothing of the batch counts then. The next call tries first to remove what it has left. After a
    /// failed sync, that [`AofWriter::recover`] is needed.
    pub fn append(&mut self, batch: &mut Batch) -> Result<u64, AofError> {
        if self.is_closed {
            return Err(AofError::Closed(self.path.clone()));
        }
        if !batch.is_empty() {
            self.make_well()?;
            let bytes = batch.seal(self.identity, self.good.said, self.durable.said);
            self.write(bytes, false)?;
        }
        Ok(self.good.stored)
    }

    /// Removes what a failed write has left.
    fn make_well(&mut self) -> Result<(), AofError> {
        match self.state {
            State::Well => Ok(()),
            State::SyncFailed => Err(AofError::Lost(self.path.clone())),
            State::HasRest => {
                self.file.set_size(self.good.stored)?;
                self.state = State::Well;
                // Or else a power cut could bring the rest back, behind what comes next.
                self.sync()
            }
        }
    }

    /// Writes what the file says next.
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
        // A plain file does not say that it is over.
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

    /// The sync of all that was appended, to be run on any thread; [`AofWriter::finish_sync`] wants to know what came of
    /// it.
    pub fn sync_task(&mut self) -> SyncTask {
        self.retained.begin_sync(self.good.stored);
        SyncTask { file: Arc::clone(&self.file), handle: self.handle, upto: self.good }
    }

    /// Takes note of what came of a sync.
    ///
    /// # Errors
    /// That it failed.
    pub fn finish_sync(&mut self, outcome: SyncOutcome) -> Result<(), AofError> {
        if outcome.handle != self.handle {
            // A failed one was answered by a new handle, which has synced more than this one could have.
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

    /// Makes all that was appended durable.
    ///
    /// # Errors
    /// That the sync failed.
    pub fn sync(&mut self) -> Result<(), AofError> {
        let outcome = self.sync_task().run();
        self.finish_sync(outcome)
    }

    /// Writes what was not durable when a sync failed again, through a new handle, and syncs that. It can be tried any
    /// number of times.
    ///
    /// # Errors
    /// Those of the disk; and [`AofError::Lost`], if there was too much of it to be kept: a rewrite is needed then.
    pub fn recover(&mut self) -> Result<(), AofError> {
        if self.state != State::SyncFailed {
            return self.make_well();
        }
        let retained =
            self.retained.behind(self.durable.stored).ok_or_else(|| AofError::Lost(self.path.clone()))?;
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

    /// Ends the increment: all of it is durable, and says so. Nothing can be appended then, also if this fails at its last
    /// step: another increment may be begun only when it has succeeded, and be tried until it has.
    ///
    /// # Errors
    /// Those of the disk; after a failed sync [`AofWriter::recover`] is needed. It can be tried again.
    pub fn close(&mut self) -> Result<(), AofError> {
        self.make_well()?;
        self.sync()?;
        if self.is_closed {
            return Ok(());
        }
        // A batch with nothing in it, which says what is durable.
        let mut batch = Batch::new();
        let bytes = batch.seal(self.identity, self.good.said, self.durable.said);
        self.write(bytes, true)?;
        self.is_closed = true;
        self.sync()
    }
}
