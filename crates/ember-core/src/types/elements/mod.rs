//! The elements of one large value: members of a set, fields of a hash, or the members of a sorted set, each with an
//! optional value and expiry.
//!
//! Extendible hashing (Fagin, Nievergelt, Pippenger, Strong, "Extendible Hashing: A Fast Access Method for Dynamic
//! Files", ACM TODS 4(3), 1979). Elements whose hashes begin with the same bits share a [`Bucket`]: a
//! [`Table`](crate::entries::table::Table) of entries like that of the keyspace, in which the element's name is the
//! entry's key. A bucket that has become too large is divided by the next bit of the hashes; two small halves are
//! united again. The directory maps the first `depth` bits of a hash to the bucket.
//!
//! So no operation takes longer than moving [`LEN_MAX`] slots, whatever the number of elements: one table of ten
//! million elements would block its shard for a tenth of a second whenever it grows. Up to `LEN_MAX` elements there is
//! one bucket and no directory.
//!
//! # Invariants
//!
//! * Exactly the directory entries whose index begins with a bucket's prefix refer to that bucket.
//! * At least one bucket is as deep as the directory (`deepest` counts these), unless there is no bucket.
//! * `len`, `entry_bytes` and `slots_bytes` are the sums over all buckets.
//! * No bucket has more than [`LEN_MAX`] elements, unless their hashes agree in the first [`bucket::DEPTH_MAX`] bits.
//!
//! # SCAN
//!
//! The tables are in hash order, so a cursor is a hash: all elements with smaller hashes have been returned, whatever
//! has been divided, united, grown or shrunk in between. A step ends between two hashes that every table distinguishes,
//! except after a union of buckets, whose tags have one bit less: then up to a table group of elements is returned
//! twice.

mod ahead;
mod bucket;
mod hasher;
#[cfg(test)]
mod tests;

pub use hasher::choose_hash_function;

use crate::algorithms::random::Random;
use crate::entries::entry::{EntryAddress, EntryRef, NewValue, Slot};
use crate::entries::table::Position;
use crate::memory::moving::Mover;
use crate::memory::{prefetch, size_class};
use ahead::FetchAhead;
use bucket::{Bucket, DEPTH_MAX, POSITION_BITS};
use hasher::ElementHasher;

/// The maximum number of elements of a bucket. Dividing a full bucket takes some tens of microseconds; a lower limit
/// would mean more buckets for the cache to hold (44 bytes each). The tests of this module use a low limit, to have
/// many buckets.
pub(crate) const LEN_MAX: usize = if cfg!(test) { 24 } else { 4096 };

/// The maximum number of elements, in total, of two halves that are united: far below [`LEN_MAX`], so that a set that
/// grows and shrinks a little does not divide and unite repeatedly.
const UNION_LEN_MAX: usize = LEN_MAX / 4;

/// The maximum number of random draws of [`Elements::random_place`], which then selects an element by a random number
/// instead.
const DRAWS_MAX: usize = 64;

/// The maximum number of scan steps per requested element: a scan that meets empty tables returns fewer elements rather
/// than taking long.
const STEPS_PER_COUNT: usize = 10;

/// The maximum number of names that [`Elements::fetch_ahead`] prefetches: enough to hide the latency of memory.
pub const FETCHED_MAX: usize = 16;

/// The number of elements from which prefetching pays off: smaller tables are in the cache.
const FETCHED_FROM_LEN: usize = 8192;

/// The place of an element; valid until elements are next added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    bucket: u32,
    at: Position,
}

/// A hash table of elements.
pub struct Elements {
    hasher: ElementHasher,
    buckets: Vec<Bucket>,
    /// The index of the bucket for each value of a hash's first `depth` bits; empty while `depth` is 0.
    directory: Vec<u32>,
    depth: u32,
    /// The number of buckets with the depth of the directory.
    deepest: usize,
    len: usize,
    /// Bytes of memory of the entries.
    entry_bytes: usize,
    /// Bytes of memory of the slots of all tables.
    slots_bytes: usize,
}

impl Default for Elements {
    fn default() -> Elements {
        Elements {
            hasher: ElementHasher::new(),
            buckets: Vec::new(),
            directory: Vec::new(),
            depth: 0,
            deepest: 0,
            len: 0,
            entry_bytes: 0,
            slots_bytes: 0,
        }
    }
}

impl Clone for Elements {
    /// Copies every element, with the same hashes; large values stay shared until one side changes. O(elements).
    fn clone(&self) -> Elements {
        let buckets = self.buckets.clone();
        let slots_bytes = buckets.iter().map(|bucket| bucket.table.slots_bytes()).sum();
        Elements { buckets, slots_bytes, directory: self.directory.clone(), ..*self }
    }
}

impl Elements {
    /// Returns an empty table, without an allocation.
    pub fn new() -> Elements {
        Elements::default()
    }

    /// Returns the number of elements.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no element.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the bytes of memory owned, including the allocator's rounding. O(1).
    pub fn memory_bytes(&self) -> usize {
        let allocation = |bytes: usize| if bytes == 0 { 0 } else { size_class(bytes) };
        self.entry_bytes
            + self.slots_bytes
            + allocation(self.buckets.capacity() * size_of::<Bucket>())
            + allocation(self.directory.capacity() * size_of::<u32>())
    }

    /// Returns the index of the bucket for a hash. There must be a bucket.
    #[inline]
    fn bucket_index(&self, hash: u64) -> usize {
        if self.depth == 0 { 0 } else { self.directory[(hash >> (64 - self.depth)) as usize] as usize }
    }

    #[inline]
    fn find_hashed(&self, hash: u64, name: &[u8]) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        let index = self.bucket_index(hash);
        let bucket = &self.buckets[index];
        let at = bucket.table.find(bucket.tag(hash), name)?;
        Some(Place { bucket: index as u32, at })
    }

    /// Finds an element. O(1) expected.
    #[inline]
    pub fn find(&self, name: &[u8]) -> Option<Place> {
        self.find_hashed(self.hasher.hash(name), name)
    }

    /// Returns the hash bits that determine the place of an element; [`Elements::find_at`] finds the element by them
    /// without its name.
    pub fn position_of(&self, name: &[u8]) -> u64 {
        self.hasher.hash(name) >> (64 - POSITION_BITS)
    }

    /// Finds an element at a position ([`Elements::position_of`]) for which `wanted` holds. O(1) expected.
    pub fn find_at(&self, position: u64, mut wanted: impl FnMut(EntryRef<'_>) -> bool) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        let hash = position << (64 - POSITION_BITS);
        let index = self.bucket_index(hash);
        let bucket = &self.buckets[index];
        let is_wanted = |entry: EntryRef<'_>| self.position_of(entry.key()) == position && wanted(entry);
        let at = bucket.table.find_by_tag(bucket.tag(hash), is_wanted)?;
        Some(Place { bucket: index as u32, at })
    }

    /// Prefetches the memory that look-ups of these names, up to [`FETCHED_MAX`], will read.
    pub fn fetch_ahead<'n>(&self, names: impl Iterator<Item = &'n [u8]>) {
        if self.len < FETCHED_FROM_LEN {
            return;
        }
        let mut hashes = [0; FETCHED_MAX];
        let mut count = 0;
        for (hash, name) in hashes.iter_mut().zip(names) {
            *hash = self.hasher.hash(name);
            prefetch(self.buckets[self.bucket_index(*hash)].group_address(*hash));
            count += 1;
        }
        for &hash in &hashes[..count] {
            let bucket = &self.buckets[self.bucket_index(hash)];
            prefetch(bucket.table.entry_address(bucket.tag(hash)));
        }
    }

    /// Returns whether an element of this name exists. O(1) expected.
    #[inline]
    pub fn contains(&self, name: &[u8]) -> bool {
        self.find(name).is_some()
    }

    /// Returns the element of this name. O(1) expected.
    #[inline]
    pub fn get(&self, name: &[u8]) -> Option<EntryRef<'_>> {
        self.find(name).map(|place| self.entry(place))
    }

    /// Returns the element at a place.
    #[inline]
    pub fn entry(&self, place: Place) -> EntryRef<'_> {
        self.buckets[place.bucket as usize].table.slot(place.at).entry()
    }

    /// Adds an element unless one of this name exists; an existing one is not changed. Returns whether the element was
    /// added. O(1) amortized; at worst a bucket is divided.
    pub fn insert(&mut self, name: &[u8], value: NewValue<'_>, expire_at_ms: Option<i64>) -> bool {
        let hash = self.hasher.hash(name);
        let is_new = self.find_hashed(hash, name).is_none();
        if is_new {
            self.add(hash, name, value, expire_at_ms);
        }
        is_new
    }

    /// Finds the element of this name, or adds it with this value and returns the address of its entry. O(1) as
    /// [`Elements::insert`].
    pub fn find_or_add(&mut self, name: &[u8], value: NewValue<'_>) -> Result<Place, EntryAddress> {
        let hash = self.hasher.hash(name);
        match self.find_hashed(hash, name) {
            Some(place) => Ok(place),
            None => Err(self.add(hash, name, value, None)),
        }
    }

    /// Adds an element, or replaces value and expiry of the element of this name. Returns whether it was added. O(1) as
    /// [`Elements::insert`].
    pub fn set(&mut self, name: &[u8], value: NewValue<'_>, expire_at_ms: Option<i64>) -> bool {
        let hash = self.hasher.hash(name);
        match self.find_hashed(hash, name) {
            Some(place) => self.edit(place, |slot| slot.set(value, expire_at_ms)),
            None => {
                self.add(hash, name, value, expire_at_ms);
                return true;
            }
        }
        false
    }

    /// Adds an element whose name does not exist yet; returns the address of its entry.
    fn add(
        &mut self,
        hash: u64,
        name: &[u8],
        value: NewValue<'_>,
        expire_at_ms: Option<i64>,
    ) -> EntryAddress {
        if self.buckets.is_empty() {
            self.buckets.reserve_exact(1);
            self.buckets.push(Bucket::default());
            self.deepest = 1;
        }
        let index = self.bucket_index(hash);
        let bucket = &mut self.buckets[index];
        let slot = Slot::new(bucket.tag(hash), name, value, expire_at_ms, 0);
        let address = slot.entry().address();
        self.entry_bytes += slot.entry().footprint_bytes();
        self.len += 1;
        let slots_before = bucket.table.slots_bytes();
        bucket.table.insert_new(slot);
        self.slots_bytes = self.slots_bytes + bucket.table.slots_bytes() - slots_before;
        if bucket.table.len() > LEN_MAX && bucket.depth() < DEPTH_MAX {
            self.divide(index);
        }
        address
    }

    /// Lets `edit` change the value or the expiry of the element at a place.
    #[inline]
    pub fn edit<R>(&mut self, place: Place, edit: impl FnOnce(&mut Slot) -> R) -> R {
        let slot = self.buckets[place.bucket as usize].table.slot_mut(place.at);
        let bytes_before = slot.entry().footprint_bytes();
        let result = edit(slot);
        self.entry_bytes = self.entry_bytes + slot.entry().footprint_bytes() - bytes_before;
        result
    }

    /// Removes an element and returns it. O(1) amortized; at worst two small buckets are united.
    pub fn remove(&mut self, name: &[u8]) -> Option<Slot> {
        self.find(name).map(|place| self.remove_at(place))
    }

    /// Removes the element at a place and returns it; see [`Elements::remove`].
    pub fn remove_at(&mut self, place: Place) -> Slot {
        let index = place.bucket as usize;
        let bucket = &mut self.buckets[index];
        let slots_before = bucket.table.slots_bytes();
        let slot = bucket.table.remove(place.at);
        self.slots_bytes = self.slots_bytes + bucket.table.slots_bytes() - slots_before;
        self.entry_bytes -= slot.entry().footprint_bytes();
        self.len -= 1;
        if bucket.depth() > 0 && bucket.table.len() <= UNION_LEN_MAX {
            self.unite_if_small(index);
        }
        slot
    }

    /// Removes and returns an element chosen uniformly at random. Expected O(1).
    pub fn pop_random(&mut self, random: &mut Random) -> Option<Slot> {
        self.random_place(random).map(|place| self.remove_at(place))
    }

    /// Returns an element chosen uniformly at random. Expected O(1).
    pub fn random(&self, random: &mut Random) -> Option<EntryRef<'_>> {
        self.random_place(random).map(|place| self.entry(place))
    }

    /// Returns the place of an element chosen as by [`Elements::random`].
    ///
    /// A bucket is drawn and then accepted with a probability proportional to its number of elements. Because small
    /// halves are united, that probability is an eighth or more on average.
    pub fn random_place(&self, random: &mut Random) -> Option<Place> {
        if self.len == 0 {
            return None;
        }
        for _ in 0..DRAWS_MAX {
            let index = random.below(self.buckets.len());
            let table = &self.buckets[index].table;
            if self.buckets.len() == 1 || random.below(LEN_MAX) < table.len() {
                return table.random_position(random).map(|at| Place { bucket: index as u32, at });
            }
        }
        let mut rank = random.below(self.len);
        for (index, bucket) in self.buckets.iter().enumerate() {
            match rank.checked_sub(bucket.table.len()) {
                None => {
                    let at = bucket.table.random_position(random)?;
                    return Some(Place { bucket: index as u32, at });
                }
                Some(left) => rank = left,
            }
        }
        None
    }

    /// Calls `visit` for about `count` elements from `cursor` on, 0 at the beginning, and returns the cursor to
    /// continue from, 0 at the end. Elements that exist from the first call to the last are visited at least once.
    /// O(count).
    pub fn scan(&self, cursor: u64, count: usize, mut visit: impl FnMut(EntryRef<'_>)) -> u64 {
        if self.len == 0 || cursor >> POSITION_BITS != 0 {
            return 0;
        }
        let mut from = cursor << (64 - POSITION_BITS);
        let mut visited = 0;
        for _ in 0..count.saturating_mul(STEPS_PER_COUNT) {
            let bucket = &self.buckets[self.bucket_index(from)];
            let next = bucket.scan(from, |entry| {
                visited += 1;
                visit(entry);
            });
            let Some(next) = next else { return 0 };
            from = next;
            if visited >= count {
                break;
            }
        }
        from >> (64 - POSITION_BITS)
    }

    /// Moves entries and slots to other allocations of the same sizes, where that is worth it: those of about `most`
    /// elements, from cursor `from` on as in [`Elements::scan`]. Returns the cursor to continue from; 0 at the end.
    pub fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        if self.len == 0 || from >> POSITION_BITS != 0 {
            return 0;
        }
        if from == 0 {
            mover.move_vec(&mut self.buckets);
            mover.move_vec(&mut self.directory);
        }
        let mut from = from << (64 - POSITION_BITS);
        let mut visited = 0;
        for _ in 0..most.saturating_mul(STEPS_PER_COUNT) {
            let index = self.bucket_index(from);
            let bucket = &mut self.buckets[index];
            if bucket.begins_at(from) {
                bucket.table.move_slots(mover);
            }
            let next = bucket.scan_mut(from, |slot| {
                visited += 1;
                slot.move_to(mover);
            });
            let Some(next) = next else { return 0 };
            from = next;
            if visited >= most {
                break;
            }
        }
        from >> (64 - POSITION_BITS)
    }

    /// Moves the entry of the element at a place, if that is worth it, and returns its address.
    pub fn move_entry(&mut self, place: Place, mover: &mut Mover<'_>) -> EntryAddress {
        let slot = self.buckets[place.bucket as usize].table.slot_mut(place.at);
        slot.move_to(mover);
        slot.entry().address()
    }

    /// Returns every element, in no particular order. O(elements).
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        FetchAhead::new(self.buckets.iter().flat_map(|bucket| bucket.table.iter()))
    }

    /// Returns the range of directory indexes that begin with the prefix of a bucket.
    fn directory_range(&self, bucket: &Bucket) -> std::ops::Range<usize> {
        let shift = self.depth - bucket.depth();
        let first = (bucket.prefix() as usize) << shift;
        first..first + (1 << shift)
    }

    /// Makes all directory entries whose index begins with the bucket's prefix refer to the bucket at `index`.
    fn point_at(&mut self, index: usize) {
        let range = self.directory_range(&self.buckets[index]);
        if self.depth > 0 {
            self.directory[range].fill(index as u32);
        }
    }

    #[cold]
    fn divide(&mut self, index: usize) {
        let bucket = &mut self.buckets[index];
        if bucket.depth() == self.depth {
            self.depth += 1;
            self.deepest = 0;
            let old = std::mem::take(&mut self.directory);
            self.directory = match old[..] {
                [] => vec![index as u32; 2],
                _ => old.iter().flat_map(|&to| [to, to]).collect(),
            };
        }
        self.slots_bytes -= bucket.table.slots_bytes();
        let other = bucket.divide(self.hasher);
        self.slots_bytes += bucket.table.slots_bytes() + other.table.slots_bytes();
        if bucket.depth() == self.depth {
            self.deepest += 2;
        }
        self.buckets.push(other);
        self.point_at(self.buckets.len() - 1);
    }

    /// Unites the bucket at `index`, which must not be the only one, with its other half if both are small.
    fn unite_if_small(&mut self, index: usize) {
        let bucket = &self.buckets[index];
        let other_prefix = bucket.prefix() ^ 1;
        let other_index = self.directory[(other_prefix as usize) << (self.depth - bucket.depth())] as usize;
        let other = &self.buckets[other_index];
        if other.depth() == bucket.depth() && bucket.table.len() + other.table.len() <= UNION_LEN_MAX {
            self.unite(index.min(other_index), index.max(other_index));
        }
    }

    #[cold]
    fn unite(&mut self, index: usize, other_index: usize) {
        let other = self.buckets.swap_remove(other_index);
        let bucket = std::mem::take(&mut self.buckets[index]);
        if bucket.depth() == self.depth {
            self.deepest -= 2;
        }
        self.slots_bytes -= bucket.table.slots_bytes() + other.table.slots_bytes();
        let union = bucket.unite(other);
        self.slots_bytes += union.table.slots_bytes();
        self.buckets[index] = union;
        self.point_at(index);
        if other_index < self.buckets.len() {
            self.point_at(other_index);
        }
        if self.deepest == 0 {
            self.halve_directory();
        }
    }

    /// Shortens the directory to the depth of the deepest bucket. O(buckets + directory), but only after all deepest
    /// buckets were united.
    fn halve_directory(&mut self) {
        while self.deepest == 0 {
            self.depth -= 1;
            self.directory = if self.depth == 0 {
                Vec::new()
            } else {
                self.directory.iter().copied().step_by(2).collect()
            };
            self.deepest = self.buckets.iter().filter(|bucket| bucket.depth() == self.depth).count();
        }
        self.buckets.shrink_to(self.buckets.len() * 2);
    }

    /// Checks the invariants in the module's text. O(elements); for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let directory_len = if self.depth == 0 { 0 } else { 1 << self.depth };
        assert_eq!(self.directory.len(), directory_len, "the directory has a place for each prefix");
        let (mut len, mut entry_bytes, mut slots_bytes, mut deepest) = (0, 0, 0, 0);
        for (index, bucket) in self.buckets.iter().enumerate() {
            bucket.check_invariants(self.hasher);
            len += bucket.table.len();
            entry_bytes += bucket.table.iter().map(EntryRef::footprint_bytes).sum::<usize>();
            slots_bytes += bucket.table.slots_bytes();
            deepest += usize::from(bucket.depth() == self.depth);
            assert!(
                bucket.table.len() <= LEN_MAX || bucket.depth() == DEPTH_MAX,
                "a large bucket is divided"
            );
            if self.depth > 0 {
                let mut places = self.directory[self.directory_range(bucket)].iter();
                assert!(places.all(|&to| to as usize == index), "the directory leads to the bucket");
            }
        }
        assert_eq!((len, entry_bytes), (self.len, self.entry_bytes), "the accounts are exact");
        assert_eq!((slots_bytes, deepest), (self.slots_bytes, self.deepest), "the accounts are exact");
        assert!(self.deepest > 0 || self.buckets.is_empty(), "the directory is as deep as a bucket");
        // Overlaps or gaps of prefixes would change this sum.
        let covered: f64 = self.buckets.iter().map(|bucket| 0.5f64.powi(bucket.depth() as i32)).sum();
        assert!(self.buckets.is_empty() || (covered - 1.0).abs() < f64::EPSILON, "every hash has a bucket");
    }
}
