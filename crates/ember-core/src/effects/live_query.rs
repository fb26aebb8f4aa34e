//! Live queries: commands that somebody watches. When a key that one reads changes, it is run again.
//!
//! ```text
//! a key changes    the query is marked, under the lock of that key; who marks it first notifies its home   (observers.rs)
//! home worker      locks of all its keys ─ the mark is taken back ─ the command is run ─ its number ─ unlock
//! ```
//!
//! So no change is lost: one that comes before the mark is taken back is seen by the run, a later one marks the query again.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ember_protocol::{Args, OwnedBatch, Protocol};

use crate::sync::{AtomicBool, Mutex};

/// About what a query takes besides its words, with its place at one key, in bytes.
const QUERY_BYTES: usize = 224;

/// About what each further key takes.
const KEY_BYTES: usize = 48;

/// A command that is watched: all who watch the same words in the same database and protocol share it.
pub struct LiveQuery {
    // Fixed.
    call: OwnedBatch,
    /// What the server knows the command by.
    pub command: u16,
    /// The number of its database.
    pub database: usize,
    /// The protocol of its results.
    pub protocol: Protocol,
    /// The worker that runs it.
    pub home: usize,
    // Shared.
    /// A key has changed since the query was last run.
    is_marked: AtomicBool,
    /// Who is to be told. Changed only under the locks of all keys.
    audience: Mutex<Audience>,
    /// Its home does not run it before this time, in a unit and from a beginning of the home's choice.
    pub not_before: AtomicU64,
}

/// Who is to be told of a query's results.
#[derive(Debug, Default)]
pub struct Audience {
    /// The workers with connections that watch it, and how many watchers each has that want equal results too.
    pub workers: Vec<(u16, u32)>,
    /// The hash of the result that all of them know; `None` if some know another.
    pub known: Option<u128>,
}

impl std::fmt::Debug for LiveQuery {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LiveQuery")
            .field("database", &self.database)
            .field("call", &self.call())
            .finish_non_exhaustive()
    }
}

impl LiveQuery {
    /// A query that nobody watches yet.
    pub fn new(args: Args<'_>, command: u16, database: usize, protocol: Protocol, home: usize) -> LiveQuery {
        let mut call = OwnedBatch::new();
        call.append(args);
        LiveQuery {
            call,
            command,
            database,
            protocol,
            home,
            is_marked: AtomicBool::new(false),
            audience: Mutex::new(Audience::default()),
            not_before: AtomicU64::new(0),
        }
    }

    /// The call.
    pub fn call(&self) -> Args<'_> {
        self.call.command(0)
    }

    /// Whether it is this call.
    pub fn is_for(&self, args: Args<'_>, database: usize, protocol: Protocol) -> bool {
        self.database == database && self.protocol == protocol && self.call().iter().eq(args.iter())
    }

    /// About the memory in bytes that it takes when it has `keys` keys.
    pub fn memory_bytes(&self, keys: usize) -> usize {
        QUERY_BYTES + self.call.memory_bytes() + keys.saturating_sub(1) * KEY_BYTES
    }

    /// Marks it to be run again, under the lock of one of its keys; false if it was marked already.
    pub fn mark(&self) -> bool {
        // The locks of the keys order marks and runs. The load keeps the line shared while nothing is to be done.
        !self.is_marked.load(Ordering::Relaxed) && !self.is_marked.swap(true, Ordering::Relaxed)
    }

    /// Whether it is to be run again.
    pub fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    /// Takes the mark back, under the locks of all its keys: the run that follows sees all changes so far.
    pub fn unmark(&self) {
        self.is_marked.store(false, Ordering::Relaxed);
    }

    /// Lets `look` see and change who is to be told.
    pub fn with_audience<R>(&self, look: impl FnOnce(&mut Audience) -> R) -> R {
        look(&mut self.audience.lock())
    }
}

impl Audience {
    /// Adds a watcher of a worker.
    pub fn add(&mut self, worker: usize, wants_equal: bool) {
        let worker = worker as u16;
        let at = self.workers.iter().position(|&(other, _)| other == worker).unwrap_or_else(|| {
            self.workers.reserve_exact(1);
            self.workers.push((worker, 0));
            self.workers.len() - 1
        });
        self.workers[at].1 += u32::from(wants_equal);
    }

    /// Takes a watcher of a worker away, the last one there if `is_last`.
    pub fn remove(&mut self, worker: usize, wants_equal: bool, is_last: bool) {
        let worker = worker as u16;
        if let Some(at) = self.workers.iter().position(|&(other, _)| other == worker) {
            self.workers[at].1 -= u32::from(wants_equal);
            if is_last {
                self.workers.swap_remove(at);
            }
        }
    }

    /// Whether somebody wants equal results too.
    pub fn wants_equal(&self) -> bool {
        self.workers.iter().any(|&(_, count)| count > 0)
    }
}

/// The queries of a shard's keys, by the tags of their keys' hashes. Two keys may have the same tag: then a change of one
/// runs the queries of the other too, whose results are the same as before.
#[derive(Default)]
pub(super) struct Queries(HashMap<u32, Few, BuildHasherDefault<TagHasher>>);

/// One query, nearly always.
enum Few {
    One(Arc<LiveQuery>),
    Many(Vec<Arc<LiveQuery>>),
}

impl Few {
    fn as_slice(&self) -> &[Arc<LiveQuery>] {
        match self {
            Few::One(query) => std::slice::from_ref(query),
            Few::Many(queries) => queries,
        }
    }
}

impl Queries {
    /// Whether there is none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The queries of all keys, some of them several times.
    pub(super) fn all(&self) -> impl Iterator<Item = &Arc<LiveQuery>> {
        self.0.values().flat_map(Few::as_slice)
    }

    /// Those of keys with this tag.
    pub(super) fn of(&self, tag: u32) -> &[Arc<LiveQuery>] {
        self.0.get(&tag).map_or(&[], Few::as_slice)
    }

    /// Enters a query for a key with this tag, once.
    pub(super) fn enter(&mut self, tag: u32, query: &Arc<LiveQuery>) {
        match self.0.get_mut(&tag) {
            None => _ = self.0.insert(tag, Few::One(Arc::clone(query))),
            Some(few) if few.as_slice().iter().any(|other| Arc::ptr_eq(other, query)) => {}
            Some(Few::Many(queries)) => queries.push(Arc::clone(query)),
            Some(few) => *few = Few::Many(few.as_slice().iter().chain([query]).cloned().collect()),
        }
    }

    /// Takes a query away from the keys with this tag.
    pub(super) fn leave(&mut self, tag: u32, query: &Arc<LiveQuery>) {
        let is_it = |other: &Arc<LiveQuery>| Arc::ptr_eq(other, query);
        let is_over = match self.0.get_mut(&tag) {
            None => false,
            Some(Few::One(only)) => is_it(only),
            Some(Few::Many(queries)) => {
                queries.retain(|other| !is_it(other));
                queries.is_empty()
            }
        };
        if is_over {
            self.0.remove(&tag);
        }
        if self.0.len() < self.0.capacity() / 8 {
            self.0.shrink_to_fit();
        }
    }
}

/// Spreads tags, which are random bits already, over all bits that a table looks at.
#[derive(Default)]
struct TagHasher(u64);

impl Hasher for TagHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u32(u32::from(byte)));
    }

    fn write_u32(&mut self, tag: u32) {
        // 2^64 divided by the golden ratio: neighbouring tags end far from each other.
        self.0 = (self.0 ^ u64::from(tag)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn query(name: &str) -> Arc<LiveQuery> {
        let mut batch = OwnedBatch::new();
        batch.push(&[b"GET", name.as_bytes()]);
        Arc::new(LiveQuery::new(batch.command(0), 1, 0, Protocol::Resp2, 0))
    }

    #[test]
    fn a_mark_is_made_once_until_it_is_taken_back() {
        let query = query("a");
        assert!(!query.is_marked() && query.mark() && !query.mark() && query.is_marked());
        query.unmark();
        assert!(query.mark());
    }

    #[test]
    fn queries_are_found_by_tag_until_the_last_has_left() {
        let mut queries = Queries::default();
        let (a, b, c) = (query("a"), query("b"), query("c"));
        for (tag, query) in [(1, &a), (1, &b), (1, &b), (2, &c)] {
            queries.enter(tag, query);
        }
        assert_eq!((queries.of(1).len(), queries.of(2).len(), queries.of(3).len()), (2, 1, 0));
        queries.leave(1, &a);
        queries.leave(1, &c);
        assert!(Arc::ptr_eq(&queries.of(1)[0], &b) && queries.of(1).len() == 1);
        queries.leave(1, &b);
        queries.leave(2, &c);
        assert!(queries.is_empty());
    }

    #[test]
    fn the_audience_ends_with_the_last_watcher_of_each_worker() {
        let mut audience = Audience::default();
        audience.add(3, true);
        audience.add(3, false);
        audience.add(1, false);
        assert!(audience.wants_equal());
        audience.remove(3, true, false);
        assert!(!audience.wants_equal() && audience.workers.len() == 2);
        audience.remove(3, false, true);
        audience.remove(1, false, true);
        assert!(audience.workers.is_empty());
    }
}
