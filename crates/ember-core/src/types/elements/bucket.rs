//! A bucket: one table with the elements whose hashes begin with the same bits, and its division in two.
//!
//! ```text
//! hash   prefix (depth bits) | tag (TAG_BITS) | unused
//! ```
//!
//! The tag in a slot is the hash bits after the prefix, so a bucket's table is in hash order. A division moves the
//! first bit of the tag to the prefix and shifts the others up. The slot does not contain the bit that would follow.
//! Instead of hashing every element again, the bucket leaves the last bit of all tags 0 and continues with one bit
//! less: `missing` counts the omitted bits. Elements are hashed again, for full tags, when [`MISSING_MAX`] would be
//! exceeded.
//!
//! # Invariants
//!
//! * Every tag is the element's hash bits after the prefix, with the last `missing` of them 0.
//! * `depth` is at most [`DEPTH_MAX`].

use super::hasher::ElementHasher;
use crate::entries::entry::{EntryRef, Slot};
use crate::entries::hash::TAG_BITS;
use crate::entries::table::{SLOTS_PER_GROUP, Table, group_offset_bytes};
use crate::memory::prefetch;

/// The maximum length of a prefix in bits: prefix and tag together then have [`POSITION_BITS`].
pub(super) const DEPTH_MAX: u32 = 28;

/// The number of hash bits that determine an element's place.
pub(super) const POSITION_BITS: u32 = DEPTH_MAX + TAG_BITS;

/// The maximum number of tag bits that a bucket omits. With 16 bits left, one search in sixteen in a table of
/// [`super::LEN_MAX`] elements meets another element with the same tag.
const MISSING_MAX: u32 = 4;

/// The initial capacity of a table built by a division or a union, in percent of [`super::LEN_MAX`]. Little of that
/// capacity is unused for long, and it avoids step-by-step growth, which would cause two thirds of all moves of slots.
const CAPACITY_PERCENT: usize = 70;

const TAG_MASK: u32 = (1 << TAG_BITS) - 1;

/// Elements whose hashes begin with the same bits.
#[derive(Default)]
pub(super) struct Bucket {
    pub(super) table: Table,
    /// The bits that all hashes begin with.
    prefix: u32,
    /// The number of bits of the prefix.
    depth: u8,
    /// The number of bits at the end of the tags that are 0 whatever the hash.
    missing: u8,
}

impl Bucket {
    pub(super) fn depth(&self) -> u32 {
        u32::from(self.depth)
    }

    pub(super) fn prefix(&self) -> u32 {
        self.prefix
    }

    fn missing_mask(&self) -> u32 {
        (1 << self.missing) - 1
    }

    /// Returns the tag of a hash in this bucket.
    #[inline]
    pub(super) fn tag(&self, hash: u64) -> u32 {
        full_tag(hash, self.depth()) & !self.missing_mask()
    }

    /// Returns the address of the slots at which the search for a hash begins.
    #[inline]
    pub(super) fn group_address(&self, hash: u64) -> *const u8 {
        let groups = self.table.capacity() / SLOTS_PER_GROUP;
        self.table.slots_address().wrapping_add(group_offset_bytes(self.tag(hash), groups))
    }

    /// Returns the smallest hash that may be in this bucket.
    pub(super) fn first_hash(&self) -> u64 {
        u64::from(self.prefix).checked_shl(64 - self.depth()).unwrap_or(0)
    }

    /// Returns whether this is the smallest hash of the bucket.
    pub(super) fn begins_at(&self, hash: u64) -> bool {
        self.first_hash() == hash
    }

    /// Returns the smallest hash after this bucket; `None` after the last bucket.
    fn end_hash(&self) -> Option<u64> {
        self.first_hash().checked_add(1u64.checked_shl(64 - self.depth())?)
    }

    /// Calls `visit` for a few elements with hashes from `from` on, which must be in this bucket. Returns the hash to
    /// continue from: all elements between both hashes have been visited. `None` marks the end of the last bucket.
    pub(super) fn scan(&self, from: u64, visit: impl FnMut(EntryRef<'_>)) -> Option<u64> {
        self.hash_after(self.table.scan(self.tag(from), visit))
    }

    /// Like [`Bucket::scan`], with slots whose entries may be moved or changed, but not removed.
    pub(super) fn scan_mut(&mut self, from: u64, visit: impl FnMut(&mut Slot)) -> Option<u64> {
        let next = self.table.scan_mut(self.tag(from), visit);
        self.hash_after(next)
    }

    /// Returns the hash from which a scan continues when the scan of the table continues from tag `next`.
    fn hash_after(&self, next: Option<u32>) -> Option<u64> {
        // Tags are multiples of the missing bits' place value, so a step ends at such a multiple.
        let next = next.map(|tag| (tag + self.missing_mask()) & !self.missing_mask());
        match next.filter(|&tag| tag <= TAG_MASK) {
            Some(tag) => Some(self.first_hash() + (u64::from(tag) << (64 - TAG_BITS - self.depth()))),
            None => self.end_hash(),
        }
    }

    /// Moves the elements with the larger hashes to a new bucket, which is returned. The depth, which must be below
    /// [`DEPTH_MAX`], grows by one. O(elements).
    pub(super) fn divide(&mut self, hasher: ElementHasher) -> Bucket {
        let depth = self.depth + 1;
        let is_renewed = u32::from(self.missing) == MISSING_MAX;
        let missing = if is_renewed { 0 } else { self.missing + 1 };
        let all = std::mem::take(&mut self.table);
        if is_renewed {
            all.slots().for_each(|slot| prefetch(slot.address()));
        }
        let half = |prefix| Bucket { table: table_with_capacity(all.len() / 2), prefix, depth, missing };
        let (mut low, mut high) = (half(self.prefix << 1), half(self.prefix << 1 | 1));
        for mut slot in all.into_slots() {
            let side = if slot.tag() >> (TAG_BITS - 1) == 0 { &mut low } else { &mut high };
            slot.set_tag(if is_renewed {
                side.tag(hasher.hash(slot.entry().key()))
            } else {
                slot.tag() << 1 & TAG_MASK
            });
            side.table.insert_new(slot);
        }
        *self = low;
        high
    }

    /// Undoes a division: unites this bucket with its other half, the one whose prefix differs in the last bit.
    /// O(elements).
    pub(super) fn unite(self, other: Bucket) -> Bucket {
        debug_assert!(self.depth == other.depth && self.prefix ^ 1 == other.prefix, "two halves");
        let missing = self.missing.max(other.missing).saturating_sub(1);
        let mut union = Bucket {
            table: table_with_capacity(self.table.len() + other.table.len()),
            prefix: self.prefix >> 1,
            depth: self.depth - 1,
            missing,
        };
        let missing_mask = union.missing_mask();
        for half in [self, other] {
            let side = (half.prefix & 1) << (TAG_BITS - 1);
            for mut slot in half.table.into_slots() {
                slot.set_tag((side | slot.tag() >> 1) & !missing_mask);
                union.table.insert_new(slot);
            }
        }
        union
    }

    /// Checks the invariants in the module's text. O(elements).
    pub(super) fn check_invariants(&self, hasher: ElementHasher) {
        self.table.check_invariants();
        assert!(self.depth() <= DEPTH_MAX && u32::from(self.missing) <= MISSING_MAX, "limits of a bucket");
        for slot in self.table.slots() {
            let hash = hasher.hash(slot.entry().key());
            let prefix = hash.checked_shr(64 - self.depth()).unwrap_or(0);
            assert_eq!(prefix, u64::from(self.prefix), "the hash begins with the prefix");
            assert_eq!(slot.tag(), self.tag(hash), "the tag is what follows the prefix");
        }
    }
}

impl Clone for Bucket {
    /// Copies every element; large values stay shared until one side changes. O(elements).
    fn clone(&self) -> Bucket {
        let mut table = table_with_capacity(self.table.len());
        for slot in self.table.slots() {
            let entry = slot.entry();
            let expire_at_ms = entry.expire_at_ms();
            let copy =
                Slot::new(slot.tag(), entry.key(), entry.duplicate_string(), expire_at_ms, entry.clock());
            table.insert_new(copy);
        }
        Bucket { table, ..*self }
    }
}

/// Returns the hash bits after a prefix of `depth` bits.
#[inline]
fn full_tag(hash: u64, depth: u32) -> u32 {
    (hash << depth >> (64 - TAG_BITS)) as u32
}

/// Returns a table for `len` elements. From a quarter of [`super::LEN_MAX`] on it has spare capacity
/// ([`CAPACITY_PERCENT`]).
fn table_with_capacity(len: usize) -> Table {
    let is_large = len >= super::LEN_MAX / 4;
    Table::with_capacity_for(if is_large { len.max(super::LEN_MAX * CAPACITY_PERCENT / 100) } else { len })
}
