//! The queue of live queries to be evaluated, which is fair between users.
//!
//! Each user has a line of queries. The lines take turns: between two queries of a user, at most one query of each
//! other line is evaluated, however long that line is. Queries that several users watch have a separate line.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;

use emberkv_core::live_query::LiveQuery;

use crate::clients::watchers::Marked;

/// The line of the queries that several users watch.
const SHARED: u16 = 0;

/// Queries without watchers are not removed while fewer than twice this number of queries are queued.
const KEPT_MIN: usize = 1024;

/// Returns the line of a user's queries. Several users may have the same line.
pub(crate) fn line_of(user: &[u8]) -> u16 {
    let mut hasher = DefaultHasher::new();
    user.hash(&mut hasher);
    1 + (hasher.finish() % u64::from(u16::MAX)) as u16
}

/// Records that a user watches a query.
pub(super) fn enter(query: &LiveQuery, user: &[u8], is_new: bool) {
    let line = line_of(user);
    if is_new {
        query.line.store(line, Ordering::Relaxed);
    } else if query.line.load(Ordering::Relaxed) != line {
        query.line.store(SHARED, Ordering::Relaxed);
    }
}

/// Queries to be evaluated, in one line per user.
#[derive(Default)]
pub(crate) struct FairQueue {
    /// The lines in the order in which they are next; none of them is empty.
    lines: VecDeque<(u16, VecDeque<Marked>)>,
    count: usize,
    /// The number of queries that remained after those without watchers were last removed.
    kept: usize,
}

impl FairQueue {
    pub(crate) fn len(&self) -> usize {
        self.count
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Adds a query at the end of its line. O(lines), plus amortised O(1) for removing queries without watchers.
    pub(crate) fn push(&mut self, marked: Marked) {
        if self.count >= 2 * self.kept.max(KEPT_MIN) {
            self.forget_unwatched();
        }
        self.count += 1;
        let line = marked.query.line.load(Ordering::Relaxed);
        match self.lines.iter_mut().find(|(other, _)| *other == line) {
            Some((_, queries)) => queries.push_back(marked),
            None => self.lines.push_back((line, VecDeque::from([marked]))),
        }
    }

    /// Removes and returns the first query of the next line.
    pub(crate) fn pop(&mut self) -> Option<Marked> {
        let (line, mut queries) = self.lines.pop_front()?;
        let marked = queries.pop_front();
        if !queries.is_empty() {
            self.lines.push_back((line, queries));
        }
        self.count -= usize::from(marked.is_some());
        marked
    }

    /// Removes queries without watchers.
    fn forget_unwatched(&mut self) {
        for (_, queries) in &mut self.lines {
            queries.retain(|marked| !marked.query.with_audience(|audience| audience.is_empty()));
        }
        self.lines.retain(|(_, queries)| !queries.is_empty());
        self.count = self.lines.iter().map(|(_, queries)| queries.len()).sum();
        self.kept = self.count;
    }
}

impl Extend<Marked> for FairQueue {
    fn extend<I: IntoIterator<Item = Marked>>(&mut self, queries: I) {
        queries.into_iter().for_each(|marked| self.push(marked));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Instant;

    use ember_protocol::{OwnedBatch, Protocol};
    use emberkv_core::live_query::Receiver;

    use super::*;

    fn marked(line: u16, database: usize, is_watched: bool) -> Marked {
        let mut batch = OwnedBatch::new();
        batch.push(&[b"GET", b"k"]);
        let query = LiveQuery::new(batch.command(0), 1, database, Protocol::Resp2, 0).unwrap();
        query.line.store(line, Ordering::Relaxed);
        if is_watched {
            let receiver = Receiver { client_id: 1, token: 1, number: database as u32 };
            query.with_audience(|audience| audience.add(0, receiver, false));
        }
        Marked { query: Arc::new(query), since: Instant::now() }
    }

    fn numbers(queue: &mut FairQueue) -> Vec<usize> {
        std::iter::from_fn(|| queue.pop()).map(|marked| marked.query.database()).collect()
    }

    #[test]
    fn users_alternate_regardless_of_their_numbers_of_queries() {
        let mut queue = FairQueue::default();
        queue.extend((0..5).map(|number| marked(7, number, true)));
        queue.push(marked(8, 10, true));
        queue.push(marked(9, 20, true));
        queue.push(marked(8, 11, true));
        assert_eq!(queue.len(), 8);
        assert_eq!(numbers(&mut queue), [0, 10, 20, 1, 11, 2, 3, 4]);
        assert!(queue.is_empty());
    }

    #[test]
    fn unwatched_queries_do_not_accumulate() {
        let mut queue = FairQueue::default();
        queue.extend((0..10).map(|number| marked(1, number, true)));
        queue.extend((0..100_000).map(|number| marked(2, number, false)));
        assert!(queue.len() <= 2 * KEPT_MIN, "{}", queue.len());
        let watched = numbers(&mut queue).len();
        assert!(watched >= 10, "{watched}");
    }

    #[test]
    fn queries_of_several_users_are_in_the_shared_line() {
        let Marked { query, .. } = marked(0, 0, true);
        enter(&query, b"ann", true);
        assert_eq!(query.line.load(Ordering::Relaxed), line_of(b"ann"));
        enter(&query, b"ann", false);
        assert_eq!(query.line.load(Ordering::Relaxed), line_of(b"ann"));
        enter(&query, b"bob", false);
        assert_eq!(query.line.load(Ordering::Relaxed), SHARED);
        assert!(line_of(b"ann") != SHARED && line_of(b"bob") != SHARED);
    }
}
