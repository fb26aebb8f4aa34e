//! Chunks of an encrypted file: sealed in order, opened one at a time.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce};

use super::encryption_keys::{FINGERPRINT_BYTES, KeyRing, SALT_BYTES};
use super::{EncryptionProblem, MAGIC};

/// Length of a file's head in bytes.
pub(crate) const HEAD_BYTES: usize = MAGIC.len() + 4 + FINGERPRINT_BYTES + SALT_BYTES;
const VERSION: u8 = 2;

/// The marker at the beginning of each chunk.
pub(super) const MARK: &[u8; 4] = b"EChk";
pub(crate) const CHUNK_HEAD_BYTES: usize = MARK.len() + 4 + 8 + NONCE_BYTES + 8;
pub(super) const NONCE_BYTES: usize = 12;
const TAG_BYTES: usize = 16;
/// The last byte of each chunk. It is not zero, so a chunk whose last byte is zero was not written completely.
const END: u8 = b'\n';
/// The minimum length of a chunk in bytes.
pub(crate) const STORED_BYTES_MIN: usize = CHUNK_HEAD_BYTES + TAG_BYTES + 1;

/// The maximum number of plain bytes in a chunk. A whole chunk must be read before its first byte can be returned.
pub(crate) const CHUNK_BYTES_MAX: usize = 256 * 1024;

/// Flag in the length field of a file's last chunk.
const LAST: u32 = 1 << 31;

type Head = [u8; HEAD_BYTES];
type ChunkHead = [u8; CHUNK_HEAD_BYTES];

/// An encryptor of the chunks of a file.
pub struct Sealer {
    key: LessSafeKey,
    head: Head,
    /// The file offset of the next chunk.
    offset: u64,
    /// Nonce of the next chunk; it never decreases.
    nonce: u128,
    /// Whether the last chunk has been sealed.
    is_over: bool,
}

impl std::fmt::Debug for Sealer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sealer").field("offset", &self.offset).finish_non_exhaustive()
    }
}

pub(super) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Panics on systems without a random source: continuing would produce unprotected files.
    aws_lc_rs::rand::fill(&mut bytes).expect("the system gives random bytes");
    bytes
}

pub(super) fn random_nonce() -> u128 {
    u128::from_le_bytes(random()) & ((1 << (8 * NONCE_BYTES)) - 1)
}

impl Sealer {
    /// Creates the sealer of a new file with the current key; also returns the file's head.
    pub fn begin(keys: &KeyRing) -> (Sealer, Head) {
        let salt = random::<SALT_BYTES>();
        let mut head = [0; HEAD_BYTES];
        let parts = [&MAGIC[..], &[VERSION, 0, 0, 0], keys.current().fingerprint_bytes(), &salt];
        head.copy_from_slice(&parts.concat());
        let sealer = Sealer {
            key: keys.current().of_file(&salt),
            head,
            offset: HEAD_BYTES as u64,
            nonce: random_nonce(),
            is_over: false,
        };
        (sealer, head)
    }

    /// Continues a file whose chunks end at `offset`; `is_over` says whether they include the last chunk.
    pub(super) fn resume(opener: Opener, offset: u64, is_over: bool) -> Sealer {
        Sealer { key: opener.key, head: opener.head, offset, nonce: random_nonce(), is_over }
    }

    /// Whether the last chunk has been sealed.
    pub fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the file offset of the next chunk.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves the offset of the next chunk back to `offset`, because the chunks from there on could not be written.
    pub fn back_to(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// Appends `plain` to `out` in chunks and records in them that `durable` bytes before them are durable. `is_last`
    /// marks the file's last chunk.
    pub fn seal(&mut self, plain: &[u8], durable: u64, is_last: bool, out: &mut Vec<u8>) {
        let mut rest = plain;
        loop {
            let (piece, after) = rest.split_at(rest.len().min(CHUNK_BYTES_MAX));
            self.seal_one(piece, durable, is_last && after.is_empty(), out);
            rest = after;
            if rest.is_empty() {
                return;
            }
        }
    }

    fn seal_one(&mut self, plain: &[u8], durable: u64, is_last: bool, out: &mut Vec<u8>) {
        let len = plain.len() as u32 | if is_last { LAST } else { 0 };
        let nonce = &self.nonce.to_le_bytes()[..NONCE_BYTES];
        let (offset, durable) = (self.offset.to_le_bytes(), durable.to_le_bytes());
        let mut chunk_head = [0; CHUNK_HEAD_BYTES];
        chunk_head.copy_from_slice(&[&MARK[..], &len.to_le_bytes(), &offset, nonce, &durable].concat());
        let parts = ChunkParts::of(&chunk_head);
        out.extend_from_slice(&chunk_head);
        let at = out.len();
        out.extend_from_slice(plain);
        let aad = associated(&self.head, &chunk_head);
        let tag = self.key.seal_in_place_separate_tag(parts.nonce(), Aad::from(aad), &mut out[at..]);
        let tag = tag.expect("a chunk is shorter than the cipher's limit");
        out.extend_from_slice(tag.as_ref());
        out.push(END);
        self.offset += parts.stored_bytes() as u64;
        self.nonce = (self.nonce + 1) & ((1 << (8 * NONCE_BYTES)) - 1);
    }
}

fn associated(head: &Head, chunk_head: &ChunkHead) -> [u8; HEAD_BYTES + CHUNK_HEAD_BYTES] {
    let mut aad = [0; HEAD_BYTES + CHUNK_HEAD_BYTES];
    aad[..HEAD_BYTES].copy_from_slice(head);
    aad[HEAD_BYTES..].copy_from_slice(chunk_head);
    aad
}

/// The fields of a chunk's head.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChunkParts {
    pub(super) is_marked: bool,
    pub(crate) len: usize,
    pub(super) is_last: bool,
    /// The file offset for which the chunk was written.
    pub(crate) offset: u64,
    nonce: [u8; NONCE_BYTES],
    pub(super) durable: u64,
}

impl ChunkParts {
    pub(crate) fn of(head: &ChunkHead) -> ChunkParts {
        let mut rest = &head[..];
        let mut eight = || {
            let (bytes, after) = rest.split_at(8);
            rest = after;
            u64::from_le_bytes(std::array::from_fn(|index| bytes[index]))
        };
        let (mark_and_len, offset) = (eight(), eight());
        let nonce = std::array::from_fn(|index| head[16 + index]);
        let durable = u64::from_le_bytes(std::array::from_fn(|index| head[16 + NONCE_BYTES + index]));
        let len = (mark_and_len >> 32) as u32;
        ChunkParts {
            is_marked: head.starts_with(MARK),
            len: (len & !LAST) as usize,
            is_last: len & LAST != 0,
            offset,
            nonce,
            durable,
        }
    }

    fn nonce(&self) -> Nonce {
        Nonce::assume_unique_for_key(self.nonce)
    }

    /// Whether a valid chunk's head can contain these fields.
    pub(crate) fn is_possible(&self) -> bool {
        self.is_marked && self.len <= CHUNK_BYTES_MAX
    }

    /// Returns the length of the chunk in the file, with head, tag and end.
    pub(crate) fn stored_bytes(&self) -> usize {
        STORED_BYTES_MIN + self.len
    }
}

/// A decryptor of the chunks of a file.
pub(crate) struct Opener {
    key: LessSafeKey,
    head: Head,
}

impl std::fmt::Debug for Opener {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Opener").finish_non_exhaustive()
    }
}

impl Opener {
    /// Creates an opener for the file with this head.
    pub(crate) fn new(head: Head, keys: &KeyRing) -> Result<Opener, EncryptionProblem> {
        debug_assert_eq!(AES_256_GCM.tag_len(), TAG_BYTES, "the cipher's tag has the format's length");
        let (version, rest) = (head[MAGIC.len()], &head[MAGIC.len() + 4..]);
        if version != VERSION {
            return Err(EncryptionProblem::Version(version));
        }
        let fingerprint = std::array::from_fn(|index| rest[index]);
        let salt = std::array::from_fn(|index| rest[FINGERPRINT_BYTES + index]);
        let key = keys.find(&fingerprint);
        let key =
            key.ok_or_else(|| EncryptionProblem::WrongKey(data_encoding::HEXLOWER.encode(&fingerprint)))?;
        Ok(Opener { key: key.of_file(&salt), head })
    }

    /// Decrypts a whole chunk in place and returns the range of its plain bytes; None if it is not authentic.
    pub(crate) fn open(&self, chunk: &mut [u8]) -> Option<std::ops::Range<usize>> {
        let (chunk_head, sealed) = chunk.split_first_chunk_mut::<CHUNK_HEAD_BYTES>()?;
        let parts = ChunkParts::of(chunk_head);
        let aad = associated(&self.head, chunk_head);
        let (&mut END, sealed) = sealed.split_last_mut()? else { return None };
        let plain = self.key.open_in_place(parts.nonce(), Aad::from(aad), sealed).ok()?;
        Some(CHUNK_HEAD_BYTES..CHUNK_HEAD_BYTES + plain.len())
    }
}
