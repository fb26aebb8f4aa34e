//! The locks of shards under a model checker, which tries many schedules of a few threads: no deadlock, no lost update,
//! no visible partial change. Runs with
//! `RUSTFLAGS="--cfg shuttle" cargo test -p emberkv-core --test model locks`.

use std::sync::Arc;

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Call, CommandResult, DataCommand, Run};
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::events::Notices;
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::entry::{NewValue, StringValue};
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions, SHARDS};
use emberkv_core::spec::{Command, KeyFlags, KeySpec, Spec};
use emberkv_core::turn::Turn;
use shuttle::thread;

const SCHEDULES: usize = 3000;

/// A command that adds one to the number at a key.
const INCREMENT: DataCommand = Command::new(
    Spec { name: "increment", keys: &[KeySpec::one(1, KeyFlags::RW)], ..Spec::DEFAULT },
    Run::Keys(increment_all),
);

/// A command that adds one to the numbers at all its keys atomically.
const INCREMENT_ALL: DataCommand = Command::new(
    Spec { name: "increment-all", keys: &[KeySpec::from(1, 1, KeyFlags::RW)], ..Spec::DEFAULT },
    Run::Keys(increment_all),
);

/// A command that fails unless all its keys hold the same number at the same time.
const EQUAL: DataCommand = Command::new(
    Spec { name: "equal", keys: &[KeySpec::from(1, 1, KeyFlags::RO)], ..Spec::DEFAULT },
    Run::Keys(equal),
);

fn number(call: &mut Call<'_, '_>, arg: usize) -> i64 {
    match call.keys.read(arg).map(|entry| entry.string()) {
        Some(StringValue::Int(number)) => number,
        Some(_) => panic!("only integers are stored"),
        None => 0,
    }
}

fn increment_all(call: &mut Call<'_, '_>) -> CommandResult {
    for arg in 1..call.args.len() {
        let number = number(call, arg);
        call.keys.key(arg).set(NewValue::Int(number + 1), None);
    }
    Ok(())
}

fn equal(call: &mut Call<'_, '_>) -> CommandResult {
    let numbers: Vec<i64> = (1..call.args.len()).map(|arg| number(call, arg)).collect();
    assert!(numbers.windows(2).all(|pair| pair[0] == pair[1]), "part of a change is visible: {numbers:?}");
    Ok(())
}

/// Returns a keyspace and a key in each shard; the shards are the same in each schedule, whatever the hash function's
/// secrets.
pub(crate) fn keyspace() -> (Arc<Keyspace>, Arc<Vec<Vec<u8>>>) {
    let options = KeyspaceOptions { databases: 2, ..KeyspaceOptions::default() };
    let keyspace = Keyspace::new(&options).unwrap();
    let key_in = |shard: usize| {
        let mut names = (0u32..).map(|n| n.to_string().into_bytes());
        names.find(|name| keyspace.hash(name).shard() == shard).unwrap()
    };
    let keys = (0..SHARDS).map(key_in).collect();
    (Arc::new(keyspace), Arc::new(keys))
}

/// Runs a pipeline of commands on keys that are identified by their shards; locks are held from one command to the
/// next.
fn run(keyspace: &Keyspace, keys: &[Vec<u8>], pipeline: &[(&DataCommand, &[usize])]) {
    let mut turn = Turn::new(0, 1);
    let mut guards = Guards::None;
    for (command, shards) in pipeline {
        let mut words: Vec<&[u8]> = vec![command.spec.name.as_bytes()];
        words.extend(shards.iter().map(|&shard| &keys[shard][..]));
        let mut batch = OwnedBatch::new();
        batch.push(&words);
        let mut context =
            Context { keyspace, guards: &mut guards, turn: &mut turn, database: 0, waiting: Waiting::Never };
        let access = Access::of(&command.spec);
        let mut reply = Reply::new(Protocol::Resp2);
        dispatch::run(command, access, None, &mut context, batch.command(0), &mut reply).unwrap();
    }
    guards.release(keyspace, &mut turn);
    keyspace.publish_bytes(turn.growth_bytes);
}

fn read(keyspace: &Keyspace, database: usize, key: &[u8]) -> i64 {
    let hash = keyspace.hash(key);
    let data = keyspace.lock(hash.shard());
    match data.find(database, hash, key).map(|at| data.entry(database, at).string()) {
        Some(StringValue::Int(number)) => number,
        _ => 0,
    }
}

type Pipeline = &'static [(&'static DataCommand, &'static [usize])];

/// Runs each pipeline in a separate thread under many schedules, then `check`.
fn check(pipelines: &'static [Pipeline], check: fn(&Keyspace, &[Vec<u8>])) {
    shuttle::check_random(
        move || {
            let (keyspace, keys) = keyspace();
            let threads: Vec<_> = pipelines
                .iter()
                .map(|pipeline| {
                    let (keyspace, keys) = (Arc::clone(&keyspace), Arc::clone(&keys));
                    thread::spawn(move || run(&keyspace, &keys, pipeline))
                })
                .collect();
            threads.into_iter().for_each(|thread| thread.join().unwrap());
            check(&keyspace, &keys);
            keyspace.check_invariants();
            let bytes: usize = (0..SHARDS).map(|shard| keyspace.lock(shard).bytes()).sum();
            assert_eq!(keyspace.used_bytes(), bytes);
        },
        SCHEDULES,
    );
}

#[test]
fn single_key_commands_lose_no_update() {
    check(
        &[
            &[(&INCREMENT, &[0]), (&INCREMENT, &[0]), (&INCREMENT, &[1])],
            &[(&INCREMENT, &[1]), (&INCREMENT, &[0]), (&INCREMENT, &[1])],
            &[(&INCREMENT, &[0]), (&INCREMENT, &[1])],
        ],
        |keyspace, keys| {
            assert_eq!((read(keyspace, 0, &keys[0]), read(keyspace, 0, &keys[1])), (4, 4));
        },
    );
}

#[test]
fn multi_key_commands_neither_deadlock_nor_show_partial_effects() {
    check(
        &[
            &[(&INCREMENT_ALL, &[0, 1, 2]), (&EQUAL, &[2, 0])],
            &[(&INCREMENT_ALL, &[2, 1, 0]), (&EQUAL, &[0, 1, 2])],
            &[(&EQUAL, &[1, 2, 0]), (&INCREMENT_ALL, &[1, 0, 2])],
        ],
        |keyspace, keys| (0..3).for_each(|shard| assert_eq!(read(keyspace, 0, &keys[shard]), 3)),
    );
}

#[test]
fn locks_kept_through_a_pipeline_do_not_deadlock() {
    check(
        &[
            &[(&INCREMENT, &[3]), (&INCREMENT_ALL, &[0, 3]), (&INCREMENT, &[0])],
            &[(&INCREMENT, &[0]), (&INCREMENT_ALL, &[3, 0]), (&INCREMENT, &[3])],
            &[(&INCREMENT_ALL, &[1, 3, 1]), (&INCREMENT, &[0])],
        ],
        |keyspace, keys| {
            let numbers: Vec<i64> = keys.iter().map(|key| read(keyspace, 0, key)).collect();
            assert_eq!(numbers, [5, 2, 0, 5]);
        },
    );
}

#[test]
fn swapdb_is_atomic() {
    shuttle::check_random(
        || {
            let (keyspace, keys) = keyspace();
            let writers: Vec<_> = (0..2)
                .map(|_| {
                    let (keyspace, keys) = (Arc::clone(&keyspace), Arc::clone(&keys));
                    let all: &[usize] = &[0, 2, 3];
                    thread::spawn(move || {
                        run(&keyspace, &keys, &[(&INCREMENT_ALL, all), (&EQUAL, all), (&INCREMENT_ALL, all)]);
                    })
                })
                .collect();
            keyspace.swap_databases(0, 1, &mut Turn::new(0, 1), |_| ());
            writers.into_iter().for_each(|thread| thread.join().unwrap());
            for shard in [0, 2, 3] {
                let sum = read(&keyspace, 0, &keys[shard]) + read(&keyspace, 1, &keys[shard]);
                assert_eq!(sum, 4, "no increment is lost between the databases");
                assert_eq!(read(&keyspace, 0, &keys[shard]), read(&keyspace, 0, &keys[0]));
            }
            let (keys, flushed) = keyspace.flush(None, &mut Notices::default(), |_| ());
            assert_eq!(flushed.iter().map(|database| database.table().len() as u64).sum::<u64>(), keys);
            assert_eq!(keys % 3, 0);
            keyspace.check_invariants();
        },
        SCHEDULES,
    );
}
