//! The part of the stream that is kept on disk for replicas that lag: unnamed files in the data directory, which are
//! only appended to, so that readers need no lock.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use ember_replication::backlog::CHUNK_BYTES;

use super::nameless::{BLOCK_BYTES, NamelessFile};

/// The size of a file in bytes, and thus the unit in which disk space is freed.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

const _: () = assert!(CHUNK_BYTES.is_multiple_of(BLOCK_BYTES));

struct Segment {
    /// The stream position of the first byte in the file.
    first: u64,
    len: u64,
    file: Arc<NamelessFile>,
}

impl Segment {
    fn end(&self) -> u64 {
        self.first + self.len
    }
}

/// The files that contain the spilled stream, without gaps between them.
#[derive(Default)]
pub(super) struct Spill {
    segments: VecDeque<Segment>,
}

/// A range of bytes in a segment, which may be read without a lock.
pub(super) struct Part {
    file: Arc<NamelessFile>,
    at: u64,
    len: u64,
}

impl Part {
    /// Reads the first bytes of the range, at most `max`.
    ///
    /// # Errors
    /// Returns errors of the file.
    pub(super) fn read(&self, max: usize) -> io::Result<Vec<u8>> {
        self.file.read(self.at, self.len.min(max as u64) as usize)
    }
}

impl Spill {
    /// Returns the stream position of the first spilled byte, if there is any.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|segment| segment.first)
    }

    /// Returns the number of bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Appends chunks of the backlog that begin at `position`. If they do not follow the bytes that are already
    /// spilled, those bytes are discarded. With `is_encrypted`, a new file is encrypted.
    ///
    /// # Errors
    /// Returns errors of the disk; the spill is then empty.
    pub(super) fn append(&mut self, position: u64, bytes: &[u8], is_encrypted: bool) -> io::Result<()> {
        if self.segments.back().is_some_and(|last| last.end() != position) {
            self.segments.clear();
        }
        let written = self.write(position, bytes, is_encrypted);
        if written.is_err() {
            self.segments.clear();
        }
        written
    }

    fn write(&mut self, position: u64, bytes: &[u8], is_encrypted: bool) -> io::Result<()> {
        if self.segments.back().is_none_or(|last| last.len >= SEGMENT_BYTES) {
            let file = Arc::new(NamelessFile::create("repl", is_encrypted)?);
            self.segments.push_back(Segment { first: position, len: 0, file });
        }
        let Some(last) = self.segments.back_mut() else { return Ok(()) };
        last.file.write(last.len, bytes)?;
        last.len += bytes.len() as u64;
        Ok(())
    }

    /// Frees the files that contain only bytes before `position`.
    pub(super) fn forget_before(&mut self, position: u64) {
        while self.segments.front().is_some_and(|segment| segment.end() <= position) {
            self.segments.pop_front();
        }
    }

    /// Frees all files.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    /// Returns the bytes from `position` to the end of the file that contains it.
    pub(super) fn part(&self, position: u64) -> Option<Part> {
        let next = self.segments.partition_point(|segment| segment.first <= position);
        let segment = self.segments.get(next.checked_sub(1)?).filter(|segment| position < segment.end())?;
        let file = Arc::clone(&segment.file);
        Some(Part { file, at: position - segment.first, len: segment.end() - position })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spilled_bytes_are_readable_and_freed_per_file() {
        let chunk: Vec<u8> = (0..1 << 20).map(|at: u32| (at % 251) as u8).collect();
        let (mut spill, first) = (Spill::default(), 1000);
        for number in 0..130 {
            spill.append(first + (number << 20), &chunk, false).unwrap();
        }
        assert_eq!((spill.first(), spill.bytes(), spill.segments.len()), (Some(1000), 130 << 20, 3));
        for at in [0, 5, (64 << 20) - 1, 64 << 20, (130 << 20) - 1] {
            let part = spill.part(first + at).unwrap().read(10).unwrap();
            assert_eq!(part[0], chunk[at as usize % chunk.len()], "{at}");
        }
        assert_eq!(spill.part(first + (64 << 20) - 1).unwrap().read(10).unwrap().len(), 1);
        assert!(spill.part(first - 1).is_none() && spill.part(first + (130 << 20)).is_none());
        let part = spill.part(first).unwrap();
        spill.forget_before(first + (64 << 20) + 1);
        assert_eq!(spill.first(), Some(first + (64 << 20)));
        assert_eq!(part.read(3).unwrap(), chunk[..3], "a part in use stays readable");
        // Bytes that do not follow the spilled bytes begin a new spill.
        spill.append(5, &chunk[..BLOCK_BYTES], false).unwrap();
        assert_eq!((spill.first(), spill.bytes()), (Some(5), BLOCK_BYTES as u64));
    }
}
