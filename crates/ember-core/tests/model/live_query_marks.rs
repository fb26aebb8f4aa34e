//! Live queries under all schedules that the model checker finds: every watcher finally has the last state, although
//! keys change, and watchers are added and removed, concurrently. Runs with `RUSTFLAGS="--cfg shuttle" cargo test -p
//! emberkv-core --test model live_query_marks`.

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

/// The number of workers, each with one connection that may watch.
const WORKERS: usize = 4;

/// Whether a query runs under the locks of its keys, or is slow, so that it only borrows their values under the locks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Effort {
    Short,
    Long,
}

/// A command that adds one to the number at its first key.
const INCREMENT: DataCommand = Command::new(
    Spec { name: "increment", keys: &[KeySpec::one(1, KeyFlags::RW)], ..Spec::DEFAULT },
    Run::Keys(increment),
);

/// A command that returns the sum of the numbers at its keys.
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

/// The shared state of the threads.
struct World {
    keyspace: Keyspace,
    /// The queries that were sent to their owner and not handled yet.
    messages: Mutex<Vec<Arc<LiveQuery>>>,
    /// The number of the last moment at which a query has read its keys.
    moments: Mutex<u64>,
    /// The last notification of each worker's connection: the number of the evaluation's moment, and the result, if
    /// any.
    delivered: Mutex<[(u64, Option<i64>); WORKERS]>,
}

/// Returns the only connection of a worker as a receiver.
fn receiver(worker: usize) -> Receiver {
    Receiver { client_id: worker as u64, token: 0, number: 0 }
}

const KEYS: [&[u8]; 2] = [b"a", b"b"];

impl World {
    fn new() -> Arc<World> {
        let options = KeyspaceOptions { databases: 1, ..KeyspaceOptions::default() };
        let keyspace = Keyspace::new(&options).unwrap();
        let (messages, delivered) = (Mutex::new(Vec::new()), Mutex::new([(0, None); WORKERS]));
        Arc::new(World { keyspace, messages, moments: Mutex::new(0), delivered })
    }

    /// Returns the number of the current moment, which is higher than all earlier ones. The caller holds the locks of
    /// the query's keys.
    fn moment(&self) -> u64 {
        let mut moments = self.moments.lock();
        *moments += 1;
        *moments
    }

    /// Returns the result of the last notification to a worker's connection.
    fn delivered(&self, worker: usize) -> Option<i64> {
        self.delivered.lock()[worker].1
    }

    /// Notifies the watchers of a query, except those that have received the result of a later moment.
    fn notify(&self, query: &LiveQuery, moment: u64, result: i64) {
        let mut delivered = self.delivered.lock();
        let watches =
            |worker: &usize| query.with_audience(|audience| audience.receivers_of(*worker).count()) > 0;
        for worker in (0..WORKERS).filter(watches) {
            if delivered[worker].0 <= moment {
                delivered[worker] = (moment, Some(result));
            }
        }
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
        self.messages.lock().append(&mut turn.notices.queries);
    }

    /// Runs the query, and calls `act` with its result while the locks of its keys are held.
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
        let bring = |_: &mut Context<'_, '_>| unreachable!("no value is cold");
        live::evaluate(&SUM, &mut context, args, &mut reply, at_moment, bring).unwrap();
        let text = String::from_utf8(reply.to_vec()).unwrap();
        let result = text[1..].trim_end().parse().unwrap();
        let mut keys = Keys::new(keyspace, &mut guards, args, 0, (0, keyspace.hash(&[])), &mut turn);
        let returned = act(&mut keys, result);
        guards.unpin(keyspace, &mut turn);
        returned
    }

    /// Starts watching as worker `worker`. If the evaluation is slow, the owner notifies the connection of the result.
    fn open(&self, call: &OwnedBatch, worker: usize, effort: Effort) -> Arc<LiveQuery> {
        let query = self.evaluate(
            call,
            || (),
            |keys, result| {
                let args = call.command(0);
                let known = keys.find_query(1, Protocol::Resp2);
                let is_new = known.is_none();
                let query = known
                    .unwrap_or_else(|| Arc::new(LiveQuery::new(args, 0, 0, Protocol::Resp2, 0).unwrap()));
                if is_new {
                    (1..=KEYS.len()).for_each(|arg| _ = keys.enter_query(arg, &query));
                }
                query.with_audience(|audience| {
                    audience.add(worker, receiver(worker), false);
                    let hash = (effort == Effort::Short).then(|| u128::from(result.unsigned_abs()));
                    let is_known = is_new || audience.known() == hash;
                    audience.set_known(hash.filter(|_| is_known));
                });
                self.delivered.lock()[worker] = (self.moment(), (effort == Effort::Short).then_some(result));
                if effort == Effort::Long {
                    query.mark();
                }
                query
            },
        );
        if effort == Effort::Long {
            self.messages.lock().push(Arc::clone(&query));
        }
        query
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
                    (1..=KEYS.len()).for_each(|arg| _ = keys.leave_query(arg, query));
                }
            },
        );
    }

    /// Handles one message as the owner: evaluates the query again and notifies its watchers.
    fn renew(&self, call: &OwnedBatch, query: &Arc<LiveQuery>, effort: Effort) {
        if !query.is_marked() || query.with_audience(|audience| audience.is_empty()) {
            return;
        }
        if effort == Effort::Short {
            let record = |_: &mut Keys<'_, '_>, result| {
                self.record(query, result, true).then(|| (self.moment(), result))
            };
            let new_states = self.evaluate(call, || query.unmark(), record);
            new_states.into_iter().for_each(|(moment, result)| self.notify(query, moment, result));
            return;
        }
        // The query borrows the values at this moment; the result is recorded later.
        let (moment, result) = self.evaluate(call, || query.unmark(), |_, result| (self.moment(), result));
        thread::yield_now();
        if self.evaluate(call, || (), |_, _| self.record(query, result, !query.is_marked())) {
            self.notify(query, moment, result);
        }
    }

    /// Records a result, under the locks of the query's keys; `is_last`: no key has changed since the evaluation.
    /// Returns whether the result is new.
    fn record(&self, query: &LiveQuery, result: i64, is_last: bool) -> bool {
        query.with_audience(|audience| {
            let hash = u128::from(result.unsigned_abs());
            if audience.is_empty() || audience.known() == Some(hash) {
                return false;
            }
            audience.set_known(is_last.then_some(hash));
            true
        })
    }

    /// Does the owner's work of one turn: handles all messages.
    fn handle_messages(&self, effort: Effort) {
        let messages = std::mem::take(&mut *self.messages.lock());
        messages.iter().for_each(|query| self.renew(&call(), query, effort));
    }
}

fn call() -> OwnedBatch {
    let mut call = OwnedBatch::new();
    call.push(&[b"sum", KEYS[0], KEYS[1]]);
    call
}

/// Concurrently runs writers, a connection that starts to watch while another one stops, and the owner.
fn check_last_state(effort: Effort) {
    shuttle::check_random(
        move || {
            let world = World::new();
            let first = world.open(&call(), 1, effort);
            let writers = KEYS.map(|key| {
                let world = Arc::clone(&world);
                thread::spawn(move || (0..CHANGES).for_each(|_| world.change(key)))
            });
            // One connection starts to watch, and the watching connection stops.
            let others = {
                let (world, first) = (Arc::clone(&world), Arc::clone(&first));
                thread::spawn(move || {
                    let second = world.open(&call(), 2, effort);
                    world.close(&call(), &first, 1);
                    second
                })
            };
            let home = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    for _ in 0..4 {
                        world.handle_messages(effort);
                        thread::yield_now();
                    }
                })
            };
            writers.into_iter().for_each(|writer| writer.join().unwrap());
            let second = others.join().unwrap();
            home.join().unwrap();
            world.handle_messages(effort);
            assert!(!second.is_marked(), "no mark is left");
            assert_eq!(world.delivered(2), Some((KEYS.len() * CHANGES) as i64));
            world.close(&call(), &second, 2);
            let is_observed =
                |key: &&[u8]| world.keyspace.lock(world.keyspace.hash(key).shard()).observers().is_some();
            assert!(!KEYS.iter().any(is_observed), "the last watcher removes the query");
        },
        SCHEDULES,
    );
}

#[test]
fn the_last_state_is_delivered_under_concurrent_changes() {
    check_last_state(Effort::Short);
}

#[test]
fn the_last_state_is_delivered_when_first_evaluations_are_slow() {
    check_last_state(Effort::Long);
}

#[test]
fn unwatching_during_a_slow_first_evaluation_leaves_no_state() {
    shuttle::check_random(
        || {
            let world = World::new();
            let watching = {
                let world = Arc::clone(&world);
                thread::spawn(move || {
                    let query = world.open(&call(), 1, Effort::Long);
                    world.close(&call(), &query, 1);
                    world.open(&call(), 3, Effort::Long)
                })
            };
            let writing = {
                let world = Arc::clone(&world);
                thread::spawn(move || world.change(KEYS[0]))
            };
            for _ in 0..3 {
                world.handle_messages(Effort::Long);
                thread::yield_now();
            }
            let query = watching.join().unwrap();
            writing.join().unwrap();
            world.handle_messages(Effort::Long);
            assert_eq!(world.delivered(3), Some(1), "a returning watcher is notified");
            world.close(&call(), &query, 3);
            let is_observed =
                |key: &&[u8]| world.keyspace.lock(world.keyspace.hash(key).shard()).observers().is_some();
            assert!(!KEYS.iter().any(is_observed));
        },
        SCHEDULES,
    );
}
