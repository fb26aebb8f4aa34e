//! A buffered reader that counts the consumed bytes and computes their checksum.

use std::io::{self, BufRead, Read};

use crc_fast::{CrcAlgorithm, Digest};

use crate::files::Reread;

/// Number of bytes read at a time: large enough that the cost of a read call is small compared with copying the bytes.
const BUFFER_BYTES: usize = 256 * 1024;

/// A buffered reader of `R`.
#[derive(Debug)]
pub struct Source<R> {
    inner: R,
    buffer: Box<[u8]>,
    /// The index of the next byte in the buffer, and the end of the buffered bytes.
    at: usize,
    end: usize,
    /// The offset in the source of the buffer's first byte.
    offset: u64,
    digest: Digest,
    /// The number of bytes of the buffer that the checksum includes.
    digested: usize,
}

impl<R: Read> Source<R> {
    /// Creates a source that reads `inner`, whose first byte is at `offset`.
    pub fn new(inner: R, offset: u64) -> Source<R> {
        Source {
            inner,
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
            at: 0,
            end: 0,
            offset,
            digest: Digest::new(CrcAlgorithm::Crc64Redis),
            digested: 0,
        }
    }

    /// Returns the underlying reader.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// Returns the offset of the next byte.
    pub fn offset(&self) -> u64 {
        self.offset + self.at as u64
    }

    /// Returns the CRC-64 of all consumed bytes.
    pub(super) fn checksum(&mut self) -> u64 {
        self.digest.update(&self.buffer[self.digested..self.at]);
        self.digested = self.at;
        self.digest.finalize()
    }

    /// Returns the buffered bytes, reading if there are none. Empty only at the end of the source.
    ///
    /// # Errors
    /// Returns errors of the underlying reader.
    pub fn buffered(&mut self) -> io::Result<&[u8]> {
        if self.at == self.end {
            self.fill()?;
        }
        Ok(&self.buffer[self.at..self.end])
    }

    #[cold]
    fn fill(&mut self) -> io::Result<()> {
        self.digest.update(&self.buffer[self.digested..self.end]);
        self.offset += self.end as u64;
        (self.at, self.end, self.digested) = (0, 0, 0);
        loop {
            match self.inner.read(&mut self.buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => {
                    self.end = result?;
                    return Ok(());
                }
            }
        }
    }

    /// Returns the buffered bytes without reading.
    pub fn pending(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    /// Consumes the first `count` buffered bytes.
    pub fn advance(&mut self, count: usize) {
        assert!(count <= self.end - self.at, "only buffered bytes can be taken");
        self.at += count;
    }

    /// Continues at `offset`, which must have been consumed before, in a source that began at offset 0. The checksum
    /// restarts.
    ///
    /// # Errors
    /// Returns errors of the underlying reader.
    pub fn restart_at(&mut self, offset: u64) -> io::Result<()>
    where
        R: Reread,
    {
        self.inner.restart_at(offset)?;
        (self.at, self.end, self.digested) = (0, 0, 0);
        self.offset = offset;
        self.digest = Digest::new(CrcAlgorithm::Crc64Redis);
        Ok(())
    }

    /// Consumes one byte.
    pub(super) fn byte(&mut self) -> io::Result<u8> {
        let first = self.buffered()?.first().copied();
        let first = first.ok_or(io::ErrorKind::UnexpectedEof)?;
        self.at += 1;
        Ok(first)
    }

    /// Consumes `N` bytes.
    pub(super) fn array<const N: usize>(&mut self) -> io::Result<[u8; N]> {
        let mut bytes = [0; N];
        self.read_exact(&mut bytes)?;
        Ok(bytes)
    }

    /// Consumes `count` bytes and appends them to `out`, which grows only as bytes arrive.
    pub(super) fn take_into(&mut self, count: u64, out: &mut Vec<u8>) -> io::Result<()> {
        let mut rest = count;
        while rest > 0 {
            let buffered = self.buffered()?;
            if buffered.is_empty() {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            let piece = usize::try_from(rest).map_or(buffered.len(), |rest| rest.min(buffered.len()));
            out.extend_from_slice(&buffered[..piece]);
            self.at += piece;
            rest -= piece as u64;
        }
        Ok(())
    }
}

impl<R: Read> BufRead for Source<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.buffered()
    }

    fn consume(&mut self, count: usize) {
        self.advance(count);
    }
}

impl<R: Read> Read for Source<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let buffered = self.buffered()?;
        let count = buffered.len().min(out.len());
        out[..count].copy_from_slice(&buffered[..count]);
        self.at += count;
        Ok(count)
    }
}
