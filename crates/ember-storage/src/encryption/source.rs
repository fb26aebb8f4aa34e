//! Reads the contents of an encrypted file.

use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;

use super::chunks::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, ChunkParts, HEAD_BYTES, MARK, Opener, STORED_BYTES_MIN, Sealer,
};
use super::{Encryption, EncryptionError, EncryptionProblem, Ending};
use crate::files::{DiskError, LostSector, StoredFile};

/// Size in bytes of the window in which chunks after a damaged one are searched.
const WINDOW_BYTES: usize = 2 * CHUNK_BYTES_MAX;

/// A reader of an encrypted file, in order.
#[derive(Debug)]
pub struct Unsealer {
    file: Arc<dyn StoredFile>,
    opener: Opener,
    ending: Ending,
    /// Size of the file when it was opened.
    size: u64,
    /// The offset of the next chunk.
    offset: u64,
    /// The number of plain bytes in the chunks before `offset`.
    said: u64,
    /// The current chunk, decrypted; the next field is the range that has not been returned yet.
    chunk: Vec<u8>,
    plain: Range<usize>,
    is_over: bool,
    torn_bytes: Option<u64>,
}

impl Unsealer {
    /// Returns the number of bytes after the last chunk that could be opened, if the end is torn.
    pub fn torn_bytes(&self) -> Option<u64> {
        self.torn_bytes
    }

    /// Opens a file for which [`super::is_encrypted`] is true.
    pub fn open(
        file: Arc<dyn StoredFile>,
        encryption: &Encryption,
        ending: Ending,
    ) -> Result<Unsealer, EncryptionError> {
        let error = |problem| EncryptionError::new(file.path(), 0, problem);
        let keys = encryption.keys().ok_or_else(|| error(EncryptionProblem::NoKey))?;
        let size = file.size().map_err(|disk| error(EncryptionProblem::Disk(disk)))?;
        let mut head = [0; HEAD_BYTES];
        let read = read_full(file.as_ref(), 0, &mut head);
        if read.map_err(|disk| error(EncryptionProblem::Disk(disk)))? < HEAD_BYTES {
            return Err(error(EncryptionProblem::Truncated));
        }
        let opener = Opener::new(head, keys).map_err(error)?;
        Ok(Unsealer {
            file,
            opener,
            ending,
            size,
            offset: HEAD_BYTES as u64,
            said: 0,
            chunk: Vec::new(),
            plain: 0..0,
            is_over: false,
            torn_bytes: None,
        })
    }

    fn error(&self, problem: EncryptionProblem) -> EncryptionError {
        EncryptionError::new(self.file.path(), self.offset, problem)
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<usize, EncryptionError> {
        let read = read_full(self.file.as_ref(), offset, bytes);
        read.map_err(|disk| EncryptionError::new(self.file.path(), offset, EncryptionProblem::Disk(disk)))
    }

    /// Reads and decrypts the chunk at an offset; None if there is no authentic chunk.
    fn chunk_at(
        &self,
        offset: u64,
        chunk: &mut Vec<u8>,
    ) -> Result<Option<(ChunkParts, Range<usize>)>, EncryptionError> {
        let mut head = [0; CHUNK_HEAD_BYTES];
        let is_whole = self.read(offset, &mut head)? == CHUNK_HEAD_BYTES;
        let parts = ChunkParts::of(&head);
        if !is_whole || !parts.is_possible() {
            return Ok(None);
        }
        chunk.resize(parts.stored_bytes(), 0);
        if self.read(offset, chunk)? < parts.stored_bytes() {
            return Ok(None);
        }
        Ok(self.opener.open(chunk).map(|plain| (parts, plain)))
    }

    /// Opens the next chunk.
    fn next_chunk(&mut self) -> Result<(), EncryptionError> {
        if self.offset >= self.size {
            return self.end(EncryptionProblem::Truncated);
        }
        self.plain = 0..0;
        let mut chunk = std::mem::take(&mut self.chunk);
        let opened = self.chunk_at(self.offset, &mut chunk);
        self.chunk = chunk;
        let Some((parts, plain)) = opened? else {
            let is_cut = self.size - self.offset < STORED_BYTES_MIN as u64 || self.exceeds_end()?;
            let problem = if is_cut { EncryptionProblem::Truncated } else { EncryptionProblem::Altered };
            return self.end(problem);
        };
        if parts.offset != self.offset {
            return Err(self.error(EncryptionProblem::Moved { from: parts.offset }));
        }
        self.offset += parts.stored_bytes() as u64;
        self.said += plain.len() as u64;
        self.plain = plain;
        self.is_over = parts.is_last;
        if parts.is_last && self.offset < self.size {
            return Err(self.error(EncryptionProblem::TooLong));
        }
        Ok(())
    }

    /// Whether the length in the next chunk's head exceeds the rest of the file.
    fn exceeds_end(&self) -> Result<bool, EncryptionError> {
        let mut head = [0; CHUNK_HEAD_BYTES];
        let is_whole = self.read(self.offset, &mut head)? == CHUNK_HEAD_BYTES;
        let parts = ChunkParts::of(&head);
        Ok(is_whole && parts.is_possible() && self.offset + parts.stored_bytes() as u64 > self.size)
    }

    /// Handles the first chunk that cannot be opened: either returns `problem` as an error, or records a torn end.
    fn end(&mut self, problem: EncryptionProblem) -> Result<(), EncryptionError> {
        // The first chunk is durable before any other is written, so an altered first chunk or file head is damage,
        // even though no later chunk could be opened to prove it.
        let is_first = self.offset == HEAD_BYTES as u64 && matches!(problem, EncryptionProblem::Altered);
        if self.ending == Ending::Whole || is_first || self.is_damage()? {
            return Err(self.error(problem));
        }
        self.is_over = true;
        self.torn_bytes = Some(self.size.saturating_sub(self.offset)).filter(|&bytes| bytes > 0);
        Ok(())
    }

    /// Whether the bytes after a chunk that cannot be opened prove damage, as opposed to a torn end. They do if they
    /// contain a chunk that records the unreadable one as durable, a chunk that is not at its own offset, or any chunk
    /// although the unreadable one contains no sector of zeros, as a power cut would leave. The same rule applies to
    /// bytes after a batch of an AOF.
    fn is_damage(&self) -> Result<bool, EncryptionError> {
        let mut next = None;
        let mut window = vec![0; WINDOW_BYTES];
        let mut chunk = Vec::new();
        let mut at = self.offset + 1;
        while at < self.size {
            let count = self.read(at, &mut window)?;
            for found in memchr::memmem::find_iter(&window[..count], MARK) {
                let found_at = at + found as u64;
                let Some((parts, _)) = self.chunk_at(found_at, &mut chunk)? else { continue };
                if parts.durable > self.said || parts.offset != found_at {
                    return Ok(true);
                }
                next = next.or(Some(found_at));
            }
            // A mark may cross the end of the window, so windows overlap.
            at += (count.max(MARK.len()) - (MARK.len() - 1)) as u64;
        }
        // No bytes are missing or inserted before the next chunk: it is at its own offset.
        next.map_or(Ok(false), |next| Ok(!self.has_lost_sector(next)?))
    }

    /// Whether the chunk that cannot be opened has lost a sector or its last byte. The chunk at `next` follows it.
    fn has_lost_sector(&self, next: u64) -> Result<bool, EncryptionError> {
        let mut end = next;
        let mut head = [0; CHUNK_HEAD_BYTES];
        self.read(self.offset, &mut head)?;
        let parts = ChunkParts::of(&head);
        if parts.is_possible() && parts.offset == self.offset {
            end = end.min(self.offset + parts.stored_bytes() as u64);
        }
        let mut lost = LostSector::new(self.offset);
        let mut window = vec![0; WINDOW_BYTES];
        let mut at = self.offset;
        while at < end {
            let count = self.read(at, &mut window)?.min((end - at) as usize);
            if count == 0 {
                break;
            }
            lost.scan(&window[..count]);
            at += count as u64;
            if at == end && window[count - 1] == 0 {
                return Ok(true);
            }
        }
        Ok(lost.is_found())
    }

    /// Continues at `offset` of the plain bytes, which has been read before. Opens all chunks before it again.
    pub(super) fn restart_at(&mut self, offset: u64) -> Result<(), EncryptionError> {
        (self.offset, self.said) = (HEAD_BYTES as u64, 0);
        (self.plain, self.is_over, self.torn_bytes) = (0..0, false, None);
        while self.said < offset && !self.is_over {
            self.next_chunk()?;
        }
        self.plain.start = self.plain.end - (self.said - offset.min(self.said)) as usize;
        Ok(())
    }

    /// Reads up to the chunk that ends at plain offset `said` and returns a sealer for the following chunks. None if no
    /// chunk ends at that offset.
    pub fn sealer_at(mut self, said: u64) -> Result<Option<Sealer>, EncryptionError> {
        while self.said < said && !self.is_over {
            self.next_chunk()?;
        }
        Ok((self.said == said).then(|| Sealer::resume(self.opener, self.offset, self.is_over)))
    }
}

fn read_full(file: &dyn StoredFile, offset: u64, bytes: &mut [u8]) -> Result<usize, DiskError> {
    let mut len = 0;
    while len < bytes.len() {
        match file.read_at(offset + len as u64, &mut bytes[len..])? {
            0 => break,
            count => len += count,
        }
    }
    Ok(len)
}

impl Read for Unsealer {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.plain.is_empty() && !self.is_over && !out.is_empty() {
            self.next_chunk()?;
        }
        let count = self.plain.len().min(out.len());
        out[..count].copy_from_slice(&self.chunk[self.plain.start..self.plain.start + count]);
        self.plain.start += count;
        Ok(count)
    }
}
