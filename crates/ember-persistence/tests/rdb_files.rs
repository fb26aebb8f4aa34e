//! RDB files: written files are read, files of older servers are read, and damage is reported.

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::path::Path;
use std::sync::Arc;

use ember_persistence::files::{Disk, Faults, SimulatedDisk, read_whole};
use ember_persistence::rdb_file::{
    Batch, FILE_VERSION, Inserted, Inserter, KeyFacts, RdbError, RdbProblem, RdbReader, RdbWriter, Step,
    VALUE_BYTES_MAX,
};
use ember_protocol::Protocol;
use emberkv_core::keyspace::entry::{EntryRef, NewValue, Slot};
use emberkv_core::local::Local;
use emberkv_core::rdb::VALKEY_VERSION;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;
use proptest::prelude::*;
use support::{assert_same, load, load_file, must, sample, save, seen, write_keys};

const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

fn read(bytes: &[u8]) -> Result<(Local, Vec<Step>), RdbError> {
    load(&mut RdbReader::new(bytes, Path::new("test.rdb"), LIMITS)?, 0)
}

/// Returns an RDB file of `version` with `body`, without a checksum.
fn file(version: u16, body: &[u8]) -> Vec<u8> {
    let end: &[u8] = if version < 5 { b"\xFF" } else { b"\xFF\0\0\0\0\0\0\0\0" };
    [format!("REDIS{version:04}").as_bytes(), body, end].concat()
}

fn problem(bytes: &[u8]) -> (u64, RdbProblem) {
    let error = read(bytes).err().expect("this is no valid file");
    (error.offset, error.problem)
}

#[test]
fn every_type_and_encoding_is_loaded_on_any_number_of_threads() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let path = Path::new("data/dump.rdb");
    let mut local = sample(true);
    let written = save(&local, &disk, path, 12);
    assert_eq!((written.keys, &written.header), (5025, b"REDIS0012"));
    let expected = seen(&mut local);
    for threads in [0, 1, 3] {
        let (mut loaded, steps) = load_file(disk.as_ref(), path, threads).unwrap();
        assert_same(&seen(&mut loaded), &expected);
        loaded.keyspace.check_invariants();
        assert_eq!(steps.len(), 7, "{steps:?}");
        assert!(matches!(&steps[5], Step::Function(code) if code.starts_with(b"#!lua name=sample")));
        assert_eq!(steps[6], Step::Sizes { database: 0, keys: 40, expiring: 2 });
    }
}

#[test]
fn without_field_expiries_a_file_has_the_version_that_redis_7_0_reads() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let path = Path::new("data/dump.rdb");
    let mut local = sample(false);
    let written = save(&local, &disk, path, FILE_VERSION);
    assert_eq!(&written.header, b"REDIS0010");
    let bytes = read_whole(disk.as_ref(), path, 1 << 30).unwrap();
    assert_eq!(bytes.len() as u64, written.size);
    let (mut loaded, _) = read(&bytes).unwrap();
    // Version 10 does not store when consumers were active.
    let (mut expected, mut found) = (seen(&mut local), seen(&mut loaded));
    let has_fields = save(&sample(true), &disk, path, FILE_VERSION);
    assert_eq!(&has_fields.header, b"REDIS0012");
    load_file(disk.as_ref(), path, 0).unwrap();
    let stream = (0, b"stream".to_vec());
    assert_eq!(expected.remove(&stream).unwrap()[..3], found.remove(&stream).unwrap()[..3]);
    assert_same(&found, &expected);
}

#[test]
fn metadata_of_keys_is_read_back() {
    let mut local = Local::new(Protocol::Resp2);
    must(&mut local, "SET key value");
    let mut writer = RdbWriter::new(Vec::new(), 11, false).unwrap();
    let all = [
        KeyFacts { database: 3, expire_at_ms: Some(-7), idle_s: Some(100_000), ..KeyFacts::default() },
        KeyFacts { database: 70_000, frequency: Some(255), ..KeyFacts::default() },
        KeyFacts { expire_at_ms: Some(i64::MAX), idle_s: Some(0), frequency: Some(0), ..KeyFacts::default() },
    ];
    let mut batch = writer.batch();
    support::for_each(&local, |_, entry| {
        writer.key(&all[0], b"one", entry).unwrap();
        batch.push(&all[1], b"two", entry);
        assert_eq!(batch.keys(), 1);
        writer.encoded(70_000, &batch).unwrap();
        batch.clear();
        writer.key(&all[2], b"three", entry).unwrap();
    });
    let size = writer.size();
    let (bytes, written) = writer.finish_as_begun().unwrap();
    assert_eq!((written.keys, written.size, size), (3, bytes.len() as u64, bytes.len() as u64 - 9));
    let mut reader = RdbReader::new(bytes.as_slice(), Path::new("x"), LIMITS).unwrap();
    assert_eq!(reader.version(), 11);
    let mut batch = Batch::new();
    assert_eq!(reader.next(&mut batch).unwrap(), Step::Keys);
    let found: Vec<(&[u8], KeyFacts)> = (0..batch.len()).map(|index| batch.key(index)).collect();
    assert_eq!(found, [(&b"one"[..], all[0]), (b"two", all[1]), (b"three", all[2])]);
    assert_eq!(reader.next(&mut batch).unwrap(), Step::End);
    assert_eq!(reader.next(&mut batch).unwrap(), Step::End);
    assert_eq!(reader.offset(), bytes.len() as u64);
}

#[test]
fn a_value_too_long_for_a_batch_is_built_while_it_is_read() {
    let mut local = Local::new(Protocol::Resp2);
    let element = vec![b'e'; 1000];
    let words: Vec<&[u8]> = std::iter::repeat_n(element.as_slice(), 1000).collect();
    while local.keyspace.used_bytes() < 3 * VALUE_BYTES_MAX {
        local.run(&[&[b"RPUSH", &b"list"[..]], words.as_slice()].concat());
    }
    local.run(&[b"SET", b"string", &vec![b's'; VALUE_BYTES_MAX + 1]]);
    local.run(&[b"SET", b"small", b"1"]);
    let mut writer = RdbWriter::new(Vec::new(), 10, false).unwrap();
    write_keys(&local, &mut writer).unwrap();
    let (bytes, _) = writer.finish().unwrap();
    for threads in [0, 2] {
        let mut reader = RdbReader::new(bytes.as_slice(), Path::new("x"), LIMITS).unwrap();
        let (mut loaded, _) = load(&mut reader, threads).unwrap();
        assert_same(&seen(&mut loaded), &seen(&mut local));
    }
    // The file is truncated in the long list.
    let (_, problem) = problem(&bytes[..2 * VALUE_BYTES_MAX]);
    assert!(matches!(problem, RdbProblem::Truncated), "{problem:?}");
}

/// Returns a file of string keys with these names, whose values equal their names.
fn file_of(names: impl Iterator<Item = String>) -> Vec<u8> {
    let mut writer = RdbWriter::new(Vec::new(), 10, true).unwrap();
    for name in names {
        let slot = Slot::new(0, name.as_bytes(), NewValue::from_bytes(name.as_bytes()), None, 0);
        writer.key(&KeyFacts::default(), name.as_bytes(), slot.entry()).unwrap();
    }
    writer.finish().unwrap().0
}

#[test]
fn many_batches_are_inserted_once_each_and_duplicate_keys_are_found() {
    let names = || (0..50_000).map(|number| format!("key:{number}"));
    for threads in [0, 1, 3] {
        let bytes = file_of(names());
        let mut reader = RdbReader::new(bytes.as_slice(), Path::new("x"), LIMITS).unwrap();
        let (mut loaded, _) = load(&mut reader, threads).unwrap();
        assert_eq!(loaded.keyspace.len(0), 50_000);
        for name in names().step_by(997) {
            assert_eq!(support::run(&mut loaded, &[b"GET", name.as_bytes()]), name.as_str().into());
        }
        loaded.keyspace.check_invariants();
        let twice = file_of(names().chain(["key:7".to_owned()]));
        let mut reader = RdbReader::new(twice.as_slice(), Path::new("x"), LIMITS).unwrap();
        let error = load(&mut reader, threads).err().expect("a key occurs twice");
        assert!(matches!(error.problem, RdbProblem::DuplicateKey(name) if name == b"key:7"));
    }
}

#[test]
fn keys_are_inserted_with_their_metadata_unless_expired() {
    let now_ms = 1_000_000;
    let facts = |at_ms| KeyFacts { expire_at_ms: at_ms, ..KeyFacts::default() };
    let all = [
        ("over", facts(Some(now_ms))),
        ("over before", facts(Some(1))),
        ("later", facts(Some(now_ms + 1))),
        ("idle", KeyFacts { idle_s: Some(100), ..facts(None) }),
        ("elsewhere", KeyFacts { database: 3, ..facts(None) }),
    ];
    let mut writer = RdbWriter::new(Vec::new(), 10, true).unwrap();
    for (name, facts) in all {
        let slot = Slot::new(0, name.as_bytes(), NewValue::from_bytes(&[b'v'; 100]), None, 0);
        writer.key(&facts, name.as_bytes(), slot.entry()).unwrap();
    }
    let (bytes, _) = writer.finish().unwrap();
    let mut batch = Batch::new();
    let mut reader = RdbReader::new(bytes.as_slice(), Path::new("x"), LIMITS).unwrap();
    assert_eq!(reader.next(&mut batch).unwrap(), Step::Keys);
    let keyspace = Local::new(Protocol::Resp2).keyspace;
    let mut inserter = Inserter::new(&keyspace, Turn::new(now_ms, 1), LIMITS);
    assert_eq!(inserter.insert(&mut batch).unwrap(), Inserted { loaded: 3, expired: 2, empty: 0 });
    let of = |database, name: &str, see: &dyn Fn(EntryRef<'_>) -> i64| {
        let hash = keyspace.hash(name.as_bytes());
        let shard = keyspace.lock(hash.shard());
        shard.find(database, hash, name.as_bytes()).map(|at| see(shard.entry(database, at)))
    };
    assert_eq!(of(0, "over", &|_| 0), None);
    assert_eq!(of(0, "later", &|entry| entry.expire_at_ms().unwrap_or(0)), Some(now_ms + 1));
    // The loaded entry takes no more memory than a new entry with this name and value.
    let new = Slot::new(0, b"elsewhere", NewValue::from_bytes(&[b'v'; 100]), None, 0);
    let footprint = new.entry().footprint_bytes() as i64;
    assert_eq!(of(3, "elsewhere", &|entry| entry.footprint_bytes() as i64), Some(footprint));
    let clock = of(0, "idle", &|entry| entry.clock().into());
    assert_eq!(clock, Some(Turn::new(now_ms, 1).idle_clock(100).into()));
    keyspace.check_invariants();
}

#[test]
fn files_of_old_servers_are_read() {
    // A file of version 1: no auxiliary fields, no checksum, expiries in seconds, lists and hashes element by element,
    // scores as text.
    let body = [
        &b"\xFE\x00"[..],
        b"\xFD\x00\x10\x5E\x5F\x00\x01s\x05hello",
        b"\x00\x01i\xC1\x39\x30",
        b"\x01\x01l\x02\x01a\xC0\x05",
        b"\x02\x01t\x02\x01a\x01b",
        b"\x03\x01z\x02\x01a\x031.5\x01b\xFF",
        b"\x04\x01h\x01\x01f\x01v",
        b"\xFE\x02\x00\x01s\x01x",
    ]
    .concat();
    for version in [1, 4, 5, 6] {
        let (mut local, steps) = read(&file(version, &body)).unwrap();
        assert!(steps.is_empty());
        let found = seen(&mut local);
        assert_eq!(found.len(), 7);
        assert_eq!(found[&(0, b"s".to_vec())][0].integer(), Some(1_600_000_000_000));
        assert_eq!(must(&mut local, "GET i").text(), "12345");
        assert_eq!(must(&mut local, "LRANGE l 0 -1").elements().unwrap().len(), 2);
        assert_eq!(must(&mut local, "ZSCORE z a").text(), "1.5");
        assert_eq!(must(&mut local, "ZSCORE z b").text(), "-inf");
        assert_eq!(must(&mut local, "HGET h f").text(), "v");
    }
    // Packed formats of version 6 and earlier, which are no longer written.
    let ziplist = b"\x13\x00\x00\x00\x0D\x00\x00\x00\x02\x00\x00\x01f\x03\xFE\x07\xFF";
    let ziplist = [&[ziplist.len() as u8][..], &[ziplist.len() as u8], &ziplist[1..]].concat();
    let body = [
        &b"\xFE\x00\x0D\x01h"[..],
        &ziplist,
        b"\x0A\x01l",
        &ziplist,
        b"\x0E\x01q\x01",
        &ziplist,
        b"\x0C\x01z",
        &ziplist,
        b"\x09\x01m\x09\x01\x01f\x03\x00abc\xFF",
        b"\x0B\x01i\x0A\x02\x00\x00\x00\x01\x00\x00\x00\x05\x00",
    ]
    .concat();
    let (mut local, _) = read(&file(7, &body)).unwrap();
    assert_eq!(must(&mut local, "HGET h f").text(), "7");
    assert_eq!(must(&mut local, "LINDEX l 0").text(), "f");
    assert_eq!(must(&mut local, "LINDEX q 1").text(), "7");
    assert_eq!(must(&mut local, "ZSCORE z f").text(), "7");
    assert_eq!(must(&mut local, "HGET m f").text(), "abc");
    assert_eq!(must(&mut local, "SISMEMBER i 5").integer(), Some(1));
    // The sizes of a cluster slot are ignored.
    read(&file(12, b"\xF4\x01\x02\x03\xFE\x00\x00\x01a\x01b")).unwrap();
}

/// Returns an RDB file of Valkey with `body`, without a checksum.
fn valkey_file(version: u16, body: &[u8]) -> Vec<u8> {
    [format!("VALKEY{version:03}").as_bytes(), body, b"\xFF\0\0\0\0\0\0\0\0"].concat()
}

#[test]
fn files_of_valkey_are_read() {
    let body = [
        &b"\xFA\x0Avalkey-ver\x059.0.0\xFE\x00\xFB\x02\x00\xF4\x01\x02\x00\x00\x01s\x05hello"[..],
        b"\x16\x01h\x02\x01f\x01v",
        &4_000_000_000_000_i64.to_le_bytes(),
        b"\x01g\x02\xFF\xFE",
        &(-1_i64).to_le_bytes(),
        b"\x14\x01t\x0C\x0C\0\0\0\x02\0\x81a\x02\x01\x01\xFF",
    ]
    .concat();
    let (mut local, _) = read(&valkey_file(80, &body)).unwrap();
    assert_eq!(must(&mut local, "GET s").text(), "hello");
    assert_eq!(must(&mut local, "HGET h f").text(), "v");
    let expiries = must(&mut local, "HPEXPIRETIME h FIELDS 2 f g");
    let expiries: Vec<_> =
        expiries.elements().unwrap().iter().map(|value| value.integer().unwrap()).collect();
    assert_eq!(expiries, [4_000_000_000_000, -1]);
    assert_eq!(must(&mut local, "SISMEMBER t a").integer(), Some(1));
    // Valkey's files do not contain the value kinds that Redis has added, and vice versa.
    assert!(matches!(problem(&valkey_file(80, b"\xFE\x00\x18\x01k")), (11, RdbProblem::UnknownKind(24))));
    assert!(matches!(problem(&valkey_file(80, b"\xF3\x01k")), (9, RdbProblem::Refused(_))));
    assert!(matches!(problem(&valkey_file(81, b"")), (0, RdbProblem::Version(81))));
    assert!(matches!(problem(&valkey_file(11, b"")), (0, RdbProblem::Version(11))));
    let long: Vec<u8> = std::iter::repeat_n(b'x', 60).collect();
    let mut body = b"\xFE\x00\x16\x01h\x80\x00\x01\x86\xA0".to_vec();
    for number in 0..100_000_u32 {
        let name = format!("{number:06}");
        body.extend([&[6][..], name.as_bytes(), &[60], &long, &4_000_000_000_000_i64.to_le_bytes()].concat());
    }
    let (mut local, _) = read(&valkey_file(80, &body)).unwrap();
    assert_eq!(must(&mut local, "HLEN h").integer(), Some(100_000));
}

#[test]
fn files_for_valkey_have_field_expiries_in_its_format() {
    let disk: Arc<dyn Disk> = Arc::new(SimulatedDisk::new(1));
    let path = Path::new("data/dump.rdb");
    let mut local = sample(true);
    let written = save(&local, &disk, path, VALKEY_VERSION);
    assert_eq!(&written.header, b"VALKEY080");
    let (mut loaded, _) = load_file(disk.as_ref(), path, 0).unwrap();
    assert_same(&seen(&mut loaded), &seen(&mut local));
}

#[test]
fn unreadable_contents_are_refused_by_name() {
    let id = 0x9A2B_C3D4_E5F6_0000_u64 | 1;
    let module = [b"\xFE\x00\x07\x01k\x81", &id.to_be_bytes()[..]].concat();
    let (_, named) = problem(&file(9, &module));
    let RdbProblem::Module(name) = named else { panic!("{named:?}") };
    assert_eq!(name.len(), 9);
    let redisjson = [b"\xFE\x00\x07\x01k\x81", &(0x4D1D_2F4E_6A00_0000_u64).to_be_bytes()[..]].concat();
    assert!(matches!(problem(&file(9, &redisjson)), (_, RdbProblem::Module(_))));
    let candidate = b"\xF6\x01n\x03LUA\x00\x01c";
    assert!(matches!(problem(&file(10, candidate)), (9, RdbProblem::FunctionOfCandidate)));
    assert!(matches!(problem(&file(12, b"\xFE\x00\x16\x01k")), (11, RdbProblem::UnknownKind(22))));
    assert!(matches!(problem(&file(13, b"")), (0, RdbProblem::Version(13))));
    assert!(matches!(problem(&file(0, b"")), (0, RdbProblem::Version(0))));
    for bytes in [&b""[..], b"REDI", b"REDIS00", b"REDIS00x1\xFF", b"VALKEY08", b"VALKEY08x\xFF"] {
        assert!(matches!(problem(bytes), (0, RdbProblem::NotRdb)));
    }
    let twice = b"\xFE\x00\x00\x01a\x01b\x00\x01a\x01c";
    let (offset, duplicate) = problem(&file(9, twice));
    assert!(matches!(duplicate, RdbProblem::DuplicateKey(key) if key == b"a") && offset == 17);
    assert!(matches!(problem(&file(9, b"\xFE\x10\x00\x01a\x01b")), (_, RdbProblem::Database(16))));
    let error = read(&file(9, b"\xFE\x00\x02\x01s\x02\x01a\x01a")).err().unwrap();
    assert_eq!(
        error.to_string(),
        "test.rdb at offset 12: a set has a member twice; restore a backup, or keep the intact part with \
         `ember-cli repair test.rdb --output NEW_FILE`"
    );
}

#[test]
fn a_key_without_elements_is_skipped() {
    let (mut local, _) = read(&file(9, b"\xFE\x00\x01\x01l\x00\x00\x01a\x01b")).unwrap();
    assert_eq!(must(&mut local, "DBSIZE").integer(), Some(1));
    assert_eq!(must(&mut local, "EXISTS a").integer(), Some(1));
}

#[test]
fn a_wrong_checksum_is_an_error_and_an_absent_one_is_not() {
    let mut writer = RdbWriter::new(Vec::new(), 10, true).unwrap();
    write_keys(&sample(false), &mut writer).unwrap();
    let (mut bytes, _) = writer.finish().unwrap();
    let at = bytes.len() - 8;
    read(&bytes).unwrap();
    bytes[at] ^= 1;
    assert!(matches!(problem(&bytes).1, RdbProblem::Checksum { .. }));
    bytes[at..].fill(0);
    read(&bytes).unwrap();
    bytes.truncate(at);
    assert!(matches!(problem(&bytes).1, RdbProblem::Truncated));
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let simulated = SimulatedDisk::new(7);
    let disk: Arc<dyn Disk> = Arc::new(simulated.clone());
    let path = Path::new("data/dump.rdb");
    let local = sample(false);
    save(&local, &disk, path, FILE_VERSION);
    let before = read_whole(disk.as_ref(), path, 1 << 30).unwrap();
    for faults in [
        Faults { capacity_bytes: Some(before.len() as u64 + 1000), ..Faults::default() },
        Faults { write_error_percent: 100, ..Faults::default() },
        Faults { sync_error_percent: 100, ..Faults::default() },
        Faults { read_only: true, ..Faults::default() },
    ] {
        simulated.set_faults(faults);
        let error = ember_persistence::rdb_file::save(&disk, path, &support::options(10), |writer| {
            write_keys(&local, writer)
        });
        assert!(error.unwrap_err().to_string().contains("temp-ember-"));
        simulated.set_faults(Faults::default());
        assert_eq!(disk.list(Path::new("data")).unwrap(), ["dump.rdb"]);
    }
    for seed in 0..20 {
        let after = simulated.after_power_cut(seed);
        assert_eq!(read_whole(&after, path, 1 << 30).unwrap(), before);
    }
    // Power is cut at any time of a save: the old file or the new one is complete.
    for seed in 0..20 {
        let after = simulated.clone();
        let smaller = Local::new(Protocol::Resp2);
        let mut cut = None;
        let target: Arc<dyn Disk> = Arc::new(after.clone());
        ember_persistence::rdb_file::save(&target, path, &support::options(10), |writer| {
            cut = Some(after.after_power_cut(seed));
            write_keys(&smaller, writer)
        })
        .unwrap();
        assert!(load_file(&cut.unwrap(), path, 0).is_ok());
        assert_eq!(load_file(&after.after_power_cut(seed), path, 0).unwrap().0.keyspace.len(9), 0);
        save(&local, &target, path, FILE_VERSION);
    }
}

#[test]
fn files_cut_anywhere_are_errors() {
    let mut local = Local::new(Protocol::Resp2);
    for line in support::sample_commands(true) {
        if line.len() < 4000 {
            must(&mut local, &line);
        }
    }
    let mut writer = RdbWriter::new(Vec::new(), 12, true).unwrap();
    writer.usual_aux("7.0.15", 1, 1, true).unwrap();
    write_keys(&local, &mut writer).unwrap();
    let (bytes, _) = writer.finish().unwrap();
    for len in 0..bytes.len() {
        let (offset, problem) = problem(&bytes[..len]);
        assert!(offset <= len as u64, "{len}");
        assert!(matches!(problem, RdbProblem::Truncated | RdbProblem::NotRdb), "{len}: {problem:?}");
    }
}

proptest! {
    #[test]
    fn damaged_files_never_panic(
        seed in 0..u64::MAX,
        flips in prop::collection::vec((0usize..1 << 20, any::<u8>()), 1..6),
        keeps_checksum in any::<bool>(),
    ) {
        let mut local = Local::new(Protocol::Resp2);
        for (number, line) in support::sample_commands(true).iter().enumerate() {
            if line.len() < 3000 && (seed >> (number % 64) & 1 == 1 || line.starts_with('X')) {
                local.run(&ember_testkit::split_arguments(line).unwrap().iter().map(Vec::as_slice).collect::<Vec<_>>());
            }
        }
        let mut writer = RdbWriter::new(Vec::new(), 12, seed % 2 == 0).unwrap();
        writer.usual_aux("7.0.15", 1, 1, true).unwrap();
        write_keys(&local, &mut writer).unwrap();
        let (mut bytes, _) = writer.finish().unwrap();
        let original = bytes.clone();
        for (at, value) in flips {
            let at = at % bytes.len();
            bytes[at] = value;
        }
        if !keeps_checksum {
            let at = bytes.len() - 8;
            bytes[at..].fill(0);
        }
        let is_same = bytes == original;
        let result = read(&bytes);
        if keeps_checksum && !is_same {
            // Eight bytes of zero mean that there is no checksum; no other damage is accepted.
            prop_assert!(result.is_err() || bytes[bytes.len() - 8..] == [0; 8] || original[..] == bytes[..]);
        }
    }
}
