//! A listpack: a sequence of strings and integers in one run of bytes, in Redis's format.
//!
//! ```text
//! offset  bytes
//!  0      4      length of all bytes, little-endian
//!  4      2      number of elements, little-endian; 65535 if the reader must count them
//!  6      …      entries, each followed by its own length, so that they can be read from both ends
//!  …      1      0xFF
//! ```
//!
//! Small collections of all types are stored in this form, and so are the nodes of large lists and streams; `DUMP` and
//! the RDB format contain the bytes as they are. Elements are addressed by the *offset* of their entry. An offset is
//! valid until the next change before it or at it; an invalid offset yields a wrong element or a panic, never undefined
//! behavior.
//!
//! # Invariants
//!
//! * `buffer` is either empty, for a listpack that never had an element, or contains a whole listpack from `front` on.
//!   The length is only in its header: another field here would add 16 bytes to every small collection.
//! * `count` is the number of entries, whatever the header says.
//! * The size of `buffer` is a size class of the allocator, where this module allocated it, and at most a quarter more
//!   than the bytes need.
//!
//! The format: Redis, `listpack.md` by S. Sanfilippo.

mod entry;

use ember_protocol::number;
use entry::Draft;

use crate::memory::moving::Mover;
use crate::memory::{capacity_class, size_class};

const HEADER_BYTES: usize = 6;
const END: u8 = 0xFF;
/// The number of elements in the header of a listpack whose reader must count them.
const COUNT_UNKNOWN: u16 = u16::MAX;
/// The maximum number of unused bytes before a listpack.
const FRONT_MAX: usize = u16::MAX as usize;
/// A listpack without elements.
const EMPTY: [u8; HEADER_BYTES + 1] = [HEADER_BYTES as u8 + 1, 0, 0, 0, 0, 0, END];

/// The size in bytes beyond which nothing may be added to a listpack, as in Redis; see [`Listpack::can_hold`].
pub const BYTES_MAX: usize = 1 << 30;

/// The stored form of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// An integer, whose canonical text is the element.
    Integer(i64),
    /// Bytes that are not the canonical text of an integer.
    Bytes(&'a [u8]),
}

impl<'a> Element<'a> {
    /// Returns the bytes of the element; `digits` is the buffer for those of an integer.
    #[inline]
    pub fn bytes<'b>(self, digits: &'b mut itoa::Buffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Element::Integer(number) => digits.format(number).as_bytes(),
            Element::Bytes(bytes) => bytes,
        }
    }

    /// Returns whether the element consists of these bytes.
    pub fn eq_bytes(self, bytes: &[u8]) -> bool {
        Needle::new(bytes).matches(self)
    }

    /// Returns the bytes of the element in a new vector.
    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut itoa::Buffer::new()).to_vec()
    }

    /// Returns the number of bytes of the element.
    pub fn len_bytes(self) -> usize {
        self.bytes(&mut itoa::Buffer::new()).len()
    }
}

/// Bytes to compare with many elements.
#[derive(Clone, Copy, Debug)]
pub struct Needle<'a> {
    bytes: &'a [u8],
    integer: Option<i64>,
}

impl<'a> Needle<'a> {
    /// Prepares bytes for comparisons.
    pub fn new(bytes: &'a [u8]) -> Needle<'a> {
        Needle { bytes, integer: fits_integer(bytes) }
    }

    /// Returns whether `element` consists of these bytes.
    #[inline]
    pub fn matches(&self, element: Element<'_>) -> bool {
        match element {
            Element::Integer(number) => self.integer == Some(number),
            Element::Bytes(bytes) => self.bytes == bytes,
        }
    }
}

/// Returns the integer that a listpack stores instead of these bytes, if they are the canonical text of that integer.
#[inline]
pub fn fits_integer(bytes: &[u8]) -> Option<i64> {
    number::parse_i64(bytes)
}

/// Bytes are not a listpack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Corrupt;

/// A sequence of elements in one run of bytes.
#[derive(Clone, Debug, Default)]
pub struct Listpack {
    buffer: Box<[u8]>,
    count: u32,
    /// Unused bytes of `buffer` before the listpack: a change near its beginning moves the bytes before it, not all
    /// bytes after it.
    front: u16,
    /// Carries no data. Its invalid values are a niche in which enums of a listpack and something else store their
    /// variant.
    _spare: Spare,
}

#[derive(Clone, Copy, Debug, Default)]
#[repr(u8)]
enum Spare {
    #[default]
    Only,
}

const _: () = assert!(size_of::<Option<Option<Listpack>>>() == 24);

impl Listpack {
    /// Returns an empty listpack, without an allocation.
    pub fn new() -> Listpack {
        Listpack::default()
    }

    /// Moves the bytes to another allocation of the same size, if that is worth it.
    pub(crate) fn move_to(&mut self, mover: &mut Mover<'_>) {
        mover.move_bytes(&mut self.buffer);
    }

    /// Reads a listpack from bytes of any origin: every entry is checked. O(bytes).
    ///
    /// # Errors
    /// Returns [`Corrupt`] if the lengths and counts in `bytes` do not agree with one another.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Listpack, Corrupt> {
        let (&total, rest) = bytes.split_first_chunk::<4>().ok_or(Corrupt)?;
        let (&declared, entries) = rest.split_first_chunk::<2>().ok_or(Corrupt)?;
        let (&end, mut entries) = entries.split_last().ok_or(Corrupt)?;
        if u32::from_le_bytes(total) as usize != bytes.len() || end != END {
            return Err(Corrupt);
        }
        let mut count = 0u32;
        while !entries.is_empty() {
            let len = entry::validated_len(entries).ok_or(Corrupt)?;
            entries = &entries[len..];
            count += 1;
        }
        let declared = u16::from_le_bytes(declared);
        if declared != COUNT_UNKNOWN && u32::from(declared) != count {
            return Err(Corrupt);
        }
        let mut listpack = Listpack { buffer: bytes.into_boxed_slice(), count, ..Listpack::default() };
        listpack.write_count();
        Ok(listpack)
    }

    /// Returns the number of elements. O(1).
    #[inline]
    pub fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns whether there is no element.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns the bytes in Redis's format.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        let live = self.live();
        match live.first_chunk::<4>() {
            None => &EMPTY,
            Some(&total) => &live[..u32::from_le_bytes(total) as usize],
        }
    }

    /// Returns the length of [`Listpack::as_bytes`].
    #[inline]
    pub fn len_bytes(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns the bytes of memory allocated, including the allocator's rounding.
    #[inline]
    pub fn memory_bytes(&self) -> usize {
        match self.buffer.len() {
            0 => 0,
            len => size_class(len),
        }
    }

    /// Returns whether elements of `bytes` bytes in total may be added. Beyond [`BYTES_MAX`] a collection must change
    /// its form.
    #[inline]
    pub fn can_hold(&self, bytes: usize) -> bool {
        bytes <= BYTES_MAX && self.len_bytes() + bytes <= BYTES_MAX
    }

    /// Returns the offset of the first element.
    #[inline]
    pub fn first(&self) -> Option<usize> {
        (self.count != 0).then_some(HEADER_BYTES)
    }

    /// Returns the offset of the last element.
    #[inline]
    pub fn last(&self) -> Option<usize> {
        self.before(self.end())
    }

    /// Returns the offset of the element after the one at `offset`.
    #[inline]
    pub fn next(&self, offset: usize) -> Option<usize> {
        let next = self.after(offset);
        (next < self.end()).then_some(next)
    }

    /// Returns the offset of the element before the one at `offset`.
    #[inline]
    pub fn prev(&self, offset: usize) -> Option<usize> {
        self.before(offset)
    }

    /// Returns the offset of the element at `index`; a negative index counts from the end, -1 is the last. O(elements
    /// to the nearer end).
    pub fn at(&self, index: isize) -> Option<usize> {
        let count = self.len();
        self.nth(if index < 0 { count.checked_sub(index.unsigned_abs())? } else { index as usize })
    }

    /// Returns the offset of the element at `index`, counted from the first. O(elements to the nearer end).
    pub fn nth(&self, index: usize) -> Option<usize> {
        let count = self.len();
        if index >= count {
            return None;
        }
        if index <= count / 2 {
            (0..index).try_fold(HEADER_BYTES, |offset, _| self.next(offset))
        } else {
            (index..count).try_fold(self.end(), |offset, _| self.before(offset))
        }
    }

    /// Returns the element at `offset`.
    ///
    /// # Panics
    /// Panics if there is no element at `offset`.
    #[inline]
    pub fn get(&self, offset: usize) -> Element<'_> {
        let (element, _) = entry::read(&self.live()[offset..]).expect("an offset is that of an entry");
        element
    }

    /// Appends an element. O(bytes of the element), occasionally a copy of all bytes.
    #[inline]
    pub fn push_back(&mut self, element: &[u8]) {
        self.insert(self.end(), &Draft::new(element));
    }

    /// Appends an integer.
    #[inline]
    pub fn push_back_integer(&mut self, number: i64) {
        self.insert(self.end(), &Draft::integer(number));
    }

    /// Adds an element at the front. O(bytes).
    #[inline]
    pub fn push_front(&mut self, element: &[u8]) {
        self.insert(HEADER_BYTES, &Draft::new(element));
    }

    /// Inserts an element before the one at `offset` and returns its offset, which is the same. O(bytes).
    pub fn insert_before(&mut self, offset: usize, element: &[u8]) -> usize {
        self.insert(offset, &Draft::new(element));
        offset
    }

    /// Inserts an element after the one at `offset` and returns its offset. O(bytes).
    pub fn insert_after(&mut self, offset: usize, element: &[u8]) -> usize {
        let at = self.after(offset);
        self.insert(at, &Draft::new(element));
        at
    }

    /// Replaces the element at `offset`, and returns that offset. O(bytes).
    pub fn replace(&mut self, offset: usize, element: &[u8]) -> usize {
        self.write_over(offset, &Draft::new(element));
        offset
    }

    /// Replaces the element at `offset` by an integer, and returns that offset. O(bytes).
    pub fn replace_integer(&mut self, offset: usize, number: i64) -> usize {
        self.write_over(offset, &Draft::integer(number));
        offset
    }

    /// Removes the element at `offset`. Returns the offset of the next one, which moves there, if there is one.
    /// O(bytes).
    pub fn remove(&mut self, offset: usize) -> Option<usize> {
        self.remove_range(offset, 1)
    }

    /// Removes up to `count` elements from `offset` on. Returns the offset of the next one, if there is one. O(bytes).
    pub fn remove_range(&mut self, offset: usize, count: usize) -> Option<usize> {
        let end = self.end();
        let mut removed = 0;
        let mut at = offset;
        while removed < count && at < end {
            at = self.after(at);
            removed += 1;
        }
        self.count -= removed as u32;
        self.splice(offset, at - offset, 0);
        self.write_count();
        (offset < self.end()).then_some(offset)
    }

    /// Keeps only the elements for which `keep`, called in order, returns true. O(bytes).
    pub fn retain(&mut self, mut keep: impl FnMut(Element<'_>) -> bool) {
        let end = self.end();
        let (mut from, mut to) = (HEADER_BYTES, HEADER_BYTES);
        while from < end {
            let (element, len) = entry::read(&self.live()[from..]).expect("entries follow each other");
            let next = from + len + entry::back_length_bytes(len);
            if keep(element) {
                if to < from {
                    self.live_mut().copy_within(from..next, to);
                }
                to += next - from;
            } else {
                self.count -= 1;
            }
            from = next;
        }
        self.splice(to, end - to, 0);
        self.write_count();
    }

    /// Returns the offset of the first element equal to `element` from the one at `from` on. After each comparison
    /// `skip` elements are skipped: 1 compares every other one. O(bytes).
    pub fn find(&self, from: usize, element: &[u8], skip: usize) -> Option<usize> {
        let needle = Needle::new(element);
        let bytes = self.as_bytes();
        let mut at = from;
        let mut passed_over = 0;
        while at + 1 < bytes.len() {
            let (element, len) = entry::read(&bytes[at..]).expect("entries follow each other");
            if passed_over > 0 {
                passed_over -= 1;
            } else if needle.matches(element) {
                return Some(at);
            } else {
                passed_over = skip;
            }
            at += len + entry::back_length_bytes(len);
        }
        None
    }

    /// Appends all elements of `other`. O(bytes of `other`).
    pub fn append(&mut self, other: &Listpack) {
        let entries = other.entries();
        if entries.is_empty() {
            return;
        }
        let at = self.begin(entries.len()).unwrap_or(self.end());
        self.splice(at, 0, entries.len());
        self.live_mut()[at..at + entries.len()].copy_from_slice(entries);
        self.count += other.count;
        self.write_count();
    }

    /// Removes the elements from the one at `offset` on and returns them as a new listpack. O(bytes).
    pub fn split_off(&mut self, offset: usize) -> Listpack {
        let end = self.end();
        let mut tail = Listpack::new();
        if offset >= end {
            return tail;
        }
        let entries = &self.live()[offset..end];
        let count = Iter { rest: entries }.count() as u32;
        tail.begin(entries.len());
        tail.splice(HEADER_BYTES, 0, entries.len());
        tail.live_mut()[HEADER_BYTES..HEADER_BYTES + entries.len()].copy_from_slice(entries);
        tail.count = count;
        tail.write_count();
        self.count -= count;
        self.splice(offset, end - offset, 0);
        self.write_count();
        tail
    }

    /// Returns all elements in order, iterable from both ends.
    #[inline]
    pub fn iter(&self) -> Iter<'_> {
        Iter { rest: self.entries() }
    }

    /// Returns the elements from the one at `offset` on.
    #[inline]
    pub fn iter_from(&self, offset: usize) -> Iter<'_> {
        Iter { rest: &self.entries()[offset - HEADER_BYTES..] }
    }

    /// Returns the elements from the first to the one at `offset`, inclusive.
    #[inline]
    pub fn iter_to(&self, offset: usize) -> Iter<'_> {
        Iter { rest: &self.entries()[..self.after(offset) - HEADER_BYTES] }
    }

    /// Returns all elements from the last to the first.
    #[inline]
    pub fn iter_back(&self) -> std::iter::Rev<Iter<'_>> {
        self.iter().rev()
    }

    /// Checks all bytes and panics if they are not a listpack of `len()` elements. For tests.
    pub fn check_invariants(&self) {
        let again = Listpack::from_bytes(self.as_bytes().to_vec()).expect("the bytes are a listpack");
        assert_eq!(again.count, self.count);
        assert!(
            self.memory_bytes() <= capacity_class(self.len_bytes()).max(64) * 3 / 2,
            "{} bytes wasted",
            self.memory_bytes()
        );
    }

    /// Returns `buffer` from the listpack's first byte on.
    #[inline]
    fn live(&self) -> &[u8] {
        &self.buffer[usize::from(self.front)..]
    }

    #[inline]
    fn live_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[usize::from(self.front)..]
    }

    /// Returns the bytes of all entries.
    #[inline]
    fn entries(&self) -> &[u8] {
        let bytes = self.as_bytes();
        &bytes[HEADER_BYTES..bytes.len() - 1]
    }

    /// Returns the offset of the byte after the last entry.
    #[inline]
    fn end(&self) -> usize {
        self.len_bytes() - 1
    }

    /// Returns the offset after the entry at `offset`.
    #[inline]
    fn after(&self, offset: usize) -> usize {
        let (_, len) = entry::read(&self.live()[offset..]).expect("an offset is that of an entry");
        offset + len + entry::back_length_bytes(len)
    }

    /// Returns the offset of the entry that ends at `end`.
    #[inline]
    fn before(&self, end: usize) -> Option<usize> {
        if end <= HEADER_BYTES {
            return None;
        }
        let len = entry::len_from_end(&self.live()[HEADER_BYTES..end])?;
        Some(end - len - entry::back_length_bytes(len))
    }

    fn insert(&mut self, offset: usize, draft: &Draft<'_>) {
        let len = draft.len_bytes();
        self.begin(len);
        self.splice(offset, 0, len);
        draft.write(&mut self.live_mut()[offset..offset + len]);
        self.count += 1;
        self.write_count();
    }

    fn write_over(&mut self, offset: usize, draft: &Draft<'_>) {
        let len = draft.len_bytes();
        self.splice(offset, self.after(offset) - offset, len);
        draft.write(&mut self.live_mut()[offset..offset + len]);
    }

    /// Allocates an empty listpack with capacity for `more` bytes if there is none yet, and returns the offset of its
    /// first entry.
    fn begin(&mut self, more: usize) -> Option<usize> {
        if !self.buffer.is_empty() {
            return None;
        }
        self.buffer = vec![0; capacity_class(EMPTY.len() + more)].into_boxed_slice();
        self.buffer[..EMPTY.len()].copy_from_slice(&EMPTY);
        Some(HEADER_BYTES)
    }

    /// Replaces the `old` bytes at `at` by `new` bytes, which the caller must write. Where the allocation permits it,
    /// either the bytes before them or the bytes after them move, whichever are fewer.
    fn splice(&mut self, at: usize, old: usize, new: usize) {
        if new == old {
            return;
        }
        let (len, tail, front) = (self.len_bytes(), at + old, usize::from(self.front));
        let new_len = len - old + new;
        let needed = capacity_class(new_len);
        if new_len > self.buffer.len() {
            self.resize_buffer(needed);
        }
        let moves_head = at < len - tail;
        // Determines whether the head can move, and whether the tail can.
        let new_front = (front + old).checked_sub(new).filter(|&front| front <= FRONT_MAX);
        let has_space_after = front + new_len <= self.buffer.len();
        if let Some(new_front) = new_front.filter(|_| moves_head || !has_space_after) {
            self.buffer.copy_within(front..front + at, new_front);
            self.front = new_front as u16;
        } else if has_space_after && !(moves_head && at == HEADER_BYTES) {
            self.live_mut().copy_within(tail..len, at + new);
        } else {
            // An insertion at the front is often followed by others.
            let unused = if moves_head && at == HEADER_BYTES { self.buffer.len() - new_len } else { 0 };
            self.slide(at, old, new, unused.min(FRONT_MAX));
        }
        let total = u32::try_from(new_len).expect("a listpack is not asked to hold 4 GiB");
        self.live_mut()[..4].copy_from_slice(&total.to_le_bytes());
        if new < old && needed + needed / 4 < self.buffer.len() {
            self.buffer.copy_within(usize::from(self.front).., 0);
            self.front = 0;
            self.resize_buffer(needed);
        }
    }

    /// Moves all bytes so that the listpack begins at `new_front`, with `new` bytes instead of the `old` ones at `at`.
    fn slide(&mut self, at: usize, old: usize, new: usize, new_front: usize) {
        let (from, len) = (usize::from(self.front), self.len_bytes());
        let (head, tail) = (from..from + at, from + at + old..from + len);
        let tail_to = new_front + at + new;
        // The part that occupies the target of the other part moves first.
        if tail_to >= tail.start {
            self.buffer.copy_within(tail, tail_to);
            self.buffer.copy_within(head, new_front);
        } else {
            self.buffer.copy_within(head, new_front);
            self.buffer.copy_within(tail, tail_to);
        }
        self.front = new_front as u16;
    }

    fn resize_buffer(&mut self, len: usize) {
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        buffer.reserve_exact(len.saturating_sub(buffer.len()));
        buffer.resize(len, 0);
        self.buffer = buffer.into_boxed_slice();
    }

    fn write_count(&mut self) {
        let count = u16::try_from(self.count).unwrap_or(COUNT_UNKNOWN);
        if let Some(header) = self.live_mut().first_chunk_mut::<HEADER_BYTES>() {
            header[4..].copy_from_slice(&count.to_le_bytes());
        }
    }
}

impl PartialEq for Listpack {
    fn eq(&self, other: &Listpack) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Listpack {}

/// The elements of a listpack, iterable from both ends.
#[derive(Clone, Debug)]
pub struct Iter<'a> {
    /// The entries not yet returned, all whole.
    rest: &'a [u8],
}

impl<'a> Iterator for Iter<'a> {
    type Item = Element<'a>;

    #[inline]
    fn next(&mut self) -> Option<Element<'a>> {
        let (element, len) = entry::read(self.rest)?;
        self.rest = &self.rest[len + entry::back_length_bytes(len)..];
        Some(element)
    }
}

impl<'a> DoubleEndedIterator for Iter<'a> {
    #[inline]
    fn next_back(&mut self) -> Option<Element<'a>> {
        let len = entry::len_from_end(self.rest)?;
        let start = self.rest.len() - len - entry::back_length_bytes(len);
        let (element, _) = entry::read(&self.rest[start..])?;
        self.rest = &self.rest[..start];
        Some(element)
    }
}

#[cfg(test)]
mod tests;
