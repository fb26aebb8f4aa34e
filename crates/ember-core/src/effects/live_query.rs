//! Live queries: commands that somebody watches. When a key that one reads changes, it is run again.
//!
//! ```text
//! a key changes    the query is marked, under the lock of that key; who marks it first notifies its home   (observers.rs)
//! home worker      locks of all its keys ─ the mark is taken back ─ the command is run ─ its number ─ unlock
//! ```
//!
//! So no change is lost: one that comes before the mark is taken back is seen by the run, a later one marks the query again.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicU16, AtomicU64, Ordering};

use ember_protocol::{Args, Protocol, StoredCommand};

use super::audience::Audience;
use crate::memory::size_class;
use crate::sync::{AtomicBool, Mutex};

/// What a query takes in bytes besides its words, its receivers and its places at its keys: it is counted by those who
/// share it.
const QUERY_BYTES: usize = size_class(size_of::<LiveQuery>() + 2 * size_of::<usize>());

/// A command that is watched: all who watch the same words in the same database and protocol share it. There may be
/// millions: its fields are as small as what they count allows.
pub struct LiveQuery {
    // Fixed.
    call: StoredCommand,
    digest: u32,
    database: u32,
    home: u16,
    /// What the server knows the command by.
    pub command: u16,
    /// The protocol of its results.
    pub protocol: Protocol,
    // Shared.
    /// A key has changed since the query was last run.
    is_marked: AtomicBool,
    /// Who is to be told. Changed only under the locks of all keys.
    audience: Mutex<Audience>,
    /// The line in which it waits to be run, one for each user: its home's choice.
    pub line: AtomicU16,
    /// Its home does not run it before this time, in a unit and from a beginning of the home's choice.
    pub not_before: AtomicU64,
}

/// A connection that watches a query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receiver {
    /// Its client's id.
    pub client_id: u64,
    /// Its number at its worker.
    pub token: u32,
    /// The number that it knows the query by.
    pub number: u32,
}

/// The hash of the words of a call.
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
    /// A query that nobody watches yet, of a database and with a home, the worker that runs it; none if the words are more
    /// than can be kept.
    pub fn new(
        args: Args<'_>,
        command: u16,
        database: usize,
        protocol: Protocol,
        home: usize,
    ) -> Option<LiveQuery> {
        Some(LiveQuery {
            call: StoredCommand::new(args)?,
            digest: digest(args),
            command,
            database: database as u32,
            protocol,
            home: home as u16,
            is_marked: AtomicBool::new(false),
            audience: Mutex::new(Audience::default()),
            line: AtomicU16::new(0),
            not_before: AtomicU64::new(0),
        })
    }

    /// The call.
    pub fn call(&self) -> Args<'_> {
        self.call.args()
    }

    /// The hash of its words, by which it is found.
    pub(super) fn digest(&self) -> u32 {
        self.digest
    }

    /// The number of its database.
    pub fn database(&self) -> usize {
        self.database as usize
    }

    /// The worker that runs it.
    pub fn home(&self) -> usize {
        usize::from(self.home)
    }

    /// Whether it is this call.
    pub fn is_for(&self, args: Args<'_>, database: usize, protocol: Protocol) -> bool {
        self.database() == database && self.protocol == protocol && self.call().iter().eq(args.iter())
    }

    /// The memory in bytes that it takes, without its places at its keys.
    pub fn memory_bytes(&self) -> usize {
        let words = self.call.allocations().map(|bytes| if bytes == 0 { 0 } else { size_class(bytes) });
        QUERY_BYTES + words.iter().sum::<usize>() + self.with_audience(|audience| audience.memory_bytes())
    }

    /// Marks it to be run again, under the lock of one of its keys; false if it was marked already.
    ///
    /// Without a lock too, where nothing has changed, but no result is known to all any more ([`Audience::set_known`]): a
    /// run that has taken the mark back before has looked at the audience before that, or tells all.
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

/// For tests.
#[cfg(test)]
impl LiveQuery {
    /// A query of the string under a key.
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
    fn a_mark_is_made_once_until_it_is_taken_back() {
        let query = LiveQuery::of_string("a");
        assert!(!query.is_marked() && query.mark() && !query.mark() && query.is_marked());
        query.unmark();
        assert!(query.mark());
    }
}
