//! The commands that the benchmarks `throughput` and `latency` measure, as batches that are prepared in advance.

use std::env;
use std::time::{Duration, Instant};

use ember_protocol::OwnedBatch;
use emberkv_core::call::DataCommand;
use emberkv_core::keyspace::Keyspace;
use emberkv_core::turn::Random;

use crate::thread::{BATCH, Thread, command};

/// The number of different calls of a workload: enough that keys differ from one call to the next, and few enough that
/// the calls themselves do not displace the data from the caches.
const CALLS_MAX: u64 = 65_536;
/// The number of fields of the hash.
const FIELDS: u64 = 1000;

/// The number of batches of each workload that a test runs: more than a workload has, so that the first batch runs
/// again.
const TEST_ROUNDS: u64 = 600;

/// Returns whether Cargo runs the benchmark as a test, which should be short.
fn is_test() -> bool {
    !env::args().any(|argument| argument == "--bench")
}

/// Returns the numbers of keys: one that fits in the caches of a core, and one that is much larger. For a test, returns
/// one small number.
pub(crate) fn key_counts() -> &'static [u64] {
    if is_test() { &[500] } else { &[10_000, 1_000_000] }
}

/// A command, the batches of its calls, and the value that is removed before the first batch runs again.
pub(crate) struct Workload {
    pub(crate) name: &'static str,
    command: &'static DataCommand,
    batches: Vec<OwnedBatch>,
    emptied: Option<OwnedBatch>,
    /// The index of the batch that runs next.
    next: usize,
}

fn batches(calls: u64, batch: usize, mut call: impl FnMut(u64, &mut OwnedBatch)) -> Vec<OwnedBatch> {
    let mut batches = Vec::new();
    let mut number = 0;
    while number < calls {
        let mut one = OwnedBatch::new();
        for _ in 0..batch.min((calls - number) as usize) {
            call(number, &mut one);
            number += 1;
        }
        batches.push(one);
    }
    batches
}

fn text(name: &str, number: u64) -> Vec<u8> {
    format!("{name}:{number}").into_bytes()
}

/// Adds `keys` strings and a hash to a keyspace, and returns the workloads on them, in batches of `batch` calls. Keys are
/// chosen at random; SADD and ZADD add new members to one value.
pub(crate) fn workloads(keyspace: &Keyspace, keys: u64, batch: usize) -> Vec<Workload> {
    let mut thread = Thread::new(keyspace, 1);
    let filled = batches(keys, BATCH, |number, batch| {
        batch.push(&[b"SET", &text("key", number), &text("value", number)]);
    });
    filled.iter().for_each(|batch| thread.run(command("set"), batch));
    let fields = batches(FIELDS, BATCH, |number, batch| {
        batch.push(&[b"HSET", b"hash", &text("field", number), &text("value", number)]);
    });
    fields.iter().for_each(|batch| thread.run(command("hset"), batch));

    let mut random = Random::seeded(7);
    let mut any = |below: u64| random.below(below as usize) as u64;
    let calls = keys.min(CALLS_MAX);
    let workload =
        |name, lower, batches| Workload { name, command: command(lower), batches, emptied: None, next: 0 };
    let emptied = |key: &[u8]| {
        let mut batch = OwnedBatch::new();
        batch.push(&[b"DEL", key]);
        Some(batch)
    };
    let get = batches(calls, batch, |_, batch| batch.push(&[b"GET", &text("key", any(keys))]));
    let set = batches(calls, batch, |number, batch| {
        batch.push(&[b"SET", &text("key", any(keys)), &text("other", number)]);
    });
    let hget = batches(calls, batch, |_, batch| batch.push(&[b"HGET", b"hash", &text("field", any(FIELDS))]));
    let sadd = batches(calls, batch, |number, batch| batch.push(&[b"SADD", b"set", &text("member", number)]));
    let zadd = batches(calls, batch, |number, batch| {
        batch.push(&[b"ZADD", b"zset", number.to_string().as_bytes(), &text("member", number)]);
    });
    vec![
        workload("GET", "get", get),
        workload("SET", "set", set),
        workload("HGET", "hget", hget),
        Workload { emptied: emptied(b"set"), ..workload("SADD", "sadd", sadd) },
        Workload { emptied: emptied(b"zset"), ..workload("ZADD", "zadd", zadd) },
    ]
}

impl Workload {
    /// Runs and times the next `rounds` batches, and returns the sum of their times. Removing the value is not
    /// included. `record` is called with the time of each series of batches, which has at most `series` batches.
    pub(crate) fn run(
        &mut self,
        thread: &mut Thread<'_>,
        rounds: u64,
        series: usize,
        mut record: impl FnMut(Duration),
    ) -> Duration {
        let mut total = Duration::ZERO;
        let mut left = if is_test() { TEST_ROUNDS } else { rounds };
        while left > 0 {
            if self.next == self.batches.len() {
                self.next = 0;
                if let Some(batch) = &self.emptied {
                    thread.run(command("del"), batch);
                }
            }
            let end = self.batches.len().min(self.next.saturating_add(series)).min(self.next + left as usize);
            let start = Instant::now();
            self.batches[self.next..end].iter().for_each(|batch| thread.run(self.command, batch));
            let time = start.elapsed();
            left -= (end - self.next) as u64;
            self.next = end;
            total += time;
            record(time);
        }
        total
    }
}
