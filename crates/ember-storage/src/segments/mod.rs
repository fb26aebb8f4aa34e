//! Values away from memory: a log of records in segments, read by the place that an append has told.
//!
//! ```text
//! file      head, 64 bytes | record …                                          at most 64 MiB, or one larger record
//! head      "EMBERSEG" | version, 4 bytes = 1 | zeros          encrypted: the head of such a file | zeros
//! record    length of what is behind the checksums, 4 bytes | checksum of the place and the length, 4 | checksum of the
//!           place and all that is behind it, 4 | database, 4 | kind, 1 | length of the key, LEB128 | key | value
//!           little-endian, filled up with zeros to a multiple of 16 bytes
//!           encrypted: the record in chunks bound to segment and offset, filled up with zeros
//! ```
//!
//! The checksums are CRC-32C. The place in them is the number of the segment since the start and the offset in it, so that
//! no record counts in another's place; the first one tells where the next record is when one is damaged.
//!
//! What is appended goes into a buffer and has its [`Location`] at once; [`SegmentLog::write_buffers`] writes full buffers,
//! and a record is read from the buffer until its buffer is written. Nothing is ever synced: the log is a cache of what is
//! kept elsewhere, and opening it removes the segments that another process has left.
//!
//! Each segment has an account of the bytes that somebody still points to ([`LiveBytes`]). Who moves the rest of a segment
//! elsewhere removes it then ([`SegmentLog::choose`], [`SegmentLog::records`], [`SegmentLog::remove`]).

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
    LogFull, LogOptions, LogStatistics, ReadError, Room, SegmentInfo, SegmentLog, Which, WriteFailed,
};
pub use record::{Record, RecordHead};
pub use records::Records;

/// What a segment has at most: its file is removed as a whole, so a larger one would be reclaimed later and a smaller one
/// would cost more files.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// What a segment has at least when it ends for being full.
const SEGMENT_BYTES_MIN: u64 = 1 << 20;

/// Into so many segments the limit is divided at least: what waits to be reclaimed is a small part of it.
const SEGMENTS_MIN: u64 = 32;

/// What a segment has at most if all have `limit` bytes.
fn segment_bytes(limit: u64) -> u64 {
    (limit / SEGMENTS_MIN).clamp(SEGMENT_BYTES_MIN, SEGMENT_BYTES)
}

/// Before the first record.
const HEAD_BYTES: u64 = 64;

/// Records begin at multiples of this.
const UNIT_BYTES: u64 = 16;

/// A buffer: written at once, so that the disk is asked seldom.
pub const BUFFER_BYTES: usize = 4 << 20;

/// How many buffers there are at most, with the one that is filled.
pub const BUFFERS_MAX: usize = 4;

/// The first multiple of [`UNIT_BYTES`] from `bytes` on.
const fn padded(bytes: u64) -> u64 {
    bytes.next_multiple_of(UNIT_BYTES)
}
