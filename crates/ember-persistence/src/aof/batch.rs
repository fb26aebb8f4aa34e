//! Batches: commands written together. A line before them verifies that they are complete.
//!
//! The line is `#CRC:` and four hexadecimal numbers: the CRC-64 of the batch (16 digits); the length of the batch in
//! bytes (8 digits); the number of bytes of the file that were durable when the batch was written (16 digits); and a
//! check of the line (16 digits), which is the CRC-64 of the file's identity, the line's offset in the file, and the
//! three preceding numbers. The checksum algorithm is the same as in RDB files: it is as fast as shorter checksums, and
//! batches can be long.
//!
//! The identity is a random number on the file's first line, `#EMBER:` and 16 digits. Together with the offset, it
//! ensures that no value stored by a client looks like such a line.
//!
//! Redis skips lines that begin with `#` and have fewer than 128 characters (`aof.c`, `loadSingleAppendOnlyFile`).

use std::io;

use crc_fast::{CrcAlgorithm, Digest, checksum};
use ember_protocol::client::encode_command;
use ember_protocol::number;

use crate::origin::Origin;

/// Prefix of the line before a batch.
pub(super) const BATCH_LINE: &[u8] = b"#CRC:";

/// Prefix of a file's first line.
pub(super) const IDENTITY_LINE: &[u8] = b"#EMBER:";

/// Prefix of a line with a timestamp: Unix time in s, as in Redis.
pub(super) const TIME_LINE: &[u8] = b"#TS:";

/// Length in bytes of the line before a batch: prefix, digits, separators and line end.
pub(super) const BATCH_LINE_BYTES: usize = BATCH_LINE.len() + 16 + 1 + 8 + 1 + 16 + 1 + 16 + 2;

/// The maximum length of a batch in bytes: its length field has eight digits.
pub const BATCH_BYTES_MAX: usize = u32::MAX as usize;

pub(super) fn crc(bytes: &[u8]) -> u64 {
    checksum(CrcAlgorithm::Crc64Redis, bytes)
}

/// The polynomial of CRC-64/REDIS, bit-reversed.
const POLYNOMIAL: u64 = 0x95ac_9329_ac4b_c9b5;

/// Returns the eight bytes, as a little-endian number, whose CRC is `crc` when they are padded with zeros to `bytes`
/// bytes. Exactly one such number exists, because each step of the computation is reversible.
fn invert_crc(crc: u64, bytes: u32) -> u64 {
    (0..8 * bytes).fold(crc, |state, _| match state >> 63 {
        0 => state << 1,
        _ => ((state ^ POLYNOMIAL) << 1) | 1,
    })
}

/// Returns a random identity for a file.
///
/// # Errors
/// Returns the error of the system.
pub(super) fn new_identity() -> io::Result<u64> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(u64::from_le_bytes(random))
}

/// Returns the first line of a file with this identity.
pub(super) fn identity_line(identity: u64) -> Vec<u8> {
    [IDENTITY_LINE, format!("{identity:016x}\r\n").as_bytes()].concat()
}

/// Parses the identity in a file's first line; None if the line is invalid.
pub(super) fn parse_identity(line: &[u8]) -> Option<u64> {
    let digits = line.strip_prefix(IDENTITY_LINE)?.strip_suffix(b"\r\n")?;
    hexadecimal(digits, 16)
}

fn hexadecimal(digits: &[u8], count: usize) -> Option<u64> {
    let is_plain = digits.len() == count && digits.iter().all(|digit| b"0123456789abcdef".contains(digit));
    let text = std::str::from_utf8(digits).ok().filter(|_| is_plain)?;
    u64::from_str_radix(text, 16).ok()
}

/// The fields of the line before a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BatchLine {
    pub(super) crc: u64,
    pub(super) len: u32,
    pub(super) durable: u64,
}

impl BatchLine {
    fn check(self, identity: u64, offset: u64) -> u64 {
        let mut digest = Digest::new(CrcAlgorithm::Crc64Redis);
        for number in [identity, offset, self.crc, self.len.into(), self.durable] {
            digest.update(&number.to_le_bytes());
        }
        digest.finalize()
    }

    /// Encodes the line for a batch at `offset` of the file with `identity`.
    pub(super) fn to_bytes(self, identity: u64, offset: u64) -> Vec<u8> {
        let BatchLine { crc, len, durable } = self;
        let check = self.check(identity, offset);
        format!("#CRC:{crc:016x} {len:08x} {durable:016x} {check:016x}\r\n").into_bytes()
    }

    /// Parses the line before a batch; returns its fields and its check, or None if the line is invalid.
    fn digits(line: &[u8]) -> Option<(BatchLine, u64)> {
        let numbers = line.strip_prefix(BATCH_LINE)?.strip_suffix(b"\r\n")?;
        let mut numbers = numbers.split(|&byte| byte == b' ');
        let mut next = |count| numbers.next().and_then(|digits| hexadecimal(digits, count));
        let (crc, len, durable, check) = (next(16)?, next(8)? as u32, next(16)?, next(16)?);
        numbers.next().is_none().then_some((BatchLine { crc, len, durable }, check))
    }

    /// Parses the line at `offset` of the file with `identity`; None if the line is invalid, or was written for another
    /// offset or file.
    pub(super) fn parse(line: &[u8], identity: u64, offset: u64) -> Option<BatchLine> {
        let (line, check) = BatchLine::digits(line)?;
        (check == line.check(identity, offset)).then_some(line)
    }

    /// Parses a line of the file with `identity` that may have been moved: returns its fields and the offset at which
    /// it was written. For a line of another file, that offset is effectively random. None if the line is invalid.
    pub(super) fn parse_anywhere(line: &[u8], identity: u64) -> Option<(BatchLine, u64)> {
        let (line, check) = BatchLine::digits(line)?;
        // A CRC without initial and final constants is linear: the difference of the two checks is the CRC of the
        // offset alone, padded with zeros for the three numbers.
        let of_offset = check ^ line.check(identity, 0);
        Some((line, invert_crc(of_offset, 4 * 8)))
    }

    /// Parses a line without verifying its check.
    pub(super) fn parse_unchecked(line: &[u8]) -> Option<BatchLine> {
        BatchLine::digits(line).map(|(line, _)| line)
    }
}

/// Parses a line with a timestamp: Unix time in s.
pub(super) fn parse_time(line: &[u8]) -> Option<i64> {
    number::parse_i64(line.strip_prefix(TIME_LINE)?.strip_suffix(b"\r\n")?)
}

/// Commands that are written together. Clearing keeps the allocation.
#[derive(Debug)]
pub struct Batch {
    /// Space reserved for the line before the batch, then the commands.
    bytes: Vec<u8>,
}

impl Default for Batch {
    fn default() -> Batch {
        Batch::new()
    }
}

impl Batch {
    /// Creates an empty batch.
    pub fn new() -> Batch {
        Batch { bytes: vec![0; BATCH_LINE_BYTES] }
    }

    /// Appends a command.
    pub fn command(&mut self, words: &[&[u8]]) {
        encode_command(words, &mut self.bytes);
    }

    /// Appends commands that are complete and already encoded.
    pub fn encoded(&mut self, commands: &[u8]) {
        self.bytes.extend_from_slice(commands);
    }

    /// Returns the buffer, to which the caller may append complete commands.
    pub(super) fn bytes_mut(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Appends a timestamp (Unix time in s) for the commands that follow. Must not be called inside a transaction.
    pub fn time(&mut self, now_s: i64) {
        self.bytes.extend_from_slice(TIME_LINE);
        self.bytes.extend_from_slice(itoa::Buffer::new().format(now_s).as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// Appends the position in a replication stream of the data after all commands so far. Must not be called inside a
    /// transaction.
    pub fn origin(&mut self, origin: &Origin) {
        self.bytes.extend_from_slice(origin.line().as_bytes());
    }

    /// Returns the encoded commands.
    pub fn commands(&self) -> &[u8] {
        &self.bytes[BATCH_LINE_BYTES..]
    }

    /// Returns the length in bytes, excluding the line before the batch.
    pub fn len(&self) -> usize {
        self.bytes.len() - BATCH_LINE_BYTES
    }

    /// Whether the batch is empty.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes all commands; the allocation is kept.
    pub fn clear(&mut self) {
        self.bytes.truncate(BATCH_LINE_BYTES);
    }

    /// Completes the batch for `offset` of the file with `identity`, of which `durable` bytes are durable, and returns
    /// the line and the commands.
    pub(super) fn seal(&mut self, identity: u64, offset: u64, durable: u64) -> &[u8] {
        assert!(self.len() <= BATCH_BYTES_MAX, "the caller checks the length of a batch");
        let (line, commands) = self.bytes.split_at_mut(BATCH_LINE_BYTES);
        let said = BatchLine { crc: crc(commands), len: commands.len() as u32, durable };
        line.copy_from_slice(&said.to_bytes(identity, offset));
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_line_is_valid_only_at_its_position() {
        let line = BatchLine { crc: u64::MAX - 5, len: 77, durable: 1 << 40 };
        let bytes = line.to_bytes(3, 1000);
        assert_eq!(bytes.len(), BATCH_LINE_BYTES);
        assert_eq!(BatchLine::parse(&bytes, 3, 1000), Some(line));
        assert_eq!(BatchLine::parse(&bytes, 3, 1001), None);
        assert_eq!(BatchLine::parse(&bytes, 4, 1000), None);
        for index in 0..bytes.len() {
            let mut other = bytes.clone();
            other[index] ^= 1;
            assert_eq!(BatchLine::parse(&other, 3, 1000), None, "{index}");
            assert_eq!(BatchLine::parse(&bytes[..index], 3, 1000), None);
        }
        for offset in [0, 1, 1000, 1 << 40, u64::MAX] {
            let bytes = line.to_bytes(3, offset);
            assert_eq!(BatchLine::parse_anywhere(&bytes, 3), Some((line, offset)));
            assert_ne!(BatchLine::parse_anywhere(&bytes, 4), Some((line, offset)));
        }
        assert_eq!(parse_identity(&identity_line(u64::MAX)), Some(u64::MAX));
        assert_eq!(parse_time(b"#TS:1700000000\r\n"), Some(1_700_000_000));
    }

    #[test]
    fn a_batch_is_a_line_followed_by_its_commands() {
        let mut batch = Batch::new();
        batch.time(7);
        batch.command(&[b"SET", b"key", b""]);
        batch.encoded(b"*1\r\n$4\r\nPING\r\n");
        let commands = b"#TS:7\r\n*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$0\r\n\r\n*1\r\n$4\r\nPING\r\n";
        assert_eq!(batch.len(), commands.len());
        let bytes = batch.seal(1, 2, 3);
        assert_eq!(&bytes[BATCH_LINE_BYTES..], commands);
        let line = BatchLine::parse(&bytes[..BATCH_LINE_BYTES], 1, 2).unwrap();
        assert_eq!(line, BatchLine { crc: crc(commands), len: commands.len() as u32, durable: 3 });
        batch.clear();
        assert!(batch.is_empty());
    }
}
