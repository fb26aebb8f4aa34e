//! A data set on its way to replicas: written once, read by each at its own pace.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::system::random_name::random_name;

/// Bytes that are kept in memory.
const MEMORY_MAX: usize = 64 * 1024 * 1024;

/// What is written or read at once.
const PIECE_BYTES: usize = 1024 * 1024;

/// Bytes in memory, and behind them in a file without a name.
#[derive(Debug)]
pub(super) struct Spool {
    memory: Vec<Vec<u8>>,
    in_memory: usize,
    memory_max: usize,
    file: Option<File>,
    in_file: u64,
}

impl Spool {
    /// An empty one. Without `may_use_file` all of it stays in memory.
    pub(super) fn new(may_use_file: bool) -> Spool {
        let memory_max = if may_use_file { MEMORY_MAX } else { usize::MAX };
        Spool { memory: Vec::new(), in_memory: 0, memory_max, file: None, in_file: 0 }
    }

    /// Its bytes.
    pub(super) fn len(&self) -> u64 {
        self.in_memory as u64 + self.in_file
    }

    /// Writes over its beginning.
    pub(super) fn overwrite_beginning(&mut self, bytes: &[u8]) {
        self.memory[0][..bytes.len()].copy_from_slice(bytes);
    }

    /// Appends bytes from a position on to `into`, at most `max`.
    ///
    /// # Errors
    /// Those of the file.
    pub(super) fn read(&self, from: u64, max: usize, into: &mut Vec<u8>) -> io::Result<()> {
        let begun = into.len();
        if from < self.in_memory as u64 {
            let (piece, at) = (from as usize / PIECE_BYTES, from as usize % PIECE_BYTES);
            let bytes = &self.memory[piece][at..];
            into.extend_from_slice(&bytes[..bytes.len().min(max)]);
        } else if let Some(file) = &self.file {
            let at = from - self.in_memory as u64;
            let count = (self.in_file - at).min(max as u64) as usize;
            into.resize(begun + count, 0);
            file.read_exact_at(&mut into[begun..], at)?;
        }
        Ok(())
    }
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.in_memory >= self.memory_max {
            if self.file.is_none() {
                self.file = Some(nameless_file("sync")?);
            }
            let Some(file) = &self.file else { return Ok(0) };
            file.write_all_at(bytes, self.in_file)?;
            self.in_file += bytes.len() as u64;
            return Ok(bytes.len());
        }
        if self.memory.last().is_none_or(|piece| piece.len() == PIECE_BYTES) {
            self.memory.push(Vec::with_capacity(PIECE_BYTES));
        }
        let Some(piece) = self.memory.last_mut() else { return Ok(0) };
        let count = bytes.len().min(PIECE_BYTES - piece.len());
        piece.extend_from_slice(&bytes[..count]);
        self.in_memory += count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file in the data folder that is gone when it is closed, however that comes. `what` is it for?
pub(super) fn nameless_file(what: &str) -> io::Result<File> {
    let random = random_name().map_err(|error| io::Error::other(error.to_string()))?;
    let name = format!("temp-{what}-{random}.rdb");
    let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name)?;
    fs::remove_file(&name)?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_at(from: u64, count: usize) -> Vec<u8> {
        (from..from + count as u64).map(|at| (at % 251) as u8).collect()
    }

    #[test]
    fn what_does_not_fit_in_memory_is_read_from_the_file() {
        let mut spool = Spool { memory_max: 2 * PIECE_BYTES, ..Spool::new(true) };
        let total = 3 * PIECE_BYTES + 12_345;
        for part in bytes_at(0, total).chunks(77_777) {
            spool.write_all(part).unwrap();
        }
        assert_eq!(spool.len(), total as u64);
        assert!(spool.file.is_some() && spool.in_memory == 2 * PIECE_BYTES);
        spool.overwrite_beginning(&bytes_at(0, 9));
        let (mut read, mut all) = (0, Vec::new());
        while read < total {
            spool.read(read as u64, 100_000, &mut all).unwrap();
            assert!(all.len() > read && all.len() <= read + 100_000);
            read = all.len();
        }
        assert_eq!(all, bytes_at(0, total));
    }
}
