//! Streams: entries with ascending IDs, and groups of consumers that share them.
//!
//! [`log`] contains the entries, in blocks of Redis's format ([`block`]), and [`group`] the consumer groups. A group
//! refers to entries by their IDs only; entries may be deleted while they are pending.

mod block;
mod blocks;
mod group;
mod id;
mod log;
#[cfg(test)]
mod tests;

pub use block::{Entry, Fields};
pub use group::{Consumer, ConsumerNumber, Group, Groups, Pending};
pub use id::StreamId;
pub use log::{AppendError, BlockLimits, Log, Range, RangeBack, Trim};

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::memory::moving::Mover;
use crate::memory::size_class;
use crate::types::collection::Collection;
use crate::types::value::ValueType;

/// The value of a key that holds a stream. The key exists even without entries.
#[derive(Clone, Debug, Default)]
pub struct Stream(Box<Parts>);

#[derive(Clone, Debug, Default)]
struct Parts {
    log: Log,
    groups: Groups,
}

/// The handling of pending references of consumer groups to deleted entries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum References {
    /// The references stay pending.
    #[default]
    Keep,
    /// The references are no longer pending.
    Delete,
    /// Entries that a group has yet to read or to acknowledge are not deleted.
    Respect,
}

/// The entries removed from the beginning of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Trimmed {
    /// The number of removed entries.
    pub entries: u64,
    /// The number of removed references of consumer groups to entries, some of which were deleted before.
    pub references: u64,
}

/// Side effects of removing entries, recorded if the caller wants them.
#[derive(Clone, Debug, Default)]
pub struct Traces(Option<TraceRecords>);

#[derive(Clone, Debug, Default)]
struct TraceRecords {
    deleted: Vec<StreamId>,
    acknowledged: BTreeMap<Box<[u8]>, Vec<StreamId>>,
}

impl Traces {
    /// Returns empty traces; side effects are recorded if `wanted`.
    pub fn new(wanted: bool) -> Traces {
        Traces(wanted.then(TraceRecords::default))
    }

    /// Records that entries were deleted, wherever they were.
    pub fn record_deleted(&mut self, ids: &[StreamId]) {
        if let Traces(Some(records)) = self {
            records.deleted.extend(ids);
        }
    }

    /// Records that an entry is no longer pending in a group.
    pub fn record_acknowledged(&mut self, group: &[u8], id: StreamId) {
        if let Traces(Some(records)) = self {
            records.acknowledged.entry(group.into()).or_default().push(id);
        }
    }

    /// Returns the entries that were deleted.
    pub fn deleted(&self) -> &[StreamId] {
        self.0.as_ref().map_or(&[], |records| &records.deleted)
    }

    /// Returns the entries that are no longer pending, by the names of groups.
    pub fn acknowledged(&self) -> impl Iterator<Item = (&[u8], &[StreamId])> {
        let groups = self.0.iter().flat_map(|records| &records.acknowledged);
        groups.map(|(name, ids)| (&**name, &**ids))
    }
}

impl Stream {
    /// Removes entries from the beginning; returns how many entries and how many references were removed. With
    /// [`References::Respect`], entries that a group needs are not removed. With `whole_blocks`, only whole blocks are
    /// removed. `limit` is the maximum number of removed entries; 0 for no limit. O(blocks removed + a block); unless
    /// `references` is [`References::Keep`], O(entries examined · groups · log pending).
    pub fn trim(
        &mut self,
        trim: Trim,
        whole_blocks: bool,
        limit: u64,
        references: References,
        traces: &mut Traces,
    ) -> Trimmed {
        let Parts { log, groups } = &mut *self.0;
        let mut references_removed = 0;
        let entries = match references {
            References::Delete if !groups.is_empty() => {
                let begin = log.begins_at();
                let entries = log.trim(trim, whole_blocks, limit);
                // Entries of the trimmed range that were deleted earlier may still be pending.
                let end = match trim {
                    _ if whole_blocks => {
                        log.begins_at().map_or(Bound::Included(log.last_id()), Bound::Excluded)
                    }
                    Trim::BelowId(id) => Bound::Excluded(id),
                    Trim::ToLen(_) if entries == 0 => Bound::Excluded(StreamId::MIN),
                    Trim::ToLen(_) if log.is_empty() => Bound::Included(log.last_id()),
                    Trim::ToLen(_) => Bound::Excluded(log.first_id()),
                };
                if let Some(begin) = begin {
                    groups.acknowledge_range(begin, end, |group, id| {
                        references_removed += 1;
                        traces.record_acknowledged(group, id);
                    });
                }
                entries
            }
            References::Respect if !groups.is_empty() => {
                let is_needed = |id| groups.need(id);
                log.trim_unneeded(trim, whole_blocks, limit, is_needed, |ids| traces.record_deleted(ids))
            }
            _ => log.trim(trim, whole_blocks, limit),
        };
        Trimmed { entries, references: references_removed }
    }

    /// Returns the entries.
    pub fn log(&self) -> &Log {
        &self.0.log
    }

    /// Returns a mutable reference to the entries.
    pub fn log_mut(&mut self) -> &mut Log {
        &mut self.0.log
    }

    /// Returns the consumer groups.
    pub fn groups(&self) -> &Groups {
        &self.0.groups
    }

    /// Returns a mutable reference to the consumer groups.
    pub fn groups_mut(&mut self) -> &mut Groups {
        &mut self.0.groups
    }

    /// Lets `edit` change an existing consumer group while it reads the entries.
    pub fn edit_group<R>(&mut self, name: &[u8], edit: impl FnOnce(&Log, &mut Group) -> R) -> Option<R> {
        let Parts { log, groups } = &mut *self.0;
        groups.edit(name, |group| edit(log, group))
    }
}

impl Collection for Stream {
    const TYPE: ValueType = ValueType::Stream;

    fn encoding_name(&self) -> &'static str {
        "stream"
    }

    fn memory_bytes(&self) -> usize {
        size_class(size_of::<Parts>()) + self.log().blocks.memory_bytes() + self.groups().memory_bytes()
    }

    fn len(&self) -> usize {
        usize::try_from(self.log().len()).unwrap_or(usize::MAX)
    }

    fn is_vacant(&self) -> bool {
        false
    }

    fn free_effort(&self) -> usize {
        let pending: usize = self.groups().iter().map(|(_, group)| 1 + group.pending_count()).sum();
        self.log().block_count() + pending
    }

    /// Moves nothing inside of a stream.
    fn move_inside(&mut self, _from: u64, _most: usize, _mover: &mut Mover<'_>) -> u64 {
        0
    }

    fn check_invariants(&self) {
        self.log().check_invariants();
        self.groups().check_invariants();
    }
}

/// Returns the approximate memory in bytes that an entry of `bytes` takes in a tree of the standard library: a tree
/// filled in ascending order leaves five of eleven places of a leaf free.
fn tree_share(bytes: usize) -> usize {
    const PLACES: usize = 11;
    const FILLED: usize = 6;
    const LEAF_HEAD_BYTES: usize = 16;
    size_class(PLACES * bytes + LEAF_HEAD_BYTES) / FILLED
}
