//! Iteration that asks for entries a few steps before it comes to them: each is a cache line somewhere else in memory.

use crate::entries::entry::EntryRef;

/// Entries on their way into the cache: enough to hide the latency of memory, and no more than the processor keeps track
/// of.
const AHEAD: usize = 12;

/// An iterator over the same entries.
pub(super) struct FetchAhead<'a, I> {
    entries: I,
    /// What comes next, from `at` on, circularly; `None` behind the end.
    coming: [Option<EntryRef<'a>>; AHEAD],
    at: usize,
}

impl<'a, I: Iterator<Item = EntryRef<'a>>> FetchAhead<'a, I> {
    pub(super) fn new(entries: I) -> Self {
        let mut ahead = FetchAhead { entries, coming: [None; AHEAD], at: 0 };
        for at in 0..AHEAD {
            ahead.coming[at] = ahead.fetch();
        }
        ahead
    }

    fn fetch(&mut self) -> Option<EntryRef<'a>> {
        let entry = self.entries.next()?;
        entry.address().prefetch();
        Some(entry)
    }
}

impl<'a, I: Iterator<Item = EntryRef<'a>>> Iterator for FetchAhead<'a, I> {
    type Item = EntryRef<'a>;

    #[inline]
    fn next(&mut self) -> Option<EntryRef<'a>> {
        let entry = self.coming[self.at].take()?;
        self.coming[self.at] = self.fetch();
        self.at = (self.at + 1) % AHEAD;
        Some(entry)
    }
}
