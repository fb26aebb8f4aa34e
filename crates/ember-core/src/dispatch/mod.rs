//! Execution of one data command: takes the locks of its keys, then calls its handler.

use std::sync::Arc;

use ember_protocol::{Args, Reply};

pub mod live;
pub mod loan;
pub mod past;

pub use crate::call::Waiting;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, KeyspaceCall, Run};
use crate::effects::capture::State;
use crate::entries::hash::KeyHash;
use crate::error::CommandError;
use crate::keys::{Guards, Keys};
use crate::keyspace::shard::ShardData;
use crate::keyspace::shard::cold_values::Fetched;
use crate::keyspace::shard::fetch_tickets::{FetchOrder, FetchWaiter, Requested};
use crate::keyspace::{Keyspace, SHARDS};
use crate::spec::{Begin, Find, Flags, KeySpec, Spec, Values};
use crate::turn::Turn;

/// The locks that a command's keys need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// No locks: the command has no keys.
    None,
    /// One lock: the command's only key is in this argument.
    One(usize),
    /// Any number of locks, for any number of keys.
    Many,
}

impl Access {
    /// Returns which locks a command needs, according to its key specifications.
    pub const fn of(spec: &Spec) -> Access {
        match spec.keys {
            [] => Access::None,
            [KeySpec { begin: Begin::Index(first), find: Find::Range { last: 0, .. }, .. }] => {
                Access::One(*first)
            }
            _ => Access::Many,
        }
    }
}

/// The state on which a command runs.
pub struct Context<'c, 'k> {
    /// The keyspace that the command accesses.
    pub keyspace: &'k Keyspace,
    /// The locks that the worker still holds from the previous command.
    pub guards: &'c mut Guards<'k>,
    /// The state of the worker that runs the command.
    pub turn: &'c mut Turn,
    /// The number of the selected database.
    pub database: usize,
    /// Whether the call may wait until one of its keys changes.
    pub waiting: Waiting,
}

/// Runs a data command after its arity was checked. `hash` is the hash of the only key of a command with
/// [`Access::One`], if the caller knows it. The locks stay held in `context.guards` for the next command.
///
/// # Errors
/// Returns the errors of the handler, which has written nothing in that case.
#[inline(always)]
pub fn run(
    command: &DataCommand,
    access: Access,
    hash: Option<KeyHash>,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply,
) -> AttemptResult {
    let Turn { journal, counters, .. } = &mut *context.turn;
    let mark = if journal.is_on() { Some(journal.begin_call(counters.changes)) } else { None };
    let result = match command.run {
        Run::Keys(handler) => match lock(&command.spec, access, hash, context, args) {
            Ok(Some(known)) => handler(&mut call_on(context, args, known, reply)).map(|()| Attempt::Done),
            Ok(None) => Ok(Attempt::Fetch),
            Err(error) => Err(error),
        },
        _ => run_otherwise(command, access, hash, context, args, reply),
    };
    if let Some(mark) = mark {
        if context.turn.journal.has_marks() {
            let Context { keyspace, guards, turn, .. } = &mut *context;
            turn.journal.complete_marks(&mark, command.spec.name, state_in(keyspace, guards));
        }
        let Turn { journal, counters, .. } = &mut *context.turn;
        journal.end_call(&mark, counters.changes, context.database, args);
    }
    result
}

/// Returns a function that returns the states of keys whose locks are held, for the history.
fn state_in(keyspace: &Keyspace, guards: &Guards<'_>) -> impl FnMut(usize, &[u8], usize) -> State {
    move |database, name, bytes_max| {
        let hash = keyspace.hash(name);
        match guards.holds(hash.shard()) {
            true => guards.data(hash.shard()).state(database, hash, name, bytes_max),
            false => State::Unknown,
        }
    }
}

/// Runs a data command that is not [`Run::Keys`]; the caller records its effects if the journal has a reader.
fn run_otherwise(
    command: &DataCommand,
    access: Access,
    hash: Option<KeyHash>,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    reply: &mut Reply,
) -> AttemptResult {
    let spec = &command.spec;
    let known = match command.run {
        Run::Keyspace(handler) | Run::Exclusive(handler) => {
            return handler(&mut call_without_locks(context, args, reply)).map(|()| Attempt::Done);
        }
        Run::LongKeyspace(handler) => return handler(&mut call_without_locks(context, args, reply)),
        Run::Container => unreachable!("a container's subcommands are run instead"),
        Run::Prepared(prepare) => {
            context.guards.release(context.keyspace, context.turn);
            let locked = prepare(args)?;
            let Some(known) = lock(spec, access, hash, context, args)? else { return Ok(Attempt::Fetch) };
            return locked(&mut call_on(context, args, known, reply)).map(|()| Attempt::Done);
        }
        Run::KeysOrAllShards { all_shards_if, .. } if all_shards_if(args) => {
            let known = hold_all(context);
            if misses_values(spec, context, args, Access::Many, known)? { None } else { Some(known) }
        }
        _ => lock(spec, access, hash, context, args)?,
    };
    let Some(known) = known else { return Ok(Attempt::Fetch) };
    let call = &mut call_on(context, args, known, reply);
    match command.run {
        Run::Long(handler) | Run::KeysOrLong { run: handler, .. } => handler(call),
        Run::KeysOrAllShards { run, .. } => run(call),
        Run::Blocking(handler) => match handler(call)? {
            Attempt::Wait(wait) if matches!(call.waiting, Waiting::Never | Waiting::InScript) => {
                (wait.empty_reply)(call.reply);
                Ok(Attempt::Done)
            }
            attempt => Ok(attempt),
        },
        _ => unreachable!("the commands of all other kinds have run"),
    }
}

/// Takes the locks of a call's keys; returns the same as [`hold`], or `None` if values that the call needs are missing.
#[inline(always)]
fn lock(
    spec: &Spec,
    access: Access,
    hash: Option<KeyHash>,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
) -> Result<Option<(usize, KeyHash)>, CommandError> {
    let known = hold(spec, access, hash, context, args);
    if context.turn.checks_values && misses_values(spec, context, args, access, known)? {
        return Ok(None);
    }
    Ok(Some(known))
}

/// Returns a call whose keys' locks are held; `known` is the result of [`hold`].
#[inline]
fn call_on<'c, 'k>(
    context: &'c mut Context<'_, 'k>,
    args: Args<'c>,
    known: (usize, KeyHash),
    reply: &'c mut Reply,
) -> Call<'c, 'k> {
    let Context { keyspace, guards, turn, database, waiting } = context;
    let keys = Keys::new(keyspace, guards, args, *database, known, turn);
    Call { args, keys, reply, waiting: *waiting }
}

/// Returns a call on the whole keyspace, after releasing the locks held until now.
fn call_without_locks<'c>(
    context: &'c mut Context<'_, '_>,
    args: Args<'c>,
    reply: &'c mut Reply,
) -> KeyspaceCall<'c> {
    context.guards.release(context.keyspace, context.turn);
    let Context { keyspace, turn, database, waiting, .. } = context;
    KeyspaceCall { args, keyspace, database: *database, turn, reply, waiting: *waiting }
}

/// Requests the missing values of a call ([`Turn::missing`]); `arrival` is notified when they have been read. `ready`
/// returns a value that can be stored at once. Returns the orders whose values are still to be read, and the number of
/// values that are already being read for other clients. Takes the shard locks that are not held, one after the other.
pub fn request_missing(
    context: &mut Context<'_, '_>,
    arrival: &Arc<FetchWaiter>,
    mut ready: impl FnMut(&FetchOrder) -> Option<Fetched>,
) -> (Vec<FetchOrder>, u64) {
    let Context { keyspace, guards, turn, .. } = context;
    let (mut orders, mut joined) = (Vec::new(), 0);
    for (database, key) in std::mem::take(&mut turn.missing) {
        let hash = keyspace.hash(&key);
        if !guards.holds(hash.shard()) {
            guards.hold_one(keyspace, turn, hash);
        }
        let shard = guards.shard_mut(hash.shard());
        match shard.request_value(database, hash, &key, Some(arrival)) {
            Requested::Begun(order) => orders.extend(brought(shard, order, &mut ready)),
            Requested::Joined => joined += 1,
            Requested::Resident => {}
        }
    }
    (orders, joined)
}

/// Stores the value of an order if `ready` returns it; otherwise returns the order, whose value is still to be read.
fn brought(
    shard: &mut ShardData,
    order: FetchOrder,
    ready: &mut impl FnMut(&FetchOrder) -> Option<Fetched>,
) -> Option<FetchOrder> {
    let Some(fetched) = ready(&order) else { return Some(order) };
    shard.store_fetched(&order, fetched);
    None
}

/// Prefetches values from disk: requests the cold values that a call will need, like [`request_missing`], before any
/// client waits for them. Returns the orders whose values are still to be read.
pub fn request_ahead(
    spec: &Spec,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    ready: &mut impl FnMut(&FetchOrder) -> Option<Fetched>,
) -> Vec<FetchOrder> {
    let Context { keyspace, guards, turn, database, .. } = context;
    let mut orders = Vec::new();
    for arg in spec.value_positions(args) {
        let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
        guards.hold_one(keyspace, turn, hash);
        let shard = guards.shard_mut(hash.shard());
        if shard.is_missing(*database, hash, key, turn.expired_ms())
            && let Requested::Begun(order) = shard.request_value(*database, hash, key, None)
        {
            orders.extend(brought(shard, order, ready));
        }
    }
    orders
}

/// Adds the cold values that a call will need to [`Turn::missing`]. Takes the locks of the call's keys one after the
/// other.
pub fn record_missing(spec: &Spec, context: &mut Context<'_, '_>, args: Args<'_>) {
    let Context { keyspace, guards, turn, database, .. } = context;
    for arg in spec.value_positions(args) {
        let (key, hash) = (args.at(arg), keyspace.hash(args.at(arg)));
        guards.hold_one(keyspace, turn, hash);
        if guards.data(hash.shard()).is_missing(*database, hash, key, turn.expired_ms()) {
            turn.missing.push((*database, key.into()));
        }
    }
}

/// Fetches the missing values of a call on the current thread, because the call cannot be run again later. `read`
/// returns the value of an order, which may have been requested by any thread. The caller holds the locks of the keys.
///
/// # Errors
/// Returns the first error of `read`.
pub fn fetch_missing<E>(
    context: &mut Context<'_, '_>,
    mut read: impl FnMut(&FetchOrder) -> Result<Fetched, E>,
) -> Result<(), E> {
    let Context { keyspace, guards, turn, .. } = context;
    for (database, key) in std::mem::take(&mut turn.missing) {
        let hash = keyspace.hash(&key);
        let shard = guards.shard_mut(hash.shard());
        if let Some(order) = shard.order_now(database, hash, &key) {
            let fetched = read(&order)?;
            shard.store_fetched(&order, fetched);
        }
    }
    Ok(())
}

/// Returns whether values that a call needs are missing, and adds them to [`Turn::missing`]. The caller holds the locks
/// of the call's keys, so no value is demoted before the call runs.
fn misses_values(
    spec: &Spec,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    access: Access,
    known: (usize, KeyHash),
) -> Result<bool, CommandError> {
    if !context.turn.checks_values {
        return Ok(false);
    }
    // Most calls have one key, whose shard is locked: if its value is resident, no other check is needed.
    if let Access::One(_) = access {
        let Context { guards, turn, database, .. } = context;
        let (arg, hash) = known;
        if !guards.data(hash.shard()).is_missing(*database, hash, args.at(arg), turn.expired_ms()) {
            return Ok(false);
        }
    }
    find_missing(spec, context, args, known)
}

#[inline(never)]
fn find_missing(
    spec: &Spec,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
    (known, hash): (usize, KeyHash),
) -> Result<bool, CommandError> {
    let Context { keyspace, guards, turn, database, .. } = context;
    turn.missing.clear();
    let expired_ms = turn.expired_ms();
    let mut is_missing = |arg: usize| {
        let hash = if arg == known { hash } else { keyspace.hash(args.at(arg)) };
        guards.data(hash.shard()).is_missing(*database, hash, args.at(arg), expired_ms)
    };
    // The history captures the values of covered keys before and after a change.
    let captures = turn.journal.captures() && spec.flags.contains(Flags::WRITE);
    // Determining which values the call needs takes longer, so it is done only if a key has a cold value.
    if (matches!(spec.values, Values::Unneeded) && !captures)
        || !spec.key_positions(args).any(&mut is_missing)
    {
        return Ok(false);
    }
    let missing = spec.value_positions(args).filter(|&arg| is_missing(arg));
    turn.missing.extend(missing.map(|arg| (*database, args.at(arg).into())));
    if captures {
        let captured: Vec<usize> = spec.key_positions(args).filter(|&arg| is_missing(arg)).collect();
        let captured = captured.into_iter().map(|arg| args.at(arg)).filter(|name| turn.journal.covers(name));
        turn.missing.extend(captured.map(|name| (*database, name.into())));
        turn.missing.sort_unstable();
        turn.missing.dedup();
    }
    if turn.missing.is_empty() {
        return Ok(false);
    }
    // Values that exceed the limit together would evict each other repeatedly.
    let bytes = spec.value_positions(args).filter_map(|arg| {
        let hash = keyspace.hash(args.at(arg));
        let shard = guards.data(hash.shard());
        let at = shard.find(*database, hash, args.at(arg))?;
        Some(shard.entry(*database, at).resident_bytes())
    });
    if bytes.sum::<usize>() > turn.values_bytes_max { Err(CommandError::OutOfMemory) } else { Ok(true) }
}

/// Prefetches the memory that lookups of the elements `names` in a key's value will read, if the value is large.
/// Afterwards the lock of the key's shard is held.
pub fn fetch_elements(context: &mut Context<'_, '_>, hash: KeyHash, key: &[u8], names: &[&[u8]]) {
    let Context { keyspace, guards, turn, database, .. } = context;
    guards.hold_one(keyspace, turn, hash);
    let shard = guards.data(hash.shard());
    if let Some(at) = shard.find(*database, hash, key)
        && let Some(aggregate) = shard.entry(*database, at).aggregate()
    {
        aggregate.fetch_elements(names);
    }
}

/// Takes the locks of all shards; returns the same as [`hold`].
#[cold]
fn hold_all(context: &mut Context<'_, '_>) -> (usize, KeyHash) {
    let Context { keyspace, guards, turn, .. } = context;
    guards.hold_many(keyspace, turn, &mut (0..SHARDS).collect());
    (0, keyspace.hash(&[]))
}

/// Takes the locks of a call's keys; returns the index of an argument whose hash is known, and that hash.
#[inline(always)]
pub fn hold(
    spec: &Spec,
    access: Access,
    hash: Option<KeyHash>,
    context: &mut Context<'_, '_>,
    args: Args<'_>,
) -> (usize, KeyHash) {
    let Access::One(arg) = access else { return hold_many(spec, context, args) };
    let Context { keyspace, guards, turn, .. } = context;
    let hash = hash.unwrap_or_else(|| keyspace.hash(args.at(arg)));
    guards.hold_one(keyspace, turn, hash);
    (arg, hash)
}

/// Takes the locks of all keys of a call; returns the same as [`hold`].
fn hold_many(spec: &Spec, context: &mut Context<'_, '_>, args: Args<'_>) -> (usize, KeyHash) {
    let Context { keyspace, guards, turn, .. } = context;
    let mut shards: Vec<usize> =
        spec.key_positions(args).map(|arg| keyspace.hash(args.at(arg)).shard()).collect();
    guards.hold_many(keyspace, turn, &mut shards);
    // Argument 0 is the command's name, not a key: its "hash" is never used.
    (0, keyspace.hash(&[]))
}
