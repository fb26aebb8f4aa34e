//! Reads of a segment with arbitrarily changed bytes return the written record or an error.

#![no_main]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ember_storage::encryption::Encryption;
use ember_storage::files::{Disk, SimulatedDisk};
use ember_storage::segments::{Location, LogOptions, RecordHead, AppendSource, SegmentLog, Which};
use libfuzzer_sys::fuzz_target;

/// The input consists of records, each preceded by its length and ended by a length of 255; then changes, each an
/// offset of two bytes, a length and the bytes; then locations of eight bytes.
fuzz_target!(|input: &[u8]| {
    let disk = SimulatedDisk::new(1);
    let options = LogOptions {
        directory: PathBuf::from("tier"),
        limit_bytes: u64::MAX,
        encryption: Encryption::off(),
    };
    let log = SegmentLog::open(Arc::new(disk.clone()), options).expect("an empty disk");
    let mut rest = input;
    let mut written: Vec<(Location, &[u8], &[u8])> = Vec::new();
    while let Some((&len, after)) = rest.split_first() {
        rest = after;
        if len == u8::MAX {
            break;
        }
        let (bytes, after) = rest.split_at(rest.len().min(len as usize));
        rest = after;
        let (key, value) = bytes.split_at(bytes.len() / 3);
        let head = RecordHead { database: 0, kind: len, key };
        let at = log.append(&head, value, AppendSource::Demoted).expect("a few hundred bytes");
        written.push((at, key, value));
    }
    log.write_buffers(Which::All).expect("a disk without faults");
    let Some((first, ..)) = written.first() else { return };
    let file = disk.open(Path::new("tier/segment-0.tier")).expect("it was written");
    while let Some((&[low, high, len], after)) = rest.split_first_chunk::<3>() {
        let (bytes, after) = after.split_at(after.len().min(len as usize % 64));
        rest = after;
        file.write_at(u64::from(u16::from_le_bytes([low, high])), bytes).expect("a disk without faults");
        if len >= 192 {
            break;
        }
    }
    let mut buffer = Vec::new();
    for (at, key, value) in &written {
        if let Ok(record) = log.read(*at, &mut buffer) {
            assert!(record.head.key == *key && record.value == *value);
        }
    }
    for bits in rest.chunks_exact(8).filter_map(|chunk| chunk.try_into().ok()) {
        let at = Location::from_bits(u64::from_le_bytes(bits));
        if let Ok(record) = log.read(at, &mut buffer) {
            assert!(written.iter().any(|(there, key, _)| there.offset() == at.offset() && record.head.key == *key));
        }
    }
    let mut records = log.records(first.segment()).expect("the segment exists");
    while let Some(next) = records.next_record() {
        if let Ok((at, record)) = next {
            let of = written.iter().find(|(there, ..)| *there == at).expect("every record was written");
            assert!(record.value == of.2);
        }
    }
});
