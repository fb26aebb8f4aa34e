//! Defragmentation: allocations that stand in memory of which little is in use are moved to where more is, so that the
//! allocator can give the rest back.
//!
//! An entry has one owner, its slot, so moving it is a copy and a store, under the lock of its shard and in small steps.
//! What is moved: tables of shards; entries, and strings apart from them; hashes, sets, sorted sets and lists with all their
//! elements. What stays: the inside of streams, the index of a hash's expiring fields, strings of 32 KiB and more, which
//! have pages of their own, and values that a snapshot is writing just now.

use std::collections::VecDeque;

use super::shard::moving::Place;
use super::{Keyspace, SHARDS};
pub use crate::keyspace::shard::moving::KeyCounts;
use crate::memory::moving::Mover;

/// Elements of a large value that are looked at in one step.
const STEP_ELEMENTS: usize = 128;

/// Large values whose elements are to be looked at before the walk goes on: more than one step of it can find.
const LARGE_MAX: usize = 4096;

/// A value whose elements are looked at in steps.
struct Large {
    database_name: usize,
    key: Box<[u8]>,
    from: u64,
    has_moved: bool,
}

/// One walk over all keys. Anything may be changed between two steps.
#[derive(Default)]
pub struct Defragmentation {
    shard: usize,
    place: Place,
    large: VecDeque<Large>,
    /// The keys that were looked at.
    pub keys: KeyCounts,
    /// Allocations that were moved, and that stay where they are.
    pub moved: u64,
    /// The same.
    pub left: u64,
}

impl Defragmentation {
    /// A walk that has not begun.
    pub fn new() -> Defragmentation {
        Defragmentation::default()
    }

    /// Looks at some allocations, and moves those for which `is_worth_it` holds. Values with more than `elements_max`
    /// elements are looked at in steps of their own, others whole. False at the end of the walk. The caller holds no lock;
    /// one is held for some tens of microseconds, or as long as so many elements take.
    pub fn step(
        &mut self,
        keyspace: &Keyspace,
        elements_max: usize,
        is_worth_it: &mut dyn FnMut(*const u8) -> bool,
    ) -> bool {
        let mut mover = Mover::new(is_worth_it);
        if !self.large.is_empty() {
            self.step_large(keyspace, &mut mover);
        } else if self.shard < SHARDS {
            let Defragmentation { shard, place, large, keys, .. } = self;
            let mut data = keyspace.lock(*shard);
            let goes_on = data.move_step(place, elements_max, &mut mover, keys, |database_name, key| {
                if large.len() < LARGE_MAX {
                    large.push_back(Large { database_name, key: key.into(), from: 0, has_moved: false });
                }
            });
            let growth = keyspace.release(*shard, data);
            keyspace.publish_bytes(growth);
            if !goes_on {
                (*shard, *place) = (*shard + 1, Place::default());
            }
        }
        self.moved += mover.moved;
        self.left += mover.left;
        self.shard < SHARDS || !self.large.is_empty()
    }

    fn step_large(&mut self, keyspace: &Keyspace, mover: &mut Mover<'_>) {
        let Some(large) = self.large.front_mut() else { return };
        let hash = keyspace.hash(&large.key);
        let mut data = keyspace.lock(hash.shard());
        let part = (large.from, STEP_ELEMENTS);
        large.from = data.move_elements(large.database_name, (hash, &large.key), part, mover);
        drop(data);
        large.has_moved |= mover.moved > 0;
        if large.from == 0 {
            if large.has_moved {
                self.keys.moved += 1;
            } else {
                self.keys.left += 1;
            }
            self.large.pop_front();
        }
    }
}
