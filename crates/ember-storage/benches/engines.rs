//! Measures the throughput of the key-value engines alone on a disk, and of a store on top of each:
//!
//! ```text
//! cargo bench -p ember-storage --bench engines -- [FOLDER [KEYS [VALUE_BYTES [THREADS]]]]
//! ```
//!
//! FOLDER is on the disk to measure. Defaults: the folder for temporary files, 200000 keys of 16 bytes, values of 64
//! bytes, 2 threads. *Bare* is the engine's own API with one table; *store* is `ember_storage::stores`, with its two
//! rows for each key and their checksums. The throughput of the disk itself is also printed.

#![allow(clippy::unwrap_used, reason = "a tool for measurements: it ends with what went wrong")]

use std::fs::{self, OpenOptions};
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ember_storage::encryption::Encryption;
use ember_storage::files::{Disk, OsDisk};
use ember_storage::stores::{Checkpoint, EngineKind, Facts, Position, Store, StoreOptions};
use heed::types::Bytes;
use redb::ReadableDatabase;

/// The maximum duration of one measurement.
const TIME: Duration = Duration::from_secs(3);

const BATCH: u64 = 1000;
const CACHE_BYTES: usize = 64 << 20;

type Rows = redb::TableDefinition<'static, &'static [u8], &'static [u8]>;
const ROWS: Rows = redb::TableDefinition::new("rows");

struct Plan {
    folder: PathBuf,
    keys: u64,
    value: Vec<u8>,
    threads: u64,
}

/// Returns pseudorandom numbers that are the same in every run (splitmix64).
fn mixed(number: u64) -> u64 {
    let mut mixed = number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

impl Plan {
    fn key(&self, number: u64) -> [u8; 16] {
        let text = format!("key:{:012}", mixed(number) % self.keys);
        std::array::from_fn(|index| text.as_bytes()[index])
    }

    /// Returns the key with index `number`; consecutive indexes cover all keys.
    fn nth(number: u64) -> [u8; 16] {
        let text = format!("key:{number:012}");
        std::array::from_fn(|index| text.as_bytes()[index])
    }
}

/// Returns the items per second of repeated calls of `work` with `count` items each.
fn rate(count: u64, mut work: impl FnMut(u64)) -> f64 {
    let begin = Instant::now();
    let mut done = 0;
    while begin.elapsed() < TIME {
        work(done * count);
        done += 1;
    }
    (done * count) as f64 / begin.elapsed().as_secs_f64()
}

/// Returns the sum of the rates of several threads.
fn rate_of_threads(plan: &Plan, work: impl Fn(u64) + Sync) -> f64 {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..plan.threads)
            .map(|thread| {
                let work = &work;
                scope.spawn(move || {
                    rate(100, |from| (0..100).for_each(|index| work((from + index) * 31 + thread * 7919)))
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).sum()
    })
}

fn bytes_below(folder: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let entries = fs::read_dir(folder).unwrap().map(Result::unwrap);
    entries
        .map(|entry| {
            let metadata = entry.metadata().unwrap();
            if metadata.is_dir() { bytes_below(&entry.path()) } else { metadata.blocks() * 512 }
        })
        .sum()
}

struct Line {
    name: &'static str,
    durable: f64,
    durable_batches: f64,
    batches: Option<f64>,
    gets: f64,
    scan: f64,
    megabytes: f64,
}

fn disk(plan: &Plan) {
    let path = plan.folder.join("disk");
    let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).unwrap();
    let block = [7_u8; 4096];
    let appended = rate(1, |number| {
        file.write_all_at(&block, number * 4096).unwrap();
        file.sync_data().unwrap();
    });
    let size: u64 = 512 << 20;
    for offset in (0..size).step_by(1 << 20) {
        file.write_all_at(&[7; 1 << 20], offset).unwrap();
    }
    file.sync_all().unwrap();
    let read = rate_of_threads(plan, |number| {
        let mut block = [0; 4096];
        file.read_exact_at(&mut block, mixed(number) % (size / 4096) * 4096).unwrap();
    });
    println!("disk: {appended:.0} appends of 4 KiB with fdatasync a second, one thread");
    println!("disk: {read:.0} reads of 4 KiB a second, {} threads, page cache", plan.threads);
    fs::remove_file(path).unwrap();
}

fn redb_bare(plan: &Plan) -> Line {
    let path = plan.folder.join("bare.redb");
    let database = redb::Builder::new().set_cache_size(CACHE_BYTES).create(&path).unwrap();
    let commit = |from: u64, count: u64, durability: redb::Durability| {
        let mut write = database.begin_write().unwrap();
        write.set_durability(durability).unwrap();
        {
            let mut table = write.open_table(ROWS).unwrap();
            for number in from..from + count {
                table.insert(&plan.key(number)[..], plan.value.as_slice()).unwrap();
            }
        }
        write.commit().unwrap();
    };
    let fill = |from: u64| {
        let write = database.begin_write().unwrap();
        {
            let mut table = write.open_table(ROWS).unwrap();
            for number in from..(from + BATCH * 20).min(plan.keys) {
                table.insert(&Plan::nth(number)[..], plan.value.as_slice()).unwrap();
            }
        }
        write.commit().unwrap();
    };
    (0..plan.keys).step_by(BATCH as usize * 20).for_each(fill);
    let durable = rate(1, |from| commit(from, 1, redb::Durability::Immediate));
    let durable_batches = rate(BATCH, |from| commit(from, BATCH, redb::Durability::Immediate));
    let batches = rate(BATCH, |from| commit(from, BATCH, redb::Durability::None));
    commit(0, 1, redb::Durability::Immediate);
    let read = database.begin_read().unwrap();
    let table = read.open_table(ROWS).unwrap();
    let gets = rate_of_threads(plan, |number| assert!(table.get(&plan.key(number)[..]).unwrap().is_some()));
    let begin = Instant::now();
    let count = table.range::<&[u8]>(..).unwrap().map(Result::unwrap).count();
    let scan = count as f64 / begin.elapsed().as_secs_f64();
    let megabytes = fs::metadata(&path).unwrap().len() as f64 / 1e6;
    Line { name: "redb, bare", durable, durable_batches, batches: Some(batches), gets, scan, megabytes }
}

#[expect(unsafe_code, reason = "the file is mapped")]
fn lmdb_env(path: &Path, flags: heed::EnvFlags) -> heed::Env<heed::WithoutTls> {
    fs::create_dir_all(path).unwrap();
    let mut options = heed::EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(64 << 30).max_dbs(1);
    // SAFETY: the file after a crash is never used.
    unsafe { options.flags(flags) };
    // SAFETY: no other process opens the folder, which was created for this.
    unsafe { options.open(path) }.unwrap()
}

fn lmdb_bare(plan: &Plan) -> Line {
    let measure = |name: &str, flags: heed::EnvFlags| {
        let path = plan.folder.join(name);
        let env = lmdb_env(&path, heed::EnvFlags::NO_READ_AHEAD | flags);
        let write = env.write_txn().unwrap();
        let rows = env.create_databases_and_commit(write, |opener, write| {
            let rows = opener.create_database::<Bytes, Bytes>(write, None)?;
            Ok::<_, heed::Error>(heed::CommitOrAbort::<_, ()>::Commit(rows))
        });
        let rows = rows.unwrap().unwrap_commit();
        for from in (0..plan.keys).step_by(BATCH as usize * 20) {
            let mut write = env.write_txn().unwrap();
            for number in from..(from + BATCH * 20).min(plan.keys) {
                rows.put(&mut write, &Plan::nth(number), &plan.value).unwrap();
            }
            write.commit().unwrap();
        }
        let commit = |from: u64, count: u64| {
            let mut write = env.write_txn().unwrap();
            for number in from..from + count {
                rows.put(&mut write, &plan.key(number), &plan.value).unwrap();
            }
            write.commit().unwrap();
        };
        let durable = rate(1, |from| commit(from, 1));
        let durable_batches = rate(BATCH, |from| commit(from, BATCH));
        let gets = rate_of_threads(plan, |number| {
            let read = env.read_txn().unwrap();
            assert!(rows.get(&read, &plan.key(number)).unwrap().is_some());
        });
        let read = env.read_txn().unwrap();
        let begin = Instant::now();
        let count = rows.iter(&read).unwrap().map(Result::unwrap).count();
        let scan = count as f64 / begin.elapsed().as_secs_f64();
        let megabytes = bytes_below(&path) as f64 / 1e6;
        Line { name: "lmdb, bare", durable, durable_batches, batches: None, gets, scan, megabytes }
    };
    let unsynced = measure("bare.lmdb-nosync", heed::EnvFlags::NO_SYNC);
    Line { batches: Some(unsynced.durable_batches), ..measure("bare.lmdb", heed::EnvFlags::empty()) }
}

fn fjall_bare(plan: &Plan) -> Line {
    let path = plan.folder.join("bare.fjall");
    let database = fjall::Database::builder(&path).cache_size(CACHE_BYTES as u64).open().unwrap();
    let rows = database.keyspace("rows", fjall::KeyspaceCreateOptions::default).unwrap();
    let commit = |from: u64, count: u64, mode: fjall::PersistMode| {
        let mut batch = database.batch().durability(Some(mode));
        for number in from..from + count {
            batch.insert(&rows, plan.key(number), plan.value.as_slice());
        }
        batch.commit().unwrap();
    };
    for number in 0..plan.keys {
        rows.insert(Plan::nth(number), plan.value.as_slice()).unwrap();
    }
    let durable = rate(1, |from| commit(from, 1, fjall::PersistMode::SyncAll));
    let durable_batches = rate(BATCH, |from| commit(from, BATCH, fjall::PersistMode::SyncAll));
    let batches = rate(BATCH, |from| commit(from, BATCH, fjall::PersistMode::Buffer));
    let gets = rate_of_threads(plan, |number| assert!(rows.get(plan.key(number)).unwrap().is_some()));
    let begin = Instant::now();
    let mut count = 0_u64;
    for row in rows.iter() {
        row.into_inner().unwrap();
        count += 1;
    }
    let scan = count as f64 / begin.elapsed().as_secs_f64();
    let megabytes = bytes_below(&path) as f64 / 1e6;
    Line { name: "fjall, bare", durable, durable_batches, batches: Some(batches), gets, scan, megabytes }
}

fn store(plan: &Plan, kind: EngineKind, name: &'static str) -> Line {
    let folder = plan.folder.join(format!("store-{kind}"));
    let options = StoreOptions {
        cache_bytes: CACHE_BYTES as u64,
        write_buffer_bytes: 32 << 20,
        encryption: Encryption::off(),
    };
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let store = Store::open(kind, &disk, &folder, &options).unwrap();
    let mut position = Position::default();
    let mut put = |keys: &mut dyn Iterator<Item = [u8; 16]>| {
        position.number += 1;
        let mut fill = |checkpoint: &mut Checkpoint<'_>| {
            for key in &mut *keys {
                let facts = Facts {
                    database: 0,
                    key: &key,
                    kind: 0,
                    encoding: 0,
                    memory_bytes: plan.value.len() as u64,
                    stored_bytes: plan.value.len() as u64,
                    expiry: None,
                    element_expiry: None,
                };
                checkpoint.put(&facts, &plan.value)?;
            }
            Ok(())
        };
        store.checkpoint(&position, &mut fill).unwrap();
    };
    for from in (0..plan.keys).step_by(BATCH as usize * 20) {
        put(&mut (from..(from + BATCH * 20).min(plan.keys)).map(Plan::nth));
    }
    let durable = rate(1, |from| put(&mut std::iter::once(plan.key(from))));
    let durable_batches = rate(BATCH, |from| put(&mut (from..from + BATCH).map(|number| plan.key(number))));
    let gets = rate_of_threads(plan, |number| {
        let mut value = Vec::new();
        assert!(store.read(0, &plan.key(number), &mut value).unwrap().is_some());
    });
    let begin = Instant::now();
    let mut count = 0_u64;
    store
        .facts(&mut |_| {
            count += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let scan = count as f64 / begin.elapsed().as_secs_f64();
    let megabytes = store.statistics().unwrap().file_bytes as f64 / 1e6;
    Line { name, durable, durable_batches, batches: None, gets, scan, megabytes }
}

fn main() {
    // Cargo passes its own options, such as `--bench`, to the benchmark.
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let mut number = |default| arguments.next().map_or(default, |text| text.parse().unwrap());
    let (keys, value_bytes, threads) = (number(200_000), number(64), number(2));
    let folder = folder.join(format!("ember-engines-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let plan = Plan { folder, keys, value: vec![b'x'; value_bytes as usize], threads };
    disk(&plan);
    println!("{keys} keys of 16 bytes, values of {value_bytes} bytes, {threads} threads read\n");
    println!(
        "| | durable SETs/s, one a commit | durable SETs/s, {BATCH} a commit | SETs/s without fsync, {BATCH} | GETs/s | \
         scanned/s | MB |\n|---|--:|--:|--:|--:|--:|--:|"
    );
    let lines: [&dyn Fn() -> Line; 6] = [
        &|| redb_bare(&plan),
        &|| store(&plan, EngineKind::Redb, "redb, store"),
        &|| lmdb_bare(&plan),
        &|| store(&plan, EngineKind::Lmdb, "lmdb, store"),
        &|| fjall_bare(&plan),
        &|| store(&plan, EngineKind::Fjall, "fjall, store"),
    ];
    for line in lines {
        let line = line();
        let batches = line.batches.map_or_else(|| "–".to_owned(), |rate| format!("{rate:.0}"));
        println!(
            "| {} | {:.0} | {:.0} | {batches} | {:.0} | {:.0} | {:.0} |",
            line.name, line.durable, line.durable_batches, line.gets, line.scan, line.megabytes
        );
    }
    fs::remove_dir_all(&plan.folder).unwrap();
}
