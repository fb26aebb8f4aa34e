//! The part of the stream that is kept on disk for replicas that lag: unnamed files in the data folder, each written
//! once from beginning to end, so that readers need no lock.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use ember_replication::backlog::CHUNK_BYTES;

use super::nameless::{BLOCK_BYTES, NamelessFile};

/// Bytes of a file, the unit in which disk space is freed.
const SEGMENT_BYTES: u64 = 64 * 1024 * 1024;

const _: () = assert!(CHUNK_BYTES.is_multiple_of(BLOCK_BYTES));

struct Segment {
    /// The position of its first byte.
    first: u64,
    len: u64,
    file: Arc<NamelessFile>,
}

impl Segment {
    fn end(&self) -> u64 {
        self.first + self.len
    }
}

/// The files of the spilled stream. They follow one another without a gap.
#[derive(Default)]
pub(super) struct Spill {
    segments: VecDeque<Segment>,
}

/// A part of a segment, which may be read at any time.
pub(super) struct Part {
    file: Arc<NamelessFile>,
    at: u64,
    len: u64,
}

impl Part {
    /// Reads its bytes, at most `max`.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn read(&self, max: usize) -> io::Result<Vec<u8>> {
        self.file.read(self.at, self.len.min(max as u64) as usize)
    }
}

impl Spill {
    /// Returns the position of its first byte, if it has any.
    pub(super) fn first(&self) -> Option<u64> {
        self.segments.front().map(|segment| segment.first)
    }

    /// Its bytes on disk.
    pub(super) fn bytes(&self) -> u64 {
        self.segments.iter().map(|segment| segment.len).sum()
    }

    /// Appends chunks of the backlog that begin at a position. If they do not follow the retained chunks, those are
    /// discarded. With `is_encrypted`, a new file is encrypted.
    ///
    /// # Errors
    /// Those of the disk; then nothing is kept.
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

    /// Frees files that end before this position.
    pub(super) fn forget_before(&mut self, position: u64) {
        while self.segments.front().is_some_and(|segment| segment.end() <= position) {
            self.segments.pop_front();
        }
    }

    /// Frees all files.
    pub(super) fn clear(&mut self) {
        self.segments.clear();
    }

    /// Returns the bytes at a position and after it in the same file.
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
        // Bytes that do not follow begin a new spill.
        spill.append(5, &chunk[..BLOCK_BYTES], false).unwrap();
        assert_eq!((spill.first(), spill.bytes()), (Some(5), BLOCK_BYTES as u64));
    }
}
