//! RDB files and AOFs without a disk: the time to write a key, to find its end, to load it on several threads, and to
//! append to an AOF.
//!
//! `cargo bench -p ember-persistence --bench files`. The figures are for 200,000 keys with incompressible values of 64
//! bytes, and 20,000 sorted sets of ten members.

#![allow(clippy::unwrap_used, reason = "a benchmark")]

use std::hint::black_box;
use std::io;
use std::path::Path;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ember_persistence::aof::{AofWriter, Batch as AofBatch};
use ember_persistence::encryption::Encryption;
use ember_persistence::files::{Disk, DiskError, StoredFile};
use ember_persistence::rdb_file::{Batch, Inserter, KeyFacts, RdbReader, RdbWriter, Step, load};
use ember_protocol::Protocol;
use emberkv_core::keyspace::{Keyspace, KeyspaceOptions};
use emberkv_core::local::Local;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;

const STRINGS: u64 = 200_000;
const SETS: u64 = 20_000;
const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

/// Digits without a pattern (splitmix64).
fn digits(number: u64) -> String {
    let mixed = |number: u64| {
        let mixed = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB)
    };
    (0..4).map(|part| format!("{:016x}", mixed(number * 4 + part + 1))).collect()
}

fn filled() -> Local {
    let mut local = Local::new(Protocol::Resp2);
    for number in 0..STRINGS {
        local.run(&[b"SET", format!("key:{number}").as_bytes(), digits(number).as_bytes()]);
    }
    for number in 0..SETS {
        for member in 0..10u64 {
            let (score, member) = (member.to_string(), digits(member)[..20].to_owned());
            local.run(&[b"ZADD", format!("zset:{number}").as_bytes(), score.as_bytes(), member.as_bytes()]);
        }
    }
    local
}

fn saved(local: &Local, is_packed: bool) -> Vec<u8> {
    let mut writer = RdbWriter::new(Vec::new(), 10, is_packed).unwrap();
    for shard in local.keyspace.lock_all() {
        for entry in shard.database(0).table().iter() {
            writer.key(&KeyFacts::default(), entry.key(), entry).unwrap();
        }
    }
    writer.finish().unwrap().0
}

fn reader(bytes: &[u8]) -> RdbReader<&[u8]> {
    RdbReader::new(bytes, Path::new("bench"), LIMITS).unwrap()
}

fn loaded(bytes: &[u8], threads: usize) -> Keyspace {
    let options = KeyspaceOptions { databases: 1, ..KeyspaceOptions::default() };
    let keyspace = Keyspace::new(&options).unwrap();
    let insert = || {
        let mut inserter = Inserter::new(&keyspace, Turn::new(0, 1), LIMITS);
        move |batch: &mut Batch| inserter.insert(batch).map(drop)
    };
    load(&mut reader(bytes), threads, insert, |_, _| Ok(())).unwrap();
    keyspace
}

fn rdb(criterion: &mut Criterion) {
    let local = filled();
    let bytes = saved(&local, true);
    let mut group = criterion.benchmark_group("rdb");
    group.sample_size(10).throughput(Throughput::Elements(STRINGS + SETS));
    group.bench_function("save", |bencher| bencher.iter(|| saved(&local, true).len()));
    group.bench_function("save without packing", |bencher| bencher.iter(|| saved(&local, false).len()));
    group.bench_function("find ends", |bencher| {
        bencher.iter(|| {
            let (mut reader, mut batch) = (reader(&bytes), Batch::new());
            while reader.next(&mut batch).unwrap() != Step::End {
                black_box(batch.len());
            }
        });
    });
    for threads in 0..=2 {
        group.bench_function(format!("load on {threads} threads and a reading one"), |bencher| {
            bencher.iter_with_large_drop(|| loaded(&bytes, threads));
        });
    }
    group.finish();
}

/// A disk that accepts everything at once.
#[derive(Debug)]
struct Nowhere;

impl StoredFile for Nowhere {
    fn path(&self) -> &Path {
        Path::new("nowhere")
    }

    fn size(&self) -> Result<u64, DiskError> {
        Ok(0)
    }

    fn permissions(&self) -> Result<u32, DiskError> {
        Ok(0o600)
    }

    fn read_at(&self, _offset: u64, _buffer: &mut [u8]) -> Result<usize, DiskError> {
        Ok(0)
    }

    fn write_at(&self, _offset: u64, bytes: &[u8]) -> Result<(), DiskError> {
        black_box(bytes);
        Ok(())
    }

    fn set_size(&self, _len: u64) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync(&self) -> Result<(), DiskError> {
        Ok(())
    }
}

impl Disk for Nowhere {
    fn open(&self, _path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        Ok(Arc::new(Nowhere))
    }

    fn open_to_read(&self, _path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        Ok(Arc::new(Nowhere))
    }

    fn create(&self, _path: &Path) -> Result<Arc<dyn StoredFile>, DiskError> {
        Ok(Arc::new(Nowhere))
    }

    fn rename(&self, _from: &Path, _to: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn remove(&self, _path: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn create_directory(&self, _path: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn sync_directory(&self, _path: &Path) -> Result<(), DiskError> {
        Ok(())
    }

    fn list(&self, _path: &Path) -> Result<Vec<std::ffi::OsString>, DiskError> {
        Ok(Vec::new())
    }
}

#[cfg(feature = "encryption")]
fn encryptions() -> Vec<(&'static str, Encryption)> {
    use ember_persistence::encryption::{Key, KeyRing};
    vec![("plain", Encryption::off()), ("encrypted", Encryption::with(KeyRing::new(Key::new([1; 32]))))]
}

#[cfg(not(feature = "encryption"))]
fn encryptions() -> Vec<(&'static str, Encryption)> {
    vec![("plain", Encryption::off())]
}

fn aof(criterion: &mut Criterion) {
    const COMMANDS: u64 = 64;
    let disk: Arc<dyn Disk> = Arc::new(Nowhere);
    let value = digits(1);
    let mut group = criterion.benchmark_group("aof");
    group.throughput(Throughput::Elements(COMMANDS));
    for (name, encryption) in encryptions() {
        let mut writer = AofWriter::create(&disk, Path::new("nowhere"), &encryption).unwrap();
        let mut batch = AofBatch::new();
        group.bench_function(format!("{COMMANDS} SETs in a batch, {name}"), |bencher| {
            bencher.iter(|| {
                batch.clear();
                for _ in 0..COMMANDS {
                    batch.command(&[b"SET", b"key:123456", value.as_bytes()]);
                }
                writer.append(&mut batch).unwrap();
                writer.sync()
            });
        });
    }
    group.finish();
    // The cost of an empty sink, for comparison.
    criterion.bench_function("aof/encoding alone", |bencher| {
        let mut batch = AofBatch::new();
        bencher.iter(|| {
            batch.clear();
            for _ in 0..COMMANDS {
                batch.command(&[b"SET", b"key:123456", value.as_bytes()]);
            }
            io::copy(&mut black_box(batch.commands()), &mut io::sink()).unwrap()
        });
    });
}

criterion_group!(benches, rdb, aof);
criterion_main!(benches);
