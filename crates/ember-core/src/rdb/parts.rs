//! The parts of a module's value, each of which states its type.
//!
//! ```text
//! value     module id, length | part … | 0
//! part      1 or 2, length: an integer with or without sign | 3, 4 bytes: a float | 4, 8 bytes: a double | 5, string
//! ```
//!
//! The format: Redis, `module.c` and `rdb.c` by S. Sanfilippo.

use std::io::{self, BufRead, Write};

use super::format::{LoadError, Reader, Writer};
use crate::types::sketches::Blocks;

/// The part that ends a value of a module.
const END: u64 = 0;
/// The type of a part that is an integer with a sign.
const SIGNED: u64 = 1;
/// The type of a part that is an integer without sign.
const NUMBER: u64 = 2;
/// The type of a part that is a double.
const DOUBLE: u64 = 4;
/// The type of a part that is a string.
const STRING: u64 = 5;

const NO_NUMBER: LoadError = LoadError::Corrupt("a value has a part of another type instead of a number");
const NO_STRING: LoadError = LoadError::Corrupt("a value has a part of another type instead of a string");
const NO_END: LoadError = LoadError::Corrupt("a value has data after its end");

/// Writes the parts of a value.
pub(super) struct Parts<'w, W> {
    writer: &'w mut Writer<W>,
}

impl<W: Write> Parts<'_, W> {
    /// Begins a value of the module with this number.
    pub(super) fn begin(writer: &mut Writer<W>, module_id: u64) -> io::Result<Parts<'_, W>> {
        writer.length(module_id)?;
        Ok(Parts { writer })
    }

    /// Writes an integer.
    pub(super) fn number(&mut self, number: u64) -> io::Result<()> {
        self.writer.length(NUMBER)?;
        self.writer.length(number)
    }

    /// Writes a double.
    pub(super) fn double(&mut self, number: f64) -> io::Result<()> {
        self.writer.length(DOUBLE)?;
        self.writer.double(number)
    }

    /// Writes the bytes of blocks as a string. Only a string that may be packed is copied.
    pub(super) fn blocks(&mut self, blocks: &Blocks) -> io::Result<()> {
        let len = blocks.len();
        if len <= self.writer.packed_max_bytes() {
            return self.string(&blocks.to_vec(0..len));
        }
        self.writer.length(STRING)?;
        self.writer.length(len as u64)?;
        blocks.pieces(0..len).try_for_each(|piece| self.writer.raw(piece))
    }

    /// Writes a string.
    pub(super) fn string(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.length(STRING)?;
        self.writer.string(bytes)
    }

    /// Writes a string that is not worth packing.
    pub(super) fn plain(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.writer.length(STRING)?;
        self.writer.length(bytes.len() as u64)?;
        self.writer.raw(bytes)
    }

    /// Ends the value.
    pub(super) fn end(self) -> io::Result<()> {
        self.writer.length(END)
    }
}

/// Reads an integer.
pub(super) fn number<R: BufRead>(reader: &mut Reader<R>) -> Result<u64, LoadError> {
    if reader.length()? == NUMBER { reader.length() } else { Err(NO_NUMBER) }
}

/// Reads an integer with a sign.
pub(super) fn signed<R: BufRead>(reader: &mut Reader<R>) -> Result<i64, LoadError> {
    if reader.length()? == SIGNED { Ok(reader.length()?.cast_signed()) } else { Err(NO_NUMBER) }
}

/// Reads a double.
pub(super) fn double<R: BufRead>(reader: &mut Reader<R>) -> Result<f64, LoadError> {
    if reader.length()? == DOUBLE { reader.double() } else { Err(NO_NUMBER) }
}

/// Reads a string.
pub(super) fn string<R: BufRead>(reader: &mut Reader<R>) -> Result<Vec<u8>, LoadError> {
    if reader.length()? == STRING { reader.string() } else { Err(NO_STRING) }
}

/// Reads a string into a buffer.
pub(super) fn string_into<R: BufRead>(reader: &mut Reader<R>, string: &mut Vec<u8>) -> Result<(), LoadError> {
    if reader.length()? == STRING { reader.string_into(string) } else { Err(NO_STRING) }
}

/// Reads the end of a value.
pub(super) fn end<R: BufRead>(reader: &mut Reader<R>) -> Result<(), LoadError> {
    if reader.length()? == END { Ok(()) } else { Err(NO_END) }
}
