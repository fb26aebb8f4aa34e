//! Top-k sketches: the most frequent items of a stream (Yang et al., "HeavyKeeper: An Accurate Algorithm for Finding
//! Top-k Elephant Flows", 2018).
//!
//! A row of counters per hash function; a counter belongs to one item, and decays by chance when another item is added
//! to it. The items with the highest counts are in a heap, the lowest count first.
//!
//! Chance is a generator that is part of the value, so a replica and a replay of the journal make the same decisions.

use super::blocks::Blocks;
use super::{BYTES_MAX, TooLarge};
use crate::algorithms::murmur::murmur2;
use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::{buffer_bytes, size_class};
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The default number of counters per row.
pub const WIDTH_DEFAULT: u32 = 8;
/// The default number of rows.
pub const DEPTH_DEFAULT: u32 = 7;
/// The default probability with which a counter of 1 decays.
pub const DECAY_DEFAULT: f64 = 0.9;

/// The maximum number of items in the list: their places are allocated at once, up to 512 MiB.
pub const ITEMS_MAX: u32 = 1 << 24;

/// The maximum of an increment.
pub const INCREMENT_MAX: u32 = 100_000;

/// The bytes of a counter with the fingerprint of its item.
pub const COUNTER_BYTES: usize = 8;

/// The seed of the hash that is an item's fingerprint.
const FINGERPRINT_SEED: u32 = 1919;

/// An item of the list, or an empty place in it.
#[derive(Clone, Debug, Default)]
pub struct Place {
    /// The hash that identifies the item, together with its bytes.
    pub fingerprint: u32,
    /// The estimate of the item's count.
    pub count: u32,
    /// The bytes of the item; `None` in a place that never held one.
    pub item: Option<Box<[u8]>>,
}

#[derive(Clone, Debug)]
struct Rows {
    width: u32,
    depth: u32,
    decay: f64,
    /// The state of the generator.
    chance: u64,
    counters: Blocks,
    /// The items as a heap, the lowest count first.
    heap: Vec<Place>,
    /// The memory of the items' bytes.
    items_bytes: usize,
}

/// The value of a key that holds a top-k sketch. The empty value has no counters yet.
#[derive(Clone, Debug, Default)]
pub struct TopK(Option<Box<Rows>>);

/// The values of a sketch that was saved.
#[derive(Debug)]
pub struct Saved {
    /// The number of counters per row.
    pub width: u32,
    /// The number of rows.
    pub depth: u32,
    /// The probability with which a counter of 1 decays.
    pub decay: f64,
    /// The state of the generator.
    pub chance: u64,
    /// The counters, row by row, each the fingerprint and the count.
    pub counters: Blocks,
    /// The items as a heap.
    pub heap: Vec<Place>,
}

impl Rows {
    fn counter(&self, at: usize) -> (u32, u32) {
        let bytes: [u8; COUNTER_BYTES] = std::array::from_fn(|index| self.counters.get(at + index));
        let [fingerprint, count] =
            [0, 4].map(|at| u32::from_le_bytes(std::array::from_fn(|index| bytes[at + index])));
        (fingerprint, count)
    }

    fn set_counter(&mut self, at: usize, fingerprint: u32, count: u32) {
        let mut bytes = [0; COUNTER_BYTES];
        bytes[..4].copy_from_slice(&fingerprint.to_le_bytes());
        bytes[4..].copy_from_slice(&count.to_le_bytes());
        self.counters.write(at, &bytes);
    }

    /// Returns the offset of an item's counter in a row, whose number is the seed of its hash.
    fn offset(&self, item: &[u8], row: u32) -> usize {
        let column = murmur2(item, row) % self.width;
        (row as usize * self.width as usize + column as usize) * COUNTER_BYTES
    }

    fn find(&self, fingerprint: u32, item: &[u8]) -> Option<usize> {
        let is_item = |place: &Place| {
            place.fingerprint == fingerprint && place.item.as_deref().unwrap_or_default() == item
        };
        self.heap.iter().rposition(is_item)
    }

    /// Decreases a count `times` times, each time with the probability `decay^count`, until it is 0. Returns the count
    /// and, if it became 0, how many times were left, including the last one.
    fn decay(&mut self, mut count: u32, mut times: u32) -> (u32, Option<u32>) {
        let mut random = Random::seeded(self.chance);
        let taken = loop {
            // The number of attempts up to the next decrease follows a geometric distribution.
            let probability = self.decay.powf(count.into());
            let attempts = if probability >= 1.0 {
                1.0
            } else {
                (1.0 + ((1.0 - random.unit()).ln() / (-probability).ln_1p()).floor()).max(1.0)
            };
            if attempts.is_nan() || attempts > times.into() {
                break None;
            }
            times -= attempts as u32 - 1;
            count -= 1;
            if count == 0 {
                break Some(times);
            }
            times -= 1;
            if times == 0 {
                break None;
            }
        };
        self.chance = random.next_u64();
        (count, taken)
    }

    /// Moves the place at `start` down to where no count below it is lower.
    fn sift_down(&mut self, start: usize) {
        let heap = &mut self.heap;
        let len = heap.len();
        let lower_child = |heap: &[Place], of: usize| {
            let child = 2 * of + 1;
            if child + 1 < len && heap[child].count > heap[child + 1].count { child + 1 } else { child }
        };
        let mut at = start;
        let mut is_first = true;
        while 2 * at + 1 < len {
            let child = lower_child(heap, at);
            // Equal counts change places at the first step only, as in RedisBloom.
            let stays = if is_first {
                heap[child].count > heap[at].count
            } else {
                heap[child].count >= heap[at].count
            };
            if stays {
                break;
            }
            heap.swap(at, child);
            at = child;
            is_first = false;
        }
    }
}

impl TopK {
    fn rows(&self) -> &Rows {
        self.0.as_deref().expect("a sketch that is kept has counters")
    }

    /// Returns an empty sketch of the `items` most frequent items. No number may be 0.
    ///
    /// # Errors
    /// Returns an error if the sketch would be too large.
    pub fn new(items: u32, width: u32, depth: u32, decay: f64) -> Result<TopK, TooLarge> {
        let bytes = u64::from(width)
            .checked_mul(depth.into())
            .and_then(|count| count.checked_mul(COUNTER_BYTES as u64));
        let bytes = bytes.filter(|&bytes| bytes <= BYTES_MAX as u64).ok_or(TooLarge)?;
        if items > ITEMS_MAX {
            return Err(TooLarge);
        }
        let counters = Blocks::zeros(bytes as usize);
        let heap = vec![Place::default(); items as usize];
        let chance = u64::from(items) << 32 ^ u64::from(width) << 16 ^ u64::from(depth);
        Ok(TopK::of(Saved { width, depth, decay, chance, counters, heap }))
    }

    /// Returns the bytes of the list's places.
    pub fn place_bytes(items: u32) -> usize {
        items as usize * size_of::<Place>()
    }

    fn of(saved: Saved) -> TopK {
        let Saved { width, depth, decay, chance, counters, heap } = saved;
        let items_bytes = heap.iter().map(bytes_of).sum();
        TopK(Some(Box::new(Rows { width, depth, decay, chance, counters, heap, items_bytes })))
    }

    /// Returns the sketch with these values; `None` if they contradict each other.
    pub fn from_saved(saved: Saved) -> Option<TopK> {
        let bytes =
            u64::from(saved.width).checked_mul(saved.depth.into())?.checked_mul(COUNTER_BYTES as u64)?;
        let is_valid = bytes > 0
            && bytes == saved.counters.len() as u64
            && (1..=ITEMS_MAX as usize).contains(&saved.heap.len())
            && saved.decay > 0.0
            && saved.decay <= 1.0;
        is_valid.then(|| TopK::of(saved))
    }

    /// Returns the maximum number of items in the list.
    pub fn items_max(&self) -> usize {
        self.rows().heap.len()
    }

    /// Returns the number of counters per row.
    pub fn width(&self) -> u32 {
        self.rows().width
    }

    /// Returns the number of rows.
    pub fn depth(&self) -> u32 {
        self.rows().depth
    }

    /// Returns the probability with which a counter of 1 decays.
    pub fn decay(&self) -> f64 {
        self.rows().decay
    }

    /// Returns the state of the generator.
    pub fn chance(&self) -> u64 {
        self.rows().chance
    }

    /// Returns the counters, row by row.
    pub fn counters(&self) -> &Blocks {
        &self.rows().counters
    }

    /// Returns the items as a heap.
    pub fn heap(&self) -> &[Place] {
        &self.rows().heap
    }

    /// Increases the count of an item; returns the item that it has displaced from the list. O(depth · increment +
    /// items).
    pub fn add(&mut self, item: &[u8], increment: u32) -> Option<Box<[u8]>> {
        let rows = self.0.as_deref_mut().expect("a sketch that is kept has counters");
        let fingerprint = murmur2(item, FINGERPRINT_SEED);
        let mut highest = 0;
        for row in 0..rows.depth {
            let at = rows.offset(item, row);
            let (owner, count) = rows.counter(at);
            if count == 0 {
                rows.set_counter(at, fingerprint, increment);
                highest = highest.max(increment);
            } else if owner == fingerprint {
                let count = count.wrapping_add(increment);
                rows.set_counter(at, fingerprint, count);
                highest = highest.max(count);
            } else if increment > 0 {
                match rows.decay(count, increment) {
                    (_, Some(left)) => {
                        rows.set_counter(at, fingerprint, left);
                        highest = highest.max(left);
                    }
                    (count, None) => rows.set_counter(at, owner, count),
                }
            }
        }
        if highest < rows.heap[0].count {
            return None;
        }
        if let Some(at) = rows.find(fingerprint, item) {
            // The count may be lower than before, because it may have decayed.
            rows.heap[at].count = highest;
            rows.sift_down(at);
            return None;
        }
        let place = Place { fingerprint, count: highest, item: Some(item.into()) };
        rows.items_bytes += bytes_of(&place);
        let expelled = std::mem::replace(&mut rows.heap[0], place);
        rows.items_bytes -= bytes_of(&expelled);
        rows.sift_down(0);
        expelled.item
    }

    /// Returns whether an item is in the list. O(items).
    pub fn contains(&self, item: &[u8]) -> bool {
        self.rows().find(murmur2(item, FINGERPRINT_SEED), item).is_some()
    }

    /// Returns an estimate of the count of an item. O(depth + items).
    pub fn count(&self, item: &[u8]) -> u32 {
        let rows = self.rows();
        let fingerprint = murmur2(item, FINGERPRINT_SEED);
        let is_listed = rows.find(fingerprint, item).is_some();
        let lowest = rows.heap[0].count;
        let counts = (0..rows.depth).map(|row| rows.counter(rows.offset(item, row)));
        let own = counts.filter(|&(owner, count)| owner == fingerprint && (!is_listed || count >= lowest));
        own.map(|(_, count)| count).max().unwrap_or(0)
    }

    /// Returns the items with their counts, the highest count first. O(items · log items).
    pub fn list(&self) -> Vec<(&[u8], u32)> {
        let listed = self.rows().heap.iter().filter(|place| place.count > 0);
        let mut list: Vec<(&[u8], u32)> =
            listed.map(|place| (place.item.as_deref().unwrap_or_default(), place.count)).collect();
        list.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        list
    }
}

/// Returns the memory of an item's bytes.
fn bytes_of(place: &Place) -> usize {
    place.item.as_ref().filter(|item| !item.is_empty()).map_or(0, |item| size_class(item.len()))
}

impl Collection for TopK {
    const TYPE: ValueType = ValueType::TopK;

    fn encoding_name(&self) -> &'static str {
        "raw"
    }

    fn memory_bytes(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| {
            size_class(size_of::<Rows>())
                + rows.counters.memory_bytes()
                + buffer_bytes(&rows.heap)
                + rows.items_bytes
        })
    }

    /// Returns the maximum number of items in the list.
    fn len(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| rows.heap.len())
    }

    fn is_vacant(&self) -> bool {
        self.0.is_none()
    }

    fn free_effort(&self) -> usize {
        self.0.as_deref().map_or(0, |rows| 1 + rows.counters.count() + rows.heap.len())
    }

    fn move_inside(&mut self, from: u64, most: usize, mover: &mut Mover<'_>) -> u64 {
        let Some(rows) = self.0.as_deref_mut() else { return 0 };
        if from == 0 {
            mover.move_vec(&mut rows.heap);
        }
        let start = usize::try_from(from).unwrap_or(usize::MAX).min(rows.heap.len());
        let end = start.saturating_add(most).min(rows.heap.len());
        for place in &mut rows.heap[start..end] {
            place.item.iter_mut().for_each(|item| mover.move_bytes(item));
        }
        if end == rows.heap.len() { 0 } else { end as u64 }
    }

    fn check_invariants(&self) {
        let Some(rows) = &self.0 else { return };
        assert_eq!(rows.counters.len(), rows.width as usize * rows.depth as usize * COUNTER_BYTES);
        assert_eq!(rows.items_bytes, rows.heap.iter().map(bytes_of).sum::<usize>());
        rows.counters.check_invariants();
    }
}
