//! Rows of equal size in shared blocks: what an index consists of.
//!
//! ```text
//! directory   one pointer for each group
//! group       pointers to up to 64 blocks
//! block       a power of two of rows, behind a shared pointer; the first one grows by doubling, so that a small index
//!             is small
//! ```
//!
//! A copy of all rows is a copy of the directory. The first change of a row in a block that two copies share copies
//! that block and the group it is in. So an index can be frozen at any moment, at the price of a pointer for each group.
//! Blocks are small because changes are made under a lock, while copies are there nearly always: who links new vectors
//! looks at one.
//!
//! Rows are without gaps: only the last one can be removed, so whoever removes another moves the last one first.
#![allow(unsafe_code, reason = "bytes in cache lines are seen as bytes")]

use std::sync::Arc;

/// Bytes of a block, about.
const BLOCK_BYTES: usize = 4 * 1024;

/// Bytes of a block of vectors, which change only when one is added or removed, about.
const VECTOR_BLOCK_BYTES: usize = 32 * 1024;

/// Blocks of a group.
const GROUP_BLOCKS: usize = 64;

/// Rows that the first block has room for at first.
const FIRST_ROWS: usize = 4;

/// Bytes of the two counters before what a shared pointer points to.
const COUNTERS_BYTES: usize = 16;

/// What the allocator takes for a request of so many bytes.
pub type Account = fn(usize) -> usize;

/// What rows can be made of.
pub(crate) trait Unit: Copy + Send + Sync + 'static {
    /// What new rows are full of.
    const ZERO: Self;
    /// Bytes of a block, about.
    const BLOCK_BYTES: usize = BLOCK_BYTES;
}

impl Unit for u32 {
    const ZERO: u32 = 0;
}

impl Unit for f32 {
    const ZERO: f32 = 0.0;
}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

impl Unit for Line {
    const ZERO: Line = Line([0; 64]);
    const BLOCK_BYTES: usize = VECTOR_BLOCK_BYTES;
}

/// A block.
type Block<T> = Arc<[T]>;

/// Blocks of units that are allocated as they are needed.
#[derive(Debug)]
struct Blocks<T: Unit> {
    groups: Vec<Arc<[Block<T>]>>,
    /// Bytes of all blocks, groups and the directory, allocator rounding included.
    bytes: usize,
    account: Account,
}

impl<T: Unit> Clone for Blocks<T> {
    fn clone(&self) -> Blocks<T> {
        // The directory of the copy may have other room.
        let mut copy = Blocks { groups: self.groups.clone(), bytes: self.bytes, account: self.account };
        copy.bytes += copy.directory_bytes();
        copy.bytes -= self.directory_bytes();
        copy
    }
}

impl<T: Unit> Blocks<T> {
    fn new(account: Account) -> Blocks<T> {
        Blocks { groups: Vec::new(), bytes: 0, account }
    }

    /// How many there are.
    fn len(&self) -> usize {
        self.groups.last().map_or(0, |last| (self.groups.len() - 1) * GROUP_BLOCKS + last.len())
    }

    #[inline]
    fn at(&self, at: usize) -> &Block<T> {
        &self.groups[at / GROUP_BLOCKS][at % GROUP_BLOCKS]
    }

    /// A block, to be changed: a copy of it if others share it.
    #[inline]
    fn at_mut(&mut self, at: usize) -> &mut [T] {
        Arc::make_mut(&mut Arc::make_mut(&mut self.groups[at / GROUP_BLOCKS])[at % GROUP_BLOCKS])
    }

    fn block_bytes(&self, units: usize) -> usize {
        (self.account)(COUNTERS_BYTES.next_multiple_of(align_of::<T>()) + units * size_of::<T>())
    }

    fn group_bytes(&self, blocks: usize) -> usize {
        if blocks == 0 { 0 } else { (self.account)(COUNTERS_BYTES + blocks * size_of::<Block<T>>()) }
    }

    fn directory_bytes(&self) -> usize {
        match self.groups.capacity() {
            0 => 0,
            capacity => (self.account)(capacity * size_of::<Arc<[Block<T>]>>()),
        }
    }

    fn recounted_bytes(&self) -> usize {
        let blocks = self.groups.iter().flat_map(|group| group.iter());
        self.directory_bytes()
            + self.groups.iter().map(|group| self.group_bytes(group.len())).sum::<usize>()
            + blocks.map(|block| self.block_bytes(block.len())).sum::<usize>()
    }

    /// Appends a block of so many units.
    fn push(&mut self, units: usize) {
        let block: Block<T> = std::iter::repeat_n(T::ZERO, units).collect();
        self.bytes += self.block_bytes(units);
        match self.groups.last_mut() {
            Some(last) if last.len() < GROUP_BLOCKS => {
                let blocks = last.len();
                *last = last.iter().cloned().chain([block]).collect();
                self.bytes += self.group_bytes(blocks + 1);
                self.bytes -= self.group_bytes(blocks);
            }
            _ => {
                self.bytes -= self.directory_bytes();
                self.groups.push(Arc::from([block]));
                self.bytes += self.directory_bytes() + self.group_bytes(1);
            }
        }
    }

    fn pop(&mut self) {
        let Some(last) = self.groups.last_mut() else { return };
        let (blocks, units) = (last.len(), last[last.len() - 1].len());
        if blocks > 1 {
            *last = last[..blocks - 1].iter().cloned().collect();
        }
        self.bytes -= self.block_bytes(units) + self.group_bytes(blocks);
        self.bytes += self.group_bytes(blocks - 1);
        if blocks == 1 {
            self.bytes -= self.directory_bytes();
            self.groups.pop();
            if self.groups.len() * 4 <= self.groups.capacity() {
                self.groups.shrink_to(self.groups.len() * 2);
            }
            self.bytes += self.directory_bytes();
        }
    }

    /// Replaces a block by one of `units` units that begins with the same ones.
    fn resize(&mut self, at: usize, units: usize) {
        let old = self.at(at);
        let kept = &old[..old.len().min(units)];
        let rest = std::iter::repeat_n(T::ZERO, units - kept.len());
        // Both parts know their lengths, so this is one allocation and no copy more.
        let new: Block<T> = if rest.len() == 0 {
            Arc::from(kept)
        } else {
            let mut new: Block<T> = std::iter::repeat_n(T::ZERO, units).collect();
            Arc::make_mut(&mut new)[..kept.len()].copy_from_slice(kept);
            new
        };
        let (old, new_bytes) = (self.block_bytes(old.len()), self.block_bytes(units));
        self.bytes += new_bytes;
        self.bytes -= old;
        Arc::make_mut(&mut self.groups[at / GROUP_BLOCKS])[at % GROUP_BLOCKS] = new;
    }
}

/// How many rows a block has, and how many there are.
#[derive(Clone, Copy, Debug)]
struct Shape {
    /// The rows of a block are two to this power.
    lg_rows: u32,
    /// Rows there are.
    len: usize,
}

impl Shape {
    fn of(row_bytes: usize, block_bytes: usize) -> Shape {
        Shape { lg_rows: (block_bytes / row_bytes.max(1)).max(1).ilog2(), len: 0 }
    }

    fn rows(self) -> usize {
        1 << self.lg_rows
    }

    #[inline]
    fn place(self, row: usize) -> (usize, usize) {
        (row >> self.lg_rows, row & (self.rows() - 1))
    }

    /// Makes room for one row more; `units` says how many units so many rows of a block take.
    fn push<T: Unit>(&mut self, blocks: &mut Blocks<T>, units: impl Fn(usize) -> usize) {
        let (block, row) = self.place(self.len);
        if block == blocks.len() {
            blocks.push(units(if block == 0 { FIRST_ROWS.min(self.rows()) } else { self.rows() }));
        } else if block == 0 && units(row + 1) > blocks.at(0).len() {
            blocks.resize(0, units((row * 2).min(self.rows())));
        }
        self.len += 1;
    }

    /// Gives the room of the last row back.
    fn pop<T: Unit>(&mut self, blocks: &mut Blocks<T>, units: impl Fn(usize) -> usize) {
        self.len -= 1;
        let (block, row) = self.place(self.len);
        if row == 0 {
            blocks.pop();
        } else if block == 0 && row >= FIRST_ROWS && units(row * 4) <= blocks.at(0).len() {
            blocks.resize(0, units(row * 2));
        }
    }
}

/// Rows of `width` units each.
#[derive(Clone, Debug)]
pub(crate) struct Rows<T: Unit> {
    blocks: Blocks<T>,
    shape: Shape,
    width: usize,
}

impl<T: Unit> Rows<T> {
    /// No rows, of `width` units each when they come.
    pub(crate) fn new(width: usize, account: Account) -> Rows<T> {
        let shape = Shape::of(width * size_of::<T>(), T::BLOCK_BYTES);
        Rows { blocks: Blocks::new(account), shape, width }
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.shape.len
    }

    /// Bytes of memory, allocator rounding included. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.bytes
    }

    /// The same, counted anew; for tests.
    pub(crate) fn recounted_bytes(&self) -> usize {
        self.blocks.recounted_bytes()
    }

    /// A row that is there.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let (block, row) = self.shape.place(row);
        &self.blocks.at(block)[row * self.width..][..self.width]
    }

    /// A row that is there, to be changed.
    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [T] {
        let (block, row) = self.shape.place(row);
        &mut self.blocks.at_mut(block)[row * self.width..][..self.width]
    }

    /// Appends a row of zeros or of what was there before.
    pub(crate) fn push(&mut self) {
        let width = self.width;
        self.shape.push(&mut self.blocks, |rows| rows * width);
    }

    /// Copies a row to the place of another one.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        let (block, row) = self.shape.place(from);
        let block = Arc::clone(self.blocks.at(block));
        if self.shape.place(to).0 == self.shape.place(from).0 {
            // Within one block nothing is borrowed, or it would be copied.
            drop(block);
            let row: Vec<T> = self.row(from).to_vec();
            self.row_mut(to).copy_from_slice(&row);
        } else {
            let width = self.width;
            self.row_mut(to).copy_from_slice(&block[row * width..][..width]);
        }
    }

    /// Removes the last row.
    pub(crate) fn pop(&mut self) {
        let width = self.width;
        self.shape.pop(&mut self.blocks, |rows| rows * width);
    }
}

/// Rows of any number of bytes; blocks begin at cache lines.
#[derive(Clone, Debug)]
pub(crate) struct ByteRows {
    blocks: Blocks<Line>,
    shape: Shape,
    width: usize,
}

impl ByteRows {
    /// No rows, of `width` bytes each when they come.
    pub(crate) fn new(width: usize, account: Account) -> ByteRows {
        ByteRows { blocks: Blocks::new(account), shape: Shape::of(width, Line::BLOCK_BYTES), width }
    }

    /// Bytes of memory, allocator rounding included. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.blocks.bytes
    }

    /// The same, counted anew; for tests.
    pub(crate) fn recounted_bytes(&self) -> usize {
        self.blocks.recounted_bytes()
    }

    fn units(width: usize) -> impl Fn(usize) -> usize {
        move |rows| (rows * width).div_ceil(size_of::<Line>())
    }

    /// A row that is there.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        let (block, row) = self.shape.place(row);
        &bytes_of(self.blocks.at(block))[row * self.width..][..self.width]
    }

    /// Writes a row that is there.
    pub(crate) fn set(&mut self, row: usize, bytes: &[u8]) {
        let (block, row) = self.shape.place(row);
        let lines = self.blocks.at_mut(block);
        bytes_of_mut(lines)[row * self.width..][..self.width].copy_from_slice(bytes);
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let row = self.shape.len;
        self.shape.push(&mut self.blocks, Self::units(self.width));
        self.set(row, bytes);
    }

    /// Removes a row by putting the last one in its place.
    pub(crate) fn swap_remove(&mut self, row: usize) {
        let last = self.shape.len - 1;
        if row != last {
            let bytes = self.row(last).to_vec();
            self.set(row, &bytes);
        }
        self.shape.pop(&mut self.blocks, Self::units(self.width));
    }
}

#[inline]
fn bytes_of(lines: &[Line]) -> &[u8] {
    // SAFETY: a line is 64 bytes without padding, all of them initialised; bytes have no alignment.
    unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
}

fn bytes_of_mut(lines: &mut [Line]) -> &mut [u8] {
    // SAFETY: as above, the borrow is the only one, and any bytes are a line.
    unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(bytes: usize) -> usize {
        bytes
    }

    #[test]
    fn a_copy_keeps_what_it_had_and_bytes_are_those_of_the_blocks() {
        let mut rows: Rows<u32> = Rows::new(5, exact);
        for row in 0..10_000 {
            rows.push();
            rows.row_mut(row).fill(row as u32);
            assert_eq!(rows.bytes(), rows.recounted_bytes());
        }
        let frozen = rows.clone();
        rows.row_mut(7).fill(0);
        rows.copy(9_999, 8);
        rows.copy(10, 9);
        for _ in 0..9_990 {
            rows.pop();
            assert_eq!(rows.bytes(), rows.recounted_bytes());
        }
        assert_eq!(
            (rows.len(), rows.row(7), rows.row(8), rows.row(9)),
            (10, &[0; 5][..], &[9_999; 5][..], &[10; 5][..])
        );
        assert!((0..10_000).all(|row| frozen.row(row) == [row as u32; 5]));
        assert!(rows.bytes() < 1000, "{}", rows.bytes());
    }

    #[test]
    fn rows_of_bytes_move_into_the_place_of_a_removed_one() {
        for width in [1, 7, 48, 64, 384, 300_000] {
            let mut rows = ByteRows::new(width, exact);
            let count = if width > 1000 { 5 } else { 3000 };
            for row in 0..count {
                rows.push(&vec![row as u8; width]);
            }
            assert_eq!(rows.row(0).as_ptr() as usize % 64, 0);
            rows.swap_remove(1);
            assert_eq!(rows.row(1), vec![(count - 1) as u8; width]);
            (2..count).for_each(|_| rows.swap_remove(0));
            assert_eq!(rows.bytes(), rows.recounted_bytes());
            rows.swap_remove(0);
            assert_eq!(rows.blocks.len(), 0);
        }
    }
}
