//! The segment log: appending, reading, writing buffers, removing segments.

use std::collections::HashMap;
use std::fmt::{self, Display};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::buffers::Buffers;
use super::codec::{self, Encoder, Extent};
use super::live::LiveBytes;
use super::location::{Location, SegmentNumber};
use super::record::{self, Record, RecordHead};
use super::records::Records;
use super::segment::{OpenFiles, Patience, Segment};
use super::{BUFFER_BYTES, HEAD_BYTES, segment_bytes};
use crate::encryption::Encryption;
use crate::files::{Disk, DiskError};

/// Prefix and suffix of segment file names; between them is the segment's sequence number since startup.
const NAME_PREFIX: &str = "segment-";
const NAME_SUFFIX: &str = ".tier";

/// The directory of a log and its limits.
#[derive(Clone, Debug)]
pub struct LogOptions {
    /// The directory of the segments; nothing else may use it.
    pub directory: PathBuf,
    /// The limit for the total size of the segment files, in bytes. Moved records may exceed it by one segment.
    pub limit_bytes: u64,
    /// Whether the files are encrypted, and with which key.
    pub encryption: Encryption,
}

/// The reason for an append, which determines its space limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendSource {
    /// The demotion of a value: the record must fit below the limit.
    Demoted,
    /// The move of a record out of a segment that will be removed, which frees space: moves may exceed the limit by one
    /// segment.
    Moved,
}

/// The selection of buffers to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Full buffers.
    Full,
    /// Full buffers and the open one.
    All,
}

/// The reason why a record was not appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFull {
    /// All buffers are full: some must be written first.
    Buffers,
    /// The files have reached their limit.
    Limit,
    /// The last write has failed.
    Failing,
    /// The record exceeds the maximum length.
    TooLarge,
}

impl Display for LogFull {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            LogFull::Buffers => "all buffers are waiting to be written",
            LogFull::Limit => "the segments have reached their limit",
            LogFull::Failing => "the last write has failed",
            LogFull::TooLarge => "the record is too large",
        })
    }
}

impl std::error::Error for LogFull {}

/// Buffers could not be written. Their records can still be read.
#[derive(Debug)]
pub struct WriteFailed {
    /// The error of the disk.
    pub cause: DiskError,
}

impl Display for WriteFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.cause.fmt(f)
    }
}

impl std::error::Error for WriteFailed {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.cause)
    }
}

/// The reason why a record could not be read.
#[derive(Debug)]
pub enum ReadError {
    /// The disk failed.
    Disk(DiskError),
    /// The bytes differ from the written ones.
    Damaged {
        /// The file.
        path: PathBuf,
        /// The offset of the record in the file.
        offset: u64,
    },
    /// The segment has been removed, or the record never existed.
    Removed,
}

impl Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReadError::Disk(error) => error.fmt(f),
            ReadError::Damaged { path, offset } => {
                write!(f, "{} at offset {offset}: the record differs from what was written", path.display())
            }
            ReadError::Removed => f.write_str("its segment has been removed"),
        }
    }
}

impl std::error::Error for ReadError {}

/// The current state of a segment.
#[derive(Clone, Copy, Debug)]
pub struct SegmentInfo {
    /// The number of the segment.
    pub number: SegmentNumber,
    /// Size of the segment in bytes, including bytes that are not written yet.
    pub stored_bytes: u64,
    /// Size of the referenced records in bytes.
    pub live_bytes: u64,
    /// Whether the segment accepts no further records.
    pub is_sealed: bool,
}

/// Statistics of a log.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogStatistics {
    /// Number of segments, excluding removed segments that are still being read.
    pub segments: u64,
    /// Size of all segments in bytes, including bytes that are not written yet and removed segments that are still
    /// being read.
    pub stored_bytes: u64,
    /// Size of the referenced records in bytes.
    pub live_bytes: u64,
    /// Memory of the buffers, in bytes.
    pub buffer_bytes: u64,
    /// The limit for the files, in bytes.
    pub limit_bytes: u64,
    /// Stored bytes of the records appended with [`AppendSource::Demoted`] since startup.
    pub demoted_bytes: u64,
    /// Stored bytes of the records appended with [`AppendSource::Moved`] since startup.
    pub moved_bytes: u64,
    /// Bytes written to the disk since startup.
    pub written_bytes: u64,
    /// Number of writes that have failed since startup.
    pub write_errors: u64,
}

#[derive(Debug, Default)]
struct Counters {
    demoted_bytes: AtomicU64,
    moved_bytes: AtomicU64,
    written_bytes: AtomicU64,
    write_errors: AtomicU64,
}

/// The state that determines where the next record is appended.
#[derive(Debug, Default)]
struct Tail {
    open: Option<(Arc<Segment>, Encoder)>,
    buffers: Buffers,
    /// Whether the last write failed.
    is_failing: bool,
    next_number: u32,
    next_sequence: u64,
}

/// A log of records in segments. All functions may be called from any thread.
///
/// Locks are taken in this order: writing, tail, the table of segments, a segment's buffers, a buffer.
#[derive(Debug)]
pub struct SegmentLog {
    // These fields are set at creation and never change.
    files: OpenFiles,
    directory: PathBuf,
    encryption: Encryption,
    live: Arc<LiveBytes>,
    // These fields are protected by locks.
    /// Removed segments whose files may still exist. The lock is held while buffers are written or segments removed,
    /// and, unlike all other locks, during disk I/O.
    writing: Mutex<Vec<Arc<Segment>>>,
    tail: Mutex<Tail>,
    table: RwLock<HashMap<SegmentNumber, Arc<Segment>>>,
    // These fields are shared without a lock.
    limit_bytes: AtomicU64,
    /// Size of all segments in bytes, including removed segments that are not freed yet.
    stored_bytes: AtomicU64,
    counters: Counters,
}

impl SegmentLog {
    /// Opens an empty log. Removes segments that another process has left in the directory.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn open(disk: Arc<dyn Disk>, options: LogOptions) -> Result<SegmentLog, DiskError> {
        disk.create_directory(&options.directory)?;
        for name in disk.list(&options.directory)? {
            if is_segment_name(&name.to_string_lossy()) {
                disk.remove(&options.directory.join(name))?;
            }
        }
        Ok(SegmentLog {
            files: OpenFiles::new(disk),
            directory: options.directory,
            encryption: options.encryption,
            live: Arc::default(),
            writing: Mutex::default(),
            tail: Mutex::default(),
            table: RwLock::default(),
            limit_bytes: AtomicU64::new(options.limit_bytes),
            stored_bytes: AtomicU64::new(0),
            counters: Counters::default(),
        })
    }

    /// Returns the live bytes of the segments: [`SegmentLog::append`] adds a record to them, and the owner of a
    /// location must subtract the record ([`LiveBytes::discount`]) when it drops the location.
    pub fn live(&self) -> &Arc<LiveBytes> {
        &self.live
    }

    /// Sets the limit for the total size of the files.
    pub fn set_limit(&self, bytes: u64) {
        self.limit_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Appends a record to a buffer, from which it can be read at once. The disk is not accessed.
    ///
    /// # Errors
    /// Returns the reason if the record cannot be appended.
    pub fn append(
        &self,
        head: &RecordHead<'_>,
        value: &[u8],
        source: AppendSource,
    ) -> Result<Location, LogFull> {
        let len = record::record_bytes(head, value).ok_or(LogFull::TooLarge)?;
        let stored = codec::stored_bytes(&self.encryption, len);
        u32::try_from(stored + HEAD_BYTES).map_err(|_| LogFull::TooLarge)?;
        let mut tail = self.tail.lock();
        if tail.is_failing {
            return Err(LogFull::Failing);
        }
        let (segment, offset) = self.reserve(&mut tail, stored, source)?;
        let at = Location::new(segment.number, offset, stored);
        let Tail { open: Some((_, encoder)), buffers, .. } = &mut *tail else {
            unreachable!("space was reserved in an open segment")
        };
        let buffer = buffers.open().expect("space was reserved in an open buffer");
        encoder.put(segment.place(offset), head, value, &mut buffer.bytes.write());
        segment.set_end(offset + stored);
        self.stored_bytes.fetch_add(stored, Ordering::Relaxed);
        self.live.add(at, stored);
        let counter = match source {
            AppendSource::Demoted => &self.counters.demoted_bytes,
            AppendSource::Moved => &self.counters.moved_bytes,
        };
        counter.fetch_add(stored, Ordering::Relaxed);
        Ok(at)
    }

    /// Returns the open segment, its end, and a buffer with space for `stored` bytes at that end.
    fn reserve(
        &self,
        tail: &mut Tail,
        stored: u64,
        source: AppendSource,
    ) -> Result<(Arc<Segment>, u64), LogFull> {
        let limit = self.limit_bytes.load(Ordering::Relaxed);
        let segment_bytes = segment_bytes(limit);
        let limit = if source == AppendSource::Moved { limit.saturating_add(segment_bytes) } else { limit };
        let used = self.stored_bytes.load(Ordering::Relaxed);
        let fits = tail.open.as_ref().is_some_and(|(segment, _)| segment.end() + stored <= segment_bytes);
        let needed = if fits { stored } else { stored + HEAD_BYTES };
        if used.saturating_add(needed) > limit {
            return Err(LogFull::Limit);
        }
        if let Some((segment, _)) = tail.open.as_ref().filter(|_| fits) {
            let segment = Arc::clone(segment);
            let offset = segment.end();
            let filled = tail.buffers.open().map(|buffer| buffer.bytes.read().len() as u64);
            let capacity = BUFFER_BYTES.min((segment_bytes - offset) as usize).max(stored as usize);
            if filled.is_none_or(|filled| filled + stored > BUFFER_BYTES as u64)
                && !tail.buffers.begin(&segment, offset, capacity)
            {
                return Err(LogFull::Buffers);
            }
            return Ok((segment, offset));
        }
        self.begin_segment(tail, stored, segment_bytes).ok_or(LogFull::Buffers)
    }

    /// Begins a new segment, with a buffer that contains its head; None if there are too many buffers.
    fn begin_segment(&self, tail: &mut Tail, stored: u64, segment_bytes: u64) -> Option<(Arc<Segment>, u64)> {
        let mut table = self.table.write();
        let mut number = SegmentNumber::new(tail.next_number);
        // If all numbers were in use, there would be 64 TiB of segments: the disk's limit is reached first.
        while table.contains_key(&number) {
            number = SegmentNumber::new(number.get() + 1);
        }
        let (encoder, decoder, head) = codec::begin(&self.encryption);
        let path = self.directory.join(format!("{NAME_PREFIX}{}{NAME_SUFFIX}", tail.next_sequence));
        let segment = Arc::new(Segment::new(number, tail.next_sequence, path, decoder));
        let capacity = BUFFER_BYTES.min(segment_bytes as usize).max((HEAD_BYTES + stored) as usize);
        if !tail.buffers.begin(&segment, 0, capacity) {
            return None;
        }
        tail.next_number = number.get() + 1;
        tail.next_sequence += 1;
        if let Some(buffer) = tail.buffers.open() {
            buffer.bytes.write().extend_from_slice(&head);
        }
        segment.set_end(HEAD_BYTES);
        self.stored_bytes.fetch_add(HEAD_BYTES, Ordering::Relaxed);
        self.live.begin(number);
        table.insert(number, Arc::clone(&segment));
        if let Some((before, _)) = tail.open.replace((Arc::clone(&segment), encoder)) {
            before.seal();
        }
        Some((segment, HEAD_BYTES))
    }

    /// Seals the open segment: the next record begins a new one.
    pub fn seal(&self) {
        if let Some((segment, _)) = self.tail.lock().open.take() {
            segment.seal();
        }
    }

    /// Whether [`SegmentLog::write_buffers`] with [`Which::Full`] has something to write.
    pub fn has_full_buffer(&self) -> bool {
        self.tail.lock().buffers.has_full()
    }

    /// Writes buffers, oldest first, and returns the number of bytes written. Records can be appended at the same time.
    /// After an error the buffers are unchanged, and nothing is appended until this function has succeeded or
    /// [`SegmentLog::take_back`] has emptied them.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn write_buffers(&self, which: Which) -> Result<u64, WriteFailed> {
        let _writing = self.writing.lock();
        if which == Which::All {
            self.tail.lock().buffers.close();
        }
        let mut written = 0;
        loop {
            let first = self.tail.lock().buffers.first();
            let Some((segment, buffer)) = first else { break };
            match segment.write(&self.files, &buffer) {
                Ok(bytes) => written += bytes,
                Err(cause) => {
                    self.counters.write_errors.fetch_add(1, Ordering::Relaxed);
                    self.tail.lock().is_failing = true;
                    return Err(WriteFailed { cause });
                }
            }
            self.counters.written_bytes.fetch_add(buffer.bytes.read().len() as u64, Ordering::Relaxed);
            self.tail.lock().buffers.pop();
        }
        self.tail.lock().is_failing = false;
        Ok(written)
    }

    /// Passes every record that exists only in a buffer to `each`, and then discards the buffers. Once `each` has
    /// returned for the last record, no reference to these records may remain. Afterwards records can be appended
    /// again. The discarded records are not subtracted from the live bytes.
    pub fn take_back(&self, each: &mut dyn FnMut(Location, Record<'_>)) {
        let _writing = self.writing.lock();
        let buffers = {
            let mut tail = self.tail.lock();
            // No record may be appended while buffered records are taken back.
            tail.is_failing = true;
            tail.buffers.all()
        };
        for (segment, buffer) in &buffers {
            let mut bytes = buffer.bytes.read().clone();
            let mut at = HEAD_BYTES.saturating_sub(buffer.offset) as usize;
            while at < bytes.len() {
                let offset = buffer.offset + at as u64;
                let stored = &mut bytes[at..];
                let Extent::Stored(len) = segment.decoder.extent(segment.place(offset), stored) else {
                    unreachable!("a buffer contains the appended record")
                };
                let record = segment.decoder.open(segment.place(offset), &mut stored[..len as usize]);
                let record = record.expect("a buffer contains the appended record");
                each(Location::new(segment.number, offset, len), record);
                at += len as usize;
            }
        }
        let mut tail = self.tail.lock();
        tail.buffers.discard(None);
        for (segment, buffer) in buffers.iter().rev() {
            segment.drop_buffer(buffer);
            // The rest of a segment after its last written buffer is discarded.
            let end = if segment.is_created() { buffer.offset } else { 0 };
            self.stored_bytes.fetch_sub(segment.end() - end, Ordering::Relaxed);
            segment.set_end(end);
            segment.seal();
            if end == 0 {
                self.table.write().remove(&segment.number);
            }
        }
        tail.open.take_if(|(segment, _)| segment.is_sealed());
        tail.is_failing = false;
    }

    fn segment(&self, number: SegmentNumber) -> Result<Arc<Segment>, ReadError> {
        self.table.read().get(&number).cloned().ok_or(ReadError::Removed)
    }

    /// Reads the record at a location, into `buffer`.
    ///
    /// # Errors
    /// Returns an error if the record cannot be read, or differs from the written record.
    pub fn read<'b>(&self, at: Location, buffer: &'b mut Vec<u8>) -> Result<Record<'b>, ReadError> {
        self.read_with(at, buffer, Patience::Waits)?.ok_or(ReadError::Removed)
    }

    /// Like [`SegmentLog::read`], but without waiting for the disk: returns `None` if the read may have to wait.
    ///
    /// # Errors
    /// Returns the errors of [`SegmentLog::read`].
    pub fn read_ready<'b>(
        &self,
        at: Location,
        buffer: &'b mut Vec<u8>,
    ) -> Result<Option<Record<'b>>, ReadError> {
        self.read_with(at, buffer, Patience::None)
    }

    fn read_with<'b>(
        &self,
        at: Location,
        buffer: &'b mut Vec<u8>,
        patience: Patience,
    ) -> Result<Option<Record<'b>>, ReadError> {
        let segment = self.segment(at.segment())?;
        let (offset, end) = (at.offset(), segment.end());
        let stored = at.stored_bytes().unwrap_or(end.saturating_sub(HEAD_BYTES));
        if offset < HEAD_BYTES || offset + stored > end {
            return Err(ReadError::Removed);
        }
        buffer.resize(stored as usize, 0);
        let count = match segment.read(&self.files, offset, buffer, patience) {
            Ok(Some(count)) => count,
            Ok(None) => return Ok(None),
            Err(_) if segment.is_removed() => return Err(ReadError::Removed),
            Err(error) => return Err(ReadError::Disk(error)),
        };
        let damaged = ReadError::Damaged { path: segment.path.clone(), offset };
        if (count as u64) < stored {
            return Err(damaged);
        }
        segment.decoder.open(segment.place(offset), buffer).map(Some).ok_or(damaged)
    }

    /// Whether the record at a location is in a buffer.
    pub fn is_buffered(&self, at: Location) -> bool {
        self.segment(at.segment()).is_ok_and(|segment| segment.is_buffered(at.offset()))
    }

    /// Returns the segments that are not removed, in no particular order.
    pub fn segments(&self) -> Vec<SegmentInfo> {
        let table = self.table.read();
        let there = table.values().filter(|segment| !segment.is_removed());
        there.map(|segment| self.info(segment)).collect()
    }

    fn info(&self, segment: &Segment) -> SegmentInfo {
        SegmentInfo {
            number: segment.number,
            stored_bytes: segment.end(),
            live_bytes: self.live.of(segment.number),
            is_sealed: segment.is_sealed(),
        }
    }

    /// Returns the sealed and written segment with the smallest share of live bytes, if that share is below `percent`.
    pub fn choose(&self, percent: u64) -> Option<SegmentNumber> {
        let table = self.table.read();
        let ready = table.values().filter(|segment| {
            segment.is_sealed() && !segment.is_removed() && segment.is_created() && !segment.has_buffers()
        });
        let shares = ready.map(|segment| {
            let share = self.live.of(segment.number) * 1_000_000 / segment.end().max(1);
            (share, segment.number)
        });
        let (share, number) = shares.min()?;
        (share < percent * 10_000).then_some(number)
    }

    /// Returns all records of a segment in order, live or not. For an unsealed segment, the iteration stops at its
    /// current end.
    ///
    /// # Errors
    /// Returns an error if there is no such segment.
    pub fn records(&self, segment: SegmentNumber) -> Result<Records<'_>, ReadError> {
        Ok(Records::new(&self.files, self.segment(segment)?))
    }

    /// Removes a segment. No location in the segment may be in use.
    ///
    /// # Errors
    /// Returns the errors of the disk; the removal is retried when the next segment is removed.
    pub fn remove(&self, segment: SegmentNumber) -> Result<(), DiskError> {
        self.remove_some(|info| info.number == segment).map(|_| ())
    }

    /// Removes the sealed segments without live bytes, like [`SegmentLog::remove`], and returns their number.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn remove_empty(&self) -> Result<usize, DiskError> {
        self.remove_some(|info| info.is_sealed && info.live_bytes == 0)
    }

    /// Removes all segments, like [`SegmentLog::remove`]. No record may be appended during the call.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn clear(&self) -> Result<(), DiskError> {
        self.remove_some(|_| true).map(|_| ())
    }

    /// Removes the chosen segments, and the segments whose removal failed before; returns the number of chosen
    /// segments.
    fn remove_some(&self, is_chosen: impl Fn(&SegmentInfo) -> bool) -> Result<usize, DiskError> {
        let mut removed = self.writing.lock();
        let mut count = 0;
        let mut tail = self.tail.lock();
        for segment in self.table.read().values() {
            if !segment.is_removed() && is_chosen(&self.info(segment)) {
                count += 1;
                segment.seal();
                segment.mark_removed();
                tail.open.take_if(|(open, _)| Arc::ptr_eq(open, segment));
                removed.push(Arc::clone(segment));
            }
        }
        drop(tail);
        let mut failed = None;
        for segment in std::mem::take(&mut *removed) {
            self.tail.lock().buffers.discard(Some(&segment));
            if segment.is_created()
                && let Err(error) = self.files.disk.remove(&segment.path)
                && !error.is_missing()
            {
                removed.push(segment);
                failed = Some(error);
                continue;
            }
            self.table.write().remove(&segment.number);
            self.stored_bytes.fetch_sub(segment.end(), Ordering::Relaxed);
        }
        failed.map_or(Ok(count), Err)
    }

    /// Returns the statistics of the log.
    pub fn statistics(&self) -> LogStatistics {
        let segments = self.segments();
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        LogStatistics {
            segments: segments.len() as u64,
            stored_bytes: count(&self.stored_bytes),
            live_bytes: segments.iter().map(|segment| segment.live_bytes).sum(),
            buffer_bytes: self.tail.lock().buffers.capacity() as u64,
            limit_bytes: count(&self.limit_bytes),
            demoted_bytes: count(&self.counters.demoted_bytes),
            moved_bytes: count(&self.counters.moved_bytes),
            written_bytes: count(&self.counters.written_bytes),
            write_errors: count(&self.counters.write_errors),
        }
    }
}

fn is_segment_name(name: &str) -> bool {
    let sequence = name.strip_prefix(NAME_PREFIX).and_then(|rest| rest.strip_suffix(NAME_SUFFIX));
    sequence.is_some_and(|digits| !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
}

impl Drop for SegmentLog {
    fn drop(&mut self) {
        // The log is a cache: its files are useless once it is dropped. Files that cannot be removed here are removed
        // when the log is next opened.
        for segment in self.table.get_mut().values() {
            let _ = self.files.disk.remove(&segment.path);
        }
    }
}
