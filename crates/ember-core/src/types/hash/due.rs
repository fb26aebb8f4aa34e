//! The expiry index of the fields of a large hash: a heap of times and positions.
//!
//! An element is twelve bytes: a time, and the hash bits that lead to the field ([`Elements::position_of`]), never the
//! field itself. So a field that is removed, or whose expiry changes, leaves nothing dangling, only a stale element
//! that finds nothing when its time comes. When stale elements may outnumber the others, all elements are *checked*, a
//! few with each change, so that no change takes long: the table knows which fields still need an element and adds a
//! new one for each.
//!
//! The unchecked elements and all others are two binary heaps (Williams, "Algorithm 232: Heapsort", CACM 7(6), 1964).
//! Elements are removed for a check from the end of their heap, so that the rest is still a heap.
//!
//! [`Elements::position_of`]: crate::types::elements::Elements::position_of

use crate::memory::size_class;

/// The number of bits of a time in an element, and of a position.
const PART_BITS: u32 = 48;

/// The last time that an element can store. A field that expires later is examined at that time, and again after that.
const TIME_MAX_MS: i64 = (1 << PART_BITS) - 1;

/// The number of stale elements that are tolerated even if few fields have an expiry.
const BLOAT_MIN: usize = 64;

/// The number of rounds of checks that can be distinguished: the values that a field can record ([`Slot::set_clock`])
/// except 0, which new fields have.
///
/// [`Slot::set_clock`]: crate::entries::entry::Slot::set_clock
const ROUNDS: u32 = (1 << 24) - 1;

/// A time in the high bits and a position in the low bits, in 32-bit words so that it takes twelve bytes; ordered as
/// that number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due([u32; 3]);

const _: () = assert!(size_of::<Due>() == 12);

impl Due {
    fn new(at_ms: i64, position: u64) -> Due {
        debug_assert!(position >> PART_BITS == 0, "positions have {PART_BITS} bits");
        let at_ms = at_ms.clamp(0, TIME_MAX_MS) as u128;
        let number = at_ms << PART_BITS | u128::from(position);
        Due([(number >> 64) as u32, (number >> 32) as u32, number as u32])
    }

    fn parts(self) -> (i64, u64) {
        let [high, middle, low] = self.0.map(u128::from);
        let number = high << 64 | middle << 32 | low;
        ((number >> PART_BITS) as i64, number as u64 & ((1 << PART_BITS) - 1))
    }
}

/// A binary heap with the least element first.
#[derive(Clone, Debug, Default)]
struct Heap(Vec<Due>);

impl Heap {
    fn least(&self) -> Option<Due> {
        self.0.first().copied()
    }

    fn push(&mut self, due: Due) {
        if self.0.len() == self.0.capacity() {
            // The heap grows by a quarter instead of doubling, because it is the memory cost of a field's expiry.
            self.0.reserve_exact((self.0.len() / 4).max(4));
        }
        self.0.push(due);
        let mut at = self.0.len() - 1;
        while at > 0 && self.0[at] < self.0[(at - 1) / 2] {
            self.0.swap(at, (at - 1) / 2);
            at = (at - 1) / 2;
        }
    }

    fn pop_least(&mut self) {
        self.0.swap_remove(0);
        let mut at = 0;
        loop {
            let children = self.0.iter().enumerate().skip(2 * at + 1).take(2);
            let Some((least, child)) = children.min_by_key(|&(_, &child)| child) else { return };
            if self.0[at] <= *child {
                return;
            }
            self.0.swap(at, least);
            at = least;
        }
    }

    fn memory_bytes(&self) -> usize {
        match self.0.capacity() {
            0 => 0,
            capacity => size_class(capacity * size_of::<Due>()),
        }
    }
}

/// The times and positions at which to search for expired fields.
#[derive(Clone, Debug, Default)]
pub(super) struct DueTimes {
    heap: Heap,
    /// The elements that this round of checks has yet to check.
    unchecked: Heap,
    /// The number of rounds of checks begun, modulo [`ROUNDS`].
    rounds: u32,
}

impl DueTimes {
    /// Returns the bytes of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        self.heap.memory_bytes() + self.unchecked.memory_bytes()
    }

    /// Returns the number of elements.
    pub(super) fn len(&self) -> usize {
        self.heap.0.len() + self.unchecked.0.len()
    }

    /// Returns the number of the round, which a field records when an element is added for it. Never 0; it changes when
    /// a round of checks begins.
    pub(super) fn round(&self) -> u32 {
        self.rounds + 1
    }

    /// Adds a time and a position. O(log n), mostly O(1) for times in ascending order.
    pub(super) fn add(&mut self, at_ms: i64, position: u64) {
        self.heap.push(Due::new(at_ms, position));
    }

    fn least(&self) -> Option<Due> {
        match (self.heap.least(), self.unchecked.least()) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        }
    }

    /// Returns the earliest time, Unix time in ms: no field expires before it.
    #[inline]
    pub(super) fn earliest_ms(&self) -> Option<i64> {
        self.least().map(|due| due.parts().0)
    }

    /// Removes and returns a position whose time has come. O(log n).
    pub(super) fn pop(&mut self, now_ms: i64) -> Option<u64> {
        let least = self.least()?;
        let (at_ms, position) = least.parts();
        if at_ms > now_ms {
            return None;
        }
        let is_checked = self.heap.least() == Some(least);
        if is_checked {
            self.heap.pop_least()
        } else {
            self.unchecked.pop_least()
        }
        Some(position)
    }

    /// Returns the next element to check, time and position, while elements are being checked. A round of checks begins
    /// when there are too many elements for `volatile` fields with an expiry.
    pub(super) fn next_to_check(&mut self, volatile: usize) -> Option<(i64, u64)> {
        if self.unchecked.0.is_empty() {
            if self.heap.0.len() <= 2 * volatile + BLOAT_MIN {
                return None;
            }
            self.unchecked = std::mem::take(&mut self.heap);
            self.rounds = (self.rounds + 1) % ROUNDS;
        }
        let due = self.unchecked.0.pop()?;
        if self.unchecked.0.is_empty() {
            self.unchecked = Heap::default();
        }
        Some(due.parts())
    }

    /// Removes all elements.
    pub(super) fn clear(&mut self) {
        (self.heap, self.unchecked) = (Heap::default(), Heap::default());
    }

    /// Returns every time with its position, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.heap.0.iter().chain(&self.unchecked.0).map(|due| due.parts())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POSITION_MAX: u64 = (1 << PART_BITS) - 1;

    #[test]
    fn an_element_stores_time_and_position() {
        for at_ms in [0, 1, 1_700_000_000_000, TIME_MAX_MS] {
            for position in [0, 1, 0x1234_5678_9ABC, POSITION_MAX] {
                assert_eq!(Due::new(at_ms, position).parts(), (at_ms, position));
            }
        }
        assert_eq!(Due::new(i64::MAX, 5).parts(), (TIME_MAX_MS, 5));
        assert_eq!(Due::new(-1, 5).parts(), (0, 5));
    }

    #[test]
    fn elements_are_checked_when_they_are_too_many() {
        let mut due = DueTimes::default();
        for at_ms in 0..1000 {
            due.add(at_ms, 7);
        }
        let round = due.round();
        assert_eq!(due.next_to_check(500), None);
        let mut checked = 0;
        while let Some((at_ms, position)) = due.next_to_check(1) {
            assert_eq!((due.round(), position), (round + 1, 7));
            if at_ms < 10 {
                due.add(at_ms, position);
            }
            checked += 1;
            assert_eq!(due.earliest_ms(), Some(0), "unchecked elements still count");
        }
        assert_eq!((checked, due.len()), (1000, 10));
        due.clear();
        assert_eq!((due.earliest_ms(), due.memory_bytes()), (None, 0));
    }

    proptest! {
        #[test]
        fn positions_are_returned_in_order_of_time_when_due(
            times in prop::collection::vec(0i64..1000, 1..200), step in 1i64..300, unchecked in 0usize..100,
        ) {
            let mut due = DueTimes::default();
            for (position, &at_ms) in times.iter().enumerate() {
                due.add(at_ms, position as u64);
            }
            // Some elements stay in one heap, others move to the other.
            due.unchecked = std::mem::take(&mut due.heap);
            for _ in 0..unchecked {
                let Some((at_ms, position)) = due.next_to_check(usize::MAX / 4) else { break };
                due.add(at_ms, position);
            }
            let mut seen = 0;
            for now_ms in (0..1300).step_by(step as usize) {
                while let Some(position) = due.pop(now_ms) {
                    prop_assert!(times[position as usize] <= now_ms);
                    seen += 1;
                }
                prop_assert!(due.earliest_ms().is_none_or(|at_ms| at_ms > now_ms));
                prop_assert_eq!(seen, times.iter().filter(|&&at_ms| at_ms <= now_ms).count());
            }
            prop_assert_eq!(due.len(), 0);
        }
    }
}
