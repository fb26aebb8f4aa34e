//! Iteration that prefetches entries a few steps ahead, because each entry is in another cache line.

use crate::entries::entry::EntryRef;

/// The number of entries being prefetched: enough to hide the latency of memory, and no more than the processor can
/// track.
const AHEAD: usize = 12;

/// An iterator over the same entries, with prefetching.
pub(super) struct FetchAhead<'a, I> {
    entries: I,
    /// The next entries, a ring buffer that begins at `at`; `None` after the end.
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
