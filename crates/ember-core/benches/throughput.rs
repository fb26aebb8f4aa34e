//! Operations per second of GET, SET, HGET, SADD and ZADD on one thread without a network, and the parts of a GET.
//!
//! `cargo bench --bench throughput`. The commands run one at a time and in batches of 64, on 10,000 keys, which fit in
//! the caches of a core, and on a million.

#[path = "support/thread.rs"]
mod thread;
#[path = "support/workloads.rs"]
mod workloads;

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use emberkv_core::keyspace::Keyspace;
use emberkv_core::turn::Random;

use thread::{BATCH, Thread, keyspace};
use workloads::{key_counts, workloads};

fn commands(criterion: &mut Criterion) {
    for &keys in key_counts() {
        for batch in [1, BATCH] {
            let keyspace = keyspace();
            let mut thread = Thread::new(&keyspace, 2);
            let mut group = criterion.benchmark_group(format!("{keys} keys, batches of {batch}"));
            group.throughput(Throughput::Elements(batch as u64));
            for mut workload in workloads(&keyspace, keys, batch) {
                group.bench_function(workload.name, |bencher| {
                    bencher.iter_custom(|rounds| workload.run(&mut thread, rounds, usize::MAX, |_| ()));
                });
            }
            group.finish();
        }
    }
}

/// Measures the time from the start of a GET to the end of each of its parts: each function includes the one before it.
fn parts(criterion: &mut Criterion) {
    for &keys in key_counts() {
        let keyspace = keyspace();
        let mut get = workloads(&keyspace, keys, 1).swap_remove(0);
        let mut random = Random::seeded(7);
        let names: Vec<Vec<u8>> = (0..keys.min(65_536))
            .map(|_| format!("key:{}", random.below(keys as usize)).into_bytes())
            .collect();
        let mut group = criterion.benchmark_group(format!("parts of GET, {keys} keys"));
        group.throughput(Throughput::Elements(1));
        let mut part = |name: &str, run: fn(&Keyspace, &[u8])| {
            let mut at = 0;
            group.bench_function(name, |bencher| {
                bencher.iter(|| {
                    at = (at + 1) % names.len();
                    run(&keyspace, &names[at]);
                });
            });
        };
        part("hash", |keyspace, key| _ = black_box(keyspace.hash(key)));
        part("hash, lock", |keyspace, key| {
            black_box(keyspace.lock(keyspace.hash(key).shard()).databases_used());
        });
        part("hash, lock, lookup", |keyspace, key| {
            let hash = keyspace.hash(key);
            black_box(keyspace.lock(hash.shard()).find(0, hash, key));
        });
        let mut thread = Thread::new(&keyspace, 2);
        group.bench_function("all: with prefetch, dispatch and reply", |bencher| {
            bencher.iter_custom(|rounds| get.run(&mut thread, rounds, usize::MAX, |_| ()));
        });
        group.finish();
    }
}

criterion_group!(benches, commands, parts);
criterion_main!(benches);
