//! The time for which calls that change a vector set hold the lock of its shard, while a thread links the added
//! elements.
//!
//! `cargo bench -p emberkv-core --bench vectors`. `VECTORS`, `DIMENSIONS` and `CALLS` set the number of elements of the
//! set, their dimensions, and the number of measured calls of each kind. The time runs from taking the lock to its
//! release; the work of a call before that, and waking waiters after it, are excluded. The last two lines of the output
//! are those of the linking thread, and include its time of waiting for the lock.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

use std::env;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use ember_protocol::{OwnedBatch, Protocol, Reply};
use emberkv_core::call::{Call, DataCommand, Run};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::Waiting;
use emberkv_core::keys::{Guards, Keys};
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::linking::{self, Next};
use emberkv_core::turn::{Random, Turn};

const KEY: &[u8] = b"vectors";

/// The number of vectors that may wait to be linked while a set is filled and while calls are measured. The number is
/// low so that calls arrive at the rate of linking, not in bursts that find all data in the caches.
const PENDING: usize = 512;
const PENDING_MEASURED: usize = 8;

fn number(name: &str, default: usize) -> usize {
    env::var(name).map_or(default, |text| text.parse().unwrap())
}

fn command(name: &[u8]) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name.as_bytes().eq_ignore_ascii_case(name)).expect("the command exists")
}

/// A worker that runs one call after the other.
struct Worker<'k> {
    keyspace: &'k Keyspace,
    turn: Turn,
    reply: Reply,
}

impl<'k> Worker<'k> {
    fn new(keyspace: &'k Keyspace) -> Worker<'k> {
        let mut turn = Turn::new(1, 1);
        turn.settings.links_vectors_later = true;
        Worker { keyspace, turn, reply: Reply::new(Protocol::Resp2) }
    }

    /// Runs a call, and returns the time for which it holds the lock of its key's shard.
    fn run(&mut self, words: &[&[u8]]) -> Duration {
        let mut batch = OwnedBatch::new();
        batch.push(words);
        let args = batch.command(0);
        let hash = self.keyspace.hash(words[1]);
        let mut guards = Guards::None;
        self.reply.clear();
        let Worker { keyspace, turn, reply } = self;
        let run = command(words[0]).run;
        let prepared = match run {
            Run::Prepared(prepare) => Some(prepare(args).unwrap()),
            _ => None,
        };
        guards.hold_one(keyspace, turn, hash);
        let start = Instant::now();
        let keys = Keys::new(keyspace, &mut guards, args, 0, (1, hash), turn);
        let mut call = Call { args, keys, reply, waiting: Waiting::Never };
        match (run, prepared) {
            (_, Some(locked)) => locked(&mut call),
            (Run::Keys(handler), _) => handler(&mut call),
            _ => unreachable!("commands on vectors that change something are run with their shard locked"),
        }
        .unwrap();
        let held = start.elapsed();
        // The release also wakes waiters, which is not measured.
        guards.release(keyspace, turn);
        turn.notices.errands.clear();
        keyspace.publish_bytes(std::mem::take(&mut turn.growth_bytes));
        held
    }

    /// Returns the number of vectors that wait to be linked.
    fn pending(&mut self) -> usize {
        self.run(&[b"VECTOR.INFO", KEY]);
        let reply = String::from_utf8(self.reply.to_vec()).unwrap();
        let (_, pending) = reply.split_once("pending\r\n:").unwrap();
        pending.trim().parse().unwrap()
    }
}

/// A thread that links vectors as the linking threads of a server do.
struct Linker<'k> {
    keyspace: &'k Keyspace,
    /// The number of slots of removed vectors that wait to be released.
    dead: AtomicUsize,
    is_over: AtomicBool,
    begun: Mutex<Vec<Duration>>,
    committed: Mutex<Vec<Duration>>,
}

impl Linker<'_> {
    fn dead(&self) -> usize {
        self.dead.load(Ordering::Relaxed)
    }

    fn run(&self) {
        while !self.is_over.load(Ordering::Relaxed) {
            let dead = linking::bury(self.keyspace, 0, KEY);
            let start = Instant::now();
            let Next::Linking(batch) = linking::begin(self.keyspace, 0, KEY) else {
                self.dead.store(dead, Ordering::Relaxed);
                std::thread::yield_now();
                continue;
            };
            self.begun.lock().unwrap().push(start.elapsed());
            let plans = linking::plan(&batch);
            drop(batch);
            for plan in plans.chunks(1) {
                let start = Instant::now();
                linking::commit(self.keyspace, 0, KEY, plan);
                self.committed.lock().unwrap().push(start.elapsed());
                self.dead.store(dead, Ordering::Relaxed);
            }
        }
    }
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_secs_f64() * 1e6;
    println!(
        "  {what:17} p50 {:6.2} µs, p90 {:6.2} µs, p99 {:6.2} µs, p99.9 {:6.2} µs",
        at(0.5),
        at(0.9),
        at(0.99),
        at(0.999)
    );
}

fn blob(dim: usize, random: &mut Random) -> Vec<u8> {
    (0..dim).flat_map(|_| (random.below(2001) as f32 / 1000.0 - 1.0).to_le_bytes()).collect()
}

fn measure(option: &str, (vectors, dim, calls): (usize, usize, usize)) {
    let keyspace = Keyspace::new(&KeyspaceOptions::default()).unwrap();
    let mut worker = Worker::new(&keyspace);
    let mut random = Random::seeded(1);
    let linker = Linker {
        keyspace: &keyspace,
        dead: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
        begun: Mutex::default(),
        committed: Mutex::default(),
    };
    println!("{option}, {vectors} × {dim}");
    std::thread::scope(|scope| {
        scope.spawn(|| linker.run());
        let name = |at: usize| format!("element:{at:012}").into_bytes();
        let mut calls_made = 0;
        let mut add = |at: usize, words: fn(&mut Worker<'_>, &[u8], &[u8], &[u8]) -> Duration| {
            let blob = blob(dim, &mut random);
            let held = words(&mut worker, &name(at), &blob, option.as_bytes());
            calls_made += 1;
            // Waits, so that measured calls arrive at the rate of linking, not in bursts that find all data in the
            // caches.
            while worker.pending() + linker.dead()
                > if calls_made > vectors { PENDING_MEASURED } else { PENDING }
            {
                std::thread::yield_now();
            }
            held
        };
        let vadd: fn(&mut Worker<'_>, &[u8], &[u8], &[u8]) -> Duration = |worker, name, blob, option| {
            worker.run(&[b"VADD", KEY, b"FP32", blob, name, option, b"EF", b"64"])
        };
        let vector_add: fn(&mut Worker<'_>, &[u8], &[u8], &[u8]) -> Duration =
            |worker, name, blob, _| worker.run(&[b"VECTOR.ADD", KEY, name, b"FP32", blob]);
        (0..vectors).for_each(|at| _ = add(at, vadd));
        print("VADD", (vectors..vectors + calls).map(|at| add(at, vadd)).collect());
        let any = |round: usize| round * 7919 % vectors;
        print("VADD, replacing", (0..calls).map(|round| add(any(round), vadd)).collect());
        let from = vectors + calls;
        print("VECTOR.ADD", (from..from + calls).map(|at| add(at, vector_add)).collect());
        let vrem: fn(&mut Worker<'_>, &[u8], &[u8], &[u8]) -> Duration =
            |worker, name, _, _| worker.run(&[b"VREM", KEY, name]);
        print("VREM", (0..calls).map(|round| add(vectors + round, vrem)).collect());
        linker.is_over.store(true, Ordering::Relaxed);
    });
    print("a view is taken", linker.begun.into_inner().unwrap());
    print("links are built", linker.committed.into_inner().unwrap());
}

fn main() {
    // Cargo also runs benchmarks as tests; then the run is short.
    let is_test = !env::args().any(|argument| argument == "--bench");
    let (vectors, calls) = if is_test { (200, 100) } else { (10_000, 2000) };
    let sizes = (number("VECTORS", vectors), number("DIMENSIONS", 384), number("CALLS", calls));
    for option in ["NOQUANT", "Q8", "BIN"] {
        measure(option, sizes);
    }
}
