//! Working memory and results of searches.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of distances that a scan computes before it evaluates them.
pub(crate) const SCANNED_AT_ONCE: usize = 64;

/// A search result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hit {
    /// The vector's slot.
    pub slot: u32,
    /// The vector's distance from the query: with cosine 0 to 2; with L2 the squared distance; with the inner product
    /// the negative product.
    pub distance: f32,
}

/// Combines a distance and a slot into one number that sorts by distance, NaN last, and then by slot.
pub(crate) fn key(distance: f32, slot: u32) -> u64 {
    let bits = if distance.is_nan() { f32::INFINITY } else { distance }.to_bits();
    let ordered = if bits >> 31 == 1 { !bits } else { bits | 1 << 31 };
    u64::from(ordered) << 32 | u64::from(slot)
}

/// Splits a key into distance and slot.
pub(crate) fn hit(key: u64) -> Hit {
    let ordered = (key >> 32) as u32;
    let bits = if ordered >> 31 == 1 { ordered & !(1 << 31) } else { !ordered };
    Hit { slot: key as u32, distance: f32::from_bits(bits) }
}

/// Adds a key to the heap of the `most` smallest, if it is one of them.
#[inline]
pub(crate) fn offer(nearest: &mut BinaryHeap<u64>, key: u64, most: usize) {
    if nearest.len() < most {
        nearest.push(key);
    } else if let Some(mut farthest) = nearest.peek_mut()
        && key < *farthest
    {
        *farthest = key;
    }
}

/// Returns the exclusive upper limit for a key to be one of the `most` smallest.
#[inline]
pub(crate) fn farthest(nearest: &BinaryHeap<u64>, most: usize) -> u64 {
    nearest.peek().copied().filter(|_| nearest.len() >= most).unwrap_or(u64::MAX)
}

/// The nearest nodes so far, nearest first, and which of them were visited. In a search that accepts all nodes it
/// serves as candidates and result: moving the part of an array after a new node takes less time than maintaining two
/// heaps.
#[derive(Debug, Default)]
pub(crate) struct Pool {
    keys: Vec<u64>,
    /// Whether the node at the same index in `keys` was visited.
    were_visited: Vec<bool>,
    /// All nodes before this index were visited.
    next: usize,
}

impl Pool {
    pub(crate) fn clear(&mut self) {
        self.keys.clear();
        self.were_visited.clear();
        self.next = 0;
    }

    /// Returns the exclusive upper limit for a key to be one of the `most` nearest.
    #[inline]
    pub(crate) fn limit(&self, most: usize) -> u64 {
        if self.keys.len() < most { u64::MAX } else { self.keys[most - 1] }
    }

    /// Adds a key below the limit; returns whether it is the next one to visit.
    #[inline]
    pub(crate) fn take(&mut self, key: u64, most: usize) -> bool {
        if self.keys.len() == most {
            self.keys.pop();
            self.were_visited.pop();
        }
        let at = self.keys.partition_point(|&other| other < key);
        self.keys.insert(at, key);
        self.were_visited.insert(at, false);
        let is_next = at <= self.next;
        if is_next {
            self.next = at;
        }
        is_next
    }

    /// Marks the nearest unvisited node as visited and returns its key, and the slot of the node to visit next if no
    /// nearer node is added.
    #[inline]
    pub(crate) fn visit_nearest(&mut self) -> Option<(u64, Option<u32>)> {
        let at = self.waiting(self.next)?;
        self.were_visited[at] = true;
        let next = self.waiting(at + 1);
        self.next = next.unwrap_or(self.keys.len());
        Some((self.keys[at], next.map(|next| self.keys[next] as u32)))
    }

    /// Returns the index of the first unvisited node from `from` on.
    #[inline]
    fn waiting(&self, from: usize) -> Option<usize> {
        let ahead = self.were_visited.get(from..)?.iter().position(|was_visited| !was_visited)?;
        Some(from + ahead)
    }
}

/// The working memory of a search. It can be reused for any number of searches, of any index.
#[derive(Debug, Default)]
pub struct Scratch {
    /// A bit for each visited slot.
    seen: Vec<u64>,
    /// The words of `seen` that are not zero.
    seen_words: Vec<u32>,
    /// Candidates; the nearest is at the top.
    pub(crate) candidates: BinaryHeap<Reverse<u64>>,
    /// The nearest nodes so far; the farthest of them is at the top.
    pub(crate) nearest: BinaryHeap<u64>,
    /// Candidates and result in one, if all nodes are accepted.
    pub(crate) pool: Pool,
    /// The unvisited neighbors of one node.
    pub(crate) batch: Vec<u32>,
    /// The result, nearest first.
    pub(crate) hits: Vec<Hit>,
}

impl Scratch {
    /// Marks all of `slots` slots as unvisited. O(visited before), or O(slots / 64) when the number of slots reaches a
    /// new maximum.
    pub(crate) fn begin(&mut self, slots: usize) {
        for word in self.seen_words.drain(..) {
            self.seen[word as usize] = 0;
        }
        if self.seen.len() * 64 < slots {
            self.seen.resize(slots.div_ceil(64), 0);
        }
        self.candidates.clear();
        self.nearest.clear();
    }

    /// Marks a slot as visited; returns whether it was unvisited.
    #[inline]
    pub(crate) fn see(&mut self, slot: u32) -> bool {
        let (word, bit) = (slot / 64, 1 << (slot % 64));
        let seen = &mut self.seen[word as usize];
        if *seen & bit != 0 {
            return false;
        }
        if *seen == 0 {
            self.seen_words.push(word);
        }
        *seen |= bit;
        true
    }

    /// Marks slots as visited, and writes the slots that were unvisited to `new`.
    #[inline]
    pub(crate) fn see_all(&mut self, slots: impl Iterator<Item = u32>, new: &mut Vec<u32>) {
        new.clear();
        for slot in slots {
            let (word, bit) = (slot / 64, 1 << (slot % 64));
            let seen = &mut self.seen[word as usize];
            if *seen == 0 {
                self.seen_words.push(word);
            }
            // The processor cannot predict which nodes are unvisited, so this code does not branch on it.
            let was_seen = usize::from(*seen & bit != 0);
            *seen |= bit;
            new.push(slot);
            new.truncate(new.len() - was_seen);
        }
    }

    /// Adds a key to the `most` nearest, if it is one of them.
    #[inline]
    pub(crate) fn offer(&mut self, key: u64, most: usize) {
        offer(&mut self.nearest, key, most);
    }

    /// Returns the distance beyond which a vector is not one of the `most` nearest.
    #[inline]
    pub(crate) fn limit(&self, most: usize) -> f32 {
        match farthest(&self.nearest, most) {
            u64::MAX => f32::INFINITY,
            farthest => hit(farthest).distance,
        }
    }

    /// Moves the pool's nodes to the heap `nearest`.
    pub(crate) fn drain_pool(&mut self) {
        let mut keys = std::mem::take(&mut self.nearest).into_vec();
        keys.clear();
        // In this order the keys are a valid heap already.
        keys.extend(self.pool.keys.iter().rev());
        self.nearest = BinaryHeap::from(keys);
    }

    /// Moves at most `most` of the nearest nodes to `hits`, the nearest first.
    pub(crate) fn finish(&mut self, most: usize) {
        self.hits.clear();
        let mut keys = std::mem::take(&mut self.nearest).into_vec();
        keys.sort_unstable();
        self.hits.extend(keys.iter().take(most).map(|&key| hit(key)));
        keys.clear();
        // Reuses the allocation for the next search.
        self.nearest = BinaryHeap::from(keys);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_the_order_of_distances() {
        let distances = [f32::NEG_INFINITY, -2.5, -1e-9, -0.0, 0.0, 1e-9, 1.0, 1e30, f32::INFINITY];
        let keys: Vec<u64> = distances.iter().map(|&distance| key(distance, 7)).collect();
        assert!(keys.is_sorted());
        for (key, distance) in keys.iter().zip(distances) {
            assert_eq!(hit(*key), Hit { slot: 7, distance });
        }
        assert_eq!(hit(key(f32::NAN, 1)).distance, f32::INFINITY);
        assert!(key(1.0, 1) < key(1.0, 2));
    }

    #[test]
    fn a_pool_keeps_the_nearest_nodes_and_expands_each_once() {
        let mut pool = Pool::default();
        let mut state = 1_u64;
        for round in 0..100 {
            let most = 1 + round % 9;
            pool.clear();
            let (mut nearest, mut looked_at) = (Vec::new(), Vec::new());
            for step in 0..60 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                let key = state >> 50 << 8 | step;
                if key < pool.limit(most) {
                    let before = nearest.iter().find(|key| !looked_at.contains(*key)).copied();
                    assert_eq!(pool.take(key, most), before.is_none_or(|before| key < before));
                    nearest.push(key);
                    nearest.sort_unstable();
                    nearest.truncate(most);
                }
                assert_eq!(pool.keys, nearest);
                if step % 3 == 0 {
                    let waiting = nearest.iter().find(|key| !looked_at.contains(*key)).copied();
                    assert_eq!(pool.visit_nearest().map(|(key, _)| key), waiting);
                    looked_at.extend(waiting);
                }
            }
            while let Some((key, _)) = pool.visit_nearest() {
                assert!(!looked_at.contains(&key));
                looked_at.push(key);
            }
            assert!(nearest.iter().all(|key| looked_at.contains(key)));
        }
    }

    #[test]
    fn visited_marks_are_reset_at_the_next_search() {
        let mut scratch = Scratch::default();
        scratch.begin(100);
        assert!(scratch.see(99) && scratch.see(98) && !scratch.see(99));
        scratch.begin(1000);
        assert!(scratch.see(99) && scratch.see(999));
        let mut new = vec![7];
        scratch.see_all([99, 5, 5, 999, 64, 6].into_iter(), &mut new);
        assert_eq!(new, [5, 64, 6]);
        assert!(!scratch.see(64) && scratch.see(65));
    }
}
