//! The log of a member: the latest changes, numbered without gaps.

use crate::change::Change;

/// A change with its place in the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The number of the entry; entries are numbered from 1.
    pub index: u64,
    /// The term of the leader that appended the entry.
    pub term: u64,
    /// The change.
    pub change: Change,
}

/// The entries after a base, which is the last entry that was removed because it is part of the topology.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The index and the term of the base.
    base: (u64, u64),
    entries: Vec<Entry>,
}

impl Log {
    /// Returns a log without entries after this base.
    pub fn new(base: (u64, u64)) -> Log {
        Log { base, entries: Vec::new() }
    }

    /// Returns the index and the term of the base.
    pub fn base(&self) -> (u64, u64) {
        self.base
    }

    /// Returns all entries.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Returns the index and the term of the last entry.
    pub fn last(&self) -> (u64, u64) {
        self.entries.last().map_or(self.base, |entry| (entry.index, entry.term))
    }

    /// Returns the term of an entry or of the base.
    pub fn term_at(&self, index: u64) -> Option<u64> {
        if index == self.base.0 { Some(self.base.1) } else { self.entry(index).map(|entry| entry.term) }
    }

    /// Returns an entry.
    pub fn entry(&self, index: u64) -> Option<&Entry> {
        let at = index.checked_sub(self.base.0 + 1)?;
        self.entries.get(usize::try_from(at).ok()?)
    }

    /// Returns the entries from `index` on, which is after the base.
    pub fn from(&self, index: u64) -> &[Entry] {
        let at = usize::try_from(index - self.base.0 - 1).unwrap_or(usize::MAX);
        self.entries.get(at..).unwrap_or_default()
    }

    /// Appends an entry.
    ///
    /// # Panics
    /// Panics if it is not the next one.
    pub fn push(&mut self, entry: Entry) {
        assert_eq!(entry.index, self.last().0 + 1, "entries have no gaps");
        self.entries.push(entry);
    }

    /// Removes the entries after `index`.
    pub(super) fn truncate_after(&mut self, index: u64) {
        let kept = index.saturating_sub(self.base.0);
        self.entries.truncate(usize::try_from(kept).unwrap_or(usize::MAX));
    }

    /// Makes an entry of the log the base, and removes it with the entries before it.
    pub(super) fn compact(&mut self, index: u64) {
        let Some(term) = self.term_at(index) else { return };
        let removed = usize::try_from(index - self.base.0).expect("the entries are in memory");
        self.entries.drain(..removed);
        self.base = (index, term);
    }
}
