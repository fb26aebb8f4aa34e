//! When the fields of a large hash expire: a heap of times that says where to look.
//!
//! An element is twelve bytes: a time, and the hash bits that lead to the field ([`Elements::position_of`]), never the field
//! itself. So a field that is removed or gets another expiry leaves nothing dangling, only an element that finds nothing
//! when its time comes; [`DueTimes::is_bloated`] says when these are worth a cleaning.
//!
//! [`Elements::position_of`]: crate::types::elements::Elements::position_of

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::keyspace::entry::size_class;

/// Bits of a time in an element, and of a position.
const PART_BITS: u32 = 48;

/// The last time an element can tell. A field that expires later is looked at then, and again.
const TIME_MAX_MS: i64 = (1 << PART_BITS) - 1;

/// A few expiries are not cleaned for a handful of elements that find nothing.
const BLOAT_MIN: usize = 64;

/// A time above a position, in 32-bit words so that it takes twelve bytes; the order is that of the number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due([u32; 3]);

const _: () = assert!(size_of::<Due>() == 12);

impl Due {
    fn new(at_ms: i64, position: u64) -> Due {
        debug_assert!(position >> PART_BITS == 0, "positions have {PART_BITS} bits");
        let number = u128::from(tellable(at_ms)) << PART_BITS | u128::from(position);
        Due([(number >> 64) as u32, (number >> 32) as u32, number as u32])
    }

    fn parts(self) -> (i64, u64) {
        let [high, middle, low] = self.0.map(u128::from);
        let number = high << 64 | middle << 32 | low;
        ((number >> PART_BITS) as i64, number as u64 & ((1 << PART_BITS) - 1))
    }
}

/// A time as an element tells it: no later than it is.
fn tellable(at_ms: i64) -> u64 {
    at_ms.clamp(0, TIME_MAX_MS) as u64
}

/// Times at which to look for expired fields, and where.
#[derive(Clone, Debug, Default)]
pub(super) struct DueTimes {
    heap: BinaryHeap<Reverse<Due>>,
}

impl DueTimes {
    /// Bytes of memory taken.
    pub(super) fn memory_bytes(&self) -> usize {
        match self.heap.capacity() {
            0 => 0,
            capacity => size_class(capacity * size_of::<Due>()),
        }
    }

    /// Adds a time to look at a position. O(log n), mostly O(1) for times in ascending order.
    pub(super) fn add(&mut self, at_ms: i64, position: u64) {
        if self.heap.len() == self.heap.capacity() {
            // A quarter, not double: this heap is the cost of a field's TTL.
            self.heap.reserve_exact((self.heap.len() / 4).max(4));
        }
        self.heap.push(Reverse(Due::new(at_ms, position)));
    }

    /// The earliest time, Unix time in ms: no field expires before it.
    pub(super) fn earliest_ms(&self) -> Option<i64> {
        self.heap.peek().map(|due| due.0.parts().0)
    }

    /// Takes out a position to look at whose time has come.
    pub(super) fn pop(&mut self, now_ms: i64) -> Option<u64> {
        let (at_ms, position) = self.heap.peek()?.0.parts();
        if at_ms > now_ms {
            return None;
        }
        self.heap.pop();
        if self.heap.is_empty() {
            self.clear();
        }
        Some(position)
    }

    /// Whether most elements may be stale, given how many fields have an expiry.
    pub(super) fn is_bloated(&self, volatile: usize) -> bool {
        self.heap.len() > 2 * volatile + BLOAT_MIN
    }

    /// Forgets elements that are double, and those for which `is_live`, asked with time and position, says no. O(n log n).
    pub(super) fn clean(&mut self, mut is_live: impl FnMut(i64, u64) -> bool) {
        let mut all = std::mem::take(&mut self.heap).into_vec();
        all.sort_unstable();
        all.dedup();
        all.retain(|due| {
            let (at_ms, position) = due.0.parts();
            is_live(at_ms, position)
        });
        all.shrink_to(all.len() + all.len() / 4);
        self.heap = all.into();
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.heap = BinaryHeap::new();
    }

    /// Every time with its position, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (i64, u64)> {
        self.heap.iter().map(|due| due.0.parts())
    }
}

/// Whether an element of time `due_ms` is that of a field that expires at `expire_at_ms`.
pub(super) fn is_time_of(due_ms: i64, expire_at_ms: i64) -> bool {
    due_ms == tellable(expire_at_ms) as i64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const POSITION_MAX: u64 = (1 << PART_BITS) - 1;

    #[test]
    fn an_element_gives_back_time_and_position() {
        for at_ms in [0, 1, 1_700_000_000_000, TIME_MAX_MS] {
            for position in [0, 1, 0x1234_5678_9ABC, POSITION_MAX] {
                assert_eq!(Due::new(at_ms, position).parts(), (at_ms, position));
            }
        }
        assert_eq!(Due::new(i64::MAX, 5).parts(), (TIME_MAX_MS, 5));
        assert_eq!(Due::new(-1, 5).parts(), (0, 5));
    }

    #[test]
    fn cleaning_forgets_what_is_stale_or_double() {
        let mut due = DueTimes::default();
        for at_ms in 0..1000 {
            due.add(at_ms % 500, 7);
        }
        assert!(due.is_bloated(1) && !due.is_bloated(500));
        due.clean(|at_ms, position| position == 7 && at_ms < 10);
        assert_eq!(due.heap.len(), 10);
        assert_eq!(due.earliest_ms(), Some(0));
        assert!(due.iter().all(|(at_ms, position)| at_ms < 10 && position == 7));
        due.clear();
        assert_eq!((due.earliest_ms(), due.memory_bytes()), (None, 0));
    }

    proptest! {
        #[test]
        fn positions_come_out_in_the_order_of_their_times_and_not_before(
            times in prop::collection::vec(0i64..1000, 1..200), step in 1i64..300,
        ) {
            let mut due = DueTimes::default();
            for (position, &at_ms) in times.iter().enumerate() {
                due.add(at_ms, position as u64);
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
            prop_assert_eq!(due.memory_bytes(), 0);
        }
    }
}
