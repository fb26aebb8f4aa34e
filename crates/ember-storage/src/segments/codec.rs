//! Records in stored form: plain, or in encrypted chunks.

#[cfg(feature = "encryption")]
use crate::encryption::{
    CHUNK_BYTES_MAX, CHUNK_HEAD_BYTES, ChunkParts, FILE_HEAD_BYTES, Opener, STORED_BYTES_MIN, Sealer,
};

use super::record::{self, Place, Record, RecordHead};
use super::{HEAD_BYTES, UNIT_BYTES, padded};
use crate::encryption::Encryption;

/// The first bytes of an unencrypted segment.
const MAGIC: &[u8; 8] = b"EMBERSEG";
const VERSION: u8 = 1;

/// Overhead of one chunk in bytes. A record of a usual size is stored in one chunk, so each record is charged this
/// overhead.
#[cfg(feature = "encryption")]
const CHUNK_OVERHEAD: u64 = STORED_BYTES_MIN as u64;

/// An encoder of the records of one segment.
#[derive(Debug)]
pub(super) enum Encoder {
    Plain,
    #[cfg(feature = "encryption")]
    Sealed {
        sealer: Sealer,
        /// The record before encryption.
        plain: Vec<u8>,
    },
}

/// A decoder of the records of one segment.
#[derive(Debug)]
pub(super) enum Decoder {
    Plain,
    #[cfg(feature = "encryption")]
    Sealed(Opener),
}

/// The length of a record, determined from its first bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Extent {
    /// The first this many bytes of the record are needed to determine its length.
    Needs(usize),
    /// The record takes this many bytes of the file.
    Stored(u64),
    /// There is no record, or its beginning is damaged.
    Unknown,
}

/// Creates the encoder, the decoder and the head of a new segment.
pub(super) fn begin(encryption: &Encryption) -> (Encoder, Decoder, Vec<u8>) {
    #[cfg(feature = "encryption")]
    if let Some(keys) = encryption.keys() {
        const { assert!(FILE_HEAD_BYTES as u64 <= HEAD_BYTES) };
        let (sealer, head) = Sealer::begin(keys);
        let opener = Opener::new(head, keys).expect("the current key is one of the keys");
        let mut bytes = head.to_vec();
        bytes.resize(HEAD_BYTES as usize, 0);
        return (Encoder::Sealed { sealer, plain: Vec::new() }, Decoder::Sealed(opener), bytes);
    }
    debug_assert!(!encryption.is_on(), "with keys the file is encrypted");
    let mut bytes = MAGIC.to_vec();
    bytes.push(VERSION);
    bytes.resize(HEAD_BYTES as usize, 0);
    (Encoder::Plain, Decoder::Plain, bytes)
}

/// Returns the stored size of a record of `len` bytes.
pub(super) fn stored_bytes(encryption: &Encryption, len: usize) -> u64 {
    #[cfg(feature = "encryption")]
    if encryption.is_on() {
        return sealed_bytes(len as u64);
    }
    debug_assert!(!encryption.is_on(), "with keys the file is encrypted");
    padded(len as u64)
}

#[cfg(feature = "encryption")]
fn sealed_bytes(len: u64) -> u64 {
    padded(len + len.div_ceil(CHUNK_BYTES_MAX as u64) * CHUNK_OVERHEAD)
}

impl Encoder {
    /// Appends a record for `place`, whose length [`record::record_bytes`] has returned, to `out`.
    pub(super) fn put(&mut self, place: Place, head: &RecordHead<'_>, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Encoder::Plain => record::encode(place, head, value, out),
            #[cfg(feature = "encryption")]
            Encoder::Sealed { sealer, plain } => {
                plain.clear();
                record::encode(place, head, value, plain);
                sealer.back_to(place.offset);
                sealer.seal(plain, 0, false, out);
            }
        }
        out.resize(out.len().next_multiple_of(UNIT_BYTES as usize), 0);
    }
}

impl Decoder {
    /// Determines the length of the record that begins with `begin`.
    pub(super) fn extent(&self, place: Place, begin: &[u8]) -> Extent {
        match self {
            Decoder::Plain if begin.len() < record::PREFIX_BYTES => Extent::Needs(record::PREFIX_BYTES),
            Decoder::Plain => {
                record::len_at(place, begin).map_or(Extent::Unknown, |len| Extent::Stored(padded(len as u64)))
            }
            #[cfg(feature = "encryption")]
            Decoder::Sealed(opener) => sealed_extent(opener, place, begin),
        }
    }

    /// Decrypts the record in `stored` to the beginning of that buffer and returns its length. None if the bytes differ
    /// from those written at `place`; the contents of `stored` are then undefined.
    pub(super) fn unseal(&self, place: Place, stored: &mut [u8]) -> Option<usize> {
        match self {
            Decoder::Plain => record::intact_len(place, stored),
            #[cfg(feature = "encryption")]
            Decoder::Sealed(opener) => {
                let len = unseal(opener, place, stored)?;
                record::intact_len(place, &stored[..len])
            }
        }
    }

    /// Decrypts the record in `stored` in place and parses it. None if it differs from the written record.
    pub(super) fn open<'b>(&self, place: Place, stored: &'b mut [u8]) -> Option<Record<'b>> {
        let len = self.unseal(place, stored)?;
        record::parse(&stored[..len])
    }

    /// Whether [`Decoder::extent`] locates the next record even if this one is damaged.
    pub(super) fn has_checked_extents(&self) -> bool {
        matches!(self, Decoder::Plain)
    }
}

/// Decrypts the chunks of a record to the beginning of `stored` and returns the number of bytes.
#[cfg(feature = "encryption")]
fn unseal(opener: &Opener, place: Place, stored: &mut [u8]) -> Option<usize> {
    let (mut from, mut to) = (0, 0);
    // The record's length is in its first chunk; chunks are decrypted until that length is reached.
    let mut len = usize::MAX;
    while to < len {
        let parts = chunk_parts(place, from, stored)?;
        let chunk = stored.get_mut(from..from + parts.stored_bytes())?;
        let plain = opener.open(chunk)?;
        stored.copy_within(from + plain.start..from + plain.end, to);
        (from, to) = (from + parts.stored_bytes(), to + plain.len());
        if len == usize::MAX {
            len = record::len_at(place, &stored[..to])?;
        }
    }
    (to == len).then_some(len)
}

/// Returns the chunk head at byte `from` of a record, if that chunk was written for `place`.
#[cfg(feature = "encryption")]
fn chunk_parts(place: Place, from: usize, stored: &[u8]) -> Option<ChunkParts> {
    let parts = ChunkParts::of(stored.get(from..)?.first_chunk::<CHUNK_HEAD_BYTES>()?);
    (parts.is_possible() && parts.offset == place.offset + from as u64 && parts.len > 0).then_some(parts)
}

#[cfg(feature = "encryption")]
fn sealed_extent(opener: &Opener, place: Place, begin: &[u8]) -> Extent {
    if begin.len() < CHUNK_HEAD_BYTES {
        return Extent::Needs(CHUNK_HEAD_BYTES);
    }
    let Some(parts) = chunk_parts(place, 0, begin) else { return Extent::Unknown };
    if parts.len < CHUNK_BYTES_MAX {
        return Extent::Stored(padded(parts.stored_bytes() as u64));
    }
    let Some(chunk) = begin.get(..parts.stored_bytes()) else { return Extent::Needs(parts.stored_bytes()) };
    let mut chunk = chunk.to_vec();
    let len = opener.open(&mut chunk).and_then(|plain| record::len_at(place, &chunk[plain]));
    len.map_or(Extent::Unknown, |len| Extent::Stored(sealed_bytes(len as u64)))
}
