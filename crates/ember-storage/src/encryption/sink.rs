//! Writes a file once, encrypted or not.

use std::io::{self, Write};
use std::sync::Arc;

use super::Encryption;
use crate::files::{FileWriter, StoredFile};

/// A writer of a file, from its beginning to its end.
#[derive(Debug)]
pub struct FileSink {
    writer: FileWriter,
    #[cfg(feature = "encryption")]
    seal: Option<Seal>,
}

#[cfg(feature = "encryption")]
#[derive(Debug)]
struct Seal {
    sealer: super::Sealer,
    /// Plain bytes not yet encrypted; the next field contains sealed chunks.
    plain: Vec<u8>,
    sealed: Vec<u8>,
}

/// Plain bytes per chunk: a file that is written once is read in order, so only the overhead matters.
#[cfg(feature = "encryption")]
const CHUNK_BYTES: usize = 64 * 1024;

impl FileSink {
    /// Creates a sink that writes the file from its beginning.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn begin(file: Arc<dyn StoredFile>, encryption: &Encryption) -> io::Result<FileSink> {
        #[cfg_attr(
            not(feature = "encryption"),
            expect(unused_mut, reason = "only a head is written at once")
        )]
        let mut writer = FileWriter::new(file, 0);
        #[cfg(feature = "encryption")]
        if let Some(keys) = encryption.keys() {
            let (sealer, head) = super::Sealer::begin(keys);
            writer.write_all(&head)?;
            let seal = Some(Seal { sealer, plain: Vec::new(), sealed: Vec::new() });
            return Ok(FileSink { writer, seal });
        }
        debug_assert!(!encryption.is_on(), "with keys the file is encrypted");
        Ok(FileSink {
            writer,
            #[cfg(feature = "encryption")]
            seal: None,
        })
    }

    /// Writes the rest of the file and makes all of it durable.
    ///
    /// # Errors
    /// Returns the errors of the disk.
    pub fn finish(mut self) -> io::Result<()> {
        #[cfg(feature = "encryption")]
        self.seal_pending(true)?;
        self.writer.flush()
    }

    #[cfg(feature = "encryption")]
    fn seal_pending(&mut self, is_last: bool) -> io::Result<()> {
        let Some(Seal { sealer, plain, sealed }) = &mut self.seal else { return Ok(()) };
        sealed.clear();
        // The file is used only once all of it is durable, so chunks record no durable bytes.
        sealer.seal(plain, 0, is_last, sealed);
        plain.clear();
        self.writer.write_all(sealed)
    }
}

impl Write for FileSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        #[cfg(feature = "encryption")]
        if let Some(seal) = &mut self.seal {
            let count = bytes.len().min(CHUNK_BYTES - seal.plain.len());
            seal.plain.extend_from_slice(&bytes[..count]);
            if seal.plain.len() == CHUNK_BYTES {
                self.seal_pending(false)?;
            }
            return Ok(count);
        }
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}
