//! Encryption at rest: files in chunks, each bound to its offset, under AES-256-GCM.
//!
//! ```text
//! file     "EMBERENC" | version, 1 byte = 2 | 3 bytes of 0 | key's fingerprint, 16 bytes | salt, 32 random bytes
//!          | chunk …
//! chunk    "EChk" | length, 4 bytes, its highest bit set in the last chunk | offset, 8 bytes | nonce, 12 bytes
//!          | durable, 8 bytes | encrypted bytes | tag, 16 bytes                                little-endian
//! ```
//!
//! Each file has its own key: HKDF-SHA-256 (RFC 5869) of the key with the file's salt. The first nonce of a writer is a
//! random number, and each further chunk uses the next number; a chunk that is rewritten after a failure gets a new
//! nonce. The heads of the file and of the chunk are the chunk's associated data. So every bit of a file is authentic:
//! a chunk that was changed, moved, omitted, copied from another file or truncated is detected. The fingerprint is also
//! derived from the key by HKDF, and reveals nothing else about the key.
//!
//! Each chunk records its offset in the file, and the last chunk of a complete file is marked as such. An increment of
//! an AOF grows by whole chunks, and its last chunk is written when it is closed; the newest increment may have no last
//! chunk. `durable` is the number of plain bytes known to be on the disk when the chunk was written: it distinguishes a
//! torn end from damage, as in the batches of an AOF. The loss of some of the *newest* chunks of a file that is still
//! written to cannot be detected from the file alone.
//!
//! AES-GCM: NIST SP 800-38D. Without the cargo feature `encryption` encrypted files are refused with an error.

#[cfg(feature = "encryption")]
mod chunks;
#[cfg(feature = "encryption")]
mod encryption_keys;
mod error;
#[cfg(feature = "encryption")]
mod rows;
mod sink;
#[cfg(feature = "encryption")]
mod source;

use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

#[cfg(feature = "encryption")]
pub use encryption_keys::{Key, KeyError, KeyRing};
pub use error::{EncryptionError, EncryptionProblem};
#[cfg(feature = "encryption")]
pub use rows::RowSeal;
pub use sink::FileSink;

#[cfg(feature = "encryption")]
pub use chunks::Sealer;
#[cfg(feature = "encryption")]
pub(crate) use chunks::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, ChunkParts, HEAD_BYTES as FILE_HEAD_BYTES, Opener, STORED_BYTES_MIN,
};
#[cfg(feature = "encryption")]
pub use source::Unsealer;

use crate::files::{FileReader, Reread, StoredFile};

/// The environment variable with the keys, used when no key file is configured.
pub const KEY_VARIABLE: &str = "EMBER_ENCRYPTION_KEY";

/// The first bytes of an encrypted file.
const MAGIC: &[u8; 8] = b"EMBERENC";

/// Whether files are encrypted, and with which keys.
#[derive(Clone, Debug, Default)]
pub struct Encryption {
    #[cfg(feature = "encryption")]
    keys: Option<Arc<KeyRing>>,
}

/// Whether a file may have a torn end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The file may end with bytes that were not durable, because it was still being written when the server stopped.
    MayBeTorn,
    /// The file must be complete.
    Whole,
}

impl Encryption {
    /// Creates a setting in which files are written unencrypted and encrypted ones are not read.
    pub fn off() -> Encryption {
        Encryption::default()
    }

    /// Creates a setting in which files are encrypted with the current key of `keys` and read with any of these keys.
    #[cfg(feature = "encryption")]
    pub fn with(keys: KeyRing) -> Encryption {
        Encryption { keys: Some(Arc::new(keys)) }
    }

    /// Whether files are encrypted.
    pub fn is_on(&self) -> bool {
        #[cfg(feature = "encryption")]
        return self.keys.is_some();
        #[cfg(not(feature = "encryption"))]
        false
    }

    /// Returns the keys, if files are encrypted.
    #[cfg(feature = "encryption")]
    pub fn keys(&self) -> Option<&Arc<KeyRing>> {
        self.keys.as_ref()
    }

    /// Opens the contents of a file, encrypted or not, for reading. Encryption errors are [`EncryptionError`]s inside
    /// errors of `std::io`. With [`Ending::MayBeTorn`], a torn end counts as the end.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or is encrypted with an unknown key.
    pub fn open(&self, file: Arc<dyn StoredFile>, ending: Ending) -> Result<FileSource, EncryptionError> {
        if !is_encrypted(file.as_ref())? {
            return Ok(FileSource::Plain(FileReader::new(file, 0)));
        }
        #[cfg(feature = "encryption")]
        return Ok(FileSource::Encrypted(Unsealer::open(file, self, ending)?));
        #[cfg(not(feature = "encryption"))]
        {
            let _ = ending;
            Err(EncryptionError::new(file.path(), 0, EncryptionProblem::NotBuilt))
        }
    }
}

/// A reader of the plain contents of a file, in order.
#[derive(Debug)]
pub enum FileSource {
    /// An unencrypted file.
    Plain(FileReader),
    /// An encrypted file.
    #[cfg(feature = "encryption")]
    Encrypted(Unsealer),
}

impl FileSource {
    /// Returns the length of the torn end of an encrypted file, in stored bytes. The length is known once everything
    /// before the torn end has been read.
    pub fn torn_bytes(&self) -> Option<u64> {
        match self {
            FileSource::Plain(_) => None,
            #[cfg(feature = "encryption")]
            FileSource::Encrypted(unsealer) => unsealer.torn_bytes(),
        }
    }
}

impl Read for FileSource {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self {
            FileSource::Plain(reader) => reader.read(out),
            #[cfg(feature = "encryption")]
            FileSource::Encrypted(unsealer) => unsealer.read(out),
        }
    }
}

impl Reread for FileSource {
    fn restart_at(&mut self, offset: u64) -> io::Result<()> {
        match self {
            FileSource::Plain(reader) => reader.restart_at(offset)?,
            #[cfg(feature = "encryption")]
            FileSource::Encrypted(unsealer) => unsealer.restart_at(offset)?,
        }
        Ok(())
    }
}

/// Whether a file begins like an encrypted one.
///
/// # Errors
/// Returns an error if the file cannot be read.
pub fn is_encrypted(file: &dyn StoredFile) -> Result<bool, EncryptionError> {
    let mut begin = [0; MAGIC.len()];
    let mut len = 0;
    while len < begin.len() {
        let count = file.read_at(len as u64, &mut begin[len..]);
        match count.map_err(|error| EncryptionError::disk(file.path(), error))? {
            0 => break,
            count => len += count,
        }
    }
    Ok(&begin == MAGIC)
}

/// Returns the path as text, for tests and messages.
fn shown(path: &Path) -> String {
    path.display().to_string()
}
