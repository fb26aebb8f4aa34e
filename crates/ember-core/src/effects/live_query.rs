//! Live queries: watched commands. When a key that such a command reads has changed, the command is run again.
//!
//! ```text
//! a key changes    the query is marked, under the lock of that key; the first mark notifies its owner   (observers.rs)
//! owner            locks of all its keys ─ the mark is cleared ─ the command is run ─ its number ─ unlock
//! ```
//!
//! So no change is lost: an evaluation sees all changes made before the mark is cleared, and a later change marks the
//! query again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use ember_protocol::{Args, Protocol, StoredCommand};

use super::audience::Audience;
use crate::memory::size_class;
use crate::sync::{AtomicBool, Mutex};

/// The memory of a query in bytes, excluding its words, its receivers and its entries in the shards' lists, which are
/// counted separately.
const QUERY_BYTES: usize = size_class(size_of::<LiveQuery>() + 2 * size_of::<usize>());

/// A watched command, shared by all watchers of the same words in the same database and protocol. There may be millions
/// of live queries, so the fields are as small as possible.
pub struct LiveQuery {
    // Fields that do not change.
    call: StoredCommand,
    digest: u32,
    database: u32,
    owner: u16,
    /// The server's number for the command.
    pub command: u16,
    /// The protocol in which the results are encoded.
    pub protocol: Protocol,
    // Fields that other threads change.
    /// Whether a key of the query has changed since the last evaluation.
    is_marked: AtomicBool,
    /// The receivers of the results. Changed only under the locks of all keys of the query.
    audience: Mutex<Audience>,
    /// The number of the queue in which the query waits for evaluation; the owner has a queue for each user.
    pub line: AtomicU16,
    /// The owner does not evaluate the query before this time, on a clock that the owner chooses.
    pub not_before: AtomicU64,
}

/// A connection that watches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// The id of the connection's client.
    pub client_id: u64,
    /// The number that identifies the connection on its worker.
    pub token: u32,
    /// The number by which the client identifies the query.
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
    /// Returns a query without watchers, whose owner is worker `owner`; `None` if the call is too long to store.
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

    /// Returns the watched call.
    pub fn call(&self) -> Args<'_> {
        self.call.args()
    }

    /// Returns the hash of the call's words, by which the query is found.
    pub(super) fn digest(&self) -> u32 {
        self.digest
    }

    /// Returns the number of the database of the call.
    pub fn database(&self) -> usize {
        self.database as usize
    }

    /// Returns the query's owner: the worker that evaluates the query.
    pub fn owner(&self) -> usize {
        usize::from(self.owner)
    }

    /// Returns whether the query watches this call, in this database and protocol.
    pub fn is_for(&self, args: Args<'_>, database: usize, protocol: Protocol) -> bool {
        self.database() == database && self.protocol == protocol && self.call().iter().eq(args.iter())
    }

    /// Returns the memory of the query in bytes, excluding its entries in the shards' lists.
    pub fn memory_bytes(&self) -> usize {
        let words = self.call.allocations().map(|bytes| if bytes == 0 { 0 } else { size_class(bytes) });
        QUERY_BYTES + words.iter().sum::<usize>() + self.with_audience(|audience| audience.memory_bytes())
    }

    /// Marks the query for evaluation, under the lock of one of its keys; returns false if it was marked already.
    ///
    /// The caller needs no lock if only the audience has changed, so that the receivers no longer have the same result
    /// ([`Audience::set_known`]). A concurrent evaluation that has already cleared the mark either has read the
    /// audience before that change or notifies all receivers.
    pub fn mark(&self) -> bool {
        // The locks of the keys order marks and evaluations. The load avoids a write to the cache line if the query is
        // marked already.
        !self.is_marked.load(Ordering::Relaxed) && !self.is_marked.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the query must be evaluated again.
    pub fn is_marked(&self) -> bool {
        self.is_marked.load(Ordering::Relaxed)
    }

    /// Clears the mark, under the locks of all keys of the query: the evaluation that follows sees all changes so far.
    pub fn unmark(&self) {
        self.is_marked.store(false, Ordering::Relaxed);
    }

    /// Calls `inspect` with exclusive access to the receivers.
    pub fn with_audience<R>(&self, inspect: impl FnOnce(&mut Audience) -> R) -> R {
        inspect(&mut self.audience.lock())
    }
}

/// Constructors for tests.
#[cfg(test)]
impl LiveQuery {
    /// Returns a live query that reads the string at a key.
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
