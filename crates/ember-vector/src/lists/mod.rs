//! Vectors in lists, each around a centroid: a search scans the lists with the nearest centroids.
//!
//! ```text
//! ends     row of a list + 1   its first and its last chunk; row 0 is that of vectors that are in no list yet
//! chunks   row of a chunk      list + 1 | previous chunk | next chunk | count | slots, up to the chunk's capacity
//! rows     rows of a chunk     the vectors of its slots, contiguous
//! places   row of a slot       the index of its vector in `rows`
//! ```
//!
//! So a search reads the vectors of a list contiguously. Vectors that are placed together, by a training or from a
//! file, are placed list by list, so that the chunks of a list are adjacent, too.
//!
//! Only the last chunk of a list has free space: the last slot of that chunk moves into the place of a slot removed
//! elsewhere. Chunks have no gaps: the last chunk moves into the place of a removed one. So each change modifies only a
//! few rows, however long a list is.
//!
//! The list of a vector is chosen by the distance from the centroids, in 32-bit floats; with [`Metric::Cosine`] vectors
//! and centroids are normalized for that. A search by inner product selects centroids by the largest product, because a
//! centroid is the mean of its vectors, so its product is the mean of theirs.
//!
//! Invariants ([`Lists::check`]): a slot is in one list, or in none while it is pending; only last chunks have free
//! space, and no chunk is empty.

pub(crate) mod training;

use crate::arena::{Account, ByteRows, Rows, VECTOR_BLOCK_BYTES};
use crate::config::{LISTS_MAX, Metric, Scalar};
use crate::graph::NONE;
use crate::kernels::{Kernel, Measure, prefetch};
use crate::search::{SCANNED_AT_ONCE, key};

/// Indexes of the fields in a row of `ends`.
const FIRST: usize = 0;
const LAST: usize = 1;

/// Indexes of the fields in a row of `chunks`.
const LIST: usize = 0;
const BEFORE: usize = 1;
const AFTER: usize = 2;
const COUNT: usize = 3;
const SLOTS: usize = 4;

/// The approximate size of a chunk's vectors in bytes, within the bounds below. On average half a chunk of each list is
/// empty.
const CHUNK_BYTES: usize = 2 * 1024;
const CHUNK_SLOTS_MIN: usize = 8;
const CHUNK_SLOTS_MAX: usize = 16;

/// The maximum number of unused places, plus one number reserved for "none".
pub(crate) const PLACES_SPARE: usize = (LISTS_MAX + 2) * CHUNK_SLOTS_MAX;

/// The number of centroids that are compared with a vector before the results are read.
const COMPARED_AT_ONCE: usize = 64;

/// The list number of slots without a list.
const NOWHERE: u32 = 0;

/// The centroids of the lists.
#[derive(Clone, Debug)]
struct Centres {
    rows: ByteRows,
    count: usize,
    is_product: bool,
    squared_l2: Kernel,
    product: Kernel,
}

impl Centres {
    fn new(dim: usize, metric: Metric, account: Account) -> Centres {
        Centres {
            rows: ByteRows::new(dim * size_of::<f32>(), account),
            count: 0,
            is_product: metric == Metric::InnerProduct,
            squared_l2: Kernel::choose(Scalar::F32, Measure::SquaredL2),
            product: Kernel::choose(Scalar::F32, Measure::Dot),
        }
    }

    fn push(&mut self, centre: &[u8]) {
        self.rows.push(centre);
        self.count += 1;
    }

    /// Returns the squared distance between a vector and a centroid.
    fn distance(&self, floats: &[u8], list: usize) -> f32 {
        self.squared_l2.of(floats, self.rows.row(list))
    }

    /// Passes the result of a kernel for a vector and each centroid to `found_distance`.
    fn compare(&self, kernel: Kernel, floats: &[u8], mut found_distance: impl FnMut(u32, f32)) {
        let mut found = [0.0; COMPARED_AT_ONCE];
        let mut first = 0;
        while first < self.count {
            let rows = self.rows.run(first, COMPARED_AT_ONCE);
            let found = &mut found[..rows.len() / floats.len()];
            kernel.of_rows(floats, rows, floats.len(), &[], found);
            found.iter().zip(first as u32..).for_each(|(&found, list)| found_distance(list, found));
            first += found.len();
        }
    }

    /// Returns the nearest centroid. There is at least one.
    fn nearest(&self, floats: &[u8]) -> u32 {
        let mut nearest = (0, f32::INFINITY);
        self.compare(self.squared_l2, floats, |list, distance| {
            if distance < nearest.1 {
                nearest = (list, distance);
            }
        });
        nearest.0
    }
}

/// The lists of an index, and its vectors.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    centres: Centres,
    ends: Rows<u32>,
    chunks: Rows<u32>,
    rows: ByteRows,
    places: Rows<u32>,
    /// The capacity of a chunk in slots.
    chunk_slots: usize,
    /// A number that distinguishes these lists from those of another training.
    pub(crate) generation: u64,
    /// The number of vectors at the training.
    pub(crate) trained_len: usize,
}

impl Lists {
    fn new(dim: usize, metric: Metric, width: usize, account: Account) -> Lists {
        let chunk_slots =
            (CHUNK_BYTES / width).clamp(CHUNK_SLOTS_MIN, CHUNK_SLOTS_MAX).min(VECTOR_BLOCK_BYTES / width);
        let chunk_slots = 1 << chunk_slots.max(1).ilog2();
        let mut ends = Rows::new(2, account);
        ends.push();
        ends.row_mut(0).fill(NONE);
        Lists {
            centres: Centres::new(dim, metric, account),
            ends,
            chunks: Rows::new(SLOTS + chunk_slots, account),
            rows: ByteRows::in_runs(width, chunk_slots, account),
            places: Rows::new(1, account),
            chunk_slots,
            generation: training::next_token(),
            trained_len: 0,
        }
    }

    /// Creates empty lists around these centroids, rows of `dim` floats, for vectors with rows of `width` bytes. `None`
    /// if the centroids are invalid.
    pub(crate) fn around(
        centres: &[f32],
        (dim, width): (usize, usize),
        metric: Metric,
        trained_len: usize,
        account: Account,
    ) -> Option<Lists> {
        if centres.is_empty() || !centres.len().is_multiple_of(dim) || !centres.iter().all(|n| n.is_finite())
        {
            return None;
        }
        let mut lists = Lists { trained_len, ..Lists::new(dim, metric, width, account) };
        for centre in centres.chunks_exact(dim) {
            lists.push_list(&centre.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        }
        Some(lists)
    }

    fn push_list(&mut self, centre: &[u8]) {
        self.centres.push(centre);
        self.ends.push();
        self.ends.row_mut(self.centres.count).fill(NONE);
    }

    /// Returns the number of lists.
    pub(crate) fn count(&self) -> usize {
        self.centres.count
    }

    /// Returns the centroids, concatenated.
    pub(crate) fn centres(&self) -> Vec<f32> {
        let rows = (0..self.count()).flat_map(|list| self.centres.rows.row(list).as_chunks::<4>().0);
        rows.map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.centres.rows.bytes()
            + self.ends.bytes()
            + self.chunks.bytes()
            + self.rows.bytes()
            + self.places.bytes()
    }

    pub(crate) fn recounted_bytes(&self) -> usize {
        self.centres.rows.recounted_bytes()
            + self.ends.recounted_bytes()
            + self.chunks.recounted_bytes()
            + self.rows.recounted_bytes()
            + self.places.recounted_bytes()
    }

    /// Returns the number of slots.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// Returns the list that a slot is in.
    pub(crate) fn list_of(&self, slot: u32) -> Option<u32> {
        let (chunk, _) = self.place(slot);
        self.chunks.row(chunk as usize)[LIST].checked_sub(1)
    }

    /// Returns the row of a slot.
    #[inline]
    pub(crate) fn row(&self, slot: u32) -> &[u8] {
        self.rows.row(self.places.row(slot as usize)[0] as usize)
    }

    /// Returns the place of a slot: a chunk and an index in the chunk.
    fn place(&self, slot: u32) -> (u32, usize) {
        let place = self.places.row(slot as usize)[0] as usize;
        ((place / self.chunk_slots) as u32, place % self.chunk_slots)
    }

    /// Returns the row number of a place.
    fn at(&self, chunk: u32, place: usize) -> usize {
        chunk as usize * self.chunk_slots + place
    }

    /// Records that a slot is in a place.
    fn put(&mut self, slot: u32, chunk: u32, place: usize) {
        self.chunks.row_mut(chunk as usize)[SLOTS + place] = slot;
        self.places.row_mut(slot as usize)[0] = self.at(chunk, place) as u32;
    }

    /// Returns the list whose centroid is nearest to a vector.
    pub(crate) fn nearest(&self, floats: &[u8]) -> u32 {
        self.centres.nearest(floats)
    }

    /// Returns all lists with their distances from a query, as keys; the `most` nearest come first, in order.
    pub(crate) fn by_promise(&self, floats: &[u8], most: usize) -> Vec<u64> {
        let centres = &self.centres;
        let mut keys: Vec<u64> = Vec::with_capacity(self.count());
        if centres.is_product {
            centres.compare(centres.product, floats, |list, product| keys.push(key(-product, list)));
        } else {
            centres.compare(centres.squared_l2, floats, |list, distance| keys.push(key(distance, list)));
        }
        let most = most.min(keys.len());
        if most > 0 && most < keys.len() {
            keys.select_nth_unstable(most - 1);
        }
        keys[..most].sort_unstable();
        keys
    }

    /// Returns the vectors of a list, in parts: the first chunk of each part, and the rows of this and the following
    /// adjacent chunks. [`Lists::slot_at`] returns their slots.
    pub(crate) fn parts(&self, list: u32) -> impl Iterator<Item = (u32, &[u8])> + Clone {
        self.parts_from(self.ends.row(list as usize + 1)[FIRST])
    }

    /// Returns all vectors, in the form of [`Lists::parts`].
    pub(crate) fn all_parts(&self) -> impl Iterator<Item = (u32, &[u8])> + Clone {
        (0..self.ends.len()).flat_map(|ends| self.parts_from(self.ends.row(ends)[FIRST]))
    }

    fn parts_from(&self, mut next: u32) -> impl Iterator<Item = (u32, &[u8])> + Clone {
        std::iter::from_fn(move || {
            let first = (next != NONE).then_some(next)?;
            let at = self.at(first, 0);
            let chunk_slots = self.rows.run_len(at).min(SCANNED_AT_ONCE);
            let mut count = 0;
            loop {
                let chunk = next;
                let row = self.chunks.row(chunk as usize);
                count += row[COUNT] as usize;
                next = row[AFTER];
                // Adjacent full chunks of a list are joined to one part.
                let is_full = row[COUNT] as usize == self.chunk_slots;
                if !is_full || next != chunk + 1 || count + self.chunk_slots > chunk_slots {
                    break;
                }
            }
            if next != NONE {
                prefetch(self.chunks.row(next as usize));
            }
            Some((first, self.rows.run(at, count)))
        })
    }

    /// Returns the slot of a row in a part that begins at chunk `first`.
    #[inline]
    pub(crate) fn slot_at(&self, first: u32, at: usize) -> u32 {
        self.chunks.row(first as usize + at / self.chunk_slots)[SLOTS + at % self.chunk_slots]
    }

    /// Appends a slot with this row, in no list.
    pub(crate) fn push(&mut self, row: &[u8]) {
        self.places.push();
        let slot = self.places.len() - 1;
        let at = self.append(slot as u32, NOWHERE);
        self.rows.set(at, row);
    }

    /// Creates places for `slots` slots, each of which must then get a row ([`Lists::put_in`]).
    fn add_places(&mut self, slots: usize) {
        for slot in 0..slots {
            self.places.push();
            self.places.row_mut(slot)[0] = NONE;
        }
    }

    /// Puts a slot into a list; the slot is in no list, or has a place but no row yet.
    fn put_in(&mut self, slot: u32, list: u32, row: &[u8]) {
        if self.places.row(slot as usize)[0] == NONE {
            let at = self.append(slot, list + 1);
            self.rows.set(at, row);
        } else {
            self.insert(slot, list);
        }
    }

    /// Stores the vectors of `rows` in these lists, which must be empty; `list_of` contains the list of each slot.
    pub(crate) fn fill(&mut self, rows: &ByteRows, list_of: &[u32]) {
        self.add_places(list_of.len());
        let mut slots: Vec<u32> = (0..list_of.len() as u32).collect();
        slots.sort_by_key(|&slot| list_of[slot as usize]);
        for slot in slots {
            self.put_in(slot, list_of[slot as usize], rows.row(slot as usize));
        }
    }

    /// Replaces the row of a slot, in place.
    pub(crate) fn set(&mut self, slot: u32, row: &[u8]) {
        self.rows.set(self.places.row(slot as usize)[0] as usize, row);
    }

    /// Moves a slot that is in no list into `list`.
    pub(crate) fn insert(&mut self, slot: u32, list: u32) {
        self.move_to(slot, list + 1);
    }

    /// Removes a slot from its list; returns whether it was in one.
    pub(crate) fn take_out(&mut self, slot: u32) -> bool {
        let was_in_one = self.list_of(slot).is_some();
        if was_in_one {
            self.move_to(slot, NOWHERE);
        }
        was_in_one
    }

    fn move_to(&mut self, slot: u32, list: u32) {
        let (chunk, place) = self.place(slot);
        let to = self.append(slot, list);
        self.rows.copy(self.at(chunk, place), to);
        self.vacate(chunk, place);
    }

    /// Appends a slot to the last chunk of a list and returns the index for its row.
    fn append(&mut self, slot: u32, list: u32) -> usize {
        let last = self.ends.row(list as usize)[LAST];
        let has_free_slot =
            last != NONE && (self.chunks.row(last as usize)[COUNT] as usize) < self.chunk_slots;
        let chunk = if has_free_slot {
            last
        } else {
            let chunk = self.chunks.len() as u32;
            self.chunks.push();
            (0..self.chunk_slots).for_each(|_| self.rows.push_zeros());
            self.chunks.row_mut(chunk as usize)[..SLOTS].copy_from_slice(&[list, last, NONE, 0]);
            self.set_after(list, last, chunk);
            self.ends.row_mut(list as usize)[LAST] = chunk;
            chunk
        };
        let row = self.chunks.row_mut(chunk as usize);
        let place = row[COUNT] as usize;
        row[COUNT] += 1;
        self.put(slot, chunk, place);
        self.at(chunk, place)
    }

    /// Makes `chunk` the successor of the chunk `after` in a list; if `after` is `NONE`, the first chunk.
    fn set_after(&mut self, list: u32, chunk: u32, after: u32) {
        match chunk {
            NONE => self.ends.row_mut(list as usize)[FIRST] = after,
            chunk => self.chunks.row_mut(chunk as usize)[AFTER] = after,
        }
    }

    /// Fills the place of a slot that was moved or removed.
    fn vacate(&mut self, chunk: u32, place: usize) {
        let list = self.chunks.row(chunk as usize)[LIST];
        let last = self.ends.row(list as usize)[LAST];
        let row = self.chunks.row_mut(last as usize);
        row[COUNT] -= 1;
        let (left, before) = (row[COUNT] as usize, row[BEFORE]);
        let moved = row[SLOTS + left];
        if (last, left) != (chunk, place) {
            self.rows.copy(self.at(last, left), self.at(chunk, place));
            self.put(moved, chunk, place);
        }
        if left == 0 {
            self.ends.row_mut(list as usize)[LAST] = before;
            self.set_after(list, before, NONE);
            self.remove_chunk(last);
        }
    }

    /// Removes an unreferenced chunk; the last one moves into its place.
    fn remove_chunk(&mut self, chunk: u32) {
        let last = (self.chunks.len() - 1) as u32;
        if chunk != last {
            let row = self.chunks.row(last as usize).to_vec();
            self.set_after(row[LIST], row[BEFORE], chunk);
            match row[AFTER] {
                NONE => self.ends.row_mut(row[LIST] as usize)[LAST] = chunk,
                after => self.chunks.row_mut(after as usize)[BEFORE] = chunk,
            }
            self.chunks.copy(last as usize, chunk as usize);
            for (place, &slot) in row[SLOTS..][..row[COUNT] as usize].iter().enumerate() {
                self.rows.copy(self.at(last, place), self.at(chunk, place));
                self.put(slot, chunk, place);
            }
        }
        self.chunks.pop();
        (0..self.chunk_slots).for_each(|_| self.rows.pop());
    }

    /// Removes a slot; the last slot moves into its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) {
        let (chunk, place) = self.place(slot);
        let last = (self.places.len() - 1) as u32;
        self.vacate(chunk, place);
        if slot != last {
            let (chunk, place) = self.place(last);
            self.put(slot, chunk, place);
        }
        self.places.pop();
    }

    /// Checks the invariants; for tests.
    ///
    /// # Panics
    /// Panics if an invariant is violated.
    pub(crate) fn check(&self) {
        assert_eq!(self.ends.len(), self.count() + 1);
        assert_eq!(self.rows.len(), self.chunks.len() * self.chunk_slots);
        let (mut chunks, mut slots) = (0, 0);
        for list in 0..self.ends.len() {
            let (mut before, mut at) = (NONE, self.ends.row(list)[FIRST]);
            while at != NONE {
                let row = self.chunks.row(at as usize);
                let (count, after) = (row[COUNT] as usize, row[AFTER]);
                assert_eq!((row[LIST] as usize, row[BEFORE]), (list, before));
                assert!(
                    count == self.chunk_slots || after == NONE && count > 0,
                    "only last chunks have free space"
                );
                for (place, &slot) in row[SLOTS..][..count].iter().enumerate() {
                    assert_eq!(self.place(slot), (at, place), "a slot knows its place");
                }
                (chunks, slots) = (chunks + 1, slots + count);
                (before, at) = (at, after);
            }
            assert_eq!(self.ends.row(list)[LAST], before, "a list knows its last chunk");
        }
        assert_eq!(chunks, self.chunks.len(), "each chunk is of a list");
        assert_eq!(self.len(), slots, "each slot is in one chunk");
    }
}
