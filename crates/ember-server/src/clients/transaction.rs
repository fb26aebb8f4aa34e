//! The client state of MULTI and WATCH: queued calls and watched keys.

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

/// The calls queued between MULTI and EXEC.
#[derive(Default)]
pub(crate) struct Transaction {
    pub(crate) calls: OwnedBatch,
    /// The registry index of each call's command.
    pub(crate) commands: Vec<u16>,
    /// Whether a call was refused, so that EXEC will be refused, too.
    pub(crate) is_aborted: bool,
    /// The union of the flags of all queued commands.
    pub(crate) flags: Flags,
    /// The number of times that EXEC has waited for cold values.
    pub(crate) fetches: u32,
}

impl Transaction {
    /// Records that a call was refused.
    pub(crate) fn abort(&mut self) {
        self.is_aborted = true;
    }

    /// Returns the union of the flags of all queued commands.
    pub(crate) fn flags(&self) -> Flags {
        self.flags
    }

    /// Returns the calls with the registry indexes of their commands.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (u16, Args<'_>)> {
        self.commands.iter().enumerate().map(|(number, &index)| (index, self.calls.command(number)))
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.commands.len()
    }

    /// Returns the memory of the calls in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.calls.memory_bytes() + size_of_val(&self.commands[..])
    }
}

/// The approximate bytes of a watched key in [`Watched::names`], without its name.
const NAME_BYTES: usize = 48;

/// The keys that a client watches.
#[derive(Default)]
pub(crate) struct Watched {
    pub(crate) watch: Arc<Watch>,
    /// The calls of WATCH, whose arguments are the keys; each key of a database occurs only once.
    calls: OwnedBatch,
    /// The watched keys with their databases, to find keys that are already watched.
    names: HashSet<(usize, Box<[u8]>)>,
    /// The database of each WATCH call, and its time as Unix time in ms.
    moments: Vec<(usize, i64)>,
    /// The approximate bytes of the keys in `names` and in the shards' tables.
    observed_bytes: usize,
}

impl Watched {
    /// Adds the keys of a WATCH call that are not watched yet. The caller holds no lock.
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
        // Each name is stored twice here (in `calls` and `names`), and once in the shards' tables.
        self.observed_bytes += 2 * args.total_bytes() + args.len() * (OBSERVED_KEY_BYTES + NAME_BYTES);
        with_watched_keys(keyspace, turn, database, args, |keys, arg| {
            keys.watch(arg, &self.watch);
        });
    }

    /// Returns the number of keys.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.calls.memory_bytes() + size_of_val(&self.moments[..]) + self.observed_bytes
    }

    /// Returns the calls of WATCH, each with its database and its Unix time in ms.
    pub(crate) fn calls(&self) -> impl Iterator<Item = (usize, i64, Args<'_>)> {
        let moments = self.moments.iter().enumerate();
        moments.map(|(number, &(database, at_ms))| (database, at_ms, self.calls.command(number)))
    }

    /// Stops watching all keys. The caller holds no lock.
    pub(crate) fn end(&self, keyspace: &'static Keyspace, turn: &mut Turn) {
        for (database, _, args) in self.calls() {
            with_watched_keys(keyspace, turn, database, args, |keys, arg| {
                keys.unwatch(database, arg, &self.watch);
            });
        }
    }
}

/// Calls `act` for each key of a WATCH call, with its shard locked.
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

/// Ends the watches of a client. The caller holds no lock.
pub(crate) fn unwatch(keyspace: &'static Keyspace, turn: &mut Turn, client: &mut Client) {
    if let Some(watched) = client.watched.take() {
        client.view.watched_keys.store(0, Ordering::Relaxed);
        watched.end(keyspace, turn);
    }
}

/// Discards a client's queued calls and watched keys. The caller holds no lock.
pub(crate) fn discard(keyspace: &'static Keyspace, turn: &mut Turn, client: &mut Client) {
    client.transaction = None;
    client.view.queued.store(-1, Ordering::Relaxed);
    unwatch(keyspace, turn, client);
}
