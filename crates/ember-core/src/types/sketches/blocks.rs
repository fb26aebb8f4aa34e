//! Bytes in blocks, for the bits and counters of sketches.
//!
//! A copy shares all blocks with the original; a block is copied when one of the two changes it. A block that contains
//! only zeros is not allocated until a byte in it is set, so an empty sketch takes no memory for its bytes, whatever its
//! size.

use std::ops::Range;
use std::sync::Arc;

use crate::memory::{buffer_bytes, size_class};

/// The bytes of the two counters that precede a block in its allocation.
const COUNTERS_BYTES: usize = 16;

/// The bytes of a block: with its counters, it fills an allocation of 64 KiB. A multiple of the size of a counter.
const BLOCK_BYTES: usize = 64 * 1024 - COUNTERS_BYTES;

/// The contents of a block that is not allocated.
static ZEROS: [u8; BLOCK_BYTES] = [0; BLOCK_BYTES];

/// A fixed number of bytes, which are zeros at first.
#[derive(Clone, Debug, Default)]
pub struct Blocks {
    len: usize,
    /// The blocks up to the last one with a byte that was set; `None` for zeros.
    blocks: Vec<Option<Arc<[u8]>>>,
    /// The memory of the allocated blocks.
    allocated_bytes: usize,
}

impl Blocks {
    /// Returns `len` zeros. O(1).
    pub fn zeros(len: usize) -> Blocks {
        Blocks { len, ..Blocks::default() }
    }

    /// Returns these bytes. O(bytes).
    pub fn of(bytes: &[u8]) -> Blocks {
        let mut blocks = Blocks::zeros(bytes.len());
        blocks.write(0, bytes);
        blocks
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory that the blocks take. O(1).
    pub fn memory_bytes(&self) -> usize {
        self.allocated_bytes + buffer_bytes(&self.blocks)
    }

    /// Returns the number of blocks.
    pub fn count(&self) -> usize {
        self.blocks.len()
    }

    fn block_len(&self, index: usize) -> usize {
        (self.len - index * BLOCK_BYTES).min(BLOCK_BYTES)
    }

    #[inline]
    fn block(&self, index: usize) -> &[u8] {
        match self.blocks.get(index) {
            Some(Some(block)) => block,
            _ => &ZEROS[..self.block_len(index)],
        }
    }

    fn block_mut(&mut self, index: usize) -> &mut [u8] {
        if index >= self.blocks.len() {
            self.blocks.resize(index + 1, None);
        }
        let len = self.block_len(index);
        let block = &mut self.blocks[index];
        let block = block.get_or_insert_with(|| {
            self.allocated_bytes += size_class(COUNTERS_BYTES + len);
            Arc::from(&ZEROS[..len])
        });
        Arc::make_mut(block)
    }

    /// Returns the byte at `at`.
    #[inline]
    pub fn get(&self, at: usize) -> u8 {
        match self.blocks.get(at / BLOCK_BYTES) {
            Some(Some(block)) => block[at % BLOCK_BYTES],
            _ => {
                assert!(at < self.len, "the position lies within the bytes");
                0
            }
        }
    }

    /// Sets the byte at `at`.
    #[inline]
    pub fn set(&mut self, at: usize, byte: u8) {
        if self.get(at) != byte {
            self.block_mut(at / BLOCK_BYTES)[at % BLOCK_BYTES] = byte;
        }
    }

    /// Returns the first byte from `from` on that is not zero, with its position. Blocks that are not allocated cost
    /// nothing.
    pub fn find_set(&self, from: usize) -> Option<(usize, u8)> {
        let mut start = from % BLOCK_BYTES;
        for (index, block) in self.blocks.iter().enumerate().skip(from / BLOCK_BYTES) {
            let bytes = block.as_deref().and_then(|block| block.get(start..)).unwrap_or_default();
            if let Some(at) = bytes.iter().position(|&byte| byte != 0) {
                return Some((index * BLOCK_BYTES + start + at, bytes[at]));
            }
            start = 0;
        }
        None
    }

    /// Returns the bytes of `range` in pieces. O(1) per piece.
    pub fn pieces(&self, range: Range<usize>) -> impl Iterator<Item = &[u8]> {
        let mut at = range.start;
        std::iter::from_fn(move || {
            (at < range.end).then(|| {
                let block = self.block(at / BLOCK_BYTES);
                let start = at % BLOCK_BYTES;
                let end = block.len().min(start + (range.end - at));
                at += end - start;
                &block[start..end]
            })
        })
    }

    /// Returns the bytes of `range`. O(bytes).
    pub fn to_vec(&self, range: Range<usize>) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(range.len());
        self.pieces(range).for_each(|piece| bytes.extend_from_slice(piece));
        bytes
    }

    /// Sets the bytes from `at` on; returns whether they have changed. Blocks that are equal are not copied. O(bytes).
    pub fn write(&mut self, mut at: usize, mut bytes: &[u8]) -> bool {
        assert!(bytes.len() <= self.len && at <= self.len - bytes.len(), "the bytes lie within");
        let mut is_change = false;
        while !bytes.is_empty() {
            let (index, start) = (at / BLOCK_BYTES, at % BLOCK_BYTES);
            let (piece, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - start));
            if self.block(index)[start..start + piece.len()] != *piece {
                self.block_mut(index)[start..start + piece.len()].copy_from_slice(piece);
                is_change = true;
            }
            at += piece.len();
            bytes = rest;
        }
        is_change
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut allocated = 0;
        for (index, block) in self.blocks.iter().enumerate() {
            let Some(block) = block else { continue };
            assert_eq!(block.len(), self.block_len(index));
            allocated += size_class(COUNTERS_BYTES + block.len());
        }
        assert_eq!(self.allocated_bytes, allocated);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_back_across_blocks() {
        let mut blocks = Blocks::zeros(3 * BLOCK_BYTES + 5);
        assert_eq!((blocks.memory_bytes(), blocks.get(3 * BLOCK_BYTES + 4)), (0, 0));
        assert!(blocks.write(BLOCK_BYTES - 2, &[1, 2, 3, 4]));
        assert!(!blocks.write(BLOCK_BYTES - 2, &[1, 2, 3, 4]));
        blocks.set(3 * BLOCK_BYTES + 4, 9);
        blocks.set(2 * BLOCK_BYTES, 0);
        assert_eq!(blocks.to_vec(BLOCK_BYTES - 3..BLOCK_BYTES + 3), [0, 1, 2, 3, 4, 0]);
        assert_eq!(blocks.to_vec(3 * BLOCK_BYTES..3 * BLOCK_BYTES + 5), [0, 0, 0, 0, 9]);
        assert_eq!(blocks.blocks.iter().filter(|block| block.is_some()).count(), 3);
        blocks.check_invariants();
        let last = 3 * BLOCK_BYTES + 4;
        let found = [0, BLOCK_BYTES + 1, BLOCK_BYTES + 2, last, last + 1].map(|from| blocks.find_set(from));
        let first = Some((BLOCK_BYTES - 2, 1));
        assert_eq!(found, [first, Some((BLOCK_BYTES + 1, 4)), Some((last, 9)), Some((last, 9)), None]);
        assert_eq!(Blocks::of(&blocks.to_vec(0..blocks.len())).to_vec(0..blocks.len()).len(), blocks.len());
    }

    #[test]
    fn a_copy_shares_all_blocks_except_changed_ones() {
        let mut blocks = Blocks::zeros(2 * BLOCK_BYTES);
        blocks.write(0, &[1; 2 * BLOCK_BYTES]);
        let copy = blocks.clone();
        blocks.set(0, 2);
        let is_shared = |index: usize| std::ptr::eq(blocks.block(index).as_ptr(), copy.block(index).as_ptr());
        assert_eq!((is_shared(0), is_shared(1), copy.get(0)), (false, true, 1));
        assert_eq!(blocks.memory_bytes(), 2 * 65_536 + buffer_bytes(&blocks.blocks));
    }
}
