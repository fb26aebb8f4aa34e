//! Prepares a batch before its commands run, and prefetches the memory that they will read.
//!
//! A lookup of a random key reads three places that depend on each other and are seldom in the cache: the head of the
//! shard, a line of slots, the entry. Each is prefetched some commands before the next one is read:
//!
//! ```text
//! command   0 …                              while its name and key are hashed: the head of the shard
//!          -16                               the line of slots
//!           -8                               the entry
//! ```
//!
//! Most of these prefetches are issued between commands that run, because a burst of them waits for the memory while
//! nothing else is done (`docs/decisions/key-prefetch.md`).

use std::time::Instant;

use ember_protocol::{Args, Batch};
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::keyspace::hash::KeyHash;
use emberkv_core::turn::Turn;
use emberkv_core::types::elements::FETCHED_MAX;

use super::Executor;
use crate::catalogue::registry::{Command, Registry};
use crate::clients::assembly::Forwarded;
use crate::clients::client::Client;

/// The minimum number of commands in a batch for which keys are prefetched: with fewer, there is no latency to overlap.
pub(super) const FETCH_AHEAD_MIN: usize = 3;

/// The number of commands before a command at which the line of slots of its key is prefetched.
pub(super) const SLOTS_AHEAD: usize = 16;

/// The number of commands before a command at which the entry of its key is prefetched. That leaves the time of eight
/// commands for each of the two prefetches: several times the latency of the memory.
const ENTRY_AHEAD: usize = 8;

/// The number of commands whose keys are hashed between the prefetch of a shard's head and the first read of it.
pub(super) const HEAD_AHEAD: usize = 4;

/// The result of [`Executor::prepare`] for a command.
#[derive(Clone, Copy)]
pub(super) struct Prepared {
    pub(super) command: Option<&'static Command>,
    /// The hash of the command's key, if it has exactly one.
    pub(super) hash: Option<KeyHash>,
    /// Whether the key is prefetched: this worker runs the command, and the command before it has another key.
    is_fetched: bool,
}

/// Commands whose keys can be prefetched.
pub(super) trait Upcoming {
    /// Returns the hash of the key to prefetch for the command with this number; `None` if there is none, also beyond the
    /// last command.
    fn hash_at(&self, at: usize) -> Option<KeyHash>;

    /// Returns whether the command with this number may change its key.
    fn writes_at(&self, at: usize) -> bool;
}

impl Upcoming for Vec<Prepared> {
    #[inline]
    fn hash_at(&self, at: usize) -> Option<KeyHash> {
        self.get(at).filter(|prepared| prepared.is_fetched)?.hash
    }

    fn writes_at(&self, at: usize) -> bool {
        self[at].command.is_some_and(Command::writes)
    }
}

/// The commands of a message from another worker.
impl Upcoming for (&Forwarded, &Registry) {
    #[inline]
    fn hash_at(&self, at: usize) -> Option<KeyHash> {
        self.0.prepared.get(at).map(|&(_, hash)| hash)
    }

    fn writes_at(&self, at: usize) -> bool {
        self.1.get(self.0.prepared[at].0).writes()
    }
}

/// Prefetches the keys of commands on one database.
#[derive(Clone, Copy)]
pub(super) struct FetchAhead {
    keyspace: &'static Keyspace,
    database: usize,
    /// Whether there are live queries, whose filter a command that changes its key reads.
    has_queries: bool,
}

impl FetchAhead {
    /// Runs the prefetch steps that must precede the command with number `at`.
    #[inline]
    pub(super) fn fetch_after(self, at: usize, upcoming: &impl Upcoming) {
        self.fetch(at + SLOTS_AHEAD, upcoming);
    }

    /// Runs the prefetch steps that must precede the first of `count` commands, except the first `fetched` ones.
    pub(super) fn fetch_first(self, fetched: usize, count: usize, upcoming: &impl Upcoming) {
        (fetched..SLOTS_AHEAD.min(count + ENTRY_AHEAD)).for_each(|at| self.fetch(at, upcoming));
    }

    /// Prefetches the line of slots for the command with number `at`, and the entry for an earlier command.
    #[inline]
    fn fetch(self, at: usize, upcoming: &impl Upcoming) {
        if let Some(hash) = upcoming.hash_at(at) {
            self.keyspace.prefetch_group(hash);
        }
        let Some(at) = at.checked_sub(SLOTS_AHEAD - ENTRY_AHEAD) else { return };
        match upcoming.hash_at(at) {
            Some(hash) if self.has_queries && upcoming.writes_at(at) => {
                self.keyspace.prefetch_queried_entry(self.database, hash);
            }
            Some(hash) => self.keyspace.prefetch_entry(self.database, hash),
            None => {}
        }
    }
}

impl Executor {
    /// Begins a batch, of which the commands from number `start` on will run: finds commands, hashes keys, and prefetches
    /// the memory that the first commands will read. Returns whether a command may take so long that the worker serves
    /// its other connections meanwhile.
    pub(crate) fn prepare(&mut self, client: &Client, batch: &Batch, input: &[u8], start: usize) -> bool {
        self.last_record = 0;
        self.clock = Instant::now();
        self.refresh_lease();
        self.sizes.begin_batch(batch.wire_bytes_max(input.len()));
        let mut may_be_long = client.primary.is_some();
        let ahead = self.fetch_ahead(client.database);
        let Executor { server, index, prepared, .. } = self;
        let keyspace = &server.keyspace;
        let is_concurrent = server.runs_anywhere();
        let is_here = |hash: KeyHash| is_concurrent || server.owner_of(hash.shard()) == *index;
        let fetches = batch.len() - start >= FETCH_AHEAD_MIN;
        let (mut last_name, mut command): (&[u8], Option<&Command>) = (&[], None);
        let mut last_hash = None;
        prepared.clear();
        for number in start..batch.len() {
            let args = batch.command(number, input);
            let name = args.at(0);
            if name != last_name {
                (last_name, command) = (name, server.registry.find(name));
                may_be_long |= command.is_some_and(|command| !command.runs_on_keys());
            }
            let mut hash = None;
            if let Some(Command { access: Access::One(arg), .. }) = command
                && let Some(key) = args.get(*arg)
            {
                let key_hash = keyspace.hash(key);
                keyspace.prefetch_shard(key_hash);
                hash = Some(key_hash);
            }
            // A prefetch for a command also serves the following commands on the same key.
            let is_fetched = fetches && hash != last_hash && hash.is_some_and(is_here);
            last_hash = hash;
            prepared.push(Prepared { command, hash, is_fetched });
            if let Some(at @ ..SLOTS_AHEAD) = prepared.len().checked_sub(HEAD_AHEAD) {
                ahead.fetch(at, prepared);
            }
        }
        if fetches {
            let next = (prepared.len() + 1).saturating_sub(HEAD_AHEAD);
            ahead.fetch_first(next, prepared.len(), prepared);
        }
        self.sample(client, batch, input, start);
        may_be_long
    }

    /// Returns the state for prefetches of the keys of commands on `database`.
    #[inline]
    pub(super) fn fetch_ahead(&self, database: usize) -> FetchAhead {
        FetchAhead { keyspace: &self.server.keyspace, database, has_queries: self.has_queries }
    }
}

/// Prefetches the elements that commands name, beginning with number `from`, as long as the commands have the same key.
/// `call` returns a command and its arguments, or `None` beyond the last command. Returns the number of the first
/// command that was not read.
#[inline(never)]
pub(super) fn fetch_elements<'a>(
    (keyspace, guards, turn, database): (&'static Keyspace, &mut Guards<'static>, &mut Turn, usize),
    from: usize,
    call: impl Fn(usize) -> Option<(&'static Command, KeyHash, Args<'a>)>,
) -> usize {
    let mut names: [&[u8]; FETCHED_MAX] = [&[]; FETCHED_MAX];
    let mut count = 0;
    let mut of_key = None;
    let mut next = from;
    while count < FETCHED_MAX
        && let Some((command, hash, args)) = call(next)
        && let (Some(elements), Access::One(key)) = (command.spec.elements, command.access)
        && of_key.is_none_or(|(first, _)| first == hash)
    {
        of_key = Some((hash, args.get(key).unwrap_or_default()));
        for (name, to) in elements.names(args).zip(&mut names[count..]) {
            *to = name;
            count += 1;
        }
        next += 1;
    }
    if let Some((hash, key)) = of_key.filter(|_| count >= FETCH_AHEAD_MIN) {
        let mut context = Context { keyspace, guards, turn, database, waiting: Waiting::Never };
        dispatch::fetch_elements(&mut context, hash, key, &names[..count]);
    }
    next.max(from + 1)
}
