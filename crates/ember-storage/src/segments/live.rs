//! Referenced (live) bytes of each segment.
//!
//! The counters are atomic, so that the record of an entry can be subtracted wherever the entry is removed, whatever
//! lock is held. They order no other memory accesses: a thread that finds a segment empty removes it from the table
//! under a lock.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use super::location::{Location, SegmentNumber};
use super::{HEAD_BYTES, UNIT_BYTES};

/// Number of counters per block. Blocks are allocated on demand, because few segment numbers are in use.
const BLOCK: usize = 1024;
const BLOCKS: usize = SegmentNumber::COUNT as usize / BLOCK;

type Block = Box<[AtomicU32; BLOCK]>;

/// The live bytes of all segments.
#[derive(Debug)]
pub struct LiveBytes {
    /// The counters, in units of 16 bytes.
    blocks: Box<[OnceLock<Block>]>,
}

impl Default for LiveBytes {
    fn default() -> LiveBytes {
        LiveBytes { blocks: (0..BLOCKS).map(|_| OnceLock::new()).collect() }
    }
}

impl LiveBytes {
    /// Subtracts the record at `at`, which is no longer referenced. Must be called once for each appended record.
    pub fn discount(&self, at: Location) {
        let counter = self.counter(at.segment());
        let Some(stored) = at.stored_bytes() else { return counter.store(0, Ordering::Relaxed) };
        let units = (stored / UNIT_BYTES) as u32;
        // A counter below zero means that a record was subtracted twice: its segment is removed early, and reads of its
        // other records return an error.
        let before =
            counter.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |live| live.checked_sub(units));
        debug_assert!(before.is_ok(), "{at:?} is discounted once");
        if before.is_err() {
            counter.store(0, Ordering::Relaxed);
        }
    }

    /// Returns the live bytes of a segment.
    pub fn of(&self, segment: SegmentNumber) -> u64 {
        u64::from(self.counter(segment).load(Ordering::Relaxed)) * UNIT_BYTES
    }

    pub(super) fn add(&self, at: Location, stored: u64) {
        debug_assert!(at.offset() >= HEAD_BYTES);
        self.counter(at.segment()).fetch_add((stored / UNIT_BYTES) as u32, Ordering::Relaxed);
    }

    /// Resets the counter for a new segment with this number.
    pub(super) fn begin(&self, segment: SegmentNumber) {
        self.counter(segment).store(0, Ordering::Relaxed);
    }

    fn counter(&self, segment: SegmentNumber) -> &AtomicU32 {
        let number = segment.get() as usize;
        let block =
            self.blocks[number / BLOCK].get_or_init(|| Box::new([const { AtomicU32::new(0) }; BLOCK]));
        &block[number % BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn added_and_discounted_bytes_cancel_out() {
        let live = LiveBytes::default();
        let segment = SegmentNumber::new(70_000);
        let (first, second) = (Location::new(segment, 64, 48), Location::new(segment, 112, 1024));
        live.add(first, 48);
        live.add(second, 1024);
        assert_eq!(live.of(segment), 1072);
        live.discount(first);
        assert_eq!(live.of(segment), 1024);
        live.discount(second);
        assert_eq!(live.of(segment), 0);
        let alone = Location::new(segment, 64, 1 << 32);
        live.add(alone, 1 << 32);
        assert_eq!(live.of(segment), 1 << 32);
        live.discount(alone);
        assert_eq!(live.of(segment), 0);
    }
}
