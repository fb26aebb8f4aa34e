//! Live queries: watched commands. When a key that one reads changes, it is evaluated again.
//!
//! ```text
//! a key changes    the query is marked, under the lock of that key; the first mark notifies its owner   (observers.rs)
//! owner            locks of all its keys ─ the mark is cleared ─ the command is run ─ its number ─ unlock
//! ```
//!
//! So no change is lost: the evaluation sees a change from before the mark is cleared, and a later one marks the query
//! again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use ember_protocol::{Args, Protocol, StoredCommand};

use super::audience::Audience;
use crate::memory::size_class;
use crate::sync::{AtomicBool, Mutex};

/// Bytes of a query, besides its words, its receivers and its entries in the shards' lists, which are counted
/// separately.
const QUERY_BYTES: usize = size_class(size_of::<LiveQuery>() + 2 * size_of::<usize>());

/// A watched command, shared by all watchers of the same words in the same database and protocol. There may be
/// millions, so its fields are as small as possible.
pub struct LiveQuery {
    // Fixed.
    call: StoredCommand,
    digest: u32,
    database: u32,
    owner: u16,
    /// The server's number for the command.
    pub command: u16,
    /// The protocol of its results.
    pub protocol: Protocol,
    // Shared.
    /// Whether a key has changed since the last evaluation.
    is_marked: AtomicBool,
    /// The receivers of results. Changed only under the locks of all keys.
    audience: Mutex<Audience>,
    /// The queue in which the query waits for evaluation, one for each user; chosen by the owner.
    pub line: AtomicU16,
    /// The owner does not evaluate the query before this time, whose unit and origin the owner chooses.
    pub not_before: AtomicU64,
}

/// A connection that watches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its client's id.
    pub client_id: u64,
    /// The connection's number at its worker.
    pub token: u32,
    /// The client's number for the query.
    pub number: u32,
}

/// Returns the hash of the words of a call.
pub(super) fn digest(call: Args<'_>) -> u32 {
    let mut hasher = DefaultHasher::new();
    call.iter().for_each(|word| word.hash(&mut hasher));
    hasher.finish() as u32
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
    /// Returns a query without watchers, whose owner is worker `owner`; none if the words are too many to store.
    pub fn new(
        args: Args<'_>,
        command: u16,
        database: usize,
        protocol: Protocol,
        owner: usize,
    ) -> Option<LiveQuery> {
        Some(LiveQuery {
            call: StoredCommand::new(args)?,
            digest: digest(args),
            command,
            database: database as u32,
            protocol,
            owner: owner as u16,
            is_marked: AtomicBool::new(false),
            audience: Mutex::new(Audience::default()),
            line: AtomicU16::new(0),
            not_before: AtomicU64::new(0),
        })
    }

    /// Returns the call.
    pub fn call(&self) -> Args<'_> {
        self.call.args()
    }

    /// Returns the hash of its words, by which it is found.
    pub(super) fn digest(&self) -> u32 {
        self.digest
    }

    /// Returns the number of its database.
    pub fn database(&self) -> usize {
        self.database as usize
    }

    /// Returns its owner: the worker that evaluates it.
    pub fn owner(&self) -> usize {
        usize::from(self.owner)
    }

    /// Returns whether it is this call.
    pub fn is_for(&self, args: Args<'_>, database: usize, protocol: Protocol) -> bool {
        self.database() == database && self.protocol == protocol && self.call().iter().eq(args.iter())
    }

    /// Returns its memory in bytes, without its entries in the shards' lists.
    pub fn memory_bytes(&self) -> usize {
        let words = self.call.allocations().map(|bytes| if bytes == 0 { 0 } else { size_class(bytes) });
        QUERY_BYTES + words.iter().sum::<usize>() + self.with_audience(|audience| audience.memory_bytes())
    }

    /// Marks the query for evaluation, under the lock of one of its keys; returns false if it was marked already.
    ///
    /// Needs no lock if no key has changed but the receivers no longer have the same result ([`Audience::set_known`]):
    /// an evaluation that has already cleared the mark either read the audience before that change or notifies all
    /// receivers.
    pub fn mark(&self) -> bool {
        // The locks of the keys order marks and evaluations. The load keeps the cache line shared if the query is
        // marked already.
        !self.is_marked.load(Ordering::Relaxed) && !self.is_marked.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the query is to be evaluated again.
    pub fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    /// Clears the mark, under the locks of all its keys: the evaluation that follows sees all changes so far.
    pub fn unmark(&self) {
        self.is_marked.store(false, Ordering::Relaxed);
    }

    /// Calls `inspect` with exclusive access to the receivers.
    pub fn with_audience<R>(&self, inspect: impl FnOnce(&mut Audience) -> R) -> R {
        inspect(&mut self.audience.lock())
    }
}

/// For tests.
#[cfg(test)]
impl LiveQuery {
    /// Returns a query of the string at a key.
    pub(super) fn of_string(name: &str) -> std::sync::Arc<LiveQuery> {
        let mut batch = ember_protocol::OwnedBatch::new();
        batch.push(&[b"GET", name.as_bytes()]);
        let query = LiveQuery::new(batch.command(0), 1, 0, Protocol::Resp2, 0);
        std::sync::Arc::new(query.expect("the call is short"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_small() {
        assert!(size_of::<LiveQuery>() <= 112, "{}", size_of::<LiveQuery>());
    }

    #[test]
    fn a_query_is_marked_once_until_it_is_unmarked() {
        let query = LiveQuery::of_string("a");
        assert!(!query.is_marked() && query.mark() && !query.mark() && query.is_marked());
        query.unmark();
        assert!(query.mark());
    }
}
