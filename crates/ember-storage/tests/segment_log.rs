//! The log of cold values, compared with a map: appending, reading, disk errors, reclaiming.

#![allow(clippy::unwrap_used, reason = "the whole program is a test")]

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ember_storage::encryption::{Encryption, Key, KeyRing};
use ember_storage::files::{Disk, Faults, OsDisk, SimulatedDisk};
use ember_storage::segments::{
    AppendSource, BUFFER_BYTES, BUFFERS_MAX, Location, LogFull, LogOptions, ReadError, Record, RecordHead,
    SEGMENT_BYTES, SegmentLog, Which,
};
use proptest::prelude::*;

const UNLIMITED: u64 = u64::MAX / 2;

fn options(encrypted: bool) -> LogOptions {
    let keys = KeyRing::new(Key::new([7; 32]));
    let encryption = if encrypted { Encryption::with(keys) } else { Encryption::off() };
    LogOptions { directory: PathBuf::from("tier"), limit_bytes: UNLIMITED, encryption }
}

fn open(disk: &SimulatedDisk, encrypted: bool) -> SegmentLog {
    SegmentLog::open(Arc::new(disk.clone()), options(encrypted)).unwrap()
}

fn head(key: &[u8]) -> RecordHead<'_> {
    RecordHead { database: 3, kind: 14, key }
}

/// Appends a record, and writes full buffers.
fn put(log: &SegmentLog, key: &[u8], value: &[u8], room: AppendSource) -> Location {
    loop {
        match log.append(&head(key), value, room) {
            Ok(at) => return at,
            Err(LogFull::Buffers) => _ = log.write_buffers(Which::Full).unwrap(),
            Err(full) => panic!("{full}"),
        }
    }
}

fn assert_reads(log: &SegmentLog, at: Location, key: &[u8], value: &[u8]) {
    let mut buffer = Vec::new();
    let record = log.read(at, &mut buffer).unwrap();
    assert!(record == Record { head: head(key), value }, "{at:?}");
    if let Some(record) = log.read_ready(at, &mut buffer).unwrap() {
        assert!(record == Record { head: head(key), value }, "{at:?}");
    }
}

fn value_of(number: u64, len: usize) -> Vec<u8> {
    let mut state = number;
    let mut bytes = Vec::with_capacity(len + 8);
    while bytes.len() < len {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        bytes.extend_from_slice(&(state ^ (state >> 29)).to_le_bytes());
    }
    bytes.truncate(len);
    bytes
}

/// Moves the model's records out of the segment with the smallest live share; returns whether there was such a segment.
fn reclaim(log: &SegmentLog, model: &mut HashMap<Vec<u8>, (Location, Vec<u8>)>, percent: u64) -> bool {
    let Some(segment) = log.choose(percent) else { return false };
    let mut moved = Vec::new();
    let mut records = log.records(segment).unwrap();
    while let Some(next) = records.next_record() {
        let (at, record) = next.unwrap();
        if model.get(record.head.key).is_some_and(|(current, _)| *current == at) {
            moved.push((record.head.key.to_vec(), record.value.to_vec(), at));
        }
    }
    for (key, value, from) in moved {
        let to = put(log, &key, &value, AppendSource::Moved);
        model.insert(key, (to, value));
        log.live().discount(from);
    }
    assert_eq!(log.live().of(segment), 0, "all live records were moved");
    log.remove(segment).unwrap();
    true
}

#[derive(Clone, Debug)]
enum Step {
    Put { key: u8, len: usize },
    Remove { key: u8 },
    WriteFull,
    WriteAll,
    Read { key: u8 },
    Reclaim { percent: u64 },
    RemoveEmpty,
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let len = prop_oneof![
        4 => 0..200_usize,
        4 => 1000..300_000_usize,
        1 => 1_000_000..6_000_000_usize,
    ];
    prop_oneof![
        20 => (any::<u8>(), len).prop_map(|(key, len)| Step::Put { key: key % 40, len }),
        6 => any::<u8>().prop_map(|key| Step::Remove { key: key % 40 }),
        2 => Just(Step::WriteFull),
        2 => Just(Step::WriteAll),
        8 => any::<u8>().prop_map(|key| Step::Read { key: key % 40 }),
        3 => (1..=100_u64).prop_map(|percent| Step::Reclaim { percent }),
        1 => Just(Step::RemoveEmpty),
        1 => Just(Step::Clear),
    ]
}

fn follow(steps: Vec<Step>, encrypted: bool) {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, encrypted);
    // The limit determines the size of segments: a few MiB, or 64 MiB.
    log.set_limit(if encrypted { 640 << 20 } else { UNLIMITED });
    let mut model: HashMap<Vec<u8>, (Location, Vec<u8>)> = HashMap::new();
    for (number, step) in steps.into_iter().enumerate() {
        match step {
            Step::Put { key, len } => {
                let (key, value) = (vec![key; 5], value_of(number as u64, len));
                let at = put(&log, &key, &value, AppendSource::Demoted);
                if let Some((before, _)) = model.insert(key, (at, value)) {
                    log.live().discount(before);
                }
            }
            Step::Remove { key } => {
                if let Some((at, _)) = model.remove(&vec![key; 5]) {
                    log.live().discount(at);
                }
            }
            Step::WriteFull => _ = log.write_buffers(Which::Full).unwrap(),
            Step::WriteAll => _ = log.write_buffers(Which::All).unwrap(),
            Step::Read { key } => {
                if let Some((key, (at, value))) = model.get_key_value(&vec![key; 5]) {
                    assert_reads(&log, *at, key, value);
                }
            }
            Step::Reclaim { percent } => _ = reclaim(&log, &mut model, percent),
            Step::RemoveEmpty => _ = log.remove_empty().unwrap(),
            Step::Clear => {
                log.clear().unwrap();
                model.clear();
            }
        }
        let figures = log.statistics();
        // A record larger than a buffer has a buffer of its size.
        assert!(figures.buffer_bytes <= 2 * (BUFFERS_MAX * BUFFER_BYTES) as u64);
        assert!(figures.live_bytes <= figures.stored_bytes);
        let stored: u64 = log.segments().iter().map(|segment| segment.stored_bytes).sum();
        assert_eq!(stored, figures.stored_bytes);
    }
    for (key, (at, value)) in &model {
        assert_reads(&log, *at, key, value);
    }
    for (_, (at, _)) in model.drain() {
        log.live().discount(at);
    }
    log.write_buffers(Which::All).unwrap();
    log.remove_empty().unwrap();
    assert!(log.segments().iter().all(|segment| !segment.is_sealed));
    assert_eq!(log.statistics().live_bytes, 0);
    drop(log);
    assert!(disk.list(Path::new("tier")).unwrap().is_empty());
}

proptest! {
    // 12 cases instead of 256, because each writes many megabytes. `PROPTEST_CASES` sets another number.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.div_ceil(22),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_log_equals_a_map(steps in prop::collection::vec(step(), 1..150)) {
        follow(steps, false);
    }

    #[test]
    fn an_encrypted_log_equals_a_map(steps in prop::collection::vec(step(), 1..100)) {
        follow(steps, true);
    }
}

#[test]
fn a_record_is_read_from_its_buffer_and_from_the_file() {
    for encrypted in [false, true] {
        let disk = SimulatedDisk::new(1);
        let log = open(&disk, encrypted);
        let at = put(&log, b"key", b"value", AppendSource::Demoted);
        assert!(log.is_buffered(at) && !log.has_full_buffer());
        assert!(disk.list(Path::new("tier")).unwrap().is_empty(), "appending does not touch the disk");
        assert_reads(&log, at, b"key", b"value");
        assert_eq!(log.write_buffers(Which::Full).unwrap(), 0);
        assert!(log.write_buffers(Which::All).unwrap() > 0);
        assert!(!log.is_buffered(at));
        assert_reads(&log, at, b"key", b"value");
        let second = put(&log, b"key 2", b"value 2", AppendSource::Demoted);
        assert_eq!(second.segment(), at.segment());
        assert_reads(&log, second, b"key 2", b"value 2");
        let is_plain = {
            let file = disk.open(&Path::new("tier").join("segment-0.tier")).unwrap();
            let mut bytes = vec![0; 200];
            let count = file.read_at(0, &mut bytes).unwrap();
            bytes[..count].windows(5).any(|window| window == b"value")
        };
        assert_eq!(is_plain, !encrypted);
    }
}

#[test]
fn a_record_is_ready_when_reading_it_does_not_block() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    let places: Vec<Location> =
        (0..4_u64).map(|number| put(&log, b"key", &value_of(number, 3000), AppendSource::Demoted)).collect();
    let is_ready = |at: &Location| log.read_ready(*at, &mut Vec::new()).unwrap().is_some();
    assert!(places.iter().all(is_ready), "the records are in a buffer");
    log.write_buffers(Which::All).unwrap();
    // The simulated disk caches every second page: two of the records lie completely on cached pages.
    assert_eq!(places.iter().map(is_ready).collect::<Vec<_>>(), [true, false, false, true]);
    // A closed file is opened again by a blocking read.
    let mut buffer = Vec::new();
    for number in 0..300 {
        log.seal();
        put(&log, b"other", &value_of(number, 100), AppendSource::Demoted);
        log.write_buffers(Which::All).unwrap();
    }
    assert!(!is_ready(&places[0]));
    log.read(places[0], &mut buffer).unwrap();
    assert!(is_ready(&places[0]));
}

#[test]
#[cfg(target_os = "linux")]
fn records_in_the_page_cache_are_ready() {
    let directory = std::env::temp_dir().join(format!("ember-ready-{}", std::process::id()));
    let options = LogOptions { directory: directory.clone(), ..options(true) };
    let log = SegmentLog::open(Arc::new(OsDisk), options).unwrap();
    let at = put(&log, b"key", b"value", AppendSource::Demoted);
    log.write_buffers(Which::All).unwrap();
    let mut buffer = Vec::new();
    // The pages were written just now. If the file system does not know whether pages are cached, it reports that the
    // read would block.
    if let Some(record) = log.read_ready(at, &mut buffer).unwrap() {
        assert_eq!((record.head.key, record.value), (&b"key"[..], &b"value"[..]));
    }
    log.clear().unwrap();
    assert!(matches!(log.read_ready(at, &mut buffer), Err(ReadError::Removed)));
    std::fs::remove_dir_all(&directory).unwrap();
}

#[test]
fn opening_removes_files_left_by_another_process() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    put(&log, b"key", b"value", AppendSource::Demoted);
    log.write_buffers(Which::All).unwrap();
    std::mem::forget(log);
    disk.create(Path::new("tier/segment-x.tier")).unwrap();
    disk.create(Path::new("tier/other")).unwrap();
    let after = disk.after_power_cut(3);
    for disk in [disk, after] {
        let others: Vec<_> = disk.list(Path::new("tier")).unwrap();
        let others = others.into_iter().filter(|name| name != "segment-0.tier").collect::<Vec<_>>();
        let log = open(&disk, true);
        assert_eq!(disk.list(Path::new("tier")).unwrap(), others, "only segments are removed");
        assert!(log.segments().is_empty());
    }
}

#[test]
fn values_larger_than_a_segment_get_a_separate_segment() {
    for encrypted in [false, true] {
        let disk = SimulatedDisk::new(1);
        let log = open(&disk, encrypted);
        let small = put(&log, b"small", b"value", AppendSource::Demoted);
        let value = value_of(1, SEGMENT_BYTES as usize + 5);
        let large = put(&log, b"large", &value, AppendSource::Demoted);
        let next = put(&log, b"behind", b"value", AppendSource::Demoted);
        assert_ne!(small.segment(), large.segment());
        assert_ne!(next.segment(), large.segment());
        for _ in 0..2 {
            assert_reads(&log, small, b"small", b"value");
            assert_reads(&log, large, b"large", &value);
            assert_reads(&log, next, b"behind", b"value");
            log.write_buffers(Which::All).unwrap();
        }
        let mut records = log.records(large.segment()).unwrap();
        let (at, record) = records.next_record().unwrap().unwrap();
        assert!(at == large && record.value == value);
        assert!(records.next_record().is_none());
        assert!(log.live().of(large.segment()) > SEGMENT_BYTES);
        log.live().discount(large);
        assert_eq!(log.choose(1), Some(large.segment()));
        assert_eq!(log.remove_empty().unwrap(), 1);
        let mut buffer = Vec::new();
        assert!(matches!(log.read(large, &mut buffer), Err(ReadError::Removed)));
    }
}

#[test]
fn the_number_of_buffers_is_limited_and_writing_frees_them() {
    let log = open(&SimulatedDisk::new(1), false);
    let value = value_of(1, 1 << 20);
    let mut places = Vec::new();
    let full = loop {
        match log.append(&head(b"key"), &value, AppendSource::Demoted) {
            Ok(at) => places.push(at),
            Err(full) => break full,
        }
    };
    assert_eq!(full, LogFull::Buffers);
    assert!(places.len() >= 12 && log.has_full_buffer());
    assert!(log.statistics().buffer_bytes <= (BUFFERS_MAX * BUFFER_BYTES) as u64);
    assert!(log.write_buffers(Which::Full).unwrap() > 0);
    places.push(put(&log, b"key", &value, AppendSource::Demoted));
    for at in places {
        assert_reads(&log, at, b"key", &value);
    }
}

#[test]
fn at_the_limit_only_moved_records_are_accepted() {
    let log = open(&SimulatedDisk::new(1), false);
    log.set_limit(10 << 20);
    let value = value_of(1, 1 << 20);
    let mut places = Vec::new();
    while log.statistics().stored_bytes < 9 << 20 {
        places.push(put(&log, b"key", &value, AppendSource::Demoted));
    }
    assert_eq!(log.append(&head(b"key"), &value, AppendSource::Demoted), Err(LogFull::Limit));
    let moved = put(&log, b"key", &value, AppendSource::Moved);
    log.set_limit(20 << 20);
    let more = put(&log, b"key", &value, AppendSource::Demoted);
    for at in places.into_iter().chain([moved, more]) {
        assert_reads(&log, at, b"key", &value);
    }
    let figures = log.statistics();
    assert!(figures.moved_bytes < figures.demoted_bytes && figures.limit_bytes == 20 << 20);
}

#[test]
fn a_write_that_fails_loses_nothing() {
    for (faults, is_full) in [
        (Faults { write_error_percent: 100, ..Faults::default() }, false),
        (Faults { capacity_bytes: Some(5000), ..Faults::default() }, true),
        (Faults { name_error_percent: 100, ..Faults::default() }, false),
        (Faults { read_only: true, ..Faults::default() }, false),
    ] {
        for gives_up in [false, true] {
            let disk = SimulatedDisk::new(1);
            let log = open(&disk, gives_up);
            // With this limit, segments have 2 MiB.
            log.set_limit(64 << 20);
            let before = put(&log, b"before", b"value", AppendSource::Demoted);
            log.write_buffers(Which::All).unwrap();
            let values: Vec<Vec<u8>> = (0..200).map(|number| value_of(number, 64 << 10)).collect();
            let mut places = Vec::new();
            // Some segments have files, and the next ones have none yet.
            for value in &values[..50] {
                places.push(put(&log, b"key", value, AppendSource::Demoted));
            }
            disk.set_faults(faults.clone());
            let mut failed = None;
            for value in &values[50..] {
                match log.append(&head(b"key"), value, AppendSource::Demoted) {
                    Ok(at) => places.push(at),
                    Err(LogFull::Buffers) => {
                        failed = log.write_buffers(Which::All).err();
                        break;
                    }
                    Err(full) => panic!("{full}"),
                }
            }
            let failed = failed.or_else(|| log.write_buffers(Which::All).err());
            let failed = failed.unwrap();
            assert_eq!(failed.cause.is_full(), is_full, "{failed}");
            assert_eq!(log.append(&head(b"key"), b"v", AppendSource::Moved), Err(LogFull::Failing));
            for (at, value) in places.iter().zip(&values) {
                assert_reads(&log, *at, b"key", value);
            }
            if gives_up {
                let mut taken = HashMap::new();
                log.take_back(&mut |at, record| {
                    assert!(log.is_buffered(at));
                    taken.insert(at, record.value.to_vec());
                    log.live().discount(at);
                });
                assert!(!taken.is_empty() && log.statistics().buffer_bytes == 0);
                let mut buffer = Vec::new();
                for (at, value) in places.iter().zip(&values) {
                    match taken.get(at) {
                        Some(given) => {
                            assert!(given == value);
                            assert!(matches!(log.read(*at, &mut buffer), Err(ReadError::Removed)));
                        }
                        None => assert_reads(&log, *at, b"key", value),
                    }
                }
            }
            disk.set_faults(Faults::default());
            log.write_buffers(Which::All).unwrap();
            assert_reads(&log, before, b"before", b"value");
            let after = put(&log, b"after", b"value", AppendSource::Demoted);
            log.write_buffers(Which::All).unwrap();
            assert_reads(&log, after, b"after", b"value");
            if !gives_up {
                for (at, value) in places.iter().zip(&values) {
                    assert_reads(&log, *at, b"key", value);
                }
            }
        }
    }
}

#[test]
fn a_failed_read_is_an_error_and_may_be_retried() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    let at = put(&log, b"key", b"value", AppendSource::Demoted);
    log.write_buffers(Which::All).unwrap();
    disk.set_faults(Faults { read_error_percent: 100, ..Faults::default() });
    let mut buffer = Vec::new();
    let error = log.read(at, &mut buffer).unwrap_err();
    assert!(matches!(error, ReadError::Disk(_)), "{error}");
    disk.set_faults(Faults::default());
    assert_reads(&log, at, b"key", b"value");
}

/// Creates a log with records of several sizes in one file; also returns the disk with the file, and the records.
fn written(encrypted: bool) -> (SimulatedDisk, SegmentLog, Vec<(Location, Vec<u8>)>) {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, encrypted);
    let sizes = [0, 1, 20, 150, 3, 300];
    let records = sizes.iter().enumerate().map(|(number, &len)| {
        let value = value_of(number as u64, len);
        (put(&log, format!("key {number}").as_bytes(), &value, AppendSource::Demoted), value)
    });
    let records = records.collect();
    log.write_buffers(Which::All).unwrap();
    (disk, log, records)
}

#[test]
fn a_damaged_byte_is_an_error_of_its_record_alone() {
    for encrypted in [false, true] {
        let (disk, log, records) = written(encrypted);
        let file = disk.open(Path::new("tier/segment-0.tier")).unwrap();
        let mut buffer = Vec::new();
        for offset in 64..file.size().unwrap() {
            let mut byte = [0];
            file.read_at(offset, &mut byte).unwrap();
            file.write_at(offset, &[byte[0] ^ 0x21]).unwrap();
            let mut wrong = 0;
            for (number, (at, value)) in records.iter().enumerate() {
                match log.read(*at, &mut buffer) {
                    Ok(record) => {
                        assert!(record.value == value);
                        assert_eq!(record.head.key, format!("key {number}").as_bytes());
                    }
                    Err(ReadError::Damaged { offset: damaged, .. }) => {
                        assert_eq!(damaged, at.offset());
                        assert!((at.offset()..at.offset() + at.stored_bytes().unwrap()).contains(&offset));
                        wrong += 1;
                    }
                    Err(error) => panic!("{error}"),
                }
            }
            assert!(wrong <= 1, "only padding is not checked");
            let mut found = Vec::new();
            let mut errors = 0;
            let mut scan = log.records(records[0].0.segment()).unwrap();
            while let Some(next) = scan.next_record() {
                match next {
                    Ok((at, record)) => {
                        let (_, value) = records.iter().find(|(of, _)| *of == at).unwrap();
                        assert!(record.value == value);
                        found.push(at);
                    }
                    Err(ReadError::Damaged { .. }) => errors += 1,
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!((found.len(), errors), (records.len() - wrong, wrong), "offset {offset}");
            file.write_at(offset, &byte).unwrap();
        }
    }
}

#[test]
fn a_truncated_file_is_an_error_of_missing_records_alone() {
    for encrypted in [false, true] {
        let (disk, log, records) = written(encrypted);
        let file = disk.open(Path::new("tier/segment-0.tier")).unwrap();
        let mut buffer = Vec::new();
        for size in (0..file.size().unwrap()).rev() {
            file.set_size(size).unwrap();
            for (at, value) in &records {
                match log.read(*at, &mut buffer) {
                    Ok(record) => assert!(record.value == value),
                    Err(error) => {
                        assert!(matches!(error, ReadError::Damaged { .. }), "{error}");
                        assert!(at.offset() + at.stored_bytes().unwrap() > size);
                    }
                }
            }
            let mut scan = log.records(records[0].0.segment()).unwrap();
            while let Some(next) = scan.next_record() {
                assert!(matches!(next, Ok(_) | Err(ReadError::Damaged { .. })));
            }
        }
    }
}

#[test]
fn altered_locations_yield_an_error_or_a_record_with_its_key() {
    let (_disk, log, records) = written(false);
    let mut buffer = Vec::new();
    let (at, _) = records[3];
    for bit in 0..64 {
        let wrong = Location::from_bits(at.to_bits() ^ (1 << bit));
        if let Ok(record) = log.read(wrong, &mut buffer) {
            // A location with a wrong length returns the same record; with another offset, it returns the record at
            // that offset, whose key differs.
            let is_there = records.iter().position(|(there, _)| there.offset() == wrong.offset()).unwrap();
            assert_eq!(record.head.key, format!("key {is_there}").as_bytes());
        }
    }
    for bits in [0, u64::MAX, 1 << 44, (4 << 22) | 1] {
        assert!(log.read(Location::from_bits(bits), &mut buffer).is_err());
    }
}

#[test]
fn removed_segments_are_deleted_and_failed_deletions_retried() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    let files = || disk.list(Path::new("tier")).unwrap().len();
    let first = put(&log, b"first", b"value", AppendSource::Demoted);
    log.write_buffers(Which::All).unwrap();
    log.remove(first.segment()).unwrap();
    assert!(log.segments().is_empty() && files() == 0);
    let mut buffer = Vec::new();
    assert!(matches!(log.read(first, &mut buffer), Err(ReadError::Removed)));
    let second = put(&log, b"second", b"value", AppendSource::Demoted);
    log.write_buffers(Which::All).unwrap();
    assert_reads(&log, second, b"second", b"value");
    disk.set_faults(Faults { name_error_percent: 100, ..Faults::default() });
    assert!(log.clear().is_err());
    assert!(log.remove_empty().is_err(), "a file that cannot be removed is retried");
    disk.set_faults(Faults::default());
    log.remove_empty().unwrap();
    assert_eq!((files(), log.statistics().stored_bytes), (0, 0));
}

#[test]
fn more_segments_than_open_files_can_be_read() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    let mut places = Vec::new();
    for number in 0..300_u64 {
        let key = number.to_le_bytes();
        places.push(put(&log, &key, b"value", AppendSource::Demoted));
        log.write_buffers(Which::All).unwrap();
        log.seal();
    }
    assert_eq!(log.segments().len(), 300);
    for (number, at) in places.iter().enumerate() {
        assert_reads(&log, *at, &(number as u64).to_le_bytes(), b"value");
    }
}

#[test]
fn reclaiming_at_half_keeps_the_limit_and_writes_at_most_twice() {
    let disk = SimulatedDisk::new(1);
    let log = open(&disk, false);
    let mut model: HashMap<Vec<u8>, (Location, Vec<u8>)> = HashMap::new();
    let keys = 400_u64;
    let value_bytes = 64 << 10;
    // 25 MiB of live values in files of at most twice that size, with segments of 1.6 MiB.
    let limit = 2 * keys * value_bytes as u64;
    log.set_limit(limit);
    let mut state = 1_u64;
    for number in 0..4_000_u64 {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let key = (state >> 33).wrapping_rem(keys).to_le_bytes().to_vec();
        let value = value_of(number, value_bytes);
        loop {
            match log.append(&head(&key), &value, AppendSource::Demoted) {
                Ok(at) => {
                    if let Some((before, _)) = model.insert(key, (at, value)) {
                        log.live().discount(before);
                    }
                    break;
                }
                Err(LogFull::Buffers) => _ = log.write_buffers(Which::Full).unwrap(),
                Err(LogFull::Limit) => assert!(reclaim(&log, &mut model, 100)),
                Err(full) => panic!("{full}"),
            }
        }
        log.remove_empty().unwrap();
        reclaim(&log, &mut model, 50);
        let figures = log.statistics();
        assert!(figures.stored_bytes <= limit + limit / 32);
    }
    for (key, (at, value)) in &model {
        assert_reads(&log, *at, key, value);
    }
    let figures = log.statistics();
    let amplification = figures.written_bytes as f64 / figures.demoted_bytes as f64;
    println!("written for each byte demoted: {amplification:.2} ({figures:?})");
    assert!(amplification <= 2.0);
}

#[test]
fn threads_read_while_others_append_write_and_reclaim() {
    let directory = std::env::temp_dir().join(format!("ember-segments-{}", std::process::id()));
    let options = LogOptions { directory: directory.clone(), ..options(false) };
    let log = SegmentLog::open(Arc::new(OsDisk), options).unwrap();
    let current: parking_lot::Mutex<HashMap<u64, (Location, u64)>> = parking_lot::Mutex::default();
    let is_over = AtomicBool::new(false);
    let len_of = |number: u64| 1000 + (number % 7) as usize * 10_000;
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for number in 0..12_000_u64 {
                let (key, value) = (number * 7 % 1000, value_of(number, len_of(number)));
                let at = loop {
                    match log.append(&head(&key.to_le_bytes()), &value, AppendSource::Demoted) {
                        Ok(at) => break at,
                        Err(LogFull::Buffers) => std::thread::yield_now(),
                        Err(full) => panic!("{full}"),
                    }
                };
                if let Some((before, _)) = current.lock().insert(key, (at, number)) {
                    log.live().discount(before);
                }
            }
            is_over.store(true, Ordering::Release);
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                log.write_buffers(Which::Full).unwrap();
                std::thread::yield_now();
            }
        });
        scope.spawn(|| {
            while !is_over.load(Ordering::Acquire) {
                log.remove_empty().unwrap();
                let Some(segment) = log.choose(60) else {
                    std::thread::yield_now();
                    continue;
                };
                let mut records = log.records(segment).unwrap();
                while let Some(next) = records.next_record() {
                    let (from, record) = next.unwrap();
                    let key = u64::from_le_bytes(record.head.key.try_into().unwrap());
                    if current.lock().get(&key).is_none_or(|(at, _)| *at != from) {
                        continue;
                    }
                    let to = loop {
                        match log.append(&record.head, record.value, AppendSource::Moved) {
                            Ok(to) => break to,
                            Err(LogFull::Buffers) => _ = log.write_buffers(Which::Full).unwrap(),
                            Err(full) => panic!("{full}"),
                        }
                    };
                    let mut current = current.lock();
                    match current.get_mut(&key) {
                        Some((at, _)) if *at == from => {
                            *at = to;
                            log.live().discount(from);
                        }
                        _ => log.live().discount(to),
                    }
                }
                assert_eq!(log.live().of(segment), 0);
                log.remove(segment).unwrap();
            }
        });
        for reader in 0..2_u64 {
            let (log, current, is_over) = (&log, &current, &is_over);
            scope.spawn(move || {
                let mut buffer = Vec::new();
                let (mut state, mut hits) = (reader + 1, 0);
                while !is_over.load(Ordering::Acquire) {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let key = (state >> 33) % 1000;
                    let Some((at, number)) = current.lock().get(&key).copied() else { continue };
                    match log.read(at, &mut buffer) {
                        Ok(record) => {
                            assert_eq!(record.head.key, key.to_le_bytes());
                            assert!(record.value == value_of(number, len_of(number)));
                            hits += 1;
                        }
                        // The record was moved or replaced since its location was read.
                        Err(ReadError::Removed) => assert_ne!(current.lock()[&key].0, at),
                        Err(error) => panic!("{error}"),
                    }
                }
                assert!(hits > 0);
            });
        }
    });
    for (key, (at, number)) in &*current.lock() {
        assert_reads(&log, *at, &key.to_le_bytes(), &value_of(*number, len_of(*number)));
    }
    drop(log);
    std::fs::remove_dir_all(&directory).unwrap();
}
