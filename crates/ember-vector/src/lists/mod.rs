//! Vectors in lists, each around a centre: a search looks at the lists whose centres are nearest.
//!
//! ```text
//! heads    row of a list     its first chunk
//! chunks   row of a chunk    list | chunk before | chunk behind | count | slots, 28 of them
//! places   row of a slot     the chunk that it is in
//! ```
//!
//! Only the first chunk of a list has room: what is removed elsewhere is replaced by its last slot. Rows are without gaps: a
//! removed chunk is filled by the last. So each change touches a few rows, however long a list is.
//!
//! Which list a vector is in is decided by the distance from the centres, in full floats; with [`Metric::Cosine`] vectors
//! and centres are of length 1 for that. A search by inner product asks for the largest product with a centre, which is the
//! mean of its vectors, so that of the product with these.
//!
//! Invariants ([`Lists::check`]): a slot is in one list or in none, and then it is pending; only first chunks have room, and
//! no chunk is empty.

pub(crate) mod training;

use crate::arena::{Account, ByteRows, Rows};
use crate::config::{Metric, Scalar};
use crate::graph::NONE;
use crate::kernels::{Kernel, Measure, prefetch};
use crate::search::key;

const LIST: usize = 0;
const BEFORE: usize = 1;
const BEHIND: usize = 2;
const COUNT: usize = 3;
const SLOTS: usize = 4;

/// Slots of a chunk, which is two cache lines then.
const CHUNK_SLOTS: usize = 28;

/// How many vectors ahead the processor is asked to fetch.
pub(crate) const AHEAD: usize = 4;

/// What lists are around.
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

    /// The squared distance of a vector from a centre.
    fn distance(&self, floats: &[u8], list: usize) -> f32 {
        self.squared_l2.of(floats, self.rows.row(list))
    }

    /// The nearest centre and the squared distance from it. There is one at least.
    fn nearest(&self, floats: &[u8]) -> (u32, f32) {
        let mut nearest = (0, f32::INFINITY);
        for list in 0..self.count {
            let distance = self.distance(floats, list);
            if distance < nearest.1 {
                nearest = (list as u32, distance);
            }
        }
        nearest
    }
}

/// The lists of an index.
#[derive(Clone, Debug)]
pub(crate) struct Lists {
    centres: Centres,
    heads: Rows<u32>,
    chunks: Rows<u32>,
    places: Rows<u32>,
    /// Tells these lists from those of another training.
    pub(crate) generation: u64,
    /// How many vectors there were at the training.
    pub(crate) trained_len: usize,
}

impl Lists {
    fn new(dim: usize, metric: Metric, account: Account) -> Lists {
        Lists {
            centres: Centres::new(dim, metric, account),
            heads: Rows::new(1, account),
            chunks: Rows::new(SLOTS + CHUNK_SLOTS, account),
            places: Rows::new(1, account),
            generation: training::next_token(),
            trained_len: 0,
        }
    }

    /// Lists around these centres, rows of `dim` floats, without vectors. `None` if they are no rows.
    pub(crate) fn around(
        centres: &[f32],
        dim: usize,
        metric: Metric,
        trained_len: usize,
        account: Account,
    ) -> Option<Lists> {
        if centres.is_empty() || !centres.len().is_multiple_of(dim) || !centres.iter().all(|n| n.is_finite())
        {
            return None;
        }
        let mut lists = Lists { trained_len, ..Lists::new(dim, metric, account) };
        for centre in centres.chunks_exact(dim) {
            lists.push_list(&centre.iter().flat_map(|number| number.to_le_bytes()).collect::<Vec<u8>>());
        }
        Some(lists)
    }

    fn push_list(&mut self, centre: &[u8]) {
        self.centres.push(centre);
        self.heads.push();
        self.heads.row_mut(self.centres.count - 1)[0] = NONE;
    }

    /// How many lists there are.
    pub(crate) fn count(&self) -> usize {
        self.centres.count
    }

    /// The centres, row behind row.
    pub(crate) fn centres(&self) -> Vec<f32> {
        let rows = (0..self.count()).flat_map(|list| self.centres.rows.row(list).as_chunks::<4>().0);
        rows.map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.centres.rows.bytes() + self.heads.bytes() + self.chunks.bytes() + self.places.bytes()
    }

    pub(crate) fn recounted_bytes(&self) -> usize {
        self.centres.rows.recounted_bytes()
            + self.heads.recounted_bytes()
            + self.chunks.recounted_bytes()
            + self.places.recounted_bytes()
    }

    /// How many slots there are.
    pub(crate) fn len(&self) -> usize {
        self.places.len()
    }

    /// The list that a slot is in.
    pub(crate) fn list_of(&self, slot: u32) -> Option<u32> {
        match self.places.row(slot as usize)[0] {
            NONE => None,
            chunk => Some(self.chunks.row(chunk as usize)[LIST]),
        }
    }

    /// The list whose centre is nearest to a vector.
    pub(crate) fn nearest(&self, floats: &[u8]) -> u32 {
        self.centres.nearest(floats).0
    }

    /// All lists, by how promising they are for a query: the first `most` are in order.
    pub(crate) fn by_promise(&self, floats: &[u8], most: usize) -> Vec<u64> {
        let Centres { rows, is_product, squared_l2, product, .. } = &self.centres;
        let distance = |list: usize| {
            if *is_product {
                -product.of(floats, rows.row(list))
            } else {
                squared_l2.of(floats, rows.row(list))
            }
        };
        let mut keys: Vec<u64> = (0..self.count()).map(|list| key(distance(list), list as u32)).collect();
        let most = most.min(keys.len());
        if most > 0 && most < keys.len() {
            keys.select_nth_unstable(most - 1);
        }
        keys[..most].sort_unstable();
        keys
    }

    /// The slots of a list, in parts.
    pub(crate) fn slots_of(&self, list: u32) -> impl Iterator<Item = &[u32]> {
        let mut next = self.heads.row(list as usize)[0];
        std::iter::from_fn(move || {
            let row = (next != NONE).then(|| self.chunks.row(next as usize))?;
            next = row[BEHIND];
            if next != NONE {
                prefetch(self.chunks.row(next as usize));
            }
            Some(&row[SLOTS..][..row[COUNT] as usize])
        })
    }

    /// Appends a slot that is in no list.
    pub(crate) fn push(&mut self) {
        self.places.push();
        let slot = self.places.len() - 1;
        self.places.row_mut(slot)[0] = NONE;
    }

    /// Puts a slot that is in no list into one.
    pub(crate) fn insert(&mut self, slot: u32, list: u32) {
        let first = self.heads.row(list as usize)[0];
        let has_room = first != NONE && (self.chunks.row(first as usize)[COUNT] as usize) < CHUNK_SLOTS;
        let chunk = if has_room {
            first
        } else {
            let chunk = self.chunks.len() as u32;
            self.chunks.push();
            self.chunks.row_mut(chunk as usize)[..SLOTS].copy_from_slice(&[list, NONE, first, 0]);
            if first != NONE {
                self.chunks.row_mut(first as usize)[BEFORE] = chunk;
            }
            self.heads.row_mut(list as usize)[0] = chunk;
            chunk
        };
        let row = self.chunks.row_mut(chunk as usize);
        row[SLOTS + row[COUNT] as usize] = slot;
        row[COUNT] += 1;
        self.places.row_mut(slot as usize)[0] = chunk;
    }

    /// Takes a slot out of its list; whether it was in one.
    pub(crate) fn take_out(&mut self, slot: u32) -> bool {
        let chunk = std::mem::replace(&mut self.places.row_mut(slot as usize)[0], NONE);
        if chunk == NONE {
            return false;
        }
        let list = self.chunks.row(chunk as usize)[LIST] as usize;
        let first = self.heads.row(list)[0];
        let row = self.chunks.row_mut(first as usize);
        row[COUNT] -= 1;
        let (left, last) = (row[COUNT], row[SLOTS + row[COUNT] as usize]);
        if last != slot {
            self.put(chunk, slot, last);
            self.places.row_mut(last as usize)[0] = chunk;
        }
        if left == 0 {
            let behind = self.chunks.row(first as usize)[BEHIND];
            self.heads.row_mut(list)[0] = behind;
            if behind != NONE {
                self.chunks.row_mut(behind as usize)[BEFORE] = NONE;
            }
            self.remove_chunk(first);
        }
        true
    }

    /// Writes another slot in the place of one.
    fn put(&mut self, chunk: u32, old: u32, new: u32) {
        let slots = &mut self.chunks.row_mut(chunk as usize)[SLOTS..];
        let at = slots.iter().position(|&slot| slot == old).expect("a slot is in its chunk");
        slots[at] = new;
    }

    /// Removes a chunk that nothing refers to; the last one takes its place.
    fn remove_chunk(&mut self, chunk: u32) {
        let last = (self.chunks.len() - 1) as u32;
        if chunk != last {
            let row = self.chunks.row(last as usize).to_vec();
            match row[BEFORE] {
                NONE => self.heads.row_mut(row[LIST] as usize)[0] = chunk,
                before => self.chunks.row_mut(before as usize)[BEHIND] = chunk,
            }
            if row[BEHIND] != NONE {
                self.chunks.row_mut(row[BEHIND] as usize)[BEFORE] = chunk;
            }
            for &slot in &row[SLOTS..][..row[COUNT] as usize] {
                self.places.row_mut(slot as usize)[0] = chunk;
            }
            self.chunks.copy(last as usize, chunk as usize);
        }
        self.chunks.pop();
    }

    /// Removes a slot; the last one takes its place.
    pub(crate) fn swap_remove(&mut self, slot: u32) {
        self.take_out(slot);
        let last = (self.places.len() - 1) as u32;
        if slot != last {
            let chunk = self.places.row(last as usize)[0];
            if chunk != NONE {
                self.put(chunk, last, slot);
            }
            self.places.row_mut(slot as usize)[0] = chunk;
        }
        self.places.pop();
    }

    /// Checks what must always hold; for tests.
    ///
    /// # Panics
    /// If something does not.
    pub(crate) fn check(&self) {
        assert_eq!(self.heads.len(), self.count());
        let (mut chunks, mut slots) = (0, 0);
        for list in 0..self.count() as u32 {
            let (mut before, mut at) = (NONE, self.heads.row(list as usize)[0]);
            while at != NONE {
                let row = self.chunks.row(at as usize);
                let count = row[COUNT] as usize;
                assert_eq!((row[LIST], row[BEFORE]), (list, before));
                assert!(count == CHUNK_SLOTS || before == NONE && count > 0, "only first chunks have room");
                for &slot in &row[SLOTS..][..count] {
                    assert_eq!(self.places.row(slot as usize)[0], at, "a slot knows its chunk");
                }
                (chunks, slots) = (chunks + 1, slots + count);
                (before, at) = (at, row[BEHIND]);
            }
        }
        assert_eq!(chunks, self.chunks.len(), "each chunk is of a list");
        let placed = (0..self.len()).filter(|&slot| self.places.row(slot)[0] != NONE);
        assert_eq!(placed.count(), slots, "each slot is in one chunk");
    }
}
