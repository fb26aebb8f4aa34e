//! Rows of equal size in shared blocks: the storage of an index.
//!
//! ```text
//! directory   one pointer for each group
//! group       pointers to up to 16 blocks
//! block       rows, in a shared allocation: as many as waste little of it; the first block grows by doubling, so that
//!             a small index is small
//! ```
//!
//! A copy of all rows is a copy of the directory. The first change of a row in a block that two copies share copies
//! that block and its group. So an index can be frozen at any moment, at the cost of one pointer for each group. Blocks
//! and groups are small because changes happen under a lock, and copies exist nearly all the time: threads that link
//! new vectors hold one.
//!
//! **New rows are not copied.** A row after all rows of a copy is written into the block that both share, because the
//! copy does not read rows beyond its own length. Only the original may write to shared blocks; a copy appends in place
//! only to blocks that it has appended itself.
//!
//! Rows have no gaps: only the last one can be removed, so the last row is moved into the place of a removed one first.
#![allow(
    unsafe_code,
    reason = "rows after those of a copy are written in a shared block; lines are accessed as bytes"
)]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The maximum size of a block in bytes.
const BLOCK_BYTES: usize = 4 * 1024;

/// The maximum size of a block of vectors in bytes; such blocks are larger because they change only when a vector is
/// added or removed.
pub(crate) const VECTOR_BLOCK_BYTES: usize = 20 * 1024;

/// The number of blocks in a group.
const GROUP_BLOCKS: usize = 16;

/// The initial number of rows in the first block.
const FIRST_ROWS: usize = 4;

/// Size of the two reference counters in the allocation of an `Arc`, in bytes.
const COUNTERS_BYTES: usize = 16;

/// A function that returns the bytes that the allocator uses for a request of the given number of bytes.
pub type Account = fn(usize) -> usize;

/// The type of the elements of rows.
///
/// # Safety
/// Any bytes must be a valid value, and the type must have no padding.
pub(crate) unsafe trait Unit: Copy + Send + Sync + 'static {
    /// The maximum size of a block in bytes; a larger row has a block of its own.
    const BLOCK_BYTES: usize = BLOCK_BYTES;
}

// SAFETY: any bytes are a valid value, without padding.
unsafe impl Unit for u32 {}

// SAFETY: any bytes are a valid value, without padding.
unsafe impl Unit for f32 {}

/// A cache line.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line([u8; 64]);

// SAFETY: any bytes are a valid value, without padding.
unsafe impl Unit for Line {
    const BLOCK_BYTES: usize = VECTOR_BLOCK_BYTES;
}

/// A unit of a block. It is initialized when its row is written.
#[repr(transparent)]
struct Slot<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: in a shared block, only slots beyond the rows that other threads read are written, see the module's
// documentation; units are `Sync`.
unsafe impl<T: Unit> Sync for Slot<T> {}

/// A block.
type Block<T> = Arc<[Slot<T>]>;

/// Allocates a block of `units` units and copies the given number of bytes from the beginning of another block.
///
/// # Safety
/// Both blocks have that many bytes, and no other thread writes to those of `from`.
unsafe fn block_of<T: Unit>(units: usize, from: Option<(&Block<T>, usize)>) -> Block<T> {
    let mut block: Arc<[MaybeUninit<Slot<T>>]> = Arc::new_uninit_slice(units);
    if let Some((from, bytes)) = from {
        let slots = Arc::get_mut(&mut block).expect("it is new").as_mut_ptr();
        // SAFETY: guaranteed by the caller.
        unsafe { ptr::copy_nonoverlapping(Arc::as_ptr(from).cast::<u8>(), slots.cast(), bytes) };
    }
    // SAFETY: a slot may be uninitialized.
    unsafe { block.assume_init() }
}

/// Returns the bytes that the allocator uses for a block of `units` units.
fn block_bytes<T>(units: usize, account: Account) -> usize {
    account(COUNTERS_BYTES.next_multiple_of(align_of::<T>()) + units * size_of::<T>())
}

/// Blocks of units, allocated on demand.
struct Blocks<T: Unit> {
    groups: Vec<Arc<[Block<T>]>>,
    /// Size of all blocks, groups and the directory in bytes, including allocator rounding.
    bytes: usize,
    account: Account,
}

impl<T: Unit> Clone for Blocks<T> {
    fn clone(&self) -> Blocks<T> {
        // The capacity of the copied directory may differ, so its size is counted again.
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

    /// Returns the number of blocks.
    fn len(&self) -> usize {
        self.groups.last().map_or(0, |last| (self.groups.len() - 1) * GROUP_BLOCKS + last.len())
    }

    #[inline]
    fn at(&self, at: usize) -> &Block<T> {
        &self.groups[at / GROUP_BLOCKS][at % GROUP_BLOCKS]
    }

    /// Returns the beginning of a block for writing. If others share the block, it is first replaced by a copy of its
    /// first `kept_bytes` bytes.
    ///
    /// # Safety
    /// No other thread writes to those bytes.
    #[inline]
    unsafe fn at_mut(&mut self, at: usize, kept_bytes: usize) -> *mut T {
        let block = &mut Arc::make_mut(&mut self.groups[at / GROUP_BLOCKS])[at % GROUP_BLOCKS];
        if Arc::get_mut(block).is_none() {
            // SAFETY: guaranteed by the caller.
            *block = unsafe { block_of(block.len(), Some((block, kept_bytes.min(size_of_val(&**block))))) };
        }
        Arc::as_ptr(block).cast::<T>().cast_mut()
    }

    fn block_bytes(&self, units: usize) -> usize {
        block_bytes::<T>(units, self.account)
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

    /// Appends a block of `units` units.
    fn push(&mut self, units: usize) {
        // SAFETY: nothing is copied.
        let block: Block<T> = unsafe { block_of(units, None) };
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

    /// Replaces a block by one of `units` units and copies its first `kept_bytes` bytes.
    ///
    /// # Safety
    /// No other thread writes to those bytes.
    unsafe fn resize(&mut self, at: usize, units: usize, kept_bytes: usize) {
        let old = self.at(at);
        // SAFETY: guaranteed by the caller.
        let new = unsafe { block_of(units, Some((old, kept_bytes))) };
        let (old, new_bytes) = (self.block_bytes(old.len()), self.block_bytes(units));
        self.bytes += new_bytes;
        self.bytes -= old;
        Arc::make_mut(&mut self.groups[at / GROUP_BLOCKS])[at % GROUP_BLOCKS] = new;
    }
}

/// The placement of rows in blocks.
#[derive(Clone, Copy, Debug)]
struct Layout {
    row_bytes: u32,
    /// The number of rows in a block.
    rows: u32,
    /// 2^64 / `rows`, rounded down, for dividing row numbers by a multiplication.
    reciprocal: u64,
}

impl Layout {
    fn new(row_bytes: usize, rows: usize) -> Layout {
        let row_bytes = u32::try_from(row_bytes).expect("a row is that of a vector, or of links");
        Layout { row_bytes, rows: rows as u32, reciprocal: u64::MAX / rows as u64 }
    }

    /// Chooses the number of rows per block: a multiple of `multiple` with which a block takes between half of
    /// `T::BLOCK_BYTES` and all of it, and the fewest bytes per row are unused.
    fn for_rows<T: Unit>(row_bytes: usize, multiple: usize, account: Account) -> Layout {
        let (step, most) = ((row_bytes * multiple).max(1), T::BLOCK_BYTES - align_of::<T>());
        let bytes = |rows: usize| block_bytes::<T>((rows * row_bytes).div_ceil(size_of::<T>()), account);
        let steps = (most / 2 / step).max(1)..=(most / step).max(1);
        // Compares bytes per row as fractions, by cross-multiplication.
        let better = |a: usize, b: usize| if bytes(b) * a <= bytes(a) * b { b } else { a };
        let rows = steps.map(|steps| steps * multiple).reduce(better);
        Layout::new(row_bytes, rows.expect("there is one at least"))
    }

    /// Returns the block of a row and the row's index in it. Exact for all row numbers of 32 bits.
    #[inline]
    fn place(self, row: usize) -> (usize, usize) {
        let block = ((row as u128 + 1) * u128::from(self.reciprocal)) >> 64;
        (block as usize, row - block as usize * self.rows as usize)
    }
}

/// Rows of equal size, without gaps in a block; `T` is the unit in which blocks are allocated.
struct Table<T: Unit> {
    blocks: Blocks<T>,
    layout: Layout,
    /// The number of rows.
    len: usize,
    /// Rows below this number may also belong to a copy, or be written by a copy, so they are changed only in unshared
    /// blocks.
    shared: AtomicUsize,
}

impl<T: Unit> Clone for Table<T> {
    fn clone(&self) -> Table<T> {
        self.shared.fetch_max(self.len, Ordering::Relaxed);
        let blocks = self.blocks.clone();
        // The original may write rows after the last row of the copy to the shared blocks, so the copy must not.
        let shared = AtomicUsize::new(blocks.len() * self.block_rows());
        Table { blocks, shared, ..*self }
    }
}

impl<T: Unit> std::fmt::Debug for Table<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("len", &self.len).field("layout", &self.layout).finish_non_exhaustive()
    }
}

impl<T: Unit> Table<T> {
    /// Creates a table without rows; the number of rows in a block will be a multiple of `multiple`.
    fn new(row_bytes: usize, multiple: usize, account: Account) -> Table<T> {
        let layout = Layout::for_rows::<T>(row_bytes, multiple, account);
        Table { blocks: Blocks::new(account), layout, len: 0, shared: AtomicUsize::new(0) }
    }

    /// Returns the block of a row and the row's byte offset in it.
    #[inline]
    fn place(&self, row: usize) -> (usize, usize) {
        let (block, in_block) = self.layout.place(row);
        (block, in_block * self.row_bytes())
    }

    #[inline]
    fn row_bytes(&self) -> usize {
        self.layout.row_bytes as usize
    }

    fn block_rows(&self) -> usize {
        self.layout.rows as usize
    }

    /// Returns the number of units that `rows` rows of a block need.
    fn units(&self, rows: usize) -> usize {
        (rows * self.row_bytes()).div_ceil(size_of::<T>())
    }

    /// Returns a pointer to a row.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[inline]
    fn row(&self, row: usize) -> *const u8 {
        assert!(row < self.len, "there is such a row");
        let (block, from) = self.place(row);
        // SAFETY: the block contains that row, because the blocks contain `len` rows.
        unsafe { Arc::as_ptr(self.blocks.at(block)).cast::<u8>().add(from) }
    }

    /// Returns a pointer to a row for writing; no other thread accesses the row there.
    ///
    /// # Panics
    /// Panics if the row does not exist.
    #[inline]
    fn row_mut(&mut self, row: usize) -> *mut u8 {
        assert!(row < self.len, "there is such a row");
        if row >= *self.shared.get_mut() {
            return self.row(row).cast_mut();
        }
        self.row_of_copy(row, self.len)
    }

    /// Like [`Table::row_mut`], but first replaces a shared block by a copy, without its rows from `len` on.
    fn row_of_copy(&mut self, row: usize, len: usize) -> *mut u8 {
        let (block, from) = self.place(row);
        let kept_bytes = (len - block * self.block_rows()).min(self.block_rows()) * self.row_bytes();
        // SAFETY: other threads do not write to rows that existed when the block became shared, and other threads write
        // only rows from `len` on; otherwise as for `row`.
        unsafe { self.blocks.at_mut(block, kept_bytes).cast::<u8>().add(from) }
    }

    /// Appends a row and returns a pointer to it. The caller must write the row.
    fn push(&mut self) -> *mut u8 {
        let row = self.len;
        let (block, in_block) = self.layout.place(row);
        if block == self.blocks.len() {
            let rows = if block == 0 { FIRST_ROWS.min(self.block_rows()) } else { self.block_rows() };
            self.blocks.push(self.units(rows));
        } else if block == 0 && self.units(in_block + 1) > self.blocks.at(0).len() {
            let units = self.units((in_block * 2).min(self.block_rows()));
            // SAFETY: others do not write to existing rows.
            unsafe { self.blocks.resize(0, units, in_block * self.row_bytes()) };
        }
        self.len += 1;
        // In a shared block, the original or another copy may write this row.
        if row < *self.shared.get_mut() { self.row_of_copy(row, row) } else { self.row(row).cast_mut() }
    }

    /// Removes the last row.
    fn pop(&mut self) {
        self.len -= 1;
        let (block, in_block) = self.layout.place(self.len);
        if in_block == 0 {
            self.blocks.pop();
        } else if block == 0 && in_block >= FIRST_ROWS && self.units(in_block * 4) <= self.blocks.at(0).len()
        {
            let units = self.units(in_block * 2);
            // SAFETY: as above.
            unsafe { self.blocks.resize(0, units, in_block * self.row_bytes()) };
        }
    }

    /// Copies a row over another one.
    fn copy(&mut self, from: usize, to: usize) {
        let (to, from) = (self.row_mut(to), self.row(from));
        // SAFETY: both point to the bytes of a row, and `from` was looked up after the block of `to` was copied, in
        // case it is the same block.
        unsafe { ptr::copy(from, to, self.row_bytes()) };
    }
}

/// Rows of `width` units each.
#[derive(Clone, Debug)]
pub(crate) struct Rows<T: Unit> {
    table: Table<T>,
    width: usize,
}

impl<T: Unit> Rows<T> {
    /// Creates an empty table for rows of `width` units.
    pub(crate) fn new(width: usize, account: Account) -> Rows<T> {
        Rows { table: Table::new(width * size_of::<T>(), 1, account), width }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.table.len
    }

    /// Returns the size in memory in bytes, including allocator rounding. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.table.blocks.bytes
    }

    /// Returns the value of [`Rows::bytes`], recounted; for tests.
    pub(crate) fn recounted_bytes(&self) -> usize {
        self.table.blocks.recounted_bytes()
    }

    /// Returns an existing row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        // SAFETY: the pointer refers to the units of the row, and none of them is written during this borrow.
        unsafe { std::slice::from_raw_parts(self.table.row(row).cast(), self.width) }
    }

    /// Returns an existing row for writing.
    #[inline]
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [T] {
        // SAFETY: the pointer refers to the units of the row, and only the borrower accesses them.
        unsafe { std::slice::from_raw_parts_mut(self.table.row_mut(row).cast(), self.width) }
    }

    /// Appends a row of zeros.
    pub(crate) fn push(&mut self) {
        // SAFETY: the pointer refers to the units of the row, which no other thread accesses.
        unsafe { ptr::write_bytes(self.table.push(), 0, self.table.row_bytes()) };
    }

    /// Copies a row over another one.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.table.copy(from, to);
    }

    /// Removes the last row.
    pub(crate) fn pop(&mut self) {
        self.table.pop();
    }
}

/// Rows of any number of bytes; blocks begin at cache lines.
#[derive(Clone, Debug)]
pub(crate) struct ByteRows {
    table: Table<Line>,
}

impl ByteRows {
    /// Creates an empty table for rows of `width` bytes.
    pub(crate) fn new(width: usize, account: Account) -> ByteRows {
        ByteRows::in_runs(width, 1, account)
    }

    /// Like [`ByteRows::new`], with groups of `run` rows that are contiguous in memory; each group begins at a multiple
    /// of `run`.
    pub(crate) fn in_runs(width: usize, run: usize, account: Account) -> ByteRows {
        ByteRows { table: Table::new(width, run, account) }
    }

    /// Returns the number of rows.
    pub(crate) fn len(&self) -> usize {
        self.table.len
    }

    /// Returns the length of a row in bytes.
    pub(crate) fn width(&self) -> usize {
        self.table.row_bytes()
    }

    /// Returns the number of rows per block, which are contiguous in memory.
    pub(crate) fn block_rows(&self) -> usize {
        self.table.block_rows()
    }

    /// Returns the number of contiguous rows from `row` on, whether they exist or not.
    #[inline]
    pub(crate) fn run_len(&self, row: usize) -> usize {
        self.block_rows() - self.table.layout.place(row).1
    }

    /// Returns the size in memory in bytes, including allocator rounding. O(1).
    pub(crate) fn bytes(&self) -> usize {
        self.table.blocks.bytes
    }

    /// Returns the value of [`ByteRows::bytes`], recounted; for tests.
    pub(crate) fn recounted_bytes(&self) -> usize {
        self.table.blocks.recounted_bytes()
    }

    /// Returns an existing row.
    #[inline]
    pub(crate) fn row(&self, row: usize) -> &[u8] {
        // SAFETY: the pointer refers to the bytes of the row, and none of them is written during this borrow.
        unsafe { std::slice::from_raw_parts(self.table.row(row), self.table.row_bytes()) }
    }

    /// Returns the contiguous existing rows from `row` on, at most `count`; `row` must exist.
    #[inline]
    pub(crate) fn run(&self, row: usize, count: usize) -> &[u8] {
        let begin = self.table.row(row);
        let count = count.min(self.run_len(row)).min(self.table.len - row);
        // SAFETY: that many rows are contiguous in one block, and none of them is written during this borrow.
        unsafe { std::slice::from_raw_parts(begin, count * self.table.row_bytes()) }
    }

    /// Overwrites an existing row.
    pub(crate) fn set(&mut self, row: usize, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.table.row_bytes(), "a row has its width");
        // SAFETY: the pointer refers to the bytes of the row, which no other thread accesses.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.table.row_mut(row), bytes.len()) };
    }

    /// Appends a row.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        assert_eq!(bytes.len(), self.table.row_bytes(), "a row has its width");
        // SAFETY: as for `set`.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), self.table.push(), bytes.len()) };
    }

    /// Appends a row of zeros.
    pub(crate) fn push_zeros(&mut self) {
        // SAFETY: the pointer refers to the bytes of the row, which no other thread accesses.
        unsafe { ptr::write_bytes(self.table.push(), 0, self.table.row_bytes()) };
    }

    /// Copies a row over another one.
    pub(crate) fn copy(&mut self, from: usize, to: usize) {
        self.table.copy(from, to);
    }

    /// Removes the last row.
    pub(crate) fn pop(&mut self) {
        self.table.pop();
    }

    /// Removes a row and moves the last one into its place.
    pub(crate) fn swap_remove(&mut self, row: usize) {
        let last = self.table.len - 1;
        if row != last {
            self.table.copy(last, row);
        }
        self.table.pop();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(bytes: usize) -> usize {
        bytes
    }

    #[test]
    fn rows_are_located_by_division() {
        for rows in (1..100).chain([127, 128, 129, 4095, 4096, 100_003]) {
            let layout = Layout::new(8, rows);
            let edges = (0..50).chain((1..40).flat_map(|lg| [(1 << lg) - 1, 1 << lg, (1 << lg) + 1]));
            for row in edges.chain([1, 2, 1000, 41_234, 40_000_000].map(|block| block * rows)) {
                for row in [row.saturating_sub(1), row].map(|row| row.min(u32::MAX as usize)) {
                    assert_eq!(layout.place(row), (row / rows, row % rows), "{row} by {rows}");
                }
            }
        }
    }

    #[test]
    fn block_sizes_leave_little_memory_unused() {
        let in_kibibytes = |bytes: usize| bytes.next_multiple_of(1024);
        for (width, multiple) in [(1540, 1), (392, 1), (52, 1), (392, 8), (772, 8), (20_000, 1), (30_000, 4)]
        {
            let table: Table<Line> = Table::new(width, multiple, in_kibibytes);
            let rows = table.block_rows();
            assert_eq!(rows % multiple, 0);
            let bytes = in_kibibytes(64 + (rows * width).next_multiple_of(64));
            assert!(bytes <= VECTOR_BLOCK_BYTES || rows == multiple, "{width}: {rows}");
            let lost = bytes as f64 / (rows * width) as f64;
            assert!(lost < if multiple == 1 { 1.03 } else { 1.1 }, "{width}: {rows}, {lost}");
        }
    }

    #[test]
    fn copies_keep_their_rows_and_bytes_count_all_blocks() {
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
    fn rows_move_into_the_place_of_removed_ones() {
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
            assert_eq!(rows.table.blocks.len(), 0);
        }
    }

    #[test]
    fn rows_after_those_of_a_copy_are_written_in_place() {
        let mut rows: Rows<u32> = Rows::new(8, exact);
        let push = |rows: &mut Rows<u32>, number: u32| {
            rows.push();
            rows.row_mut(rows.len() - 1).fill(number);
        };
        (0..1000).for_each(|number| push(&mut rows, number));
        let mut copy = rows.clone();
        let block = Arc::as_ptr(rows.table.blocks.at(rows.table.layout.place(1000).0));
        // The original and the copy append to the same block; only the original does so in place.
        push(&mut rows, 1);
        assert_eq!(Arc::as_ptr(rows.table.blocks.at(rows.table.layout.place(1000).0)), block);
        push(&mut copy, 2);
        assert_eq!((rows.row(1000), copy.row(1000)), (&[1; 8][..], &[2; 8][..]));
        // Rows of a copy are not overwritten, although the original has removed them.
        let second = rows.clone();
        (0..10).for_each(|_| rows.pop());
        (0..10).for_each(|_| push(&mut rows, 3));
        assert!((991..=1000).all(|row| rows.row(row) == [3; 8]));
        assert!((0..1000).all(|row| second.row(row) == [row as u32; 8] && copy.row(row) == second.row(row)));
        assert_eq!(second.row(1000), [1; 8]);
        for rows in [&rows, &copy, &second] {
            assert_eq!(rows.bytes(), rows.recounted_bytes());
        }
    }

    #[test]
    fn a_copy_is_readable_while_rows_are_appended() {
        for width in [48, 100, 384] {
            let mut rows = ByteRows::new(width, exact);
            let row = |number: usize| vec![number as u8; width];
            (0..50).for_each(|number| rows.push(&row(number)));
            std::thread::scope(|scope| {
                for _ in 0..20 {
                    let (mut copy, len) = (rows.clone(), rows.table.len);
                    scope.spawn(move || {
                        assert!((0..len).all(|at| copy.row(at) == row(at)));
                        copy.push(&row(7));
                        assert!((0..len).all(|at| copy.row(at) == row(at)) && copy.row(len) == row(7));
                    });
                    (0..50).for_each(|_| rows.push(&row(rows.table.len)));
                }
            });
            assert!((0..rows.table.len).all(|at| rows.row(at) == row(at)));
        }
    }
}
