//! A compressed node: a listpack compressed with LZF.
//!
//! ```text
//! offset  bytes
//!  0      4      length of the listpack in bytes, little-endian
//!  4      4      number of its elements, little-endian
//!  8      …      the listpack, compressed
//! ```

use crate::algorithms::lzf;
use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::listpack::Listpack;

const HEADER_BYTES: usize = 8;

/// The minimum size of a listpack for which compression is worth the effort, as in Redis.
const BYTES_MIN: usize = 48;

/// The minimum number of bytes that compression must save, as in Redis.
const SAVED_MIN: usize = 8;

/// A compressed listpack.
#[derive(Clone, Debug)]
pub(super) struct Compressed(Box<[u8]>);

impl Compressed {
    /// Returns the compressed form of a listpack, if it is worthwhile. O(bytes).
    pub(super) fn of(packed: &Listpack) -> Option<Compressed> {
        let bytes = packed.as_bytes();
        if bytes.len() < BYTES_MIN {
            return None;
        }
        let compressed = lzf::compress(bytes, bytes.len() - SAVED_MIN - 1)?;
        let (len_bytes, len) = (u32::try_from(bytes.len()).ok()?, u32::try_from(packed.len()).ok()?);
        Some(Compressed([&len_bytes.to_le_bytes()[..], &len.to_le_bytes(), &compressed].concat().into()))
    }

    /// Moves the bytes to another allocation of the same size, if that is worth it.
    pub(super) fn move_to(&mut self, mover: &mut Mover<'_>) {
        mover.move_bytes(&mut self.0);
    }

    /// Returns the listpack. O(its bytes).
    pub(super) fn unpack(&self) -> Listpack {
        let bytes = lzf::decompress(&self.0[HEADER_BYTES..], self.len_bytes());
        let packed = bytes.and_then(|bytes| Listpack::from_bytes(bytes).ok());
        packed.expect("the compressed bytes are valid")
    }

    /// Returns the length of the listpack in bytes.
    pub(super) fn len_bytes(&self) -> usize {
        self.number_at(0)
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.number_at(4)
    }

    /// Returns the heap bytes owned.
    pub(super) fn memory_bytes(&self) -> usize {
        size_class(self.0.len())
    }

    fn number_at(&self, at: usize) -> usize {
        let bytes = self.0[at..].first_chunk().expect("the header exists");
        u32::from_le_bytes(*bytes) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(elements: &[&[u8]]) -> (Listpack, Option<Compressed>) {
        let mut packed = Listpack::new();
        elements.iter().for_each(|element| packed.push_back(element));
        let compressed = Compressed::of(&packed);
        (packed, compressed)
    }

    #[test]
    fn repetitive_elements_are_compressed_and_restored() {
        let (packed, compressed) = of(&[b"the same element" as &[u8]; 100]);
        let compressed = compressed.unwrap();
        assert!(compressed.memory_bytes() < packed.memory_bytes() / 4);
        assert_eq!((compressed.len(), compressed.len_bytes()), (100, packed.len_bytes()));
        assert_eq!(compressed.unpack().as_bytes(), packed.as_bytes());
    }

    #[test]
    fn short_and_incompressible_elements_are_not_compressed() {
        assert!(of(&[b"a" as &[u8]; 10]).1.is_none());
        let every_byte: Vec<u8> = (0..=255).collect();
        assert!(of(&[&every_byte]).1.is_none());
    }
}
