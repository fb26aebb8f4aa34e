//! Cold values on disk: a log of records in segments, read by the location that the append returned.
//!
//! ```text
//! file      head, 64 bytes | record …                                          at most 64 MiB, or one larger record
//! head      "EMBERSEG" | version, 4 bytes = 1 | zeros          encrypted: the head of such a file | zeros
//! record    length of all after the checksums, 4 bytes | checksum of the place and the length, 4 | checksum of the
//!           place and all after it, 4 | database, 4 | kind, 1 | length of the key, LEB128 | key | value
//!           little-endian, filled up with zeros to a multiple of 16 bytes
//!           encrypted: the record in chunks bound to segment and offset, filled up with zeros
//! ```
//!
//! The checksums are CRC-32C. They include the record's place, the sequence number of the segment since startup and the
//! offset in the segment, so that no record is accepted at another place. The first checksum protects the length, which
//! locates the next record even if this one is damaged.
//!
//! An append copies the record to a buffer and returns its [`Location`]; [`SegmentLog::write_buffers`] writes full
//! buffers, and a record is read from its buffer until the buffer is written. Nothing is ever synced: the log is a
//! cache of data stored elsewhere, and opening the log removes the segments that another process has left.
//!
//! Each segment has a count of its referenced bytes ([`LiveBytes`]). The caller moves the remaining records of a
//! segment elsewhere and then removes it ([`SegmentLog::choose`], [`SegmentLog::records`], [`SegmentLog::remove`]).

mod buffers;
mod codec;
mod live;
mod location;
mod log;
mod record;
mod records;
mod segment;

pub use live::LiveBytes;
pub use location::{Location, SegmentNumber};
pub use log::{
    AppendSource, LogFull, LogOptions, LogStatistics, ReadError, SegmentInfo, SegmentLog, Which, WriteFailed,
};
pub use record::{Record, RecordHead};
pub use records::Records;

/// The maximum size of a segment: files are removed as a whole, so larger segments would be reclaimed later, and
/// smaller segments would need more files.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// The minimum size of a segment that is sealed because it is full.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// The minimum number of segments within the limit, so that space not yet reclaimed is a small part of it.
const SEGMENTS_MIN: u64 = 32;

/// Returns the maximum size of a segment if all segments together may have `limit` bytes.
fn segment_bytes(limit: u64) -> u64 {
    (limit / SEGMENTS_MIN).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES)
}

/// Length of a segment's head in bytes.
const HEAD_BYTES: u64 = 64;

/// The alignment of records, in bytes.
const UNIT_BYTES: u64 = 16;

/// Size of a buffer, which is written in one call, so that there are few disk writes.
pub const BUFFER_BYTES: usize = 4 << 20;

/// The maximum number of buffers, including the open one.
pub const BUFFERS_MAX: usize = 4;

/// Rounds up to a multiple of [`UNIT_BYTES`].
const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(UNIT_BYTES)
}
