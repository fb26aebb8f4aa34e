//! Who still reads what has been removed: a snapshot that keeps places of records in the place of values.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;

use super::segment::Segment;

/// While it lives, the segments that were there when it was taken can be read, removed or not.
#[derive(Debug)]
pub struct SegmentHold {
    number: u64,
    holds: Arc<Holds>,
}

impl Drop for SegmentHold {
    fn drop(&mut self) {
        self.holds.state.lock().alive.remove(&self.number);
    }
}

#[derive(Debug, Default)]
pub(super) struct Holds {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// The number of the next hold.
    next: u64,
    alive: BTreeSet<u64>,
    /// Segments that were removed, with the number of the next hold at that time, in that order.
    removed: Vec<(u64, Arc<Segment>)>,
}

impl Holds {
    pub(super) fn take(self: &Arc<Holds>) -> SegmentHold {
        let mut state = self.state.lock();
        let number = state.next;
        state.next += 1;
        state.alive.insert(number);
        SegmentHold { number, holds: Arc::clone(self) }
    }

    /// The segment is removed from now on.
    pub(super) fn remove(&self, segment: Arc<Segment>) {
        let mut state = self.state.lock();
        let next = state.next;
        state.removed.push((next, segment));
    }

    /// Takes out what is removed and that nobody holds any more.
    pub(super) fn free(&self) -> Vec<Arc<Segment>> {
        let mut state = self.state.lock();
        let oldest = state.alive.first().copied().unwrap_or(u64::MAX);
        let split = state.removed.partition_point(|(next, _)| *next <= oldest);
        state.removed.drain(..split).map(|(_, segment)| segment).collect()
    }

    /// It could not be removed: it is tried again with the next.
    pub(super) fn put_back(&self, segment: Arc<Segment>) {
        self.state.lock().removed.insert(0, (0, segment));
    }
}
