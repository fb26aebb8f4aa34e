//! The entries of a stream, and records of removed ones.
//!
//! # Invariants
//!
//! * `len` is the number of entries that are not deleted.
//! * `first_id` is the ID of the first of them, or the smallest ID if there is none.
//! * No entry has an ID greater than `last_id`.

use std::ops::RangeInclusive;

use super::StreamId;
use super::block::{Backward, Block, Entry, Forward};
use super::blocks::{Blocks, Place};
use crate::types::listpack::{BYTES_MAX, Listpack};

/// The reason why an entry was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppendError {
    /// The ID is not greater than that of the last entry.
    IdTooSmall,
    /// The fields exceed the limit of a block.
    TooLarge,
}

/// The limits of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockLimits {
    /// The maximum size of a block in bytes; 0 for no limit except that of the format.
    pub bytes_max: usize,
    /// The maximum number of entries of a block, including deleted ones; 0 for no limit.
    pub entries_max: usize,
}

/// The entries to remove from the beginning of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trim {
    /// Entries in excess of this number.
    ToLen(u64),
    /// Entries with smaller IDs.
    BelowId(StreamId),
}

/// The entries of a stream.
#[derive(Clone, Debug, Default)]
pub struct Log {
    pub(super) blocks: Blocks,
    len: u64,
    first_id: StreamId,
    last_id: StreamId,
    max_deleted_id: StreamId,
    entries_added: u64,
}

impl Log {
    /// Returns the number of entries. O(1).
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Returns whether there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the ID of the first entry, or the smallest ID if there is no entry.
    pub fn first_id(&self) -> StreamId {
        self.first_id
    }

    /// Returns the greatest ID that an entry has ever had, or that was set instead.
    pub fn last_id(&self) -> StreamId {
        self.last_id
    }

    /// Returns the greatest ID of a deleted entry, not counting trimmed ones.
    pub fn max_deleted_id(&self) -> StreamId {
        self.max_deleted_id
    }

    /// Returns the number of entries ever added.
    pub fn entries_added(&self) -> u64 {
        self.entries_added
    }

    /// Returns the number of blocks that hold the entries.
    pub fn block_count(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the blocks: the ID of each, and its bytes in Redis's format.
    pub fn blocks(&self) -> impl Iterator<Item = (StreamId, &[u8])> {
        self.blocks.iter().map(|block| (block.first_id(), block.listpack().as_bytes()))
    }

    /// Appends a block in Redis's format, of any origin. Returns false if it is not a block, or if earlier blocks
    /// contain IDs that are not smaller. The caller must set the counters other than the number of entries
    /// ([`Log::set_counters`]). O(bytes).
    pub fn push_block(&mut self, first_id: StreamId, listpack: Listpack) -> bool {
        let last_id = self.blocks.last().map(|place| self.blocks.get(place).last_id());
        if last_id.is_some_and(|last_id| last_id >= first_id) {
            return false;
        }
        let Some(block) = Block::from_listpack(first_id, listpack) else { return false };
        self.last_id = self.last_id.max(block.last_id());
        // All entries of the earlier blocks may be deleted.
        if self.len == 0
            && let Some(first) = block.entries().next()
        {
            self.first_id = first.id;
        }
        self.len += block.live() as u64;
        self.blocks.push(block);
        true
    }

    /// Returns the ID of the last entry, if there is one. O(deleted entries after it).
    pub fn last_entry_id(&self) -> Option<StreamId> {
        self.range_back(StreamId::MIN..=StreamId::MAX).next().map(|entry| entry.id)
    }

    /// Sets the values of XSETID. The caller ensures that `last_id` is not smaller than any entry's ID.
    pub fn set_counters(&mut self, last_id: StreamId, max_deleted_id: StreamId, entries_added: u64) {
        self.last_id = last_id;
        self.max_deleted_id = max_deleted_id;
        self.entries_added = entries_added;
    }

    /// Returns the ID of an entry to be added at `now_ms`: the time, or the next ID if the time would not be greater
    /// than the last ID. `None` if no ID is left.
    pub fn next_id(&self, now_ms: u64) -> Option<StreamId> {
        if now_ms > self.last_id.ms { Some(StreamId::new(now_ms, 0)) } else { self.last_id.next() }
    }

    /// Returns the ID with time `ms` of an entry to be added. `None` if it would be smaller than the last ID, or no ID
    /// is left.
    pub fn next_id_at(&self, ms: u64) -> Option<StreamId> {
        match ms.cmp(&self.last_id.ms) {
            std::cmp::Ordering::Less => None,
            std::cmp::Ordering::Equal => Some(StreamId::new(ms, self.last_id.sequence.checked_add(1)?)),
            std::cmp::Ordering::Greater => Some(StreamId::new(ms, 0)),
        }
    }

    /// Adds an entry with these fields, names and values. O(fields).
    ///
    /// # Errors
    /// Returns an error if the ID is not greater than [`Log::last_id`], or the fields do not fit a block.
    pub fn append<'f>(
        &mut self,
        id: StreamId,
        fields: impl ExactSizeIterator<Item = (&'f [u8], &'f [u8])> + Clone,
        limits: BlockLimits,
    ) -> Result<(), AppendError> {
        if id <= self.last_id {
            return Err(AppendError::IdTooSmall);
        }
        let bytes: usize = fields.clone().map(|(name, value)| name.len() + value.len()).sum();
        if bytes > BYTES_MAX {
            return Err(AppendError::TooLarge);
        }
        match self.blocks.last().filter(|&place| fits(self.blocks.get(place), bytes, limits)) {
            Some(place) => self.blocks.edit(place, |block| block.append(id, fields)),
            None => self.blocks.push(Block::new(id, fields)),
        }
        self.len += 1;
        self.entries_added += 1;
        self.last_id = id;
        if self.len == 1 {
            self.first_id = id;
        }
        Ok(())
    }

    /// Returns whether there is an entry with this ID. O(log blocks + a block).
    pub fn contains(&self, id: StreamId) -> bool {
        self.entry(id).is_some()
    }

    /// Returns the entry with this ID. O(log blocks + a block).
    pub fn entry(&self, id: StreamId) -> Option<Entry<'_>> {
        let block = self.blocks.get(self.blocks.find(id)?);
        block.entries().find(|entry| entry.id >= id).filter(|entry| entry.id == id)
    }

    /// Returns the entries with IDs in `ids`, in order. O(log blocks + entries read, up to a block more).
    pub fn range(&self, ids: RangeInclusive<StreamId>) -> Range<'_> {
        let (start, end) = ids.into_inner();
        let place = self.blocks.find(start).or_else(|| self.blocks.first());
        Range { blocks: &self.blocks, start, end, place, entries: None }
    }

    /// Returns the entries with IDs in `ids`, from the last to the first. Same cost as [`Log::range`].
    pub fn range_back(&self, ids: RangeInclusive<StreamId>) -> RangeBack<'_> {
        let (start, end) = ids.into_inner();
        RangeBack { blocks: &self.blocks, start, end, place: self.blocks.find(end), entries: None }
    }

    /// Deletes the entry with this ID. Returns false if there is none. O(log blocks + a block).
    pub fn delete(&mut self, id: StreamId) -> bool {
        let Some(place) = self.blocks.find(id) else { return false };
        if !self.blocks.edit(place, |block| block.delete(id)) {
            return false;
        }
        if self.blocks.get(place).live() == 0 {
            self.blocks.remove(place);
        }
        self.len -= 1;
        self.max_deleted_id = self.max_deleted_id.max(id);
        if id == self.first_id {
            self.find_first_id();
        }
        true
    }

    fn find_first_id(&mut self) {
        let first = self.range(StreamId::MIN..=StreamId::MAX).next();
        self.first_id = first.map_or(StreamId::MIN, |entry| entry.id);
    }

    /// Removes entries from the beginning and returns how many were removed. With `whole_blocks`, only whole blocks are
    /// removed. `limit` is the maximum number of removed entries; 0 for no limit. O(blocks removed + a block).
    pub fn trim(&mut self, trim: Trim, whole_blocks: bool, limit: u64) -> u64 {
        let before = self.len;
        let mut next = self.blocks.first();
        while let Some(place) = next {
            let block = self.blocks.get(place);
            let live = block.live() as u64;
            if matches!(trim, Trim::ToLen(len) if self.len <= len) {
                break;
            }
            if limit != 0 && before - self.len + live > limit {
                break;
            }
            let removes_whole = match trim {
                Trim::ToLen(len) => self.len - live >= len,
                Trim::BelowId(id) => block.last_id() < id,
            };
            if removes_whole {
                self.len -= live;
                next = self.blocks.remove(place);
                continue;
            }
            if !whole_blocks {
                self.trim_block(place, trim);
            }
            break;
        }
        if self.len != before {
            self.find_first_id();
        }
        before - self.len
    }

    /// Returns the ID at which the first block begins. The entry with this ID may be deleted. O(1).
    pub(super) fn begins_at(&self) -> Option<StreamId> {
        self.blocks.first().map(|place| self.blocks.get(place).first_id())
    }

    /// Like [`Log::trim`], but entries for which `is_needed` returns true are not removed, wherever they are; later
    /// entries are removed instead. With `whole_blocks`, trimming ends at the first block that contains such an entry.
    /// `deleted` receives the IDs of removed entries that count as deleted: the entries of the first block that is not
    /// removed as a whole, and of all later blocks. Entries of earlier blocks count as trimmed from the beginning.
    /// O(entries examined, each at the cost of `is_needed`).
    pub(super) fn trim_unneeded(
        &mut self,
        trim: Trim,
        whole_blocks: bool,
        limit: u64,
        is_needed: impl Fn(StreamId) -> bool,
        mut deleted: impl FnMut(&[StreamId]),
    ) -> u64 {
        let before = self.len;
        let mut next = self.blocks.first();
        let mut may_leave_holes = false;
        while let Some(place) = next {
            let block = self.blocks.get(place);
            let live = block.live();
            let excess = match trim {
                Trim::ToLen(len) => self.len.saturating_sub(len),
                Trim::BelowId(_) => u64::MAX,
            };
            let is_below = |id: StreamId| !matches!(trim, Trim::BelowId(limit) if id >= limit);
            if excess == 0 || !is_below(block.first_id()) {
                break;
            }
            let removed: Vec<StreamId> = block
                .entries()
                .map(|entry| entry.id)
                .filter(|&id| is_below(id) && !is_needed(id))
                .take(usize::try_from(excess).unwrap_or(usize::MAX))
                .collect();
            let removes_whole = removed.len() == live;
            if whole_blocks && (!removes_whole || (limit != 0 && before - self.len + live as u64 > limit)) {
                break;
            }
            if let Some(&last) = removed.last().filter(|_| may_leave_holes || !removes_whole) {
                self.max_deleted_id = self.max_deleted_id.max(last);
                deleted(&removed);
            }
            may_leave_holes |= !removes_whole;
            self.len -= removed.len() as u64;
            next = if removes_whole {
                self.blocks.remove(place)
            } else {
                self.blocks.edit(place, |block| block.delete_all(|id| removed.binary_search(&id).is_ok()));
                self.blocks.next(place)
            };
        }
        if self.len != before {
            self.find_first_id();
        }
        before - self.len
    }

    /// Removes entries from the beginning of the first block.
    fn trim_block(&mut self, place: Place, trim: Trim) {
        let mut excess = match trim {
            Trim::ToLen(len) => self.len - len,
            Trim::BelowId(_) => 0,
        };
        let wanted = |id: StreamId| match trim {
            Trim::ToLen(_) => {
                let is_excess = excess > 0;
                excess = excess.saturating_sub(1);
                is_excess
            }
            Trim::BelowId(limit) => id < limit,
        };
        // A block without entries that are not deleted is not removed, so it can receive entries: Redis keeps such a
        // block, and the starts of blocks determine which entries approximate trimming removes.
        self.len -= self.blocks.edit(place, |block| block.delete_first(wanted)) as u64;
    }

    /// Panics if an invariant is broken. For tests.
    pub(super) fn check_invariants(&self) {
        self.blocks.check_invariants();
        let ids: Vec<StreamId> = self.range(StreamId::MIN..=StreamId::MAX).map(|entry| entry.id).collect();
        assert_eq!(ids.len() as u64, self.len);
        assert_eq!(ids.first().copied().unwrap_or_default(), self.first_id);
        assert!(ids.last().is_none_or(|&last| last <= self.last_id));
    }
}

/// Returns whether an entry with fields of `bytes` bytes may be added to a block.
fn fits(block: &Block, bytes: usize, limits: BlockLimits) -> bool {
    let bytes_max = match limits.bytes_max {
        0 => BYTES_MAX,
        bytes_max => bytes_max.min(BYTES_MAX),
    };
    block.listpack().len_bytes() + bytes < bytes_max
        && (limits.entries_max == 0 || block.total() < limits.entries_max)
}

/// Entries of a stream in order (see [`Log::range`]).
pub struct Range<'a> {
    blocks: &'a Blocks,
    start: StreamId,
    end: StreamId,
    /// The place of the next block.
    place: Option<Place>,
    /// The remaining entries of the block before `place`.
    entries: Option<Forward<'a>>,
}

impl<'a> Iterator for Range<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let start = self.start;
            let found = self.entries.as_mut().and_then(|entries| entries.find(|entry| entry.id >= start));
            if let Some(entry) = found {
                return Some(entry).filter(|entry| entry.id <= self.end);
            }
            let place = self.place?;
            let block = self.blocks.get(place);
            self.entries = Some(block.entries());
            self.place = self.blocks.next(place);
        }
    }
}

/// Entries of a stream from the last to the first (see [`Log::range_back`]).
pub struct RangeBack<'a> {
    blocks: &'a Blocks,
    start: StreamId,
    end: StreamId,
    place: Option<Place>,
    entries: Option<Backward<'a>>,
}

impl<'a> Iterator for RangeBack<'a> {
    type Item = Entry<'a>;

    fn next(&mut self) -> Option<Entry<'a>> {
        loop {
            let end = self.end;
            let found = self.entries.as_mut().and_then(|entries| entries.find(|entry| entry.id <= end));
            if let Some(entry) = found {
                return Some(entry).filter(|entry| entry.id >= self.start);
            }
            let place = self.place?;
            let block = self.blocks.get(place);
            self.entries = Some(block.entries_back());
            self.place = self.blocks.previous(place);
        }
    }
}
