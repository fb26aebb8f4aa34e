//! An intset: a sorted set of integers in one run of bytes, in Redis's format.
//!
//! ```text
//! offset  bytes
//!  0      4      width of a member in bytes, little-endian: 2, 4 or 8
//!  4      4      number of members, little-endian
//!  8      …      members in ascending order, each signed and little-endian
//! ```
//!
//! The width is that of the widest member the set ever had; it never shrinks. Sets of few integers are stored in this
//! form, and `DUMP` and the RDB format contain the bytes as they are.
//!
//! Invariant: `buffer` is either empty, for a set that never had a member, or begins with a whole intset. Its length
//! follows from its header, so a set takes only a pointer and a length in addition.

use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::{capacity_class, size_class};

pub use super::listpack::Corrupt;

const HEADER_BYTES: usize = 8;
/// A set without members, in the narrowest form.
const EMPTY: [u8; HEADER_BYTES] = [2, 0, 0, 0, 0, 0, 0, 0];

/// A sorted set of integers in one run of bytes.
#[derive(Clone, Debug, Default)]
pub struct Intset {
    buffer: Box<[u8]>,
}

impl Intset {
    /// Returns an empty set, without an allocation.
    pub fn new() -> Intset {
        Intset::default()
    }

    /// Moves the bytes to another allocation of the same size, if that is worth it.
    pub(crate) fn move_to(&mut self, mover: &mut Mover<'_>) {
        mover.move_bytes(&mut self.buffer);
    }

    /// Reads a set from bytes of any origin: every member is checked. O(N).
    ///
    /// # Errors
    /// Returns [`Corrupt`] if width, number and length do not agree, if members are not ascending or if there are none.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Intset, Corrupt> {
        let (&width, rest) = bytes.split_first_chunk::<4>().ok_or(Corrupt)?;
        let (&count, members) = rest.split_first_chunk::<4>().ok_or(Corrupt)?;
        let (width, count) = (u32::from_le_bytes(width) as usize, u32::from_le_bytes(count) as usize);
        let is_whole = matches!(width, 2 | 4 | 8) && width.checked_mul(count) == Some(members.len());
        if !is_whole || count == 0 {
            return Err(Corrupt);
        }
        let set = Intset { buffer: bytes.into_boxed_slice() };
        if !set.iter().is_sorted_by(|left, right| left < right) {
            return Err(Corrupt);
        }
        Ok(set)
    }

    /// Returns the bytes in Redis's format.
    pub fn as_bytes(&self) -> &[u8] {
        match self.buffer.first_chunk::<HEADER_BYTES>() {
            None => &EMPTY,
            Some(&[width, _, _, _, count @ ..]) => {
                &self.buffer[..HEADER_BYTES + usize::from(width) * u32::from_le_bytes(count) as usize]
            }
        }
    }

    /// Returns the length of [`Intset::as_bytes`].
    pub fn len_bytes(&self) -> usize {
        self.as_bytes().len()
    }

    /// Returns the number of members. O(1).
    #[inline]
    pub fn len(&self) -> usize {
        self.members().len() / self.width()
    }

    /// Returns whether there is no member.
    pub fn is_empty(&self) -> bool {
        self.members().is_empty()
    }

    /// Returns the bytes of memory allocated, including the allocator's rounding.
    pub fn memory_bytes(&self) -> usize {
        match self.buffer.len() {
            0 => 0,
            len => size_class(len),
        }
    }

    /// Returns whether `member` is in the set. O(log N).
    pub fn contains(&self, member: i64) -> bool {
        self.search(member).is_ok()
    }

    /// Returns the member at `index` in ascending order.
    #[inline]
    pub fn get(&self, index: usize) -> Option<i64> {
        let width = self.width();
        let start = index.checked_mul(width)?;
        let bytes = self.members().get(start..start.checked_add(width)?)?;
        Some(read(bytes))
    }

    /// Returns the smallest member.
    pub fn first(&self) -> Option<i64> {
        self.get(0)
    }

    /// Returns the largest member.
    pub fn last(&self) -> Option<i64> {
        self.get(self.len().checked_sub(1)?)
    }

    /// Returns a member chosen uniformly at random.
    pub fn random(&self, random: &mut Random) -> Option<i64> {
        if self.is_empty() { None } else { self.get(random.below(self.len())) }
    }

    /// Returns all members in ascending order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + Clone + '_ {
        self.members().chunks_exact(self.width()).map(read)
    }

    /// Adds a member. Returns whether it is new. O(N).
    pub fn insert(&mut self, member: i64) -> bool {
        let width = width_of(member);
        if width > self.width() {
            self.widen(width, member);
            return true;
        }
        let Err(index) = self.search(member) else { return false };
        let width = self.width();
        let at = HEADER_BYTES + index * width;
        let len = self.len_bytes();
        if len + width > self.buffer.len() {
            self.resize_buffer(capacity_class(len + width));
        }
        self.buffer.copy_within(at..len, at + width);
        self.buffer[at..at + width].copy_from_slice(&member.to_le_bytes()[..width]);
        self.write_header(width, len + width);
        true
    }

    /// Removes a member. Returns whether it existed. O(N).
    pub fn remove(&mut self, member: i64) -> bool {
        let Ok(index) = self.search(member) else { return false };
        let width = self.width();
        let at = HEADER_BYTES + index * width;
        let len = self.len_bytes();
        self.buffer.copy_within(at + width..len, at);
        self.write_header(width, len - width);
        let needed = capacity_class(len - width);
        if needed + needed / 4 < self.buffer.len() {
            self.resize_buffer(needed);
        }
        true
    }

    /// Checks all bytes and panics if they are not an intset. For tests.
    pub fn check_invariants(&self) {
        if !self.is_empty() {
            assert_eq!(Intset::from_bytes(self.as_bytes().to_vec()).map(|set| set.len()), Ok(self.len()));
        }
        assert!(self.memory_bytes() <= capacity_class(self.len_bytes()) * 3 / 2);
    }

    /// Returns the index of `member`, or as `Err` the index where it belongs.
    fn search(&self, member: i64) -> Result<usize, usize> {
        let width = self.width();
        let members = self.members();
        let (mut low, mut high) = (0, members.len() / width);
        while low < high {
            let middle = low + (high - low) / 2;
            let found = read(&members[middle * width..(middle + 1) * width]);
            match found.cmp(&member) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Greater => high = middle,
                std::cmp::Ordering::Equal => return Ok(middle),
            }
        }
        Err(low)
    }

    /// Rewrites all members with `width` bytes, and adds one that is wider than all of them: it becomes the first or
    /// the last.
    fn widen(&mut self, width: usize, member: i64) {
        let len = HEADER_BYTES + (self.len() + 1) * width;
        let mut wider = Intset::new();
        wider.resize_buffer(capacity_class(len));
        let (before, after) = if member < 0 { (Some(member), None) } else { (None, Some(member)) };
        let places = wider.buffer[HEADER_BYTES..].chunks_exact_mut(width);
        for (place, member) in places.zip(before.into_iter().chain(self.iter()).chain(after)) {
            place.copy_from_slice(&member.to_le_bytes()[..width]);
        }
        wider.write_header(width, len);
        *self = wider;
    }

    #[inline]
    fn members(&self) -> &[u8] {
        &self.as_bytes()[HEADER_BYTES..]
    }

    #[inline]
    fn width(&self) -> usize {
        usize::from(self.as_bytes()[0])
    }

    fn resize_buffer(&mut self, len: usize) {
        let mut buffer = std::mem::take(&mut self.buffer).into_vec();
        buffer.reserve_exact(len.saturating_sub(buffer.len()));
        buffer.resize(len, 0);
        self.buffer = buffer.into_boxed_slice();
    }

    /// Writes the header of a set of `len` bytes with members of `width` bytes.
    fn write_header(&mut self, width: usize, len: usize) {
        let count = (len - HEADER_BYTES) / width;
        let count = u32::try_from(count).expect("sets of integers become tables long before");
        self.buffer[..4].copy_from_slice(&(width as u32).to_le_bytes());
        self.buffer[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }
}

impl PartialEq for Intset {
    fn eq(&self, other: &Intset) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}

impl Eq for Intset {}

/// Returns the number of bytes that `member` takes.
fn width_of(member: i64) -> usize {
    match member {
        -0x8000..=0x7FFF => 2,
        -0x8000_0000..=0x7FFF_FFFF => 4,
        _ => 8,
    }
}

/// Reads a member from its 2, 4 or 8 bytes.
#[inline]
fn read(bytes: &[u8]) -> i64 {
    match *bytes {
        [a, b] => i16::from_le_bytes([a, b]).into(),
        [a, b, c, d] => i32::from_le_bytes([a, b, c, d]).into(),
        [a, b, c, d, e, f, g, h] => i64::from_le_bytes([a, b, c, d, e, f, g, h]),
        _ => unreachable!("members are as wide as the header says, and it says 2, 4 or 8"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_bytes_are_those_of_redis() {
        let mut set = Intset::new();
        [1, 2, -5].into_iter().for_each(|member| assert!(set.insert(member)));
        assert_eq!(set.as_bytes(), b"\x02\x00\x00\x00\x03\x00\x00\x00\xfb\xff\x01\x00\x02\x00");
        assert!(set.insert(70_000));
        assert_eq!(
            set.as_bytes(),
            b"\x04\x00\x00\x00\x04\x00\x00\x00\xfb\xff\xff\xff\x01\x00\x00\x00\x02\x00\x00\x00p\x11\x01\x00"
        );
        assert!(set.insert(10_000_000_000));
        assert_eq!(
            set.as_bytes(),
            b"\x08\x00\x00\x00\x05\x00\x00\x00\xfb\xff\xff\xff\xff\xff\xff\xff\x01\x00\x00\x00\x00\x00\x00\x00\
            \x02\x00\x00\x00\x00\x00\x00\x00p\x11\x01\x00\x00\x00\x00\x00\x00\xe4\x0bT\x02\x00\x00\x00"
        );
        assert!(!set.insert(-5));
        assert!(set.remove(10_000_000_000));
        assert_eq!(set.as_bytes()[0], 8);
    }

    #[test]
    fn a_new_intset_owns_no_memory() {
        let set = Intset::new();
        assert_eq!((set.memory_bytes(), set.len(), set.is_empty()), (0, 0, true));
        assert_eq!((set.first(), set.last(), set.get(0)), (None, None, None));
        assert!(!set.contains(0));
        assert_eq!(set.random(&mut Random::seeded(1)), None);
    }

    #[test]
    fn random_members_are_uniform() {
        let mut set = Intset::new();
        (0..10).for_each(|member| assert!(set.insert(member * 100_000)));
        let mut random = Random::seeded(7);
        let mut seen = [0; 10];
        for _ in 0..10_000 {
            seen[set.random(&mut random).expect("there are members") as usize / 100_000] += 1;
        }
        assert!(seen.iter().all(|count| (800..1200).contains(count)), "{seen:?}");
    }

    #[test]
    fn inconsistent_bytes_are_rejected() {
        let good = b"\x02\x00\x00\x00\x03\x00\x00\x00\xfb\xff\x01\x00\x02\x00";
        assert!(Intset::from_bytes(good.to_vec()).is_ok());
        for len in 0..good.len() {
            assert_eq!(Intset::from_bytes(good[..len].to_vec()), Err(Corrupt), "cut to {len}");
        }
        for (position, byte) in [(0, 3), (0, 4), (1, 1), (4, 2), (7, 0xFF), (9, 0), (10, 2), (12, 0)] {
            let mut bad = good.to_vec();
            bad[position] = byte;
            assert_eq!(Intset::from_bytes(bad), Err(Corrupt), "byte {position}");
        }
        assert_eq!(Intset::from_bytes(EMPTY.to_vec()), Err(Corrupt));
    }

    fn member() -> impl Strategy<Value = i64> {
        prop_oneof![4 => -20i64..20, 1 => -40_000i64..40_000, 1 => any::<i32>().prop_map(i64::from), 1 => any::<i64>()]
    }

    proptest! {
        #[test]
        fn an_intset_agrees_with_a_tree_set(edits in proptest::collection::vec((any::<bool>(), member()), 0..200)) {
            let mut set = Intset::new();
            let mut model = BTreeSet::new();
            for (adds, member) in edits {
                prop_assert_eq!(set.contains(member), model.contains(&member));
                if adds {
                    prop_assert_eq!(set.insert(member), model.insert(member));
                } else {
                    prop_assert_eq!(set.remove(member), model.remove(&member));
                }
                set.check_invariants();
                prop_assert_eq!(set.len(), model.len());
            }
            prop_assert!(set.iter().eq(model.iter().copied()));
            prop_assert!(set.iter().rev().eq(model.iter().rev().copied()));
            prop_assert_eq!((set.first(), set.last()), (model.first().copied(), model.last().copied()));
            for (index, &member) in model.iter().enumerate() {
                prop_assert_eq!(set.get(index), Some(member));
            }
        }
    }
}
