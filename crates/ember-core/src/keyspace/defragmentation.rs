//! Defragmentation: moves allocations out of sparsely used memory into denser memory, so that the allocator can return
//! the freed pages to the system.
//!
//! An entry has one owner, its slot, so moving an entry is a copy and a store, in small steps under the lock of its
//! shard. A walk moves the tables of shards; entries, and strings stored outside entries; hashes, sets, sorted sets and
//! lists with all their elements. It does not move the contents of streams, the index of a hash's expiring fields,
//! strings of 32 KiB and more, which have their own pages, and values that a snapshot is currently writing.

use std::collections::VecDeque;

use super::shard::moving::Place;
use super::{Keyspace, SHARDS};
pub use crate::keyspace::shard::moving::KeyCounts;
use crate::memory::moving::Mover;

/// The number of elements of a large value that one step examines.
const STEP_ELEMENTS: usize = 128;

/// The maximum number of large values that wait for their elements to be examined: more than one step of the walk can
/// find.
const LARGE_MAX: usize = 4096;

/// A large value whose elements are examined in steps.
struct Large {
    database_name: usize,
    key: Box<[u8]>,
    from: u64,
    has_moved: bool,
}

/// A walk over all keys that moves allocations. The keyspace may change in any way between two steps.
#[derive(Default)]
pub struct Defragmentation {
    shard: usize,
    place: Place,
    large: VecDeque<Large>,
    /// The number of examined keys, with and without moved allocations.
    pub keys: KeyCounts,
    /// The number of allocations that were moved.
    pub moved: u64,
    /// The number of allocations that were examined and not moved.
    pub left: u64,
}

impl Defragmentation {
    /// Returns a walk that starts with the first shard.
    pub fn new() -> Defragmentation {
        Defragmentation::default()
    }

    /// Examines some allocations, and moves those for which `is_worth_it` returns true. Values with more than
    /// `elements_max` elements are examined in several steps, other values in one step. Returns false at the end of the
    /// walk. The caller holds no lock; this function holds one shard's lock at a time, for some tens of microseconds,
    /// or for as long as moving `elements_max` elements takes.
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
            let continues = data.move_step(place, elements_max, &mut mover, keys, |database_name, key| {
                if large.len() < LARGE_MAX {
                    large.push_back(Large { database_name, key: key.into(), from: 0, has_moved: false });
                }
            });
            let growth = keyspace.release(*shard, data);
            keyspace.publish_bytes(growth);
            if !continues {
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
