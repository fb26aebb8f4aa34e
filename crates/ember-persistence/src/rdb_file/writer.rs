//! Writes RDB files.

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crc_fast::{CrcAlgorithm, Digest, checksum, checksum_combine};
use emberkv_core::keyspace::entry::ValueRef;
use emberkv_core::rdb::{
    Encoded, Features, KeyFacts, KeyForm, PACKED_MAX_BYTES, VERSION_MAX, Writer, is_version_of_valkey,
    library_for_redis, plain_library, write_key,
};

use super::{HEADER_BYTES, header, opcode};
use crate::encryption::{Encryption, FileSink};
use crate::files::{Disk, DiskError, Operation, StoredFile, TemporaryFile, disk_error};

/// The version that files usually have: the newest version that redis-server 7.0 can read.
pub const FILE_VERSION: u16 = 10;

const ALGORITHM: CrcAlgorithm = CrcAlgorithm::Crc64Redis;

/// Number of bytes that are buffered before they are passed to the sink and added to the checksum.
const BUFFER_BYTES: usize = 64 * 1024;

/// A sink that counts the bytes and computes their checksum.
#[derive(Debug)]
struct Checked<W> {
    sink: W,
    buffer: Vec<u8>,
    digest: Digest,
    /// The number of bytes passed to the sink.
    written: u64,
}

impl<W: Write> Checked<W> {
    fn forward(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.sink.write_all(bytes)?;
        self.digest.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.buffer.len() + bytes.len() > BUFFER_BYTES {
            self.flush()?;
        }
        if bytes.len() >= BUFFER_BYTES {
            self.forward(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let result = self.forward(&buffer);
        buffer.clear();
        self.buffer = buffer;
        result
    }
}

/// The result of writing a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// The size of the file in bytes.
    pub size: u64,
    /// The number of keys in the file.
    pub keys: u64,
    /// The features of the values in the file that only some servers support.
    pub features: Features,
    /// The header to write over the beginning of the file: it contains the version that the values need, and is
    /// included in the checksum at the end.
    pub header: [u8; 9],
}

/// A writer of an RDB file to a sink, value by value. It needs memory for a buffer of 64 KiB and for compressing one
/// string.
#[derive(Debug)]
pub struct RdbWriter<W> {
    writer: Writer<Checked<W>>,
    version: u16,
    /// The version that the values written so far need.
    needed: u16,
    features: Features,
    database: Option<usize>,
    keys: u64,
}

impl<W: Write> RdbWriter<W> {
    /// Begins a file at the beginning of `sink`. `version` is 10 or newer, or that of Valkey; with `is_packed`, strings
    /// are LZF-compressed if that makes them shorter.
    ///
    /// # Errors
    /// Returns errors of the sink, as do all functions of this type.
    pub fn new(mut sink: W, version: u16, is_packed: bool) -> io::Result<RdbWriter<W>> {
        assert!(version >= FILE_VERSION, "older versions are read only");
        // The running checksum excludes the header, because the header may change at the end.
        sink.write_all(&header(version))?;
        let digest = Digest::new(ALGORITHM);
        let sink = Checked { sink, buffer: Vec::with_capacity(BUFFER_BYTES), digest, written: 0 };
        let packed_max_bytes = if is_packed { PACKED_MAX_BYTES } else { 0 };
        let writer = Writer::new(sink).with_packed_max_bytes(packed_max_bytes);
        let features = Features::NONE;
        Ok(RdbWriter { writer, version, needed: version, features, database: None, keys: 0 })
    }

    /// Writes an aux field.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn aux(&mut self, name: &[u8], value: &[u8]) -> io::Result<()> {
        self.writer.byte(opcode::AUX)?;
        self.writer.string(name)?;
        self.writer.string(value)
    }

    /// Writes the usual aux fields of Redis: the server's version, the architecture, the time (Unix time in s), the
    /// memory usage in bytes, and whether the file is the base of an AOF.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn usual_aux(&mut self, version: &str, now_s: i64, used_bytes: u64, is_base: bool) -> io::Result<()> {
        self.aux(b"redis-ver", version.as_bytes())?;
        self.aux(b"redis-bits", b"64")?;
        self.aux(b"ctime", now_s.to_string().as_bytes())?;
        self.aux(b"used-mem", used_bytes.to_string().as_bytes())?;
        self.aux(b"aof-base", if is_base { b"1" } else { b"0" })
    }

    /// Writes a function library in a form that readers of the file's version can load ([`library_for_redis`]).
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn function(&mut self, code: &[u8]) -> io::Result<()> {
        let of_valkey = is_version_of_valkey(self.version);
        let code = if of_valkey { plain_library(code) } else { library_for_redis(code) };
        self.writer.byte(opcode::FUNCTION)?;
        self.writer.string(&code)
    }

    /// Writes how many keys of a database follow, and how many of those keys expire, as a hint for readers.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn sizes(&mut self, database: usize, keys: u64, expiring: u64) -> io::Result<()> {
        self.select(database)?;
        self.writer.byte(opcode::RESIZE)?;
        self.writer.length(keys)?;
        self.writer.length(expiring)
    }

    fn select(&mut self, database: usize) -> io::Result<()> {
        if self.database != Some(database) {
            self.writer.byte(opcode::DATABASE)?;
            self.writer.length(database as u64)?;
            self.database = Some(database);
        }
        Ok(())
    }

    /// Writes a key. O(length of its value).
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn key<'v>(
        &mut self,
        facts: &KeyFacts,
        name: &[u8],
        value: impl Into<ValueRef<'v>>,
    ) -> io::Result<()> {
        let value = value.into();
        self.select(facts.database)?;
        self.keys += 1;
        self.features = self.features.and(Features::of(value));
        let kind = write_key(&mut self.writer, facts, name, value, self.version)?;
        self.needed = self.needed.max(kind.version());
        Ok(())
    }

    /// Writes keys of one database that any thread has encoded.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn encoded(&mut self, database: usize, encoded: &Encoded) -> io::Result<()> {
        self.select(database)?;
        self.keys += encoded.keys();
        self.needed = self.needed.max(encoded.version_needed());
        self.features = self.features.and(encoded.features());
        self.writer.raw(encoded.bytes())
    }

    /// Returns the number of keys in the file so far.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// Returns the number of bytes in the file so far.
    pub fn size(&self) -> u64 {
        let sink = self.writer.sink();
        HEADER_BYTES as u64 + sink.written + sink.buffer.len() as u64
    }

    /// Returns an empty batch of keys for [`RdbWriter::encoded`].
    pub fn batch(&self) -> Encoded {
        Encoded::new(KeyForm::Rdb { version: self.version, is_packed: self.writer.packed_max_bytes() > 0 })
    }

    /// Ends a file whose beginning can still be changed: the caller must write [`Written::header`] over it. The
    /// returned sink has received all bytes, but may buffer some itself.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn finish(self) -> io::Result<(W, Written)> {
        let needed = self.needed;
        self.end(needed)
    }

    /// Ends a file whose beginning has already been sent: the file keeps its version, although readers of that version
    /// may not support all values.
    ///
    /// # Errors
    /// Returns errors of the sink.
    pub fn finish_as_begun(self) -> io::Result<(W, Written)> {
        let version = self.version;
        self.end(version)
    }

    fn end(mut self, version: u16) -> io::Result<(W, Written)> {
        self.writer.byte(opcode::END)?;
        let mut sink = self.writer.into_inner();
        sink.flush()?;
        let header = header(version);
        let before = checksum(ALGORITHM, &header);
        let whole = checksum_combine(ALGORITHM, before, sink.digest.finalize(), sink.written);
        sink.sink.write_all(&whole.to_le_bytes())?;
        let size = HEADER_BYTES as u64 + sink.written + whole.to_le_bytes().len() as u64;
        Ok((sink.sink, Written { size, keys: self.keys, features: self.features, header }))
    }
}

/// Writes a file of at least `version` that appears under its name atomically; `fill` writes the contents. An encrypted
/// file has the newest version, or that of Valkey.
///
/// # Errors
/// Returns errors of `fill` and of the disk. A previous file of that name is then unchanged.
pub fn save(
    disk: &Arc<dyn Disk>,
    target: &Path,
    options: &SaveOptions<'_>,
    fill: impl FnOnce(&mut RdbWriter<FileSink>) -> io::Result<()>,
) -> Result<Written, DiskError> {
    let temporary = TemporaryFile::create(disk, target)?;
    let written = save_to(temporary.file(), options, fill)?;
    temporary.publish()?;
    Ok(written)
}

/// Options for writing a file.
#[derive(Clone, Copy, Debug)]
pub struct SaveOptions<'a> {
    /// The minimum version: [`FILE_VERSION`] or newer.
    pub version: u16,
    /// Whether strings are LZF-compressed if that makes them shorter.
    pub is_packed: bool,
    /// The encryption of the file.
    pub encryption: &'a Encryption,
}

/// Writes an RDB file to an empty file; the caller must make it durable and give it its name.
///
/// # Errors
/// Returns errors of `fill` and of the disk.
pub fn save_to(
    file: &Arc<dyn StoredFile>,
    options: &SaveOptions<'_>,
    fill: impl FnOnce(&mut RdbWriter<FileSink>) -> io::Result<()>,
) -> Result<Written, DiskError> {
    // The header of an encrypted file cannot be changed at the end, when the needed version is known.
    let version = if options.encryption.is_on() { options.version.max(VERSION_MAX) } else { options.version };
    let written = (|| {
        let sink = FileSink::begin(Arc::clone(file), options.encryption)?;
        let mut writer = RdbWriter::new(sink, version, options.is_packed)?;
        fill(&mut writer)?;
        let (sink, written) = writer.finish()?;
        sink.finish()?;
        if !options.encryption.is_on() {
            file.write_at(0, &written.header)?;
        }
        Ok(written)
    })();
    written.map_err(|error| disk_error(error, Operation::Write, file.path()))
}
