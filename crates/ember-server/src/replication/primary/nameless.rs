//! Unnamed files in the data directory, for bytes that replicas have yet to receive and that exceed the memory limits.
//! The system frees the files when they are closed, even after a crash.
//!
//! With encryption at rest, each file is encrypted with a random key that exists only in memory, so it cannot be read
//! later. Each block is encrypted separately and bound to its position in the file, so that any range can be read.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};

use crate::system::random_name::random_name;
use sealing::{SEAL_BYTES, Seal};

/// The unit of writes: each write is a multiple of this number of bytes.
pub(super) const BLOCK_BYTES: usize = 64 * 1024;

/// The size of an encrypted block in bytes.
const SEALED_BYTES: usize = BLOCK_BYTES + SEAL_BYTES;

/// An unnamed file. Bytes do not change once they are written, so readers need no lock.
#[derive(Debug)]
pub(super) struct NamelessFile {
    file: File,
    seal: Option<Seal>,
}

impl NamelessFile {
    /// Creates an empty file; `what` describes the file's purpose.
    ///
    /// # Errors
    /// Returns errors of the disk, or an error if the system returns no random numbers.
    pub(super) fn create(what: &str, is_encrypted: bool) -> io::Result<NamelessFile> {
        let random = random_name().map_err(|error| io::Error::other(error.to_string()))?;
        let name = format!("temp-{what}-{random}.rdb");
        let file = OpenOptions::new().read(true).write(true).create_new(true).mode(0o600).open(&name)?;
        fs::remove_file(&name)?;
        let seal = if is_encrypted { Some(Seal::new()?) } else { None };
        Ok(NamelessFile { file, seal })
    }

    /// Writes whole blocks at offset `at`: the end of the file, or the offset of earlier blocks.
    ///
    /// # Errors
    /// Returns errors of the disk.
    pub(super) fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let is_whole = at.is_multiple_of(BLOCK_BYTES as u64) && bytes.len().is_multiple_of(BLOCK_BYTES);
        assert!(is_whole, "blocks are written whole");
        let Some(seal) = &self.seal else { return self.file.write_all_at(bytes, at) };
        let mut sealed = Vec::with_capacity(SEALED_BYTES);
        for (number, block) in (at / BLOCK_BYTES as u64..).zip(bytes.chunks(BLOCK_BYTES)) {
            sealed.clear();
            sealed.extend_from_slice(block);
            seal.seal(number, &mut sealed);
            self.file.write_all_at(&sealed, number * SEALED_BYTES as u64)?;
        }
        Ok(())
    }

    /// Reads bytes that were written before; the range may begin and end inside a block.
    ///
    /// # Errors
    /// Returns errors of the disk, or an error if an encrypted block is not the one that was written.
    pub(super) fn read(&self, at: u64, count: usize) -> io::Result<Vec<u8>> {
        let Some(seal) = &self.seal else {
            let mut bytes = vec![0; count];
            self.file.read_exact_at(&mut bytes, at)?;
            return Ok(bytes);
        };
        let mut bytes = Vec::with_capacity(count);
        let mut block = Vec::with_capacity(SEALED_BYTES);
        while bytes.len() < count {
            let at = at + bytes.len() as u64;
            let (number, from) = (at / BLOCK_BYTES as u64, (at % BLOCK_BYTES as u64) as usize);
            block.resize(SEALED_BYTES, 0);
            self.file.read_exact_at(&mut block, number * SEALED_BYTES as u64)?;
            if !seal.open(number, &mut block) {
                return Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "the file differs from the written bytes",
                ));
            }
            let part = &block[from..];
            bytes.extend_from_slice(&part[..part.len().min(count - bytes.len())]);
        }
        Ok(bytes)
    }
}

#[cfg(feature = "encryption")]
mod sealing {
    use std::io;

    use ember_persistence::encryption::{Key, KeyRing, RowSeal};

    /// Overhead of an encrypted block in bytes: a nonce of 12 and a tag of 16.
    pub(super) const SEAL_BYTES: usize = 28;

    /// Encrypts and decrypts the blocks of a file.
    #[derive(Debug)]
    pub(super) struct Seal(RowSeal);

    impl Seal {
        /// Creates a seal with a random key, which is discarded with the seal.
        pub(super) fn new() -> io::Result<Seal> {
            let mut key = [0; 32];
            getrandom::fill(&mut key).map_err(|error| io::Error::other(error.to_string()))?;
            let (seal, _) = RowSeal::begin(&KeyRing::new(Key::new(key)));
            Ok(Seal(seal))
        }

        pub(super) fn seal(&self, number: u64, block: &mut Vec<u8>) {
            self.0.seal(&number.to_le_bytes(), block);
        }

        /// Decrypts `block`; returns whether it is the authentic block with this number.
        pub(super) fn open(&self, number: u64, block: &mut Vec<u8>) -> bool {
            self.0.open(&number.to_le_bytes(), block)
        }
    }
}

#[cfg(not(feature = "encryption"))]
mod sealing {
    use std::io;

    pub(super) const SEAL_BYTES: usize = 0;

    /// Replaces the encrypting type in a build without encryption: no value of this type exists.
    #[derive(Debug)]
    pub(super) enum Seal {}

    impl Seal {
        pub(super) fn new() -> io::Result<Seal> {
            Err(io::Error::other("this program was built without the feature `encryption`"))
        }

        pub(super) fn seal(&self, _: u64, _: &mut Vec<u8>) {
            match *self {}
        }

        pub(super) fn open(&self, _: u64, _: &mut Vec<u8>) -> bool {
            match *self {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_part_of_the_file_can_be_read() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES).map(|at| (at % 251) as u8).collect();
        for is_encrypted in [false, cfg!(feature = "encryption")] {
            let file = NamelessFile::create("test", is_encrypted).unwrap();
            file.write(0, &bytes[..BLOCK_BYTES]).unwrap();
            file.write(BLOCK_BYTES as u64, &bytes[BLOCK_BYTES..]).unwrap();
            for (at, count) in
                [(0, bytes.len()), (1, 2), (BLOCK_BYTES - 1, 2), (BLOCK_BYTES, 5), (70_000, 100_000)]
            {
                assert_eq!(file.read(at as u64, count).unwrap(), bytes[at..at + count], "{at} {count}");
            }
            file.read(bytes.len() as u64 - 1, 2).unwrap_err();
        }
    }

    #[cfg(feature = "encryption")]
    #[test]
    fn encrypted_files_reveal_no_data_and_changes_are_errors() {
        let file = NamelessFile::create("test", true).unwrap();
        file.write(0, &[b'x'; 2 * BLOCK_BYTES]).unwrap();
        let mut stored = vec![0; 2 * SEALED_BYTES];
        file.file.read_exact_at(&mut stored, 0).unwrap();
        assert!(!stored.windows(8).any(|part| part == b"xxxxxxxx"));
        // The second block is written over the first.
        file.file.write_all_at(&stored[SEALED_BYTES..], 0).unwrap();
        assert_eq!(file.read(0, 1).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(file.read(BLOCK_BYTES as u64, 1).unwrap(), b"x");
    }
}
