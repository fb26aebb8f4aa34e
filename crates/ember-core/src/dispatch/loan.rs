//! Loans: a long-running call runs on another thread, on values that it borrows from its keys.
//!
//! ```text
//! take       the values of its keys are shared, under their locks                      O(keys)
//! run        the handler, on shards that contain only these values; no lock is held
//! give back  the results, under the locks of its keys, and the call's record           O(keys)
//! ```
//!
//! All clients may read a borrowed value. A write to the value during the call copies it, so the server delays writing
//! calls that can wait. The results are valid only if the keys have not changed, which a watch detects.
//!
//! A call that changes a value in place changes a copy, which replaces the value when the call is done. The copy takes
//! as much memory as the value while the call runs ([`Loan::copied_bytes`]). Until then, the loan contains the journal
//! records of the handler.

use std::sync::Arc;

use ember_protocol::{Args, OwnedBatch, Reply};

use super::{Context, state_in};
use crate::call::{Attempt, Call, CommandResult, DataCommand, KeyspaceCall, Run, Waiting};
use crate::effects::events::{EventClass, Notice};
use crate::effects::journal::{Journal, Segment};
use crate::effects::observers::Watch;
use crate::entries::entry::Slot;
use crate::keys::{Guards, Keys};
use crate::keyspace::Keyspace;
use crate::keyspace::shard::ShardData;
use crate::spec::{Flags, KeyFlags, Spec};
use crate::turn::Turn;
use crate::types::Aggregate;

/// An offloaded call with its borrowed values.
pub struct Loan {
    command: &'static DataCommand,
    call: OwnedBatch,
    database: usize,
    /// Shards of the call, ascending, with shared references to the keys' values.
    shards: Vec<(usize, Box<ShardData>)>,
    /// The state of the thread that runs the call.
    turn: Turn,
    /// The watch of the call's keys; `None` if the call cannot store anything.
    watch: Option<Arc<Watch>>,
    /// The keys of a call that may store something.
    keys: Vec<BorrowedKey>,
    /// The entries that the call has changed or created, taken from `shards`.
    stored: Vec<Stored>,
    /// The journal records of the call.
    recorded: Segment,
}

/// Access flags of keys whose strings a call may change.
const CHANGED: KeyFlags = KeyFlags::RW.union(KeyFlags::OW).union(KeyFlags::RM);

/// A key of a call that may store something.
#[derive(Clone, Copy)]
struct BorrowedKey {
    arg: usize,
    /// The number of the key's database.
    database: usize,
    flags: KeyFlags,
    /// Whether the key existed; true only for the first of several arguments that name the same key.
    was_there: bool,
}

/// The result of a call at a key.
struct Stored {
    key: BorrowedKey,
    /// The new entry of the key; `None` if the call has removed the key.
    slot: Option<Slot>,
    /// Whether observers of the key are notified of the change.
    is_observed: bool,
}

/// Returns the argument indexes of the keys of a call, with the access to each key. O(arguments).
fn keys_of_call(spec: &Spec, args: Args<'_>) -> Vec<(usize, KeyFlags)> {
    let mut all: Vec<_> = if spec.keys_of.is_some() {
        spec.keys_with_flags(args).collect()
    } else {
        let of_call = spec.key_flags_of.map(|flags_of| flags_of(args));
        let keys = spec.keys.iter().flat_map(|keys| keys.positions(args).map(|arg| (arg, keys.flags)));
        keys.map(|(arg, flags)| (arg, of_call.unwrap_or(flags))).collect()
    };
    // If a call reads some keys and writes another, the written key only receives the result; as in Redis, the table
    // has RW for such a key of SINTERSTORE.
    if all.iter().any(|(_, flags)| flags.contains(KeyFlags::RO)) {
        for (_, flags) in all.iter_mut().filter(|(_, flags)| flags.contains(KeyFlags::RW)) {
            *flags = flags.difference(KeyFlags::RW).union(KeyFlags::OW);
        }
    }
    all
}

impl Loan {
    /// Creates the loan of a call whose handler has returned [`Attempt::Offload`]; the caller still holds the locks of
    /// the call's keys.
    ///
    /// [`Attempt::Offload`]: crate::call::Attempt::Offload
    pub fn take(command: &'static DataCommand, context: &mut Context<'_, '_>, args: Args<'_>) -> Loan {
        let Context { keyspace, guards, turn, database, .. } = context;
        let writes = command.spec.flags.contains(Flags::WRITE);
        let watch = writes.then(Arc::<Watch>::default);
        let mut shards: Vec<(usize, Box<ShardData>)> = Vec::new();
        let mut lend = |guards: &mut Guards<'_>, turn: &Turn, database: usize, arg: usize| {
            let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
            let at = shards.binary_search_by_key(&hash.shard(), |&(shard, _)| shard).unwrap_or_else(|at| {
                shards.insert(at, (hash.shard(), Box::default()));
                at
            });
            guards.shard_mut(hash.shard()).lend(database, hash, key, turn.expired_ms(), &mut shards[at].1)
        };
        let mut borrowed_keys = Vec::new();
        if let Some(watch) = &watch {
            let target = command.spec.overwrites_in.and_then(|database_of| database_of(args));
            // If several arguments name the same key, the argument that receives the result takes precedence.
            let mut keys_of_call = keys_of_call(&command.spec, args);
            keys_of_call.sort_by_key(|(_, flags)| !flags.contains(KeyFlags::OW));
            for (arg, flags) in keys_of_call {
                let database = target.filter(|_| flags.contains(KeyFlags::OW)).unwrap_or(*database);
                let mut keys = Keys::new(keyspace, guards, args, database, (0, keyspace.hash(&[])), turn);
                // Removes data that have expired by now, so that their removal does not break the watch later.
                keys.expire(arg);
                keys.watch(arg, watch);
                let was_there = lend(guards, turn, database, arg);
                borrowed_keys.push(BorrowedKey { arg, database, flags, was_there });
            }
        } else {
            for arg in command.spec.key_positions(args) {
                lend(guards, turn, *database, arg);
            }
        }
        let mut call = OwnedBatch::new();
        call.append(args);
        let turn = turn.for_loan(writes);
        Loan {
            command,
            call,
            database: *database,
            shards,
            turn,
            watch,
            keys: borrowed_keys,
            stored: Vec::new(),
            recorded: Segment::default(),
        }
    }

    /// Returns the bytes of the borrowed values that the call would copy to change them in place. The caller holds the
    /// locks of the call's keys.
    pub fn copied_bytes(
        command: &'static DataCommand,
        context: &mut Context<'_, '_>,
        args: Args<'_>,
    ) -> usize {
        let Context { keyspace, guards, database, .. } = context;
        let keys = keys_of_call(&command.spec, args);
        let stores_result = keys.iter().any(|(_, flags)| flags.contains(KeyFlags::OW));
        if stores_result || !command.spec.flags.contains(Flags::WRITE) {
            return 0;
        }
        let bytes_of = |&(arg, _): &(usize, KeyFlags)| {
            let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
            let data = guards.data(hash.shard());
            let entry = data.find(*database, hash, key).map(|at| data.entry(*database, at));
            entry.map_or(0, |entry| entry.resident_bytes())
        };
        keys.iter().map(bytes_of).sum()
    }

    /// Returns whether other clients' changes of a call's keys should be delayed while the call runs: because the call
    /// may store something, or because a change would copy a shared value. The caller holds the locks of these keys.
    pub fn is_dear_to_change(
        command: &'static DataCommand,
        context: &mut Context<'_, '_>,
        args: Args<'_>,
    ) -> bool {
        let Context { keyspace, guards, database, .. } = context;
        let is_cheap = |arg: usize| {
            let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
            let data = guards.data(hash.shard());
            let entry = data.find(*database, hash, key).map(|at| data.entry(*database, at));
            entry.is_none_or(|entry| entry.aggregate().is_some_and(Aggregate::is_shared_in_parts))
        };
        command.spec.flags.contains(Flags::WRITE) || !command.spec.key_positions(args).all(is_cheap)
    }

    /// Returns the number of the database that was selected for the call.
    pub fn database(&self) -> usize {
        self.database
    }

    /// Returns the call's arguments.
    pub fn call(&self) -> Args<'_> {
        self.call.command(0)
    }

    /// Returns the maximum size in bytes of the requests that contained the call.
    pub fn wire_bytes_max(&self) -> usize {
        self.call.wire_bytes_max()
    }

    /// Returns whether the call may store something.
    pub fn may_store(&self) -> bool {
        self.watch.is_some()
    }

    /// Runs the call and releases its borrowed values. A call on the whole keyspace borrows nothing: it takes the locks
    /// of the shards one after the other, as on a worker.
    ///
    /// # Errors
    /// Returns the errors of the handler, which has written nothing in that case.
    pub fn run(&mut self, keyspace: &Keyspace, reply: &mut Reply) -> CommandResult {
        let (args, database) = (self.call.command(0), self.database);
        let handler = match self.command.run {
            Run::Long(handler)
            | Run::KeysOrLong { run: handler, .. }
            | Run::KeysOrAllShards { run: handler, .. }
            | Run::Blocking(handler) => handler,
            Run::LongKeyspace(handler) => {
                let (turn, waiting) = (&mut self.turn, Waiting::Never);
                let mut call = KeyspaceCall { args, keyspace, database, turn, reply, waiting };
                return handler(&mut call).map(|_| ());
            }
            _ => unreachable!("only a command that may be long takes a loan"),
        };
        let mut guards = Guards::Borrowed(std::mem::take(&mut self.shards));
        let known = (0, keyspace.hash(&[]));
        let mark = self.turn.journal.begin_call(self.turn.counters.changes);
        let keys = Keys::new(keyspace, &mut guards, args, database, known, &mut self.turn);
        let result = handler(&mut Call { args, keys, reply, waiting: Waiting::Never });
        let Turn { journal, counters, .. } = &mut self.turn;
        journal.end_call(&mark, counters.changes, database, args);
        self.recorded = journal.take();
        let has_changes = counters.changes > 0;
        let attempt = result?;
        self.take_stored(keyspace, &mut guards, has_changes);
        match attempt {
            Attempt::Wait(wait) => (wait.empty_reply)(reply),
            Attempt::Done | Attempt::Offload | Attempt::Fetch => {}
        }
        Ok(())
    }

    /// Moves the entries that the call has changed from the borrowed shards to `stored`. A changed value with elements
    /// is recognized by being no longer shared, even if the change counts as none.
    fn take_stored(&mut self, keyspace: &Keyspace, guards: &mut Guards<'_>, has_changes: bool) {
        let args = self.call.command(0);
        for &key in &self.keys {
            let (name, hash) = (args.at(key.arg), keyspace.hash(args.at(key.arg)));
            let shard = guards.shard_mut(hash.shard());
            let slot = match shard.find(key.database, hash, name) {
                None if key.was_there => None,
                None => continue,
                Some(at) => {
                    let entry = shard.entry(key.database, at);
                    let is_changed = match entry.aggregate() {
                        Some(_) => !entry.is_shared(),
                        None => has_changes && key.flags.intersects(CHANGED),
                    };
                    if !is_changed {
                        continue;
                    }
                    Some(shard.remove(key.database, at))
                }
            };
            let is_observed = self.turn.notices.changed.iter().any(|changed| *changed.name == *name);
            self.stored.push(Stored { key, slot, is_observed });
        }
    }

    /// Ends the watch of the keys; returns whether all of them are unchanged since the loan was created. The caller
    /// holds the locks of all these keys. Data that have expired since then are removed first and count as changed,
    /// because the journal contains their removal before the call.
    pub fn end_watch(&mut self, context: &mut Context<'_, '_>) -> bool {
        let Some(watch) = self.watch.take() else { return true };
        let args = self.call.command(0);
        let Context { keyspace, guards, turn, .. } = context;
        for key in &self.keys {
            let known = (0, keyspace.hash(&[]));
            let mut keys = Keys::new(keyspace, guards, args, key.database, known, turn);
            keys.expire(key.arg);
            keys.unwatch(key.database, key.arg, &watch);
        }
        // A reader that has subscribed to the journal since the loan was created would miss the records of the call.
        !watch.is_broken() && (self.turn.journal.is_on() || !turn.journal.is_on())
    }

    /// Stores the results of the call, and publishes its events and its record. Since [`Loan::end_watch`] returned
    /// true, the caller has held the locks of all keys of the call, and no others.
    pub fn give_back(&mut self, context: &mut Context<'_, '_>) {
        let Loan { command, call, stored, turn: own, recorded, .. } = self;
        let Context { keyspace, guards, turn, .. } = context;
        let args = call.command(0);
        turn.journal.begin_unit();
        let changes = turn.counters.changes;
        // Storing the results publishes no events, because the call has collected its own.
        let classes = std::mem::take(&mut turn.notices.classes);
        for Stored { key: BorrowedKey { arg, database, flags, .. }, slot, is_observed } in stored.drain(..) {
            let known = (0, keyspace.hash(&[]));
            let mut keys = Keys::new(keyspace, guards, args, database, known, turn);
            let mut key = keys.key(arg);
            // Large replaced values are freed in the background.
            match slot {
                Some(mut slot) if flags.contains(KeyFlags::OW) || !key.exists() => {
                    let (expire_at_ms, clock) = (slot.entry().expire_at_ms(), slot.entry().clock());
                    drop(key.put(slot.moved_value(), expire_at_ms, clock));
                }
                Some(mut slot) => drop(key.exchange_value(slot.moved_value(), is_observed)),
                None => drop(key.remove()),
            }
        }
        turn.notices.classes = classes;
        let is_wanted = |notice: &Notice| classes.contains(notice.event.class);
        turn.notices.events.extend(own.notices.events.drain(..).filter(is_wanted));
        let counted = turn.counters.changes - changes;
        turn.counters.changes += own.counters.changes.saturating_sub(counted);
        turn.counters.expired_fields += own.counters.expired_fields;
        if turn.journal.has_marks() {
            let is_recorded = !recorded.is_empty();
            turn.journal.settle_marks(command.spec.name, is_recorded, state_in(keyspace, guards));
        }
        turn.journal.adopt(recorded);
        turn.journal.end_unit();
    }
}

impl Turn {
    /// Returns the state of a thread that runs a call on borrowed values. The call's lookups have been counted already.
    /// The returned state records the call in its own journal if the worker's journal has a reader and the call
    /// `writes`.
    fn for_loan(&mut self, writes: bool) -> Turn {
        let mut turn = Turn::new(self.now_ms, self.random.next_u64());
        turn.settings = self.settings;
        turn.recorded_ms = self.recorded_ms;
        // Borrowed values do not change, so nothing in them expires.
        turn.keeps_expired = true;
        turn.keeps_past_expiries = self.keeps_past_expiries;
        turn.sees_expired = self.sees_expired;
        turn.no_touch = true;
        turn.reads_any_key = self.reads_any_key;
        turn.notices.classes = EventClass::all().difference(EventClass::KEY_MISS);
        turn.notices.collects_changes = writes;
        if writes && self.journal.is_on() {
            turn.journal = Journal::numbered_by(Arc::default());
        }
        turn
    }
}
