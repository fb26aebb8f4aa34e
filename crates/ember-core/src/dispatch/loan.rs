//! Loans: a call that takes long is run on another thread, on values that its keys lend it.
//!
//! ```text
//! take       the values of its keys are shared, under their locks                      O(keys)
//! run        the handler, on shards that hold nothing else; nobody's lock is held
//! give back  what the call has stored, under the locks of its keys, and its record     O(keys)
//! ```
//!
//! A value that is lent may be read by all. Who changes it meanwhile copies it: the caller keeps those away who can wait.
//! What a call stores is right only while its keys are as they were: a watch tells.

use std::sync::Arc;

use ember_protocol::{Args, OwnedBatch, Reply};

use super::Context;
use crate::call::{Call, CommandResult, DataCommand, KeyspaceCall, Run, Waiting};
use crate::effects::events::{EventClass, Notice};
use crate::effects::observers::Watch;
use crate::entries::entry::Slot;
use crate::keys::{Guards, Keys};
use crate::keyspace::Keyspace;
use crate::keyspace::shard::ShardData;
use crate::spec::{Flags, KeyFlags};
use crate::turn::Turn;
use crate::types::Aggregate;

/// A call with what its keys have lent it.
pub struct Loan {
    command: &'static DataCommand,
    call: OwnedBatch,
    database: usize,
    /// Shards of its own, ascending, with shares of the keys' values.
    shards: Vec<(usize, Box<ShardData>)>,
    /// The state of the thread that runs the call.
    turn: Turn,
    /// Of the keys of a call that may store something.
    watch: Option<Arc<Watch>>,
    /// What the call has left at the keys it may change, by argument.
    stored: Vec<(usize, Option<Slot>)>,
}

impl Loan {
    /// Takes a loan for a call whose handler has returned [`Attempt::Offload`]; the locks of its keys are still held.
    ///
    /// [`Attempt::Offload`]: crate::call::Attempt::Offload
    pub fn take(command: &'static DataCommand, context: &mut Context<'_, '_>, args: Args<'_>) -> Loan {
        let Context { keyspace, guards, turn, database, .. } = context;
        let watch = command.spec.flags.contains(Flags::WRITE).then(Arc::<Watch>::default);
        if let Some(watch) = &watch {
            let mut keys = Keys::new(keyspace, guards, args, *database, (0, keyspace.hash(&[])), turn);
            for arg in command.spec.key_positions(args) {
                // What has expired by now breaks no watch later.
                keys.expire(arg);
                keys.watch(arg, watch);
            }
        }
        let mut shards: Vec<(usize, Box<ShardData>)> = Vec::new();
        for arg in command.spec.key_positions(args) {
            let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
            let at = shards.binary_search_by_key(&hash.shard(), |&(shard, _)| shard).unwrap_or_else(|at| {
                shards.insert(at, (hash.shard(), Box::default()));
                at
            });
            guards.shard_mut(hash.shard()).lend(*database, hash, key, turn.expired_ms(), &mut shards[at].1);
        }
        let mut call = OwnedBatch::new();
        call.append(args);
        let turn = turn.for_loan();
        Loan { command, call, database: *database, shards, turn, watch, stored: Vec::new() }
    }

    /// Whether a change of what is lent for a call is to be kept off: the call may store something, or a value that is
    /// shared would be copied. The locks of its keys are held.
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

    /// The number of the database that was selected.
    pub fn database(&self) -> usize {
        self.database
    }

    /// The call.
    pub fn call(&self) -> Args<'_> {
        self.call.command(0)
    }

    /// Bytes of the requests that the call may have come in.
    pub fn wire_bytes_max(&self) -> usize {
        self.call.wire_bytes_max()
    }

    /// Whether the call may store something.
    pub fn may_store(&self) -> bool {
        self.watch.is_some()
    }

    /// Runs the call, and frees what it was lent. One on the keyspace as a whole takes locks as on a worker, one after the
    /// other.
    ///
    /// # Errors
    /// What the handler says; it has written nothing then.
    pub fn run(&mut self, keyspace: &Keyspace, reply: &mut Reply) -> CommandResult {
        let (args, database) = (self.call.command(0), self.database);
        let handler = match self.command.run {
            Run::Long(handler) | Run::KeysOrAllShards { run: handler, .. } => handler,
            Run::LongKeyspace(handler) => {
                let (turn, waiting) = (&mut self.turn, Waiting::Never);
                let mut call = KeyspaceCall { args, keyspace, database, turn, reply, waiting };
                return handler(&mut call).map(|_| ());
            }
            _ => unreachable!("only a call that may be long takes a loan"),
        };
        let mut guards = Guards::Lent(std::mem::take(&mut self.shards));
        let known = (0, keyspace.hash(&[]));
        let keys = Keys::new(keyspace, &mut guards, args, database, known, &mut self.turn);
        let result = handler(&mut Call { args, keys, reply, waiting: Waiting::Never });
        if self.turn.counters.changes > 0 {
            let changed = KeyFlags::RW.union(KeyFlags::OW).union(KeyFlags::RM);
            let specs = self.command.spec.keys.iter().filter(|keys| keys.flags.intersects(changed));
            for arg in specs.flat_map(|keys| keys.positions(args)) {
                let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
                let shard = guards.shard_mut(hash.shard());
                let slot = shard.find(database, hash, key).map(|at| shard.remove(database, at));
                self.stored.push((arg, slot));
            }
        }
        result.map(|_| ())
    }

    /// Ends the watch of the keys; whether all are as they were when they were lent. The locks of all of them are held. What
    /// has expired meanwhile is removed first, and not as it was: the journal has that before the call.
    pub fn end_watch(&mut self, context: &mut Context<'_, '_>) -> bool {
        let Some(watch) = self.watch.take() else { return true };
        let (args, database) = (self.call.command(0), self.database);
        let Context { keyspace, guards, turn, .. } = context;
        let mut keys = Keys::new(keyspace, guards, args, database, (0, keyspace.hash(&[])), turn);
        for arg in self.command.spec.key_positions(args) {
            keys.expire(arg);
            keys.unwatch(database, arg, &watch);
        }
        !watch.is_broken()
    }

    /// Puts what the call has stored in its place, with the event and the record of the call. The locks of all its keys are
    /// held, and those of no others, since [`Loan::end_watch`] has said that nothing has changed.
    pub fn give_back(&mut self, context: &mut Context<'_, '_>) {
        let Loan { call, stored, database, turn: own, .. } = self;
        let database = *database;
        let Context { keyspace, guards, turn, .. } = context;
        let args = call.command(0);
        let known = (0, keyspace.hash(&[]));
        let mark = turn.journal.begin_call(turn.counters.changes);
        // The events are those of the call.
        let classes = std::mem::take(&mut turn.notices.classes);
        let mut keys = Keys::new(keyspace, guards, args, database, known, turn);
        for (arg, slot) in stored.drain(..) {
            // What was there is freed in the background if that takes long.
            match slot {
                Some(mut slot) => {
                    let (expire_at_ms, clock) = (slot.entry().expire_at_ms(), slot.entry().clock());
                    drop(keys.key(arg).put(slot.moved_value(), expire_at_ms, clock));
                }
                None => drop(keys.key(arg).remove()),
            }
        }
        turn.notices.classes = classes;
        let is_wanted = |notice: &Notice| classes.contains(notice.event.class);
        turn.notices.events.extend(own.notices.events.drain(..).filter(is_wanted));
        turn.journal.end_call(&mark, turn.counters.changes, database, args);
    }
}

impl Turn {
    /// The state of a thread that runs a call at this moment on values that were lent. Look-ups have been counted before.
    fn for_loan(&mut self) -> Turn {
        let mut turn = Turn::new(self.now_ms, self.random.next_u64());
        turn.settings = self.settings;
        turn.noted_ms = self.noted_ms;
        // What is lent stays as it is.
        turn.keeps_expired = true;
        turn.sees_expired = self.sees_expired;
        turn.no_touch = true;
        turn.reads_any_key = self.reads_any_key;
        turn.notices.classes = EventClass::all().difference(EventClass::KEY_MISS);
        turn
    }
}
