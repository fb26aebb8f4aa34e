//! Percentiles of the time of single GET, SET, HGET, SADD and ZADD calls on one thread without a network.
//!
//! `cargo bench --bench latency`. After the means of criterion it prints a table with operations per second, P50, P99
//! and P99.9, on 10,000 keys, which fit in the caches of a core, and on a million. Each figure includes the time of the
//! clock, which is printed, too.

#[path = "support/thread.rs"]
mod thread;
#[path = "support/workloads.rs"]
mod workloads;

use criterion::{Criterion, criterion_group, criterion_main};
use ember_testkit::{OperationTimes, clock_time, times_table};

use thread::{Thread, keyspace};
use workloads::{key_counts, workloads};

fn benches(criterion: &mut Criterion) {
    let mut tables = String::new();
    for &keys in key_counts() {
        let keyspace = keyspace();
        let mut thread = Thread::new(&keyspace, 2);
        let mut group = criterion.benchmark_group(format!("{keys} keys"));
        let mut all = Vec::new();
        for mut workload in workloads(&keyspace, keys, 1) {
            let mut times = OperationTimes::default();
            group.bench_function(workload.name, |bencher| {
                bencher.iter_custom(|rounds| workload.run(&mut thread, rounds, 1, |time| times.record(time)));
            });
            all.push((workload.name, times));
        }
        group.finish();
        // The filter on criterion's command line may have excluded some workloads.
        all.retain(|(_, times)| times.count() > 0);
        let rows: Vec<_> = all.iter().map(|(name, times)| ((*name).to_owned(), times, Vec::new())).collect();
        if !rows.is_empty() {
            tables += &format!("\n{keys} keys:\n\n{}", times_table(&[], &rows));
        }
    }
    println!("\nOne thread; each figure includes {} ns of the clock.\n{tables}", clock_time().as_nanos());
}

criterion_group!(latency, benches);
criterion_main!(latency);
