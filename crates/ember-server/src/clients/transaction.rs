//! What MULTI and WATCH leave with a client: queued calls and watched keys.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use ember_protocol::{Args, OwnedBatch};
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::Keyspace;
use emberkv_core::observers::{OBSERVED_KEY_BYTES, Watch};
use emberkv_core::spec::Flags;
use emberkv_core::turn::Turn;

use super::client::Client;

/// Calls between MULTI and EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) calls: OwnedBatch,
    /// For each call the index of its command in the registry.
    pub(crate) commands: Vec<u16>,
    /// A call was refused: EXEC will refuse too.
    pub(crate) is_aborted: bool,
    /// The flags of all commands together.
    pub(crate) flags: Flags,
    /// How often EXEC has waited for values that are away.
    pub(crate) fetches: u32,
}

impl Transaction {
    /// Notes that a call was refused.
    pub(crate) fn abort(&mut self) {
        self.is_aborted = true;
    }

    /// The flags of all commands together.
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// The calls, with the indexes of their commands in the registry.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u16, Args<'_>)> {
        self.commands.iter().enumerate().map(|(number, &index)| (index, self.calls.command(number)))
    }

    /// The number of calls.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// The memory in bytes that the calls take.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.calls.memory_bytes() + size_of_val(&self.commands[..])
    }
}

/// About what a watched key takes in the table of a client's keys, in bytes, besides its name.
const NAME_BYTES: usize = 48;

/// The keys that a client watches.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) watch: Arc<Watch>,
    /// The calls of WATCH, whose arguments are the keys, each key of a database once.
    calls: OwnedBatch,
    /// The keys with their databases, for finding those that are watched already.
    names: HashSet<(usize, Box<[u8]>)>,
    /// The database of each call, and when it was, Unix time in ms.
    moments: Vec<(usize, i64)>,
    /// About the memory in bytes that the shards' tables take for it.
    observed_bytes: usize,
}

impl Watched {
    /// Adds the keys of a call of WATCH that are not watched yet. No lock is held.
    pub(crate) fn add(
        &mut self,
        keyspace: &'static Keyspace,
        turn: &mut Turn,
        database: usize,
        args: Args<'_>,
    ) {
        let is_new = |key: &&[u8]| self.names.insert((database, (*key).into()));
        let mut words = vec![args.at(0)];
        words.extend(args.iter().skip(1).filter(is_new));
        if words.len() == 1 {
            return;
        }
        self.calls.push(&words);
        let args = self.calls.command(self.moments.len());
        self.moments.push((database, turn.now_ms));
        // The name stands here twice, and once in the tables.
        self.observed_bytes += 2 * args.total_bytes() + args.len() * (OBSERVED_KEY_BYTES + NAME_BYTES);
        with_watched_keys(keyspace, turn, database, args, |keys, arg| {
            keys.watch(arg, &self.watch);
        });
    }

    /// The number of keys.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// About the memory in bytes that it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.calls.memory_bytes() + size_of_val(&self.moments[..]) + self.observed_bytes
    }

    /// The calls of WATCH, with the database and the time (Unix time in ms) of each.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (usize, i64, Args<'_>)> {
        let moments = self.moments.iter().enumerate();
        moments.map(|(number, &(database, at_ms))| (database, at_ms, self.calls.command(number)))
    }

    /// Stops watching. No lock is held.
    pub(crate) fn end(&self, keyspace: &'static Keyspace, turn: &mut Turn) {
        for (database, _, args) in self.calls() {
            with_watched_keys(keyspace, turn, database, args, |keys, arg| {
                keys.unwatch(database, arg, &self.watch);
            });
        }
    }
}

/// Calls `act` for each key of a call of WATCH, with its shard locked.
fn with_watched_keys(
    keyspace: &'static Keyspace,
    turn: &mut Turn,
    database: usize,
    args: Args<'_>,
    mut act: impl FnMut(&mut Keys<'_, 'static>, usize),
) {
    let mut guards = Guards::None;
    for arg in 1..args.len() {
        let hash = keyspace.hash(args.at(arg));
        guards.hold_one(keyspace, turn, hash);
        act(&mut Keys::new(keyspace, &mut guards, args, database, (arg, hash), turn), arg);
    }
    guards.release(keyspace, turn);
}

/// Stops watching the keys of a client. No lock is held.
pub(crate) fn unwatch(keyspace: &'static Keyspace, turn: &mut Turn, client: &mut Client) {
    if let Some(watched) = client.watched.take() {
        client.view.watched_keys.store(0, Ordering::Relaxed);
        watched.end(keyspace, turn);
    }
}

/// Forgets a client's queued calls and watched keys. No lock is held.
pub(crate) fn discard(keyspace: &'static Keyspace, turn: &mut Turn, client: &mut Client) {
    client.transaction = None;
    client.view.queued.store(-1, Ordering::Relaxed);
    unwatch(keyspace, turn, client);
}
