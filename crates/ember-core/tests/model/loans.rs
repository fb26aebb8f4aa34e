//! Calls on borrowed values, while other calls change their keys, under a model checker: no partial effect is visible,
//! no change is lost, and no value is freed while it is read. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model loans`.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Attempt, DataCommand};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::loan::Loan;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::{Keyspace, SHARDS};
use emberkv_core::turn::Turn;
use shuttle::thread;

use crate::locks::keyspace;

const SCHEDULES: usize = 2000;

/// The words of a call; `key:` followed by a number means the key in the shard with this number.
type Words = &'static [&'static str];

fn find(name: &str) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name == name).unwrap()
}

/// A thread that runs calls as a worker does: calls that need at least one step run on borrowed values, without locks.
/// If a key has changed meanwhile, they run again under the locks.
struct Worker {
    keyspace: Arc<Keyspace>,
    keys: Arc<Vec<Vec<u8>>>,
    turn: Turn,
}

impl Worker {
    fn new(keyspace: &Arc<Keyspace>, keys: &Arc<Vec<Vec<u8>>>) -> Worker {
        let mut turn = Turn::new(0, 1);
        turn.settings.short_call_steps = 0;
        Worker { keyspace: Arc::clone(keyspace), keys: Arc::clone(keys), turn }
    }

    fn run(&mut self, words: Words) -> String {
        let Worker { keyspace, keys, turn } = self;
        let command = find(words[0]);
        let key_of = |word: &&'static str| match word.strip_prefix("key:") {
            Some(shard) => &keys[shard.parse::<usize>().unwrap()][..],
            None => word.as_bytes(),
        };
        let mut batch = OwnedBatch::new();
        batch.push(&words.iter().map(key_of).collect::<Vec<_>>());
        let args = batch.command(0);
        let access = Access::of(&command.spec);
        let mut reply = Reply::new(Protocol::Resp2);
        let mut guards = Guards::None;
        let mut context =
            Context { keyspace, guards: &mut guards, turn, database: 0, waiting: Waiting::Allowed };
        let attempt = dispatch::run(command, access, None, &mut context, args, &mut reply).unwrap();
        if matches!(attempt, Attempt::Offload) {
            let mut loan = Loan::take(command, &mut context, args);
            guards.release(keyspace, turn);
            loan.run(keyspace, &mut reply).unwrap();
            if loan.may_store() {
                let positions = command.spec.key_positions(args);
                let mut shards = positions.map(|arg| keyspace.hash(args.at(arg)).shard()).collect();
                guards.hold_many(keyspace, turn, &mut shards);
                let waiting = Waiting::Never;
                let mut context = Context { keyspace, guards: &mut guards, turn, database: 0, waiting };
                if loan.end_watch(&mut context) {
                    loan.give_back(&mut context);
                } else {
                    reply.clear();
                    dispatch::run(command, access, None, &mut context, args, &mut reply).unwrap();
                }
            }
        }
        guards.release(keyspace, turn);
        keyspace.publish_bytes(std::mem::take(&mut turn.growth_bytes));
        String::from_utf8(reply.to_vec()).unwrap()
    }
}

/// The calls of a thread.
type Script = &'static [Words];

/// The visible results of a run: the replies to each script, then those to the calls that read the final state.
type Outcome = Vec<Vec<String>>;

fn run(worker: &mut Worker, script: Script) -> Vec<String> {
    script.iter().map(|words| worker.run(words)).collect()
}

/// Returns all orders in which the calls of scripts of these lengths can run sequentially, as lists of script numbers.
fn orders(lengths: &[usize]) -> Vec<Vec<usize>> {
    if lengths.iter().all(|&length| length == 0) {
        return vec![Vec::new()];
    }
    let mut all = Vec::new();
    for script in (0..lengths.len()).filter(|&script| lengths[script] > 0) {
        let mut rest = lengths.to_vec();
        rest[script] -= 1;
        all.extend(orders(&rest).into_iter().map(|order| [&[script], &order[..]].concat()));
    }
    all
}

/// Returns the results of running the calls sequentially, in each possible order.
fn outcomes_in_turn(first: Script, scripts: &'static [Script], last: Script) -> BTreeSet<Outcome> {
    let outcomes = Arc::new(Mutex::new(BTreeSet::new()));
    let found = Arc::clone(&outcomes);
    let runs = move || {
        let lengths: Vec<usize> = scripts.iter().map(|script| script.len()).collect();
        for order in orders(&lengths) {
            let (keyspace, keys) = keyspace();
            let mut worker = Worker::new(&keyspace, &keys);
            run(&mut worker, first);
            let mut replies: Outcome = vec![Vec::new(); scripts.len()];
            for script in order {
                let words = scripts[script][replies[script].len()];
                let reply = worker.run(words);
                replies[script].push(reply);
            }
            replies.push(run(&mut worker, last));
            found.lock().unwrap().insert(replies);
        }
    };
    shuttle::check_random(runs, 1);
    std::mem::take(&mut *outcomes.lock().unwrap())
}

/// Runs `first`, then each script in a separate thread under many schedules, then `last`. The results must equal those
/// of some sequential order of the calls.
fn check(first: Script, scripts: &'static [Script], last: Script) {
    let possible = outcomes_in_turn(first, scripts, last);
    assert!(possible.len() > 1, "the results depend on the order of the calls");
    shuttle::check_random(
        move || {
            let (keyspace, keys) = keyspace();
            let mut main = Worker::new(&keyspace, &keys);
            run(&mut main, first);
            let threads: Vec<_> = scripts
                .iter()
                .map(|script| {
                    let mut worker = Worker::new(&keyspace, &keys);
                    thread::spawn(move || run(&mut worker, script))
                })
                .collect();
            let mut seen: Outcome = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            seen.push(run(&mut main, last));
            assert!(possible.contains(&seen), "no order of the calls gives {seen:?}");
            keyspace.check_invariants();
            let bytes: usize = (0..SHARDS).map(|shard| keyspace.lock(shard).bytes()).sum();
            assert_eq!(keyspace.used_bytes(), bytes);
        },
        SCHEDULES,
    );
}

#[test]
fn a_moved_member_is_always_in_exactly_one_set() {
    check(
        &[&["sadd", "key:0", "a", "b", "c"], &["sadd", "key:1", "d"]],
        &[
            &[&["smove", "key:0", "key:1", "a"], &["smove", "key:1", "key:0", "d"]],
            &[&["sunionstore", "key:2", "key:0", "key:1"], &["scard", "key:0"]],
            &[&["sdiffstore", "key:3", "key:1", "key:2"]],
        ],
        &[&["scard", "key:0"], &["scard", "key:1"], &["scard", "key:2"], &["scard", "key:3"]],
    );
}

#[test]
fn two_concurrent_stores_at_one_key_equal_two_in_sequence() {
    check(
        &[&["sadd", "key:0", "a", "b"], &["sadd", "key:1", "a"]],
        &[
            &[&["sdiffstore", "key:1", "key:0", "key:1"], &["sintercard", "2", "key:0", "key:1"]],
            &[&["sunionstore", "key:1", "key:0", "key:1"]],
            &[&["sadd", "key:0", "c"], &["srem", "key:0", "b"]],
        ],
        &[&["smismember", "key:1", "a", "b", "c"]],
    );
}

#[test]
fn keys_of_one_shard_are_borrowed_together() {
    check(
        &[&["zadd", "key:1", "1", "a", "2", "b"]],
        &[
            &[&["zadd", "key:1", "3", "c"], &["zrem", "key:1", "a"]],
            &[&["zunionstore", "key:1", "2", "key:1", "key:1"], &["zrangebyscore", "key:1", "4", "4"]],
            &[&["zrange", "key:1", "0", "-1", "withscores"]],
        ],
        &[&["zrange", "key:1", "0", "-1", "withscores"]],
    );
}
