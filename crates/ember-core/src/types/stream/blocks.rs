//! The blocks of a stream in the order of their IDs: a queue of chunks of up to [`CHUNK_BLOCKS`] blocks.
//!
//! Nearly all blocks are added at the end and removed from the beginning. Chunks keep that cheap without the unused
//! space of a tree that is filled in ascending order, and limit how much is moved when a block or a chunk is removed
//! from the middle.
//!
//! # Invariants
//!
//! * The blocks ascend by [`Block::first_id`]; no chunk is empty.
//! * `memory_bytes` is the memory of the chunks and of their blocks.

use std::collections::VecDeque;

use super::StreamId;
use super::block::Block;
use crate::memory::{buffer_bytes, size_class};

/// The number of blocks in a full chunk, which take 1.5 KiB in total.
const CHUNK_BLOCKS: usize = 32;

/// The place of a block: the index of its chunk, and its index in that chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    chunk: usize,
    block: usize,
}

/// All blocks of a stream.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    chunks: VecDeque<Vec<Block>>,
    len: usize,
    /// Bytes of memory of the chunks and their blocks, excluding the queue of chunks itself.
    memory_bytes: usize,
}

impl Clone for Blocks {
    fn clone(&self) -> Blocks {
        // A copy has no spare capacity.
        let chunks = self.chunks.clone();
        let memory_bytes = chunks.iter().map(buffer_bytes).sum::<usize>()
            + chunks.iter().flatten().map(Block::memory_bytes).sum::<usize>();
        Blocks { chunks, len: self.len, memory_bytes }
    }
}

impl Blocks {
    /// Returns the number of blocks. O(1).
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Returns the bytes of memory of the blocks. O(1).
    pub(super) fn memory_bytes(&self) -> usize {
        let queue = match self.chunks.capacity() {
            0 => 0,
            capacity => size_class(capacity * size_of::<Vec<Block>>()),
        };
        self.memory_bytes + queue
    }

    /// Returns the place of the first block.
    pub(super) fn first(&self) -> Option<Place> {
        (self.len > 0).then_some(Place { chunk: 0, block: 0 })
    }

    /// Returns the place of the last block.
    pub(super) fn last(&self) -> Option<Place> {
        let chunk = self.chunks.len().checked_sub(1)?;
        Some(Place { chunk, block: self.chunks[chunk].len() - 1 })
    }

    /// Returns the place of the next block.
    pub(super) fn next(&self, place: Place) -> Option<Place> {
        if place.block + 1 < self.chunks[place.chunk].len() {
            Some(Place { block: place.block + 1, ..place })
        } else {
            (place.chunk + 1 < self.chunks.len()).then_some(Place { chunk: place.chunk + 1, block: 0 })
        }
    }

    /// Returns the place of the previous block.
    pub(super) fn previous(&self, place: Place) -> Option<Place> {
        match place.block.checked_sub(1) {
            Some(block) => Some(Place { block, ..place }),
            None => {
                let chunk = place.chunk.checked_sub(1)?;
                Some(Place { chunk, block: self.chunks[chunk].len() - 1 })
            }
        }
    }

    /// Returns the last block that begins at or before `id`: the block of the entry with this ID, if it exists. O(log
    /// blocks).
    pub(super) fn find(&self, id: StreamId) -> Option<Place> {
        let chunk = self.chunks.partition_point(|chunk| chunk[0].first_id() <= id).checked_sub(1)?;
        let block = self.chunks[chunk].partition_point(|block| block.first_id() <= id) - 1;
        Some(Place { chunk, block })
    }

    /// Returns the block at a place.
    pub(super) fn get(&self, place: Place) -> &Block {
        &self.chunks[place.chunk][place.block]
    }

    /// Lets `edit` change the block at a place.
    pub(super) fn edit<R>(&mut self, place: Place, edit: impl FnOnce(&mut Block) -> R) -> R {
        let block = &mut self.chunks[place.chunk][place.block];
        self.memory_bytes -= block.memory_bytes();
        let result = edit(block);
        self.memory_bytes += block.memory_bytes();
        result
    }

    /// Appends a block.
    pub(super) fn push(&mut self, block: Block) {
        self.memory_bytes += block.memory_bytes();
        self.len += 1;
        if self.chunks.back().is_none_or(|chunk| chunk.len() == CHUNK_BLOCKS) {
            self.chunks.push_back(Vec::new());
        }
        let chunk = self.chunks.back_mut().expect("there is one now");
        self.memory_bytes -= buffer_bytes(chunk);
        if chunk.len() == chunk.capacity() {
            chunk.reserve_exact(chunk.len().clamp(1, CHUNK_BLOCKS / 2));
        }
        chunk.push(block);
        self.memory_bytes += buffer_bytes(chunk);
    }

    /// Removes the block at a place. Returns the place of the next block, if there is one.
    pub(super) fn remove(&mut self, place: Place) -> Option<Place> {
        let chunk = &mut self.chunks[place.chunk];
        let block = chunk.remove(place.block);
        self.memory_bytes -= block.memory_bytes();
        self.len -= 1;
        let rest = chunk.len();
        if rest == 0 {
            self.memory_bytes -= buffer_bytes(chunk);
            self.chunks.remove(place.chunk);
            if self.chunks.len() < self.chunks.capacity() / 4 {
                self.chunks.shrink_to(self.chunks.len() * 2);
            }
        }
        let next = if rest == 0 {
            Place { chunk: place.chunk, block: 0 }
        } else if place.block < rest {
            place
        } else {
            Place { chunk: place.chunk + 1, block: 0 }
        };
        (next.chunk < self.chunks.len()).then_some(next)
    }

    /// Returns all blocks, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &Block> {
        self.chunks.iter().flatten()
    }

    /// Panics if an invariant is broken. For tests.
    pub(super) fn check_invariants(&self) {
        assert!(self.chunks.iter().all(|chunk| !chunk.is_empty() && chunk.len() <= CHUNK_BLOCKS));
        assert!(self.iter().is_sorted_by(|a, b| a.last_id() < b.first_id()));
        assert_eq!(self.iter().count(), self.len);
        let blocks: usize = self.iter().map(Block::memory_bytes).sum();
        let chunks: usize = self.chunks.iter().map(buffer_bytes).sum();
        assert_eq!(blocks + chunks, self.memory_bytes);
        self.iter().for_each(Block::check_invariants);
    }
}
