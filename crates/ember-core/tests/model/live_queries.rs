//! Live queries under all schedules that the model checker finds: whoever watches ends with the last state, whatever
//! changes, runs, begins and ends at the same time. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model live_queries`.

use std::sync::Arc;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Call, CommandResult, DataCommand, Run};
use emberkv_core::dispatch::{self, Access, Context, Waiting, live};
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::entry::{NewValue, StringValue};
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::live_query::{LiveQuery, Receiver};
use emberkv_core::spec::{Command, Flags, KeyFlags, KeySpec, Spec};
use emberkv_core::sync::Mutex;
use emberkv_core::turn::Turn;
use shuttle::thread;

const SCHEDULES: usize = 3000;
const CHANGES: usize = 3;

/// Adds one to its first key.
const INCREMENT: DataCommand = Command::new(
    Spec { name: "increment", keys: &[KeySpec::one(1, KeyFlags::RW)], ..Spec::DEFAULT },
    Run::Keys(increment),
);

/// Answers the sum of its keys.
const SUM: DataCommand = Command::new(
    Spec { name: "sum", flags: Flags::READONLY, keys: &[KeySpec::from(1, 1, KeyFlags::RO)], ..Spec::DEFAULT },
    Run::Keys(sum),
);

fn number(call: &mut Call<'_, '_>, arg: usize) -> i64 {
    match call.keys.read(arg).map(|entry| entry.string()) {
        Some(StringValue::Int(number)) => number,
        _ => 0,
    }
}

fn increment(call: &mut Call<'_, '_>) -> CommandResult {
    let number = number(call, 1);
    call.keys.key(1).set(NewValue::Int(number + 1), None);
    Ok(())
}

fn sum(call: &mut Call<'_, '_>) -> CommandResult {
    let sum = (1..call.args.len()).map(|arg| number(call, arg)).sum();
    call.reply.integer(sum);
    Ok(())
}

/// What the threads share.
struct World {
    keyspace: Keyspace,
    /// Queries on their way to their home.
    letters: Mutex<Vec<Arc<LiveQuery>>>,
    /// What the audience was told last.
    told: Mutex<Option<i64>>,
}

/// The only connection of a worker.
fn receiver(worker: usize) -> Receiver {
    Receiver { client_id: worker as u64, token: 0, number: 0 }
}

const KEYS: [&[u8]; 2] = [b"a", b"b"];

impl World {
    fn new() -> Arc<World> {
        let options = KeyspaceOptions { databases: 1, ..KeyspaceOptions::default() };
        let keyspace = Keyspace::new(&options).unwrap();
        Arc::new(World { keyspace, letters: Mutex::new(Vec::new()), told: Mutex::new(None) })
    }

    fn change(&self, key: &[u8]) {
        let mut turn = Turn::new(0, 1);
        let mut guards = Guards::None;
        let mut batch = OwnedBatch::new();
        batch.push(&[b"increment", key]);
        let (keyspace, database, waiting) = (&self.keyspace, 0, Waiting::Never);
        let mut context = Context { keyspace, guards: &mut guards, turn: &mut turn, database, waiting };
        let mut reply = Reply::new(Protocol::Resp2);
        let access = Access::of(&INCREMENT.spec);
        dispatch::run(&INCREMENT, access, None, &mut context, batch.command(0), &mut reply).unwrap();
        guards.release(&self.keyspace, &mut turn);
        self.letters.lock().append(&mut turn.notices.queries);
    }

    /// Runs the query; `act` is called with its result while the locks are held.
    fn evaluate<R>(
        &self,
        call: &OwnedBatch,
        at_moment: impl FnOnce(),
        act: impl FnOnce(&mut Keys<'_, '_>, i64) -> R,
    ) -> R {
        let mut turn = Turn::new(0, 1);
        let mut guards = Guards::None;
        let args = call.command(0);
        let (keyspace, database, waiting) = (&self.keyspace, 0, Waiting::Never);
        let mut context = Context { keyspace, guards: &mut guards, turn: &mut turn, database, waiting };
        let mut reply = Reply::new(Protocol::Resp2);
        let bring = |_: &mut Context<'_, '_>| unreachable!("no value is away");
        live::evaluate(&SUM, &mut context, args, &mut reply, at_moment, bring).unwrap();
        let text = String::from_utf8(reply.to_vec()).unwrap();
        let result = text[1..].trim_end().parse().unwrap();
        let mut keys = Keys::new(keyspace, &mut guards, args, 0, (0, keyspace.hash(&[])), &mut turn);
        let returned = act(&mut keys, result);
        guards.unpin(keyspace, &mut turn);
        returned
    }

    /// Begins to watch as worker `worker`.
    fn open(&self, call: &OwnedBatch, worker: usize) -> Arc<LiveQuery> {
        self.evaluate(
            call,
            || (),
            |keys, result| {
                let args = call.command(0);
                let known = keys.find_query(1, |query| query.is_for(args, 0, Protocol::Resp2));
                let is_new = known.is_none();
                let query = known
                    .unwrap_or_else(|| Arc::new(LiveQuery::new(args, 0, 0, Protocol::Resp2, 0).unwrap()));
                if is_new {
                    (1..=KEYS.len()).for_each(|arg| keys.enter_query(arg, &query));
                }
                query.with_audience(|audience| {
                    audience.add(worker, receiver(worker), false);
                    let hash = Some(u128::from(result.unsigned_abs()));
                    let is_known = is_new || audience.known() == hash;
                    audience.set_known(hash.filter(|_| is_known));
                });
                *self.told.lock() = Some(result);
                query
            },
        )
    }

    fn close(&self, call: &OwnedBatch, query: &Arc<LiveQuery>, worker: usize) {
        self.evaluate(
            call,
            || (),
            |keys, _| {
                let is_over = query.with_audience(|audience| {
                    audience.remove(receiver(worker));
                    audience.is_empty()
                });
                if is_over {
                    (1..=KEYS.len()).for_each(|arg| keys.leave_query(arg, query));
                }
            },
        );
    }

    /// What the home does with one letter.
    fn renew(&self, call: &OwnedBatch, query: &Arc<LiveQuery>) {
        if !query.is_marked() {
            return;
        }
        self.evaluate(
            call,
            || query.unmark(),
            |_, result| {
                query.with_audience(|audience| {
                    let hash = u128::from(result.unsigned_abs());
                    if audience.known() != Some(hash) && !audience.is_empty() {
                        audience.set_known(Some(hash));
                        *self.told.lock() = Some(result);
                    }
                });
            },
        );
    }
}

fn call() -> OwnedBatch {
    let mut call = OwnedBatch::new();
    call.push(&[b"sum", KEYS[0], KEYS[1]]);
    call
}

#[test]
fn the_last_state_is_told_whatever_happens_at_the_same_time() {
    shuttle::check_random(
        || {
            let world = World::new();
            let first = world.open(&call(), 1);
            let writers = KEYS.map(|key| {
                let world = Arc::clone(&world);
                thread::spawn(move || (0..CHANGES).for_each(|_| world.change(key)))
            });
            // Somebody else begins to watch, and one who watches leaves.
            let others = {
                let (world, first) = (Arc::clone(&world), Arc::clone(&first));
                thread::spawn(move || {
                    let second = world.open(&call(), 2);
                    world.close(&call(), &first, 1);
                    second
                })
            };
            let home = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    for _ in 0..4 {
                        let letters = std::mem::take(&mut *world.letters.lock());
                        letters.iter().for_each(|query| world.renew(&call(), query));
                        thread::yield_now();
                    }
                })
            };
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            let second = others.join().unwrap();
            home.join().unwrap();
            let letters = std::mem::take(&mut *world.letters.lock());
            letters.iter().for_each(|query| world.renew(&call(), query));
            assert!(!second.is_marked(), "no mark is left behind");
            assert_eq!(*world.told.lock(), Some((KEYS.len() * CHANGES) as i64));
            world.close(&call(), &second, 2);
            let is_observed =
                |key: &&[u8]| world.keyspace.lock(world.keyspace.hash(key).shard()).observers().is_some();
            assert!(!KEYS.iter().any(is_observed), "the last one who leaves takes the query along");
        },
        SCHEDULES,
    );
}
