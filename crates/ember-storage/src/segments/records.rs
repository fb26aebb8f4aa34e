//! The records of one segment, in the order in which they were appended.

use std::sync::Arc;

use super::codec::Extent;
use super::location::Location;
use super::log::ReadError;
use super::record::{self, Record};
use super::segment::{OpenFiles, Patience, Segment};
use super::{HEAD_BYTES, UNIT_BYTES};

/// Bytes per read of the file.
const WINDOW_BYTES: usize = 1 << 20;

/// An iterator over the records of a segment, in order. A damaged record yields one error, and reading continues with
/// the next record.
#[derive(Debug)]
pub struct Records<'l> {
    files: &'l OpenFiles,
    segment: Arc<Segment>,
    /// The offset of the next record.
    offset: u64,
    end: u64,
    window: Vec<u8>,
    /// The offset of the window's first byte.
    window_offset: u64,
}

impl<'l> Records<'l> {
    pub(super) fn new(files: &'l OpenFiles, segment: Arc<Segment>) -> Records<'l> {
        let end = segment.end();
        Records { files, segment, offset: HEAD_BYTES, end, window: Vec::new(), window_offset: 0 }
    }

    /// Returns the next record and its location; None at the end.
    pub fn next_record(&mut self) -> Option<Result<(Location, Record<'_>), ReadError>> {
        if self.offset >= self.end {
            return None;
        }
        let begin = self.offset;
        let damaged = ReadError::Damaged { path: self.segment.path.clone(), offset: begin };
        let stored = match self.extent_here() {
            Ok(Some(stored)) => stored,
            Ok(None) => return Some(Err(self.find_next().err().unwrap_or(damaged))),
            Err(error) => {
                self.offset = self.end;
                return Some(Err(error));
            }
        };
        let from = (begin - self.window_offset) as usize;
        let bytes = &mut self.window[from..from + stored as usize];
        let Some(len) = self.segment.decoder.unseal(self.segment.place(begin), bytes) else {
            // A failed decryption has overwritten the window.
            self.window.clear();
            if self.segment.decoder.has_checked_extents() {
                self.offset += stored;
                return Some(Err(damaged));
            }
            return Some(Err(self.find_next().err().unwrap_or(damaged)));
        };
        self.offset += stored;
        let at = Location::new(self.segment.number, begin, stored);
        let record = record::parse(&self.window[from..from + len]);
        Some(record.map(|record| (at, record)).ok_or(damaged))
    }

    /// Determines the length of the record at the current offset and loads the record into the window; None if no
    /// record begins there.
    fn extent_here(&mut self) -> Result<Option<u64>, ReadError> {
        let mut needed = UNIT_BYTES;
        loop {
            if !self.fill(needed)? {
                return Ok(None);
            }
            let from = (self.offset - self.window_offset) as usize;
            let begin = &self.window[from..];
            match self.segment.decoder.extent(self.segment.place(self.offset), begin) {
                Extent::Needs(more) if more as u64 > begin.len() as u64 => needed = more as u64,
                Extent::Stored(stored) => return Ok(self.fill(stored)?.then_some(stored)),
                Extent::Needs(_) | Extent::Unknown => return Ok(None),
            }
        }
    }

    /// Advances to the next offset at which a record begins.
    fn find_next(&mut self) -> Result<(), ReadError> {
        loop {
            self.offset += UNIT_BYTES;
            if self.offset >= self.end || self.extent_here()?.is_some() {
                return Ok(());
            }
        }
    }

    /// Ensures that the window contains `len` bytes from the current offset on, and moves the window if needed; returns
    /// false if the segment has fewer bytes.
    fn fill(&mut self, len: u64) -> Result<bool, ReadError> {
        if self.offset + len > self.end {
            return Ok(false);
        }
        let window_end = self.window_offset + self.window.len() as u64;
        if self.offset >= self.window_offset && self.offset + len <= window_end {
            return Ok(true);
        }
        let bytes = len.max(WINDOW_BYTES as u64).min(self.end - self.offset);
        self.window_offset = self.offset;
        self.window.resize(bytes as usize, 0);
        let count = match self.segment.read(self.files, self.offset, &mut self.window, Patience::Waits) {
            Ok(count) => count.unwrap_or_default(),
            Err(_) if self.segment.is_removed() => return Err(ReadError::Removed),
            Err(error) => return Err(ReadError::Disk(error)),
        };
        self.window.truncate(count);
        Ok(count as u64 >= len)
    }
}
