//! The keyspace without a network: batches of GET and SET on a million keys, compared with a bare hash table, on one
//! and on two threads, and on one hot key.
//!
//! `cargo bench -p emberkv-core`. Each figure is the time of one command. A batch is 64 commands, run like a server's
//! batch: hash all keys, prefetch table lines, prefetch entries, run.

#[path = "support/thread.rs"]
mod thread;

use std::hint::black_box;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ember_protocol::OwnedBatch;
use emberkv_core::call::DataCommand;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::turn::Random;

use thread::{BATCH, Thread, command, keyspace};

const KEYS: u64 = 1_000_000;
/// The number of different batches: enough that keys differ from one batch to the next, and few enough that the batches
/// themselves stay in the cache.
const BATCHES: usize = 4096;
const VALUE: [u8; 64] = [b'v'; 64];

fn key(number: u64) -> Vec<u8> {
    format!("key:{number:012}").into_bytes()
}

/// Returns batches of the command `name` on keys whose numbers `choose` returns.
fn batches(name: &[u8], mut choose: impl FnMut() -> u64) -> Vec<OwnedBatch> {
    let batch = |_| {
        let mut batch = OwnedBatch::new();
        for _ in 0..BATCH {
            let key = key(choose());
            if name == b"SET" { batch.push(&[name, &key, &VALUE]) } else { batch.push(&[name, &key]) }
        }
        batch
    };
    (0..BATCHES).map(batch).collect()
}

fn fill(keyspace: &Keyspace) {
    let mut thread = Thread::new(keyspace, 1);
    let mut next = 0;
    while next < KEYS {
        let mut batch = OwnedBatch::new();
        for number in next..next + BATCH as u64 {
            batch.push(&[b"SET", &key(number), &VALUE]);
        }
        thread.run(command("set"), &batch);
        next += BATCH as u64;
    }
}

/// Returns the time that `threads` threads need for `rounds` batches each.
fn together(keyspace: &Keyspace, command: &DataCommand, work: &[Vec<OwnedBatch>], rounds: u64) -> Duration {
    let barrier = Barrier::new(work.len() + 1);
    std::thread::scope(|scope| {
        for (number, batches) in work.iter().enumerate() {
            let barrier = &barrier;
            scope.spawn(move || {
                let mut thread = Thread::new(keyspace, number as u64 + 1);
                barrier.wait();
                for round in 0..rounds {
                    thread.run(command, &batches[round as usize % batches.len()]);
                }
                barrier.wait();
            });
        }
        barrier.wait();
        let start = Instant::now();
        barrier.wait();
        start.elapsed()
    })
}

fn benches(criterion: &mut Criterion) {
    let keyspace = keyspace();
    fill(&keyspace);
    let mut random = Random::seeded(7);
    let mut uniform = |name: &[u8]| batches(name, || random.below(KEYS as usize) as u64);
    let (gets, sets) = ([uniform(b"GET"), uniform(b"GET")], [uniform(b"SET"), uniform(b"SET")]);
    let hot = [batches(b"GET", || 1), batches(b"GET", || 1)];
    let mut group = criterion.benchmark_group("million keys, batches of 64");
    for (name, command, work) in [
        ("GET, one thread", command("get"), &gets[..1]),
        ("GET, two threads", command("get"), &gets[..]),
        ("SET, one thread", command("set"), &sets[..1]),
        ("SET, two threads", command("set"), &sets[..]),
        ("GET one hot key, one thread", command("get"), &hot[..1]),
        ("GET one hot key, two threads", command("get"), &hot[..]),
    ] {
        group.throughput(Throughput::Elements((BATCH * work.len()) as u64));
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| together(&keyspace, command, work, rounds));
        });
    }
    let map: hashbrown::HashMap<Vec<u8>, Vec<u8>> = (0..KEYS).map(|n| (key(n), VALUE.to_vec())).collect();
    group.throughput(Throughput::Elements(BATCH as u64));
    group.bench_function("hashbrown get, one thread", |bencher| {
        let mut round = 0;
        bencher.iter(|| {
            let batch = &gets[0][round % BATCHES];
            round += 1;
            for number in 0..BATCH {
                black_box(map.get(batch.command(number).at(1)));
            }
        });
    });
    let mut map = map;
    group.bench_function("hashbrown insert, one thread", |bencher| {
        let mut round = 0;
        bencher.iter(|| {
            let batch = &sets[0][round % BATCHES];
            round += 1;
            for number in 0..BATCH {
                let args = batch.command(number);
                black_box(map.insert(args.at(1).to_vec(), args.at(2).to_vec()));
            }
        });
    });
    group.finish();
}

criterion_group!(keyspace_benches, benches);
criterion_main!(keyspace_benches);
