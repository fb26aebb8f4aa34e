//! The hash table of one database in one shard: groups of eight slots, in the order of their hash tags.
//!
//! A group is one cache line. An entry's *home* is the group of its tag when the tag range is divided evenly among the
//! groups, `home = tag * groups / 2^TAG_BITS`; it is stored there or, when that group is full, in the next group with a
//! free slot (circularly). Because a home follows from the tag alone, and the tag is in the slot, growing, shrinking,
//! deleting and scanning never touch an entry.
//!
//! # Invariants
//!
//! * Slots of a group are filled from the front: the first empty slot ends the group.
//! * Every group from an entry's home up to the group before its own is full. A search therefore ends at the first
//!   group that is not full, and a removal pulls displaced entries back instead of leaving a tombstone.
//! * No key is in a table twice; `len` counts the non-empty slots.
//!
//! # SCAN
//!
//! Homes ascend with tags, so the tag is a position with the same meaning in a table of any size: a scan that has
//! returned every entry with a tag below `t` stays correct when the table is resized in between. All entries of one tag
//! have one home, so a step always ends between two tags: no key is returned twice, and no key that exists during the
//! whole scan is missed.
//!
//! # Size
//!
//! The number of groups follows the allocator's size classes (4, 5, 6, 7 and 8 times a power of two), so each growth is
//! by a quarter or less and the slots are 72–90 % full: about ten bytes per key, where doubling would average thirteen.

use super::entry::{EntryRef, Slot};
use super::hash::TAG_BITS;
use crate::algorithms::random::Random;
use crate::memory::moving::Mover;
use crate::memory::prefetch;

/// The number of slots in a group, which share a cache line and are searched together.
pub const SLOTS_PER_GROUP: usize = 8;

/// The number of entries that a sample prefetches ahead of the visited one.
const SAMPLED_AHEAD: usize = 32;

/// The share of slots in use, in percent, above which the table grows. Beyond it probe sequences lengthen quickly (at
/// 90 % a successful search reads 1.2 groups).
const LOAD_MAX_PERCENT: usize = 90;

/// The share of slots in use, in percent, below which a removal shrinks the table. This is far below the share after a
/// growth (72 %), so that a table at the limit does not oscillate.
const LOAD_MIN_PERCENT: usize = 45;

/// The number of groups by which a scan prefetches entries ahead of the visited group, to hide the latency of memory.
const FETCHED_AHEAD: usize = 2;

#[derive(Default)]
#[repr(align(64))]
struct Group([Slot; SLOTS_PER_GROUP]);

const _: () = assert!(size_of::<Group>() == 64);

impl Group {
    #[inline]
    fn is_full(&self) -> bool {
        !self.0[SLOTS_PER_GROUP - 1].is_empty()
    }

    /// Returns a bit for each slot in use that has this tag. The computation has no branches, because the matching slot
    /// cannot be predicted.
    #[inline]
    fn matches(&self, tag: u32) -> u32 {
        let mut mask = 0;
        for (index, slot) in self.0.iter().enumerate() {
            mask |= u32::from(slot.has_tag(tag)) << index;
        }
        // Empty slots have tag 0, as one key in a million has.
        if tag == 0 { mask & self.in_use() } else { mask }
    }

    /// Returns a bit for each slot in use.
    #[cold]
    fn in_use(&self) -> u32 {
        (1 << self.used().count()) - 1
    }

    fn used(&self) -> impl Iterator<Item = (usize, &Slot)> {
        self.0.iter().enumerate().take_while(|(_, slot)| !slot.is_empty())
    }

    /// Removes a slot; the last slot in use takes its index, so that the slots in use stay at the front.
    fn take(&mut self, index: usize) -> Slot {
        let last = (index..SLOTS_PER_GROUP).take_while(|&i| !self.0[i].is_empty()).last().unwrap_or(index);
        self.0.swap(index, last);
        std::mem::take(&mut self.0[last])
    }
}

/// The position of a slot; valid until the table is next changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Position {
    group: u32,
    slot: u32,
}

/// A hash table that owns its entries.
#[derive(Default)]
pub struct Table {
    groups: Vec<Group>,
    len: usize,
}

/// Returns the number of groups to allocate for at least `wanted`: one of the allocator's size classes.
fn group_count_class(wanted: usize) -> usize {
    if wanted <= 4 {
        return wanted;
    }
    let step = 1 << ((wanted - 1).ilog2() - 2);
    wanted.next_multiple_of(step)
}

/// Returns the offset in bytes at which the search for `tag` begins in a table of `groups` groups.
#[inline]
pub fn group_offset_bytes(tag: u32, groups: usize) -> usize {
    home_of(tag, groups) * size_of::<Group>()
}

#[inline]
fn home_of(tag: u32, groups: usize) -> usize {
    (tag as usize * groups) >> TAG_BITS
}

fn groups_for(entries: usize) -> usize {
    group_count_class((entries * 100).div_ceil(SLOTS_PER_GROUP * LOAD_MAX_PERCENT))
}

impl Table {
    /// An empty table; it owns no memory.
    pub const EMPTY: Table = Table { groups: Vec::new(), len: 0 };

    /// Returns an empty table that can hold `entries` entries before it grows.
    pub fn with_capacity_for(entries: usize) -> Table {
        let mut table = Table::EMPTY;
        table.reserve_for(entries);
        table
    }

    /// Grows the table so that it can hold `entries` entries in total before it grows again.
    pub fn reserve_for(&mut self, entries: usize) {
        let groups = groups_for(entries);
        if groups > self.groups.len() {
            self.resize(groups);
        }
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether there is no entry.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the number of slots.
    pub fn capacity(&self) -> usize {
        self.groups.len() * SLOTS_PER_GROUP
    }

    /// Returns the bytes of memory that the slots take.
    pub fn slots_bytes(&self) -> usize {
        self.groups.len() * size_of::<Group>()
    }

    #[inline]
    fn home(&self, tag: u32) -> usize {
        home_of(tag, self.groups.len())
    }

    /// Returns the smallest tag whose home is `group`.
    fn first_tag_of(&self, group: usize) -> u32 {
        (group << TAG_BITS).div_ceil(self.groups.len()) as u32
    }

    #[inline]
    fn next_group(&self, group: usize) -> usize {
        if group + 1 == self.groups.len() { 0 } else { group + 1 }
    }

    /// Returns the distance in groups from the home of a slot's entry to `group`, which contains the slot.
    fn displacement(&self, group: usize, slot: &Slot) -> usize {
        let home = self.home(slot.tag());
        if group >= home { group - home } else { group + self.groups.len() - home }
    }

    /// Returns the address of the slots; for computing addresses to prefetch.
    pub fn slots_address(&self) -> *const u8 {
        self.groups.as_ptr().cast()
    }

    /// Returns the address of the entry that a search for `tag` would compare first, null if there seems to be none;
    /// for prefetching, not for reading.
    #[inline]
    pub fn entry_address(&self, tag: u32) -> *const u8 {
        if self.groups.is_empty() {
            return std::ptr::null();
        }
        let home = self.home(tag);
        for group in [home, self.next_group(home)] {
            let matches = self.groups[group].matches(tag);
            if matches != 0 {
                return self.groups[group].0[matches.trailing_zeros() as usize].address();
            }
            if !self.groups[group].is_full() {
                break;
            }
        }
        std::ptr::null()
    }

    /// Finds the entry of `key`. O(1) expected.
    #[inline]
    pub fn find(&self, tag: u32, key: &[u8]) -> Option<Position> {
        if self.len == 0 {
            return None;
        }
        let mut group = self.home(tag);
        loop {
            let mut matches = self.groups[group].matches(tag);
            while matches != 0 {
                let slot = matches.trailing_zeros();
                if self.groups[group].0[slot as usize].entry().has_key(key) {
                    return Some(Position { group: group as u32, slot });
                }
                matches &= matches - 1;
            }
            if !self.groups[group].is_full() {
                return None;
            }
            group = self.next_group(group);
        }
    }

    /// Returns the slot at a position that [`Table::find`] returned.
    #[inline]
    pub fn slot(&self, at: Position) -> &Slot {
        &self.groups[at.group as usize].0[at.slot as usize]
    }

    /// Returns the entry that is now at a position, which may be outdated: possibly not the entry that was found there.
    /// `None` if there is no entry.
    pub fn entry_once_at(&self, at: Position) -> Option<EntryRef<'_>> {
        let slot = &self.groups.get(at.group as usize)?.0[at.slot as usize];
        (!slot.is_empty()).then(|| slot.entry())
    }

    /// Returns the slot at a position, for a change of its entry.
    #[inline]
    pub fn slot_mut(&mut self, at: Position) -> &mut Slot {
        &mut self.groups[at.group as usize].0[at.slot as usize]
    }

    /// Adds an entry whose key is not in the table. Amortized O(1); growing moves one word per entry.
    pub fn insert_new(&mut self, slot: Slot) -> Position {
        if (self.len + 1) * 100 > self.capacity() * LOAD_MAX_PERCENT {
            self.resize(groups_for(self.len + 1).max(group_count_class(self.groups.len() + 1)));
        }
        self.len += 1;
        self.place(slot)
    }

    fn place(&mut self, slot: Slot) -> Position {
        let mut group = self.home(slot.tag());
        while self.groups[group].is_full() {
            group = self.next_group(group);
        }
        let slots = &mut self.groups[group].0;
        let index =
            slots.iter().position(Slot::is_empty).expect("a group that is not full has an empty slot");
        slots[index] = slot;
        Position { group: group as u32, slot: index as u32 }
    }

    fn resize(&mut self, groups: usize) {
        let mut new = Vec::new();
        new.reserve_exact(groups);
        new.resize_with(groups, Group::default);
        let old = std::mem::replace(&mut self.groups, new);
        for mut group in old {
            for slot in &mut group.0 {
                if !slot.is_empty() {
                    self.place(std::mem::take(slot));
                }
            }
        }
    }

    /// Removes and returns a slot. O(1) expected.
    pub fn remove(&mut self, at: Position) -> Slot {
        let hole = at.group as usize;
        let was_full = self.groups[hole].is_full();
        let removed = self.groups[hole].take(at.slot as usize);
        self.len -= 1;
        if was_full {
            self.refill(hole);
        }
        self.shrink_if_sparse();
        removed
    }

    /// Shrinks the table if far fewer entries than slots are left.
    #[inline]
    pub fn shrink_if_sparse(&mut self) {
        let capacity = self.capacity();
        if self.len * 100 < capacity * LOAD_MIN_PERCENT && groups_for(self.len) < self.groups.len() {
            // Keep space for a quarter more, or the next insertion would grow the table again.
            let groups = groups_for(self.len + self.len / 4 + 1);
            if self.len == 0 {
                self.groups = Vec::new();
            } else if groups < self.groups.len() {
                self.resize(groups);
            }
        }
    }

    /// Pulls back entries that were displaced past `hole`, a group that was full and has just lost a slot.
    fn refill(&mut self, mut hole: usize) {
        let mut distance = 1;
        let mut group = self.next_group(hole);
        while group != hole {
            let displaced =
                self.groups[group].used().find(|(_, slot)| self.displacement(group, slot) >= distance);
            let displaced = displaced.map(|(index, _)| index);
            let was_full = self.groups[group].is_full();
            if let Some(index) = displaced {
                let slot = self.groups[group].take(index);
                self.groups[hole].0[SLOTS_PER_GROUP - 1] = slot;
                hole = group;
                distance = 0;
            }
            if !was_full {
                return;
            }
            distance += 1;
            group = self.next_group(group);
        }
    }

    /// Calls `visit` for the entries of the next group that has a home at or after tag `from`, and returns the tag to
    /// continue from, or `None` at the end. Expected O(1) entries per call; see the module's text for the guarantee.
    pub fn scan(&self, from: u32, mut visit: impl FnMut(EntryRef<'_>)) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let home = self.home(from);
        self.for_each_with_home(home, |slot| {
            if slot.tag() >= from {
                visit(slot.entry());
            }
        });
        (home + 1 < self.groups.len()).then(|| self.first_tag_of(home + 1))
    }

    /// Like [`Table::scan`], with slots whose entries may be changed, but not removed.
    pub fn scan_mut(&mut self, from: u32, mut visit: impl FnMut(&mut Slot)) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let home = self.home(from);
        // The next calls read these entries.
        if let Some(ahead) = self.groups.get(home + FETCHED_AHEAD) {
            ahead.0.iter().for_each(|slot| prefetch(slot.address()));
        }
        let mut group = home;
        loop {
            for index in 0..SLOTS_PER_GROUP {
                let slot = &self.groups[group].0[index];
                if slot.is_empty() {
                    break;
                }
                if slot.tag() >= from && self.home(slot.tag()) == home {
                    visit(&mut self.groups[group].0[index]);
                }
            }
            if !self.groups[group].is_full() {
                break;
            }
            group = self.next_group(group);
            if group == home {
                break;
            }
        }
        (home + 1 < self.groups.len()).then(|| self.first_tag_of(home + 1))
    }

    /// Moves the slots to another allocation of the same size, if that is worth it.
    pub(crate) fn move_slots(&mut self, mover: &mut Mover<'_>) {
        mover.move_vec(&mut self.groups);
    }

    fn for_each_with_home(&self, home: usize, mut visit: impl FnMut(&Slot)) {
        let mut group = home;
        loop {
            for (_, slot) in self.groups[group].used() {
                if self.home(slot.tag()) == home {
                    visit(slot);
                }
            }
            if !self.groups[group].is_full() {
                return;
            }
            group = self.next_group(group);
            if group == home {
                return;
            }
        }
    }

    /// Finds an entry with this tag for which `wanted` holds.
    pub fn find_by_tag(&self, tag: u32, mut wanted: impl FnMut(EntryRef<'_>) -> bool) -> Option<Position> {
        if self.len == 0 {
            return None;
        }
        let mut group = self.home(tag);
        loop {
            for (index, slot) in self.groups[group].used() {
                if slot.tag() == tag && wanted(slot.entry()) {
                    return Some(Position { group: group as u32, slot: index as u32 });
                }
            }
            if !self.groups[group].is_full() {
                return None;
            }
            group = self.next_group(group);
        }
    }

    /// Calls `visit` for up to `count` adjacent entries, beginning with the group that `random` selects.
    pub fn sample(&self, random: u32, count: usize, mut visit: impl FnMut(Position, EntryRef<'_>)) {
        if self.len == 0 {
            return;
        }
        let mut left = count.min(self.len);
        let mut group = (random as usize * self.groups.len()) >> 32;
        // Entries are scattered in memory, so the next ones are prefetched while an entry is visited.
        let (mut ahead, mut not_fetched) = (group, left);
        for _ in 0..self.groups.len() {
            while not_fetched > 0 && not_fetched + SAMPLED_AHEAD > left {
                for (_, slot) in self.groups[ahead].used() {
                    prefetch(slot.address());
                    not_fetched = not_fetched.saturating_sub(1);
                }
                ahead = self.next_group(ahead);
            }
            for (index, slot) in self.groups[group].used() {
                visit(Position { group: group as u32, slot: index as u32 }, slot.entry());
                left -= 1;
                if left == 0 {
                    return;
                }
            }
            group = self.next_group(group);
        }
    }

    /// Returns an entry chosen uniformly at random. Expected O(1): a table is at least nearly half full, except the
    /// smallest.
    pub fn random(&self, random: &mut Random) -> Option<EntryRef<'_>> {
        self.random_position(random).map(|at| self.slot(at).entry())
    }

    /// Returns the position of an entry chosen as by [`Table::random`].
    pub fn random_position(&self, random: &mut Random) -> Option<Position> {
        if self.len == 0 {
            return None;
        }
        loop {
            let group = random.below(self.groups.len());
            let slot = random.below(SLOTS_PER_GROUP);
            if !self.groups[group].0[slot].is_empty() {
                return Some(Position { group: group as u32, slot: slot as u32 });
            }
        }
    }

    /// Returns every slot in use, owned, in no particular order. O(slots).
    pub fn into_slots(self) -> impl Iterator<Item = Slot> {
        self.groups.into_iter().flat_map(|group| group.0).filter(|slot| !slot.is_empty())
    }

    /// Returns every slot in use, in no particular order. O(slots).
    pub fn slots(&self) -> impl Iterator<Item = &Slot> {
        self.groups.iter().flat_map(|group| group.used().map(|(_, slot)| slot))
    }

    /// Returns every entry, in no particular order. O(slots).
    pub fn iter(&self) -> impl Iterator<Item = EntryRef<'_>> {
        self.slots().map(Slot::entry)
    }

    /// Checks the invariants in the module's text. O(slots); for tests.
    ///
    /// # Panics
    /// Panics if an invariant does not hold.
    pub fn check_invariants(&self) {
        let mut seen = 0;
        for (index, group) in self.groups.iter().enumerate() {
            let used = group.used().count();
            assert!(group.0[used..].iter().all(Slot::is_empty), "slots are filled from the front");
            for (_, slot) in group.used() {
                seen += 1;
                let mut between = self.home(slot.tag());
                while between != index {
                    assert!(self.groups[between].is_full(), "a displaced entry follows full groups");
                    between = self.next_group(between);
                }
            }
        }
        assert_eq!(seen, self.len, "len counts the entries");
        assert!(self.len * 100 <= self.capacity() * LOAD_MAX_PERCENT, "the table is not overfull");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::entries::entry::NewValue;

    /// Inserts an entry with a tag chosen by the test; the key spells the number.
    fn insert(table: &mut Table, tag: u32, number: u32) {
        let key = number.to_le_bytes();
        assert!(table.find(tag, &key).is_none());
        table.insert_new(Slot::new(tag, &key, NewValue::Int(i64::from(number)), None, 0));
        table.check_invariants();
    }

    fn remove(table: &mut Table, tag: u32, number: u32) {
        let at = table.find(tag, &number.to_le_bytes()).expect("the key exists");
        table.remove(at);
        table.check_invariants();
    }

    #[test]
    fn keys_that_share_every_tag_bit_are_all_kept() {
        let mut table = Table::default();
        for number in 0..100 {
            insert(&mut table, 0xF_FFFF, number);
        }
        for number in (0..100).rev() {
            remove(&mut table, 0xF_FFFF, number);
        }
        assert_eq!((table.len(), table.capacity()), (0, 0));
    }

    #[test]
    fn keys_with_tag_zero_are_found_next_to_empty_slots() {
        let mut table = Table::default();
        for number in 0..20 {
            insert(&mut table, u32::from(number >= 10), number);
        }
        assert!((0..10).all(|number| table.find(0, &(number as u32).to_le_bytes()).is_some()));
        (0..10).for_each(|number| remove(&mut table, 0, number));
        assert!((0..20).all(|number| table.find(0, &(number as u32).to_le_bytes()).is_none()));
    }

    #[test]
    fn reserved_capacity_suffices_and_unused_capacity_is_freed() {
        let mut table = Table::default();
        insert(&mut table, 1, 0);
        table.reserve_for(1000);
        let capacity = table.capacity();
        (1..1000).for_each(|number| insert(&mut table, (number * 7919) & 0xF_FFFF, number));
        assert_eq!(table.capacity(), capacity);
        table.reserve_for(10);
        table.shrink_if_sparse();
        assert_eq!(table.capacity(), capacity, "the capacity already fits");
        table.reserve_for(100_000);
        table.shrink_if_sparse();
        table.check_invariants();
        assert!(table.capacity() < 2000 && table.find(1, &0u32.to_le_bytes()).is_some());
        let mut empty = Table::with_capacity_for(1000);
        empty.shrink_if_sparse();
        assert_eq!(empty.capacity(), 0);
    }

    #[test]
    fn a_removal_pulls_displaced_entries_back_across_the_end() {
        let mut table = Table::default();
        let tag = |number: u32| if number.is_multiple_of(3) { 0xF_FFFF } else { (number * 7919) & 0xF_FFFF };
        for number in 0..300 {
            insert(&mut table, tag(number), number);
        }
        for number in (0..300).filter(|n| n % 2 == 0) {
            remove(&mut table, tag(number), number);
        }
        for number in (0..300).filter(|n| n % 2 == 1) {
            assert!(table.find(tag(number), &number.to_le_bytes()).is_some());
        }
    }

    #[test]
    fn group_counts_are_allocator_classes() {
        let classes: Vec<usize> = (1..=40).map(group_count_class).collect();
        assert_eq!(classes[..10], [1, 2, 3, 4, 5, 6, 7, 8, 10, 10]);
        assert_eq!(classes[39], 40);
        assert!(
            (1..5000).all(|n| group_count_class(n) >= n
                && group_count_class(group_count_class(n)) == group_count_class(n))
        );
    }
}
