//! The interface through which a data set is written, independent of the file's format.

use std::io::{self, Write};

use emberkv_core::keyspace::entry::ValueRef;
use emberkv_core::rdb::{Encoded, KeyFacts};

use crate::rdb_file::RdbWriter;

/// A destination that receives a data set, key by key.
pub trait KeyWriter {
    /// Writes the server's version, the time (Unix time in s), the memory usage in bytes, and whether the file is the
    /// base of an AOF; does nothing if the format has no such fields.
    ///
    /// # Errors
    /// Returns errors of the file, as do all functions of this trait.
    fn usual_aux(&mut self, version: &str, now_s: i64, used_bytes: u64, is_base: bool) -> io::Result<()>;

    /// Writes a library of functions.
    ///
    /// # Errors
    /// Returns errors of the file.
    fn function(&mut self, code: &[u8]) -> io::Result<()>;

    /// Announces how many keys of a database follow, and how many of those keys expire; does nothing if the format has
    /// no such fields.
    ///
    /// # Errors
    /// Returns errors of the file.
    fn sizes(&mut self, database: usize, keys: u64, expiring: u64) -> io::Result<()>;

    /// Writes a key. O(length of its value).
    ///
    /// # Errors
    /// Returns errors of the file.
    fn key<'v>(&mut self, facts: &KeyFacts, name: &[u8], value: impl Into<ValueRef<'v>>) -> io::Result<()>;

    /// Writes keys of one database that any thread has encoded in the format of the file.
    ///
    /// # Errors
    /// Returns errors of the file.
    fn encoded(&mut self, database: usize, encoded: &Encoded) -> io::Result<()>;

    /// Returns the number of keys in the file so far.
    fn keys(&self) -> u64;
}

impl<W: Write> KeyWriter for RdbWriter<W> {
    fn usual_aux(&mut self, version: &str, now_s: i64, used_bytes: u64, is_base: bool) -> io::Result<()> {
        RdbWriter::usual_aux(self, version, now_s, used_bytes, is_base)
    }

    fn function(&mut self, code: &[u8]) -> io::Result<()> {
        RdbWriter::function(self, code)
    }

    fn sizes(&mut self, database: usize, keys: u64, expiring: u64) -> io::Result<()> {
        RdbWriter::sizes(self, database, keys, expiring)
    }

    fn key<'v>(&mut self, facts: &KeyFacts, name: &[u8], value: impl Into<ValueRef<'v>>) -> io::Result<()> {
        RdbWriter::key(self, facts, name, value)
    }

    fn encoded(&mut self, database: usize, encoded: &Encoded) -> io::Result<()> {
        RdbWriter::encoded(self, database, encoded)
    }

    fn keys(&self) -> u64 {
        RdbWriter::keys(self)
    }
}
