//! The expiry index of a shard: which hash tags to check for expired entries, and when.
//!
//! A radix heap (Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", 1990) over time in
//! ticks of [`TICK_MS`]. Each element is four bytes, a database number and a hash tag, instead of a pointer to an
//! entry: a deleted or overwritten key leaves no dangling pointer, only a reference that finds nothing when it is due.
//! The expiry itself is not stored: a reference in bucket `b` is due within that bucket's range. When the range begins,
//! the exact expiry is read from the entry and the reference moves to a finer bucket, at most 32 times, usually twice.
//!
//! # Invariants
//!
//! * `last` never decreases. A reference due at tick `t > last` is in bucket `b`, the number of bits up to the highest
//!   one in which `t` and `last` differ; a reference due at or before `last` is in bucket 0.
//! * Each entry with an expiry, or with elements that have one, has at least one reference, due no later than the
//!   earliest of these expiries. An entry may have further references: one for each time its expiry was moved to an
//!   earlier time. [`ExpiryIndex::is_bloated`] returns whether the surplus justifies a rebuild.

use crate::entries::hash::TAG_BITS;

/// The resolution of the index. An expired key that no client accesses is found one to two ticks after its expiry.
pub const TICK_MS: i64 = 64;

/// The number of stale references that never cause a rebuild, for shards with few volatile keys.
const BLOAT_MIN: usize = 256;

/// The maximum number of databases that references can distinguish.
pub const DATABASES_MAX: usize = 1 << (32 - TAG_BITS);

/// A database and a hash tag to check for expired entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reference(u32);

impl Reference {
    /// Returns the reference to entries with the hash tag `tag` in database `database`.
    pub fn new(database: usize, tag: u32) -> Reference {
        debug_assert!(database < DATABASES_MAX && tag < 1 << TAG_BITS);
        Reference((database as u32) << TAG_BITS | tag)
    }

    /// Returns the number of the database.
    pub fn database(self) -> usize {
        (self.0 >> TAG_BITS) as usize
    }

    /// Returns the hash tag.
    pub fn tag(self) -> u32 {
        self.0 & ((1 << TAG_BITS) - 1)
    }
}

/// The references of one shard, ordered by their due times.
#[derive(Default)]
pub struct ExpiryIndex {
    last: u32,
    /// The bucket whose range has begun; [`ExpiryIndex::pop_due`] takes its references one at a time.
    draining: usize,
    buckets: Vec<Vec<Reference>>,
    len: usize,
    bytes: usize,
}

impl ExpiryIndex {
    /// Returns the number of references.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the index contains no references.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the memory of the index in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds a reference due at tick `due`. O(1).
    pub fn add(&mut self, due: u32, reference: Reference) {
        let differing = due.max(self.last) ^ self.last;
        let bucket = (u32::BITS - differing.leading_zeros()) as usize;
        if self.buckets.len() <= bucket {
            self.bytes += (bucket + 1 - self.buckets.len()) * size_of::<Vec<Reference>>();
            self.buckets.reserve_exact(bucket + 1 - self.buckets.len());
            self.buckets.resize_with(bucket + 1, Vec::new);
        }
        let list = &mut self.buckets[bucket];
        if list.len() == list.capacity() {
            let before = list.capacity();
            // Grows by a quarter instead of doubling: this list is the memory cost of a TTL.
            list.reserve_exact((before / 4).max(4));
            self.bytes += (list.capacity() - before) * size_of::<Reference>();
        }
        list.push(reference);
        self.len += 1;
    }

    /// Removes and returns a reference that is due by tick `now`, according to its bucket. The caller checks the
    /// entries of the reference, and adds references again for entries that are not due yet. O(1) amortised.
    pub fn pop_due(&mut self, now: u32) -> Option<Reference> {
        if self.len == 0 {
            return None;
        }
        if self.buckets[self.draining].is_empty() {
            let (bucket, begins) = self.next_range()?;
            if begins > now {
                return None;
            }
            self.last = begins;
            self.draining = bucket;
        }
        let list = &mut self.buckets[self.draining];
        let reference = list.pop();
        if list.is_empty() {
            self.bytes -= list.capacity() * size_of::<Reference>();
            *list = Vec::new();
        }
        self.len -= 1;
        reference
    }

    /// Returns the first tick at which [`ExpiryIndex::pop_due`] returns the next reference.
    pub fn next_due(&self) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        if !self.buckets[self.draining].is_empty() {
            return Some(self.last);
        }
        self.next_range().map(|(_, begins)| begins)
    }

    /// Returns the lowest bucket that contains references, and the first tick of its range.
    fn next_range(&self) -> Option<(usize, u32)> {
        let bucket = self.buckets.iter().position(|list| !list.is_empty())?;
        let begins = match bucket {
            0 => self.last,
            _ => (self.last >> (bucket - 1) | 1) << (bucket - 1),
        };
        Some((bucket, begins))
    }

    /// Returns whether most references are stale; `volatile_entries` is the number of entries that have an expiry.
    pub fn is_bloated(&self, volatile_entries: usize) -> bool {
        self.len > 2 * volatile_entries + BLOAT_MIN
    }

    /// Removes all references; `last` stays the same.
    pub fn clear(&mut self) {
        *self = ExpiryIndex { last: self.last, ..ExpiryIndex::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn stale_references_are_bloat() {
        let mut index = ExpiryIndex::default();
        for due in 0..1000 {
            index.add(due, Reference::new(0, 1));
        }
        assert!(index.is_bloated(1) && !index.is_bloated(500));
        index.clear();
        assert!(index.is_empty() && index.bytes() == 0);
    }

    proptest! {
        #[test]
        fn references_are_returned_when_due_and_not_before(
            steps in prop::collection::vec((0u32..5000, 0u32..400), 1..200),
        ) {
            let mut index = ExpiryIndex::default();
            let mut waiting: Vec<u32> = Vec::new();
            let mut now = 0;
            for (due_in, forward) in steps {
                let due = now + due_in;
                index.add(due, Reference::new(3, waiting.len() as u32));
                waiting.push(due);
                now += forward;
                while let Some(reference) = index.pop_due(now) {
                    prop_assert_eq!(reference.database(), 3);
                    let due = &mut waiting[reference.tag() as usize];
                    prop_assert!(*due != u32::MAX, "a reference is returned once");
                    if *due > now {
                        index.add(*due, reference);
                    } else {
                        *due = u32::MAX;
                    }
                }
                prop_assert!(waiting.iter().all(|&due| due == u32::MAX || due > now));
                prop_assert_eq!(index.next_due().is_none(), index.is_empty());
                prop_assert!(index.next_due().is_none_or(|due| due > now));
            }
        }
    }
}
