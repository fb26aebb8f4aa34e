//! The bytes of a full sync: written once, and read by each replica at its own pace, even during writing.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::Arc;

use parking_lot::Mutex;

use super::nameless::{BLOCK_BYTES, NamelessFile};

/// The maximum number of pieces that are kept in memory.
const PIECES_IN_MEMORY_MAX: usize = 64;

/// The size of each piece except the last, in bytes.
const PIECE_BYTES: usize = 1024 * 1024;

const _: () = assert!(PIECE_BYTES.is_multiple_of(BLOCK_BYTES));

/// A piece of the data.
#[derive(Debug)]
enum Piece {
    Memory(Vec<u8>),
    /// A piece in the file that begins at this offset.
    File(u64),
}

#[derive(Debug, Default)]
struct State {
    /// The pieces that are kept. All replicas have received the earlier pieces.
    pieces: VecDeque<Piece>,
    /// The number of the first kept piece.
    first: u64,
    in_memory: usize,
    /// The number of bytes written so far, including bytes that are no longer kept.
    len: u64,
    /// All current readers have read the bytes before this position.
    read_before: u64,
    file: Option<Arc<NamelessFile>>,
    in_file: u64,
    /// The last block of the file, which is not full yet: its bytes up to `len`, and possibly bytes that are being
    /// written.
    tail: Vec<u8>,
    /// The result of writing; `None` while it continues.
    end: Option<Result<(), String>>,
}

impl State {
    fn forget_read(&mut self) {
        while (self.first + 1) * PIECE_BYTES as u64 <= self.read_before
            && let Some(piece) = self.pieces.pop_front()
        {
            self.first += 1;
            self.in_memory -= usize::from(matches!(piece, Piece::Memory(_)));
        }
    }
}

/// A sequence of pieces: in memory up to a limit, beyond that in an unnamed file.
#[derive(Debug)]
pub(super) struct Spool {
    state: Mutex<State>,
    pieces_in_memory_max: usize,
    /// Whether the file is encrypted.
    is_encrypted: bool,
}

/// The result of a read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Portion {
    /// The next bytes.
    Bytes(Vec<u8>),
    /// No bytes are available yet.
    None,
    /// The end of the data.
    End,
}

impl Spool {
    /// Creates an empty spool. With `is_encrypted`, its file is encrypted.
    pub(super) fn new(is_encrypted: bool) -> Spool {
        Spool { state: Mutex::default(), pieces_in_memory_max: PIECES_IN_MEMORY_MAX, is_encrypted }
    }

    /// Returns the number of bytes written so far.
    pub(super) fn len(&self) -> u64 {
        self.state.lock().len
    }

    /// Returns the total length in bytes once all bytes are written, or the error that ended the writing.
    pub(super) fn whole(&self) -> Option<Result<u64, String>> {
        let state = self.state.lock();
        state.end.clone().map(|end| end.map(|()| state.len))
    }

    /// Records the result of writing the data.
    pub(super) fn end(&self, end: Result<(), String>) {
        self.state.lock().end = Some(end);
    }

    /// Records that all current readers have read the bytes before `position`. They are still kept for later readers as
    /// long as the bytes that follow fit in memory.
    pub(super) fn forget_before(&self, position: u64) {
        let mut state = self.state.lock();
        state.read_before = position;
        if state.first > 0 || state.file.is_some() {
            state.forget_read();
        }
    }

    /// Whether the first byte is still kept.
    pub(super) fn is_kept(&self) -> bool {
        self.state.lock().first == 0
    }

    /// Reads at most `max` bytes from `position` on.
    ///
    /// # Errors
    /// Returns errors of the file, or the error that ended the writing.
    pub(super) fn read(&self, position: u64, max: usize) -> Result<Portion, String> {
        let (file, at, count) = {
            let state = self.state.lock();
            if position >= state.len {
                return match &state.end {
                    None => Ok(Portion::None),
                    Some(Ok(())) => Ok(Portion::End),
                    Some(Err(error)) => Err(error.clone()),
                };
            }
            let (number, at) = (position / PIECE_BYTES as u64, position % PIECE_BYTES as u64);
            let left = (PIECE_BYTES as u64 - at).min(state.len - position).min(max as u64) as usize;
            let piece = number.checked_sub(state.first).and_then(|number| state.pieces.get(number as usize));
            match (piece, &state.file) {
                (Some(Piece::Memory(bytes)), _) => {
                    let at = at as usize;
                    return Ok(Portion::Bytes(bytes[at..at + left].to_vec()));
                }
                (Some(Piece::File(begin)), Some(file)) => {
                    // The bytes after `written` are in the last block. If that block is in a later piece, all of this
                    // piece is in the file.
                    let written = state.len - state.len % BLOCK_BYTES as u64;
                    if position >= written {
                        let at = (position - written) as usize;
                        return Ok(Portion::Bytes(state.tail[at..at + left].to_vec()));
                    }
                    (Arc::clone(file), begin + at, left.min((written - position) as usize))
                }
                _ => return Err("this part is not kept".to_owned()),
            }
        };
        Ok(Portion::Bytes(file.read(at, count).map_err(|error| error.to_string())?))
    }

    /// Appends as many bytes as fit into the last piece, and returns their number.
    fn append(&self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.state.lock();
        let filled = (state.len % PIECE_BYTES as u64) as usize;
        if filled == 0 {
            if state.in_memory >= self.pieces_in_memory_max {
                state.forget_read();
            }
            let piece = if state.in_memory < self.pieces_in_memory_max {
                state.in_memory += 1;
                Piece::Memory(Vec::with_capacity(PIECE_BYTES))
            } else {
                if state.file.is_none() {
                    state.file = Some(Arc::new(NamelessFile::create("sync", self.is_encrypted)?));
                }
                let begin = state.in_file;
                state.in_file += PIECE_BYTES as u64;
                Piece::File(begin)
            };
            state.pieces.push_back(piece);
        }
        let mut count = bytes.len().min(PIECE_BYTES - filled);
        let State { pieces, file, tail, .. } = &mut *state;
        match (pieces.back_mut(), file) {
            (Some(Piece::Memory(piece)), _) => piece.extend_from_slice(&bytes[..count]),
            (Some(Piece::File(begin)), Some(file)) => {
                count = count.min(BLOCK_BYTES - tail.len());
                tail.extend_from_slice(&bytes[..count]);
                if tail.len() == BLOCK_BYTES {
                    let (file, block) = (Arc::clone(file), tail.clone());
                    let at = *begin + (filled + count - BLOCK_BYTES) as u64;
                    // Readers need not wait for the disk, because they do not read beyond `len`.
                    drop(state);
                    file.write(at, &block)?;
                    state = self.state.lock();
                    state.tail.clear();
                }
            }
            _ => return Err(io::Error::other("the last piece is not kept")),
        }
        state.len += count as u64;
        Ok(count)
    }
}

/// The single writer of a spool.
pub(super) struct SpoolWriter<'s>(pub(super) &'s Spool);

impl Write for SpoolWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.append(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_at(from: u64, count: usize) -> Vec<u8> {
        (from..from + count as u64).map(|at| (at % 251) as u8).collect()
    }

    fn read_all(spool: &Spool, into: &mut Vec<u8>) -> Portion {
        loop {
            match spool.read(into.len() as u64, 100_000).unwrap() {
                Portion::Bytes(bytes) => into.extend(bytes),
                other => return other,
            }
        }
    }

    #[test]
    fn pieces_beyond_memory_are_read_from_the_file() {
        for is_encrypted in [false, cfg!(feature = "encryption")] {
            write_more_than_fits(is_encrypted);
        }
    }

    fn write_more_than_fits(is_encrypted: bool) {
        let spool = Spool { pieces_in_memory_max: 2, ..Spool::new(is_encrypted) };
        let total = 3 * PIECE_BYTES + 12_345;
        let mut while_written = Vec::new();
        for part in bytes_at(0, total).chunks(77_777) {
            SpoolWriter(&spool).write_all(part).unwrap();
            assert_eq!(read_all(&spool, &mut while_written), Portion::None);
            assert_eq!(while_written.len() as u64, spool.len());
        }
        assert_eq!(while_written, bytes_at(0, total));
        assert_eq!((spool.len(), spool.whole()), (total as u64, None));
        assert!(spool.state.lock().file.is_some());
        let mut all = Vec::new();
        assert_eq!(read_all(&spool, &mut all), Portion::None);
        assert_eq!(all, bytes_at(0, total));
        spool.end(Ok(()));
        assert_eq!(read_all(&spool, &mut all), Portion::End);
        assert_eq!(spool.whole(), Some(Ok(total as u64)));
    }

    #[test]
    fn pieces_that_all_replicas_received_are_freed() {
        let spool = Spool { pieces_in_memory_max: 2, ..Spool::new(false) };
        let mut all = Vec::new();
        for part in 0..40 {
            let bytes = bytes_at(part * 300_000, 300_000);
            SpoolWriter(&spool).write_all(&bytes).unwrap();
            assert_eq!(read_all(&spool, &mut all), Portion::None);
            spool.forget_before(all.len() as u64);
        }
        assert_eq!(all, bytes_at(0, all.len()));
        assert!(spool.state.lock().file.is_none());
        assert!(spool.read(0, 1).is_err(), "the piece was freed");
    }

    #[test]
    fn pieces_in_memory_are_kept_for_later_replicas() {
        let spool = Spool { pieces_in_memory_max: 2, ..Spool::new(false) };
        let bytes = bytes_at(0, 2 * PIECE_BYTES);
        SpoolWriter(&spool).write_all(&bytes).unwrap();
        spool.forget_before(bytes.len() as u64);
        let mut all = Vec::new();
        assert_eq!(read_all(&spool, &mut all), Portion::None);
        assert!(all == bytes && spool.is_kept());
        SpoolWriter(&spool).write_all(b"more").unwrap();
        assert!(!spool.is_kept() && spool.read(0, 1).is_err());
    }

    #[test]
    fn readers_receive_the_error_of_a_failed_writer() {
        let spool = Spool::new(true);
        SpoolWriter(&spool).write_all(b"abc").unwrap();
        spool.end(Err("the disk is full".to_owned()));
        assert_eq!(spool.read(0, 9), Ok(Portion::Bytes(b"abc".to_vec())));
        assert_eq!(spool.read(3, 9), Err("the disk is full".to_owned()));
    }
}
