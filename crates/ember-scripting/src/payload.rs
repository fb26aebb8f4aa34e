//! The payload of FUNCTION DUMP, which Redis can also read: libraries encoded as in an RDB file.
//!
//! ```text
//! for each library: 245 | length | text          then: version (2 bytes) | CRC-64 of all before (8 bytes)
//! ```
//! Lengths and texts are encoded as in RDB files; a text may be compressed with LZF.

use emberkv_core::error::CommandError;
use emberkv_core::rdb::PayloadChecks;

/// The RDB opcode before a library's text.
const OPCODE: u8 = 245;

/// The RDB version of written payloads: that of Redis 7.0, which newer versions also read.
const VERSION: u16 = 10;

/// The maximum length of a library's text in bytes, because a compressed text could claim any length.
const TEXT_BYTES_MAX: usize = 64 * 1024 * 1024;

const BAD_PAYLOAD: &str = "ERR DUMP payload version or checksum are wrong";
const CORRUPT: &str = "ERR failed loading functions payload";

/// The polynomial of Redis's CRC-64 ("Jones"), bit-reversed.
const CRC_POLYNOMIAL: u64 = 0x95AC_9329_AC4B_C9B5;

/// The CRC-64 remainder of each byte value.
const CRC_TABLE: [u64; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u64;
        let mut bit = 0;
        while bit < 8 {
            remainder = if remainder & 1 == 1 { remainder >> 1 ^ CRC_POLYNOMIAL } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

fn crc64(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |crc, &byte| CRC_TABLE[usize::from(crc as u8 ^ byte)] ^ crc >> 8)
}

/// Encodes the library texts as a payload.
pub fn write<'t>(texts: impl Iterator<Item = &'t [u8]>) -> Vec<u8> {
    let mut out = Vec::new();
    for text in texts {
        out.push(OPCODE);
        write_len(&mut out, text.len());
        out.extend_from_slice(text);
    }
    out.extend_from_slice(&VERSION.to_le_bytes());
    let crc = crc64(&out);
    out.extend_from_slice(&crc.to_le_bytes());
    out
}

fn write_len(out: &mut Vec<u8>, len: usize) {
    match len {
        0..64 => out.push(len as u8),
        64..16384 => out.extend_from_slice(&[0x40 | (len >> 8) as u8, len as u8]),
        _ => {
            out.push(0x81);
            out.extend_from_slice(&(len as u64).to_be_bytes());
        }
    }
}

/// Whether all replicas, including Redis 7.0 and Valkey 9, can read a payload of this version.
pub fn is_for_stream(payload: &[u8]) -> bool {
    payload
        .len()
        .checked_sub(10)
        .is_some_and(|at| u16::from_le_bytes([payload[at], payload[at + 1]]) <= VERSION)
}

/// Decodes the library texts in a payload whose version `checks` allows.
///
/// # Errors
/// Returns an error if `payload` is not such a payload or is damaged.
pub fn read(payload: &[u8], checks: PayloadChecks) -> Result<Vec<Vec<u8>>, CommandError> {
    let Some(at) = payload.len().checked_sub(10) else { return Err(BAD_PAYLOAD.into()) };
    let (body, footer) = payload.split_at(at);
    let version = u16::from_le_bytes([footer[0], footer[1]]);
    let crc = footer[2..].iter().rev().fold(0, |crc, &byte| crc << 8 | u64::from(byte));
    if !checks.allow(version) || (crc != 0 && crc != crc64(&payload[..at + 2])) {
        return Err(BAD_PAYLOAD.into());
    }
    let mut reader = Reader { rest: body };
    let mut texts = Vec::new();
    while let Some((&opcode, rest)) = reader.rest.split_first() {
        if opcode != OPCODE {
            return Err("ERR given type is not a function".into());
        }
        reader.rest = rest;
        texts.push(reader.string().ok_or(CORRUPT)?);
    }
    Ok(texts)
}

/// A length, or a marker in place of a length.
enum Len {
    Bytes(usize),
    Compressed,
}

struct Reader<'r> {
    rest: &'r [u8],
}

impl<'r> Reader<'r> {
    fn take(&mut self, len: usize) -> Option<&'r [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }

    fn len(&mut self) -> Option<Len> {
        let first = *self.take(1)?.first()?;
        let number = |bytes: &[u8]| bytes.iter().fold(0, |len: u64, &byte| len << 8 | u64::from(byte));
        let len = match first {
            0..0x40 => u64::from(first),
            0x40..0x80 => u64::from(first & 0x3F) << 8 | number(self.take(1)?),
            0x80 => number(self.take(4)?),
            0x81 => number(self.take(8)?),
            0xC3 => return Some(Len::Compressed),
            _ => return None,
        };
        usize::try_from(len).ok().map(Len::Bytes)
    }

    fn plain_len(&mut self) -> Option<usize> {
        match self.len()? {
            Len::Bytes(len) => Some(len),
            Len::Compressed => None,
        }
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        match self.len()? {
            Len::Bytes(len) => self.take(len).map(<[u8]>::to_vec),
            Len::Compressed => {
                let compressed = self.plain_len()?;
                let len = self.plain_len().filter(|&len| len <= TEXT_BYTES_MAX)?;
                decompress(self.take(compressed)?, len)
            }
        }
    }
}

/// Decompresses LZF data; returns `None` unless the result has exactly `len` bytes.
fn decompress(input: &[u8], len: usize) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut bytes = input.iter().copied();
    while let Some(control) = bytes.next() {
        let control = usize::from(control);
        if control < 32 {
            for _ in 0..=control {
                out.push(bytes.next()?);
            }
        } else {
            let mut count = control >> 5;
            if count == 7 {
                count += usize::from(bytes.next()?);
            }
            let distance = ((control & 0x1F) << 8 | usize::from(bytes.next()?)) + 1;
            let start = out.len().checked_sub(distance)?;
            for at in start..start + count + 2 {
                out.push(out[at]);
            }
        }
        if out.len() > len {
            return None;
        }
    }
    (out.len() == len).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_that_of_redis() {
        assert_eq!(crc64(b"123456789"), 0xE9C6_D914_C4B8_D9CA);
    }

    #[test]
    fn a_payload_is_read_back() {
        let texts = [vec![b'a'; 5], vec![b'b'; 100], vec![b'c'; 20_000], Vec::new()];
        let payload = write(texts.iter().map(Vec::as_slice));
        let read = |payload: &[u8]| read(payload, PayloadChecks { checksum: true, version_max: VERSION });
        assert_eq!(read(&payload).unwrap(), texts);
        for at in 0..payload.len() {
            let mut damaged = payload.clone();
            damaged[at] ^= 1;
            assert!(read(&damaged).is_err(), "byte {at}");
        }
        assert!(read(b"").is_err() && read(b"123456789").is_err());
    }

    #[test]
    fn compressed_texts_are_read_and_damaged_ones_refused() {
        let compressed = [&[2][..], b"abc", &[0xE0, 10, 2]].concat();
        assert_eq!(decompress(&compressed, 22).unwrap(), b"abcabcabcabcabcabcabca");
        assert_eq!(decompress(&compressed, 21), None);
        assert_eq!(decompress(&[0x20, 5], 3), None);
        assert_eq!(decompress(&[5, b'a'], 6), None);
    }
}
