//! A segment: its file, and its buffers that are not written yet.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};

use parking_lot::{Mutex, RwLock};

use super::buffers::Buffer;
use super::codec::Decoder;
use super::location::SegmentNumber;
use super::record::Place;
use crate::files::{Disk, DiskError, StoredFile};

/// The maximum number of open segment files: far below the process's limit for file descriptors, since clients need the
/// remaining descriptors.
const OPEN_FILES_MAX: usize = 256;

/// Whether a read may wait for the disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Patience {
    /// The read may wait for the disk.
    Waits,
    /// The read returns `None` instead of waiting for the disk.
    None,
}

#[derive(Debug)]
pub(super) struct Segment {
    // These fields are set at creation and never change.
    pub(super) number: SegmentNumber,
    pub(super) sequence: u64,
    pub(super) path: PathBuf,
    pub(super) decoder: Decoder,
    // These fields are shared. Flags are set with Release, and read with Acquire where no lock is held.
    /// Size of the segment in bytes, including bytes in buffers.
    end: AtomicU64,
    /// Whether no further records are appended.
    is_sealed: AtomicBool,
    /// Whether the file exists, because the first buffer has been written.
    is_created: AtomicBool,
    /// Whether the file is to be removed as soon as it is unused.
    is_removed: AtomicBool,
    /// The buffers that are not written yet, in the order of their offsets.
    buffers: RwLock<Vec<Arc<Buffer>>>,
    file: Mutex<Option<Arc<dyn StoredFile>>>,
}

impl Segment {
    pub(super) fn new(number: SegmentNumber, sequence: u64, path: PathBuf, decoder: Decoder) -> Segment {
        Segment {
            number,
            sequence,
            path,
            decoder,
            end: AtomicU64::new(0),
            is_sealed: AtomicBool::new(false),
            is_created: AtomicBool::new(false),
            is_removed: AtomicBool::new(false),
            buffers: RwLock::default(),
            file: Mutex::default(),
        }
    }

    pub(super) fn place(&self, offset: u64) -> Place {
        Place { sequence: self.sequence, offset }
    }

    pub(super) fn end(&self) -> u64 {
        self.end.load(Ordering::Acquire)
    }

    pub(super) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    pub(super) fn is_sealed(&self) -> bool {
        self.is_sealed.load(Ordering::Acquire)
    }

    pub(super) fn seal(&self) {
        self.is_sealed.store(true, Ordering::Release);
    }

    pub(super) fn is_created(&self) -> bool {
        self.is_created.load(Ordering::Acquire)
    }

    pub(super) fn is_removed(&self) -> bool {
        self.is_removed.load(Ordering::Acquire)
    }

    pub(super) fn mark_removed(&self) {
        self.is_removed.store(true, Ordering::Release);
    }

    pub(super) fn has_buffers(&self) -> bool {
        !self.buffers.read().is_empty()
    }

    pub(super) fn add_buffer(&self, buffer: &Arc<Buffer>) {
        self.buffers.write().push(Arc::clone(buffer));
    }

    pub(super) fn drop_buffer(&self, buffer: &Arc<Buffer>) {
        self.buffers.write().retain(|other| !Arc::ptr_eq(other, buffer));
    }

    /// Whether the byte at `offset` is in a buffer.
    pub(super) fn is_buffered(&self, offset: u64) -> bool {
        self.buffers.read().iter().any(|buffer| {
            let len = buffer.bytes.read().len() as u64;
            (buffer.offset..buffer.offset + len).contains(&offset)
        })
    }

    /// Reads from `offset` on, up to the end of the buffer or file that contains the offset, and returns the number of
    /// bytes: 0 at the end, `None` if the read requires waiting.
    fn read_some(
        self: &Arc<Segment>,
        files: &OpenFiles,
        offset: u64,
        out: &mut [u8],
        patience: Patience,
    ) -> Result<Option<usize>, DiskError> {
        let mut len = out.len();
        for buffer in &*self.buffers.read() {
            if buffer.offset > offset {
                len = len.min((buffer.offset - offset) as usize);
                break;
            }
            let bytes = buffer.bytes.read();
            if let Some(rest) = bytes.get((offset - buffer.offset) as usize..).filter(|rest| !rest.is_empty())
            {
                let count = rest.len().min(len);
                out[..count].copy_from_slice(&rest[..count]);
                return Ok(Some(count));
            }
        }
        // A buffer is dropped after it was written, so bytes in no buffer are in the file.
        if !self.is_created() {
            return Ok(Some(0));
        }
        match patience {
            Patience::Waits => files.of(self)?.read_at(offset, &mut out[..len]).map(Some),
            Patience::None => match files.if_open(self) {
                Some(file) => file.read_ready(offset, &mut out[..len]),
                None => Ok(None),
            },
        }
    }

    /// Reads from `offset` on until `out` is full or the segment ends, and returns the number of bytes. With
    /// [`Patience::None`], returns `None` if some of the bytes require waiting.
    pub(super) fn read(
        self: &Arc<Segment>,
        files: &OpenFiles,
        offset: u64,
        out: &mut [u8],
        patience: Patience,
    ) -> Result<Option<usize>, DiskError> {
        let mut len = 0;
        while len < out.len() {
            match self.read_some(files, offset + len as u64, &mut out[len..], patience)? {
                None => return Ok(None),
                Some(0) => break,
                Some(count) => len += count,
            }
        }
        Ok(Some(len))
    }

    /// Writes a buffer to the file; the first buffer creates the file.
    pub(super) fn write(self: &Arc<Segment>, files: &OpenFiles, buffer: &Buffer) -> Result<u64, DiskError> {
        let file = if self.is_created() { files.of(self)? } else { files.create(self)? };
        let bytes = buffer.bytes.read();
        file.write_at(buffer.offset, &bytes)?;
        self.is_created.store(true, Ordering::Release);
        Ok(bytes.len() as u64)
    }
}

/// The open files of some segments: when another file is needed, the file that was opened first is closed.
#[derive(Debug)]
pub(super) struct OpenFiles {
    pub(super) disk: Arc<dyn Disk>,
    order: Mutex<VecDeque<Weak<Segment>>>,
}

impl OpenFiles {
    pub(super) fn new(disk: Arc<dyn Disk>) -> OpenFiles {
        OpenFiles { disk, order: Mutex::default() }
    }

    fn of(&self, segment: &Arc<Segment>) -> Result<Arc<dyn StoredFile>, DiskError> {
        let mut file = segment.file.lock();
        if let Some(file) = &*file {
            return Ok(Arc::clone(file));
        }
        let opened = self.disk.open(&segment.path)?;
        *file = Some(Arc::clone(&opened));
        drop(file);
        self.enter(segment);
        Ok(opened)
    }

    /// Returns the file of a segment, if it is open and no other thread is opening or closing it.
    fn if_open(&self, segment: &Arc<Segment>) -> Option<Arc<dyn StoredFile>> {
        segment.file.try_lock()?.clone()
    }

    fn create(&self, segment: &Arc<Segment>) -> Result<Arc<dyn StoredFile>, DiskError> {
        let created = self.disk.create(&segment.path)?;
        *segment.file.lock() = Some(Arc::clone(&created));
        self.enter(segment);
        Ok(created)
    }

    fn enter(&self, segment: &Arc<Segment>) {
        let mut order = self.order.lock();
        order.push_back(Arc::downgrade(segment));
        while order.len() > OPEN_FILES_MAX {
            let first = order.pop_front().and_then(|first| first.upgrade());
            if let Some(first) = first {
                // Readers that use the file hold their own handle, so it can be closed here.
                first.file.lock().take();
            }
        }
    }
}
