//! GETs without a network of values in memory (hot), of demoted values in the system's page cache (warm) and of demoted
//! values on the disk (cold), each until its reply is written. A fetched value is resident again.
//!
//! `cargo bench --bench tiered_storage`. After the means of criterion it prints a table with operations per second, P50,
//! P99 and P99.9. `TIERED_FOLDER` is a folder on the disk to measure; default: the folder for temporary files. A file
//! system in memory has no cold values. Each figure includes the time of the clock, which is printed, too.

#![allow(clippy::unwrap_used, reason = "a benchmark ends where something is wrong")]

use std::env;
use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ember_persistence::encryption::Encryption;
use ember_persistence::files::OsDisk;
use ember_protocol::{OwnedBatch, Protocol, Reply};
use ember_storage::segments::{self, AppendSource, LogOptions, RecordHead, SegmentLog, Which};
use ember_testkit::{OperationTimes, clock_time, times_table};
use emberkv_core::call::{Attempt, DataCommand};
use emberkv_core::commands::FAMILIES;
use emberkv_core::dispatch::{self, Access, Context, Waiting};
use emberkv_core::keys::Guards;
use emberkv_core::keyspace::external::{Location, Record};
use emberkv_core::keyspace::shard::cold_values::{Demoted, DemotionRules, Encoded, Fetched};
use emberkv_core::keyspace::shard::fetch_tickets::{FetchOrder, Requested};
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::rdb::Kind;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;
use rustix::fs::{Advice, fadvise};

const VALUE_BYTES: usize = 128;
/// The number of keys; and for a test, a smaller number of keys, and the number of GETs of each tier, which exceeds it.
const KEYS: usize = 20_000;
const TEST_KEYS: usize = 200;
const TEST_ROUNDS: u64 = 300;
/// The size limit of the files: more than any run writes.
const LIMIT_BYTES: u64 = 16 << 30;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Tier {
    Hot,
    Warm,
    Cold,
}

/// A keyspace of strings, and the files of its demoted values.
struct Tiers {
    keyspace: Keyspace,
    turn: Turn,
    reply: Reply,
    folder: PathBuf,
    log: SegmentLog,
    buffer: Vec<u8>,
    /// A GET of each key.
    calls: Vec<OwnedBatch>,
    /// The index of the key that is read next.
    next: usize,
}

fn command(name: &str) -> &'static DataCommand {
    let mut all = FAMILIES.iter().copied().flatten().copied().flatten();
    all.find(|command| command.spec.name == name).unwrap()
}

fn decode(record: &segments::Record<'_>, order: &FetchOrder) -> Fetched {
    let kind = Kind::from_byte(record.head.kind).unwrap();
    Fetched::decode(kind, record.value, order.encoding_name, &EncodingLimits::DEFAULT).unwrap()
}

impl Tiers {
    fn new(keys: usize) -> Tiers {
        let name = format!("ember-tiered-storage-{}", std::process::id());
        let folder = env::var_os("TIERED_FOLDER").map_or_else(env::temp_dir, PathBuf::from).join(name);
        let options =
            LogOptions { directory: folder.clone(), limit_bytes: LIMIT_BYTES, encryption: Encryption::off() };
        let mut turn = Turn::new(1, 1);
        turn.checks_values = true;
        let keyspace = Keyspace::new(&KeyspaceOptions::default()).unwrap();
        let mut tiers = Tiers {
            keyspace,
            turn,
            reply: Reply::new(Protocol::Resp2),
            log: SegmentLog::open(Arc::new(OsDisk), options).unwrap(),
            folder,
            buffer: Vec::new(),
            calls: Vec::new(),
            next: 0,
        };
        for number in 0..keys {
            let key = format!("key:{number:08}").into_bytes();
            let mut set = OwnedBatch::new();
            set.push(&[b"SET", &key, &[b'x'; VALUE_BYTES]]);
            assert!(tiers.attempt(command("set"), &set));
            let mut get = OwnedBatch::new();
            get.push(&[b"GET", &key]);
            tiers.calls.push(get);
        }
        tiers
    }

    /// Runs a call; returns false if its value must be fetched first.
    fn attempt(&mut self, command: &DataCommand, batch: &OwnedBatch) -> bool {
        let args = batch.command(0);
        let hash = self.keyspace.hash(args.at(1));
        let mut guards = Guards::None;
        self.reply.clear();
        let Tiers { keyspace, turn, reply, .. } = self;
        let mut context =
            Context { keyspace, guards: &mut guards, turn, database: 0, waiting: Waiting::Never };
        let result = dispatch::run(command, Access::One(1), Some(hash), &mut context, args, reply);
        guards.release(keyspace, turn);
        keyspace.publish_bytes(std::mem::take(&mut turn.growth_bytes));
        match result.unwrap() {
            Attempt::Done => true,
            Attempt::Fetch => false,
            Attempt::Wait(_) | Attempt::Offload => unreachable!("GET and SET neither wait nor take long"),
        }
    }

    /// Runs the GET of a key. Returns the tier of its value.
    fn get(&mut self, index: usize, get: &DataCommand) -> Tier {
        let mut tier = Tier::Hot;
        let batch = std::mem::take(&mut self.calls[index]);
        while !self.attempt(get, &batch) {
            for (database, key) in std::mem::take(&mut self.turn.missing) {
                tier = self.fetch(database, &key);
            }
        }
        self.calls[index] = batch;
        tier
    }

    /// Reads a value as a server does: from the page cache, or else from the disk.
    fn fetch(&mut self, database: usize, key: &[u8]) -> Tier {
        let hash = self.keyspace.hash(key);
        let requested = self.keyspace.lock(hash.shard()).request_value(database, hash, key, None);
        let Requested::Begun(order) = requested else {
            unreachable!("the value is cold, and nothing else reads it")
        };
        let location = segments::Location::from_bits(order.record.location().bits());
        let ready = self.log.read_ready(location, &mut self.buffer).unwrap();
        let (tier, fetched) = match ready.map(|record| decode(&record, &order)) {
            Some(fetched) => (Tier::Warm, fetched),
            None => (Tier::Cold, decode(&self.log.read(location, &mut self.buffer).unwrap(), &order)),
        };
        let mut data = self.keyspace.lock(hash.shard());
        data.store_fetched(&order, fetched);
        self.keyspace.publish_bytes(self.keyspace.release(hash.shard(), data));
        tier
    }

    /// Demotes all values that are resident, and writes them to the files.
    fn demote_all(&mut self) {
        for batch in &self.calls {
            let key = batch.command(0).at(1);
            let hash = self.keyspace.hash(key);
            let mut data = self.keyspace.lock(hash.shard());
            let append = |encoded: &Encoded<'_>| {
                let head = RecordHead { database: 0, kind: encoded.kind as u8, key: encoded.key };
                let location = self.log.append(&head, encoded.bytes, AppendSource::Demoted).unwrap();
                Some(Record::new(Location::from_bits(location.to_bits())))
            };
            let demoted = data.demote(0, hash, key, &DemotionRules::ANY, append);
            assert!(matches!(demoted, Demoted::Cold(_) | Demoted::Dropped(_) | Demoted::Stays));
            self.keyspace.publish_bytes(self.keyspace.release(hash.shard(), data));
            if self.log.has_full_buffer() {
                self.log.write_buffers(Which::Full).unwrap();
            }
        }
        self.log.write_buffers(Which::All).unwrap();
    }

    /// Opens the files, whose bytes are on the disk afterwards.
    fn synced_files(&self) -> Vec<File> {
        let entries = fs::read_dir(&self.folder).unwrap();
        let files = entries.map(|entry| File::open(entry.unwrap().path()).unwrap());
        files.inspect(|file| file.sync_all().unwrap()).collect()
    }

    /// Runs `rounds` GETs of values of a tier, and records the times of those whose value was in that tier.
    fn run(&mut self, tier: Tier, rounds: u64, times: &mut OperationTimes) -> Duration {
        let get = command("get");
        let mut total = Duration::ZERO;
        let mut files = Vec::new();
        for round in 0..rounds {
            if self.next == self.calls.len() || round == 0 {
                self.next = 0;
                if tier != Tier::Hot {
                    self.demote_all();
                    files = self.synced_files();
                }
            }
            if tier == Tier::Cold {
                for file in &files {
                    fadvise(file, 0, None, Advice::DontNeed).unwrap();
                }
            }
            // Consecutive keys have adjacent records, so the keys are read in another order.
            let index = self.next.wrapping_mul(7919) % self.calls.len();
            self.next += 1;
            let start = std::time::Instant::now();
            let found = self.get(index, get);
            let time = start.elapsed();
            total += time;
            if found == tier {
                times.record(time);
            }
        }
        total
    }
}

impl Drop for Tiers {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns whether Cargo runs the benchmark as a test, which should be short.
fn is_test() -> bool {
    !env::args().any(|argument| argument == "--bench")
}

fn benches(criterion: &mut Criterion) {
    let mut tiers = Tiers::new(if is_test() { TEST_KEYS } else { KEYS });
    let mut group = criterion.benchmark_group("GET");
    group.throughput(Throughput::Elements(1));
    let mut all = Vec::new();
    for (name, tier) in [("hot", Tier::Hot), ("warm", Tier::Warm), ("cold", Tier::Cold)] {
        let mut times = OperationTimes::default();
        group.bench_function(name, |bencher| {
            bencher.iter_custom(|rounds| {
                tiers.run(tier, if is_test() { TEST_ROUNDS } else { rounds }, &mut times)
            });
        });
        all.push((format!("GET, {name}"), times));
    }
    group.finish();
    // The filter on criterion's command line may have excluded some tiers, and a file system in memory has no cold
    // values.
    all.retain(|(_, times)| times.count() > 0);
    let rows: Vec<_> = all.iter().map(|(name, times)| (name.clone(), times, Vec::new())).collect();
    println!(
        "\nvalues={VALUE_BYTES} bytes, one thread; each figure includes {} ns of the clock\n\n{}",
        clock_time().as_nanos(),
        times_table(&[], &rows)
    );
}

criterion_group!(tiered_storage, benches);
criterion_main!(tiered_storage);
