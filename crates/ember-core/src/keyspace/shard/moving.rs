//! Moves a shard's entries to other allocations.
//!
//! A move does not count as a change: a snapshot saves no entry because of it, and no client is notified. Values that
//! are shared with a snapshot are not moved.

use super::{Database, ShardData};
use crate::entries::hash::KeyHash;
use crate::memory::moving::Mover;

/// The maximum number of groups of entries that one step examines.
const STEP_GROUPS: usize = 8;

/// The number of examined allocations, about 20 µs of work, after which a step begins no further group.
const STEP_ALLOCATIONS: u64 = 128;

/// The position of a defragmentation walk in a shard.
#[derive(Debug, Default)]
pub(crate) struct Place {
    /// The shard's name of the database.
    name: usize,
    tag: u32,
}

/// The numbers of keys with and without moved allocations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct KeyCounts {
    /// The number of keys with at least one moved allocation.
    pub moved: u64,
    /// The number of keys without a moved allocation.
    pub left: u64,
}

impl KeyCounts {
    fn add(&mut self, is_moved: bool) {
        if is_moved {
            self.moved += 1;
        } else {
            self.left += 1;
        }
    }
}

impl ShardData {
    fn database_named(&mut self, name: usize) -> Option<&mut Database> {
        std::iter::once(&mut self.first).chain(&mut self.others).find(|database| database.expiry_name == name)
    }

    /// Moves the next entries and their values where `mover` finds it worthwhile. For values with more than
    /// `elements_max` elements, calls `on_large` with the name of the database and the key instead. Returns false at
    /// the end of the shard.
    pub(crate) fn move_step(
        &mut self,
        place: &mut Place,
        elements_max: usize,
        mover: &mut Mover<'_>,
        keys: &mut KeyCounts,
        mut on_large: impl FnMut(usize, &[u8]),
    ) -> bool {
        let examined_before = mover.examined();
        for _ in 0..STEP_GROUPS {
            let name = place.name;
            let Some(database) = self.database_named(name) else { return false };
            let moved_before = mover.moved;
            if place.tag == 0 {
                database.table.move_slots(mover);
            }
            let has_moved_slots = mover.moved > moved_before;
            let next = database.table.scan_mut(place.tag, |slot| {
                let moved_before = mover.moved;
                slot.move_to(mover);
                let mut is_large = false;
                if let Some(aggregate) = slot.own_aggregate_mut() {
                    is_large = aggregate.len() > elements_max;
                    if !is_large {
                        aggregate.move_inside(0, usize::MAX, mover);
                    }
                }
                if is_large {
                    on_large(name, slot.entry().key());
                } else {
                    keys.add(mover.moved > moved_before);
                }
            });
            // Marked as changed so that releasing the lock publishes the new address of the slots.
            self.is_changed |= has_moved_slots;
            match next {
                Some(tag) => place.tag = tag,
                None => (place.name, place.tag) = (name + 1, 0),
            }
            if mover.examined() - examined_before >= STEP_ALLOCATIONS {
                break;
            }
        }
        true
    }

    /// Examines about `most` elements of a key's value, from position `from` on, and moves the elements that `mover`
    /// finds worth moving. Returns the position at which to continue; 0 at the end of the value, or if the key has no
    /// such value or the value is shared.
    pub(crate) fn move_elements(
        &mut self,
        name: usize,
        (hash, key): (KeyHash, &[u8]),
        (from, most): (u64, usize),
        mover: &mut Mover<'_>,
    ) -> u64 {
        let found = self.database_named(name).and_then(|database| {
            let at = database.table.find(hash.tag(), key)?;
            database.table.slot_mut(at).own_aggregate_mut()
        });
        found.map_or(0, |aggregate| aggregate.move_inside(from, most, mover))
    }
}
