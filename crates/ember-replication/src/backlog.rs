//! The last part of the replication stream: the bytes that replicas still need, and the bytes that a replica may have
//! missed when it reconnects.

use std::collections::VecDeque;

/// Size of a chunk in bytes. Memory is allocated and freed in chunks.
pub const CHUNK_BYTES: usize = 64 * 1024;

/// The last part of a replication stream.
#[derive(Debug)]
pub struct Backlog {
    /// The kept bytes; all chunks except the last one are full.
    chunks: VecDeque<Vec<u8>>,
    /// The stream position of the first byte in `chunks`.
    first: u64,
    /// The stream position after the last byte.
    end: u64,
    /// An empty chunk, kept to reuse its allocation.
    spare: Option<Vec<u8>>,
}

/// The error if requested bytes are no longer kept, or have not arrived yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutOfReach;

impl Backlog {
    /// Creates an empty backlog that begins at this stream position.
    pub fn new(first: u64) -> Backlog {
        Backlog { chunks: VecDeque::new(), first, end: first, spare: None }
    }

    /// Returns the stream position of the first byte that is kept.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// Returns the stream position after the last byte.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// Returns the memory of the backlog in bytes.
    pub fn memory_bytes(&self) -> usize {
        (self.chunks.len() + usize::from(self.spare.is_some())) * CHUNK_BYTES
    }

    /// Appends bytes to the stream. O(length of `bytes`).
    pub fn append(&mut self, mut bytes: &[u8]) {
        self.end += bytes.len() as u64;
        while !bytes.is_empty() {
            if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK_BYTES) {
                let chunk = self.spare.take().unwrap_or_else(|| Vec::with_capacity(CHUNK_BYTES));
                self.chunks.push_back(chunk);
            }
            let Some(chunk) = self.chunks.back_mut() else { return };
            let (now, later) = bytes.split_at(bytes.len().min(CHUNK_BYTES - chunk.len()));
            chunk.extend_from_slice(now);
            bytes = later;
        }
    }

    /// Drops all chunks that contain only bytes before `position`.
    pub fn forget_before(&mut self, position: u64) {
        while self.chunks.front().is_some_and(|chunk| chunk.len() == CHUNK_BYTES)
            && self.first + CHUNK_BYTES as u64 <= position
        {
            self.first += CHUNK_BYTES as u64;
            self.spare = self.chunks.pop_front();
            self.spare.iter_mut().for_each(Vec::clear);
        }
    }

    /// Returns the position and the bytes of the first chunk, if it is full.
    pub fn oldest(&self) -> Option<(u64, &[u8])> {
        self.chunks.front().filter(|chunk| chunk.len() == CHUNK_BYTES).map(|chunk| (self.first, &chunk[..]))
    }

    /// Passes up to `max` bytes, from stream position `from` on, to `take` in pieces; returns their number.
    ///
    /// # Errors
    /// Returns an error if the bytes are no longer kept, or the position is after the end.
    pub fn read(&self, from: u64, max: usize, mut take: impl FnMut(&[u8])) -> Result<usize, OutOfReach> {
        if from < self.first || from > self.end {
            return Err(OutOfReach);
        }
        let count = (self.end - from).min(max as u64) as usize;
        let (mut at, mut left) = ((from - self.first) as usize, count);
        while left > 0 {
            let piece = &self.chunks[at / CHUNK_BYTES][at % CHUNK_BYTES..];
            let piece = &piece[..piece.len().min(left)];
            take(piece);
            at += piece.len();
            left -= piece.len();
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(backlog: &Backlog, from: u64, max: usize) -> Result<Vec<u8>, OutOfReach> {
        let mut bytes = Vec::new();
        let count = backlog.read(from, max, |piece| bytes.extend_from_slice(piece))?;
        assert_eq!(count, bytes.len());
        Ok(bytes)
    }

    #[test]
    fn reads_outside_the_backlog_fail() {
        let mut backlog = Backlog::new(100);
        assert_eq!(read(&backlog, 100, 10), Ok(vec![]));
        backlog.append(b"abc");
        assert_eq!(read(&backlog, 101, 10), Ok(b"bc".to_vec()));
        assert_eq!(read(&backlog, 103, 10), Ok(vec![]));
        assert_eq!(read(&backlog, 104, 10), Err(OutOfReach));
        assert_eq!(read(&backlog, 99, 10), Err(OutOfReach));
    }

    proptest! {
        #[test]
        fn retained_parts_are_read_as_they_were_written(
            first in 0..u64::from(u32::MAX),
            pieces in prop::collection::vec((1..200_000_usize, 0..400_000_u64), 1..12),
            (from, max) in (0..400_000_u64, 0..200_000_usize),
        ) {
            let (mut backlog, mut all) = (Backlog::new(first), Vec::new());
            let mut unwanted = first;
            for (bytes, keep) in pieces {
                let piece: Vec<u8> = (0..bytes).map(|at| ((all.len() + at) * 31 % 251) as u8).collect();
                all.extend_from_slice(&piece);
                backlog.append(&piece);
                unwanted = unwanted.max(backlog.end().saturating_sub(keep));
                backlog.forget_before(unwanted);
                prop_assert_eq!(backlog.end(), first + all.len() as u64);
                prop_assert!(backlog.first() <= unwanted, "at most the bytes before the position are discarded");
                prop_assert!(unwanted - backlog.first() < CHUNK_BYTES as u64, "and all but part of a chunk");
                let oldest = backlog.oldest().map(|(at, bytes)| (at, bytes.to_vec()));
                prop_assert_eq!(oldest.is_some(), backlog.end() - backlog.first() >= CHUNK_BYTES as u64);
                if let Some((at, bytes)) = oldest {
                    prop_assert_eq!(read(&backlog, at, CHUNK_BYTES), Ok(bytes));
                }
                let position = backlog.first() + from;
                let at = (position - first) as usize;
                let expected = all.get(at..(at + max).min(all.len())).ok_or(OutOfReach);
                prop_assert_eq!(read(&backlog, position, max), expected.map(<[u8]>::to_vec));
            }
        }
    }
}
