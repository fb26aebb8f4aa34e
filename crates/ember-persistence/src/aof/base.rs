//! Writes the base of a rewrite: an RDB file, or commands in batches like those of an increment.

use std::io::{self, Write};
use std::sync::Arc;

use emberkv_core::keyspace::entry::ValueRef;
use emberkv_core::rdb::{Encoded, Features, KeyFacts, KeyForm, library_for_redis};
use emberkv_core::rebuild::{CommandSink, command, write_commands};

use super::batch::{Batch, identity_line, new_identity};
use crate::encryption::{Encryption, FileSink};
use crate::files::{DiskError, Operation, StoredFile, TemporaryFile, disk_error};
use crate::key_writer::KeyWriter;
use crate::rdb_file::{RdbWriter, SaveOptions, save_to};

/// Length in bytes from which a batch is written to the file.
const BATCH_BYTES: usize = 1024 * 1024;

/// A file for the base of a rewrite. Dropping it before it is published removes the file.
#[derive(Debug)]
pub struct BaseFile {
    pub(super) file: TemporaryFile,
    pub(super) form: KeyForm,
}

impl BaseFile {
    /// Returns the file.
    pub fn file(&self) -> &Arc<dyn StoredFile> {
        self.file.file()
    }

    /// Writes the data set that `fill` provides; the caller makes the file durable. Returns the features of the values
    /// in an RDB file that only some readers support.
    ///
    /// # Errors
    /// Returns errors of `fill` and of the disk.
    pub fn write(
        &self,
        encryption: &Encryption,
        fill: impl FnOnce(&mut BaseWriter<'_>) -> io::Result<()>,
    ) -> Result<Features, DiskError> {
        match self.form {
            KeyForm::Rdb { version, is_packed } => {
                let options = SaveOptions { version, is_packed, encryption };
                save_to(self.file(), &options, |writer| fill(&mut BaseWriter::Rdb(writer)))
                    .map(|written| written.features)
            }
            KeyForm::Rows => unreachable!("rows are no file"),
            KeyForm::Commands => {
                let written = (|| {
                    let mut writer =
                        CommandsWriter::begin(FileSink::begin(Arc::clone(self.file()), encryption)?)?;
                    fill(&mut BaseWriter::Commands(&mut writer))?;
                    writer.finish()?;
                    Ok(Features::NONE)
                })();
                written.map_err(|error| disk_error(error, Operation::Write, self.file().path()))
            }
        }
    }
}

/// The writer for a base.
#[derive(Debug)]
pub enum BaseWriter<'w> {
    /// An RDB file.
    Rdb(&'w mut RdbWriter<FileSink>),
    /// A file of commands.
    Commands(&'w mut CommandsWriter),
}

impl KeyWriter for BaseWriter<'_> {
    fn usual_aux(&mut self, version: &str, now_s: i64, used_bytes: u64, is_base: bool) -> io::Result<()> {
        match self {
            BaseWriter::Rdb(writer) => writer.usual_aux(version, now_s, used_bytes, is_base),
            BaseWriter::Commands(_) => Ok(()),
        }
    }

    fn function(&mut self, code: &[u8]) -> io::Result<()> {
        match self {
            BaseWriter::Rdb(writer) => writer.function(code),
            BaseWriter::Commands(writer) => {
                command(*writer, &[b"FUNCTION", b"LOAD", &library_for_redis(code)])
            }
        }
    }

    fn sizes(&mut self, database: usize, keys: u64, expiring: u64) -> io::Result<()> {
        match self {
            BaseWriter::Rdb(writer) => writer.sizes(database, keys, expiring),
            BaseWriter::Commands(_) => Ok(()),
        }
    }

    fn key<'v>(&mut self, facts: &KeyFacts, name: &[u8], value: impl Into<ValueRef<'v>>) -> io::Result<()> {
        match self {
            BaseWriter::Rdb(writer) => writer.key(facts, name, value),
            BaseWriter::Commands(writer) => {
                writer.select(facts.database)?;
                writer.keys += 1;
                write_commands(*writer, name, value.into(), facts.expire_at_ms)
            }
        }
    }

    fn encoded(&mut self, database: usize, encoded: &Encoded) -> io::Result<()> {
        match self {
            BaseWriter::Rdb(writer) => writer.encoded(database, encoded),
            BaseWriter::Commands(writer) => {
                writer.select(database)?;
                writer.keys += encoded.keys();
                writer.batch.encoded(encoded.bytes());
                writer.end_command()
            }
        }
    }

    fn keys(&self) -> u64 {
        match self {
            BaseWriter::Rdb(writer) => writer.keys(),
            BaseWriter::Commands(writer) => writer.keys,
        }
    }
}

/// A writer of commands in batches. At most one batch is in memory, or one command if it is longer.
#[derive(Debug)]
pub struct CommandsWriter {
    sink: FileSink,
    identity: u64,
    /// The number of plain bytes written to the file so far.
    size: u64,
    batch: Batch,
    database: Option<usize>,
    keys: u64,
}

impl CommandsWriter {
    fn begin(mut sink: FileSink) -> io::Result<CommandsWriter> {
        let identity = new_identity()?;
        let line = identity_line(identity);
        sink.write_all(&line)?;
        let size = line.len() as u64;
        Ok(CommandsWriter { sink, identity, size, batch: Batch::new(), database: None, keys: 0 })
    }

    fn select(&mut self, database: usize) -> io::Result<()> {
        if self.database != Some(database) {
            self.database = Some(database);
            command(self, &[b"SELECT", itoa::Buffer::new().format(database).as_bytes()])?;
        }
        Ok(())
    }

    fn write_batch(&mut self) -> io::Result<()> {
        // The recorded number of durable bytes is 0, because a base is valid only when all of it is durable.
        let sealed = self.batch.seal(self.identity, self.size, 0);
        self.sink.write_all(sealed)?;
        self.size += sealed.len() as u64;
        if self.batch.len() > 2 * BATCH_BYTES {
            // The memory of a long value is released.
            self.batch = Batch::new();
        } else {
            self.batch.clear();
        }
        Ok(())
    }

    fn finish(mut self) -> io::Result<()> {
        if !self.batch.is_empty() {
            self.write_batch()?;
        }
        self.sink.finish()
    }
}

impl CommandSink for CommandsWriter {
    fn bytes(&mut self) -> &mut Vec<u8> {
        self.batch.bytes_mut()
    }

    fn end_command(&mut self) -> io::Result<()> {
        if self.batch.len() >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
    }
}
