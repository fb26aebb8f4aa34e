//! Data of modules that the reader skips: auxiliary blocks, and values of unknown modules.

use std::collections::BTreeMap;
use std::fmt::{self, Display};
use std::io::{self, Read};

use emberkv_core::rdb::Reader;

use super::{RdbProblem, Source};

const UNKNOWN_PART: RdbProblem = RdbProblem::Corrupt("data of a module have a part with an unknown type");
const UNKNOWN_STRING: RdbProblem = RdbProblem::Corrupt("a string has an unknown encoding");

/// Data of a module that were skipped.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SkippedData {
    /// The name of the module.
    pub module: String,
    /// The number of keys with values of the module.
    pub keys: u64,
    /// The number of auxiliary blocks that are not empty.
    pub blocks: u64,
}

impl Display for SkippedData {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SkippedData { module, keys, blocks } = self;
        write!(f, "data of the module '{module}': {keys} keys, {blocks} auxiliary blocks")
    }
}

/// All skipped data of a file, by the numbers of the modules.
#[derive(Debug, Default)]
pub(super) struct Skipped(BTreeMap<u64, SkippedData>);

impl Skipped {
    /// Returns the record of the skipped data of a module; creates it if the module has none.
    pub(super) fn of(&mut self, id: u64) -> &mut SkippedData {
        self.0.entry(id).or_insert_with(|| SkippedData { module: name(id), ..SkippedData::default() })
    }

    /// Removes and returns the record of the module with the lowest number.
    pub(super) fn take(&mut self) -> Option<SkippedData> {
        self.0.pop_first().map(|(_, data)| data)
    }
}

/// Decodes the name in the number of a module: nine letters of six bits each, followed by a version of ten bits.
pub(super) fn name(id: u64) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    (0..9).map(|place| char::from(LETTERS[(id >> (58 - 6 * place) & 0x3F) as usize])).collect()
}

/// Skips the parts of a module's data, up to and including their end. Returns whether they contain anything but zeros
/// and empty strings.
pub(super) fn skip_parts<R: Read>(source: &mut Source<R>) -> Result<bool, RdbProblem> {
    let mut has_content = false;
    loop {
        has_content |= match length(source)? {
            0 => return Ok(has_content),
            1 | 2 => length(source)? != 0,
            3 => skip(source, size_of::<f32>() as u64)?,
            4 => skip(source, size_of::<f64>() as u64)?,
            5 => {
                let len = string_length(source)?;
                skip(source, len)?
            }
            _ => return Err(UNKNOWN_PART),
        };
    }
}

fn length<R: Read>(source: &mut Source<R>) -> Result<u64, RdbProblem> {
    Ok(Reader::new(source).length()?)
}

/// Reads the head of a string; returns the number of bytes that follow.
fn string_length<R: Read>(source: &mut Source<R>) -> Result<u64, RdbProblem> {
    let first = *source.buffered()?.first().ok_or(RdbProblem::Truncated)?;
    if first < 0xC0 {
        return length(source);
    }
    source.advance(1);
    match first {
        0xC0 => Ok(1),
        0xC1 => Ok(2),
        0xC2 => Ok(4),
        0xC3 => {
            let packed_len = length(source)?;
            length(source)?;
            Ok(packed_len)
        }
        _ => Err(UNKNOWN_STRING),
    }
}

/// Consumes this many bytes; returns whether there are any.
fn skip<R: Read>(source: &mut Source<R>, count: u64) -> Result<bool, RdbProblem> {
    if io::copy(&mut source.take(count), &mut io::sink())? < count {
        return Err(RdbProblem::Truncated);
    }
    Ok(count > 0)
}
