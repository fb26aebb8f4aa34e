//! Any bytes are an RDB file or an error. Keys that were read can be written and read again, and can be inserted unless
//! one occurs twice.
#![no_main]

use std::path::Path;

use ember_persistence::rdb_file::{Batch, Inserter, RdbError, RdbProblem, RdbReader, RdbWriter, Step};
use ember_protocol::Protocol;
use emberkv_core::keyspace::entry::Slot;
use emberkv_core::local::Local;
use emberkv_core::rdb::VERSION_MAX;
use emberkv_core::turn::Turn;
use emberkv_core::types::limits::EncodingLimits;
use libfuzzer_sys::fuzz_target;

const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

/// Reads all keys and writes them. Returns their number, or None if the file is damaged.
fn rewrite(bytes: &[u8], out: &mut RdbWriter<Vec<u8>>) -> Option<u64> {
    let mut reader = RdbReader::new(bytes, Path::new("fuzzed"), LIMITS).ok()?;
    let mut batch = Batch::new();
    let mut keys = 0;
    loop {
        let step = reader.next(&mut batch).ok()?;
        for index in 0..batch.len() {
            let value = batch.take(index, &LIMITS).ok()?;
            let (name, facts) = batch.key(index);
            let mut buffer = Vec::new();
            let slot = Slot::new(0, name, value.into_new(&mut buffer), None, 0);
            out.key(&facts, name, slot.entry()).expect("a vector takes all bytes");
            keys += 1;
        }
        if step == Step::End {
            return Some(keys);
        }
    }
}

/// Inserts all keys and returns their number.
fn insert(bytes: &[u8]) -> Result<u64, RdbError> {
    let local = Local::new(Protocol::Resp2);
    let mut inserter = Inserter::new(&local.keyspace, Turn::new(0, 1), LIMITS);
    let mut reader = RdbReader::new(bytes, Path::new("fuzzed"), LIMITS)?;
    let mut batch = Batch::new();
    let mut keys = 0;
    loop {
        let step = reader.next(&mut batch)?;
        let inserted = inserter.insert(&mut batch)?;
        keys += inserted.loaded + inserted.expired;
        if step == Step::End {
            local.keyspace.check_invariants();
            return Ok(keys);
        }
    }
}

fuzz_target!(|data: &[u8]| {
    // The header is fixed, so the fuzzer need not find it; a checksum of 0 is not verified.
    let bytes = [&b"REDIS0012"[..], data, b"\xFF\0\0\0\0\0\0\0\0"].concat();
    let new = || RdbWriter::new(Vec::new(), VERSION_MAX, true).expect("a vector takes all bytes");
    let mut first = new();
    let keys = rewrite(&bytes, &mut first);
    match insert(&bytes).map_err(|error| error.problem) {
        Ok(inserted) => assert_eq!(keys, Some(inserted), "all keys are inserted or have expired"),
        Err(RdbProblem::DuplicateKey(_) | RdbProblem::Database(_)) => {}
        Err(_) => assert_eq!(keys, None, "readable keys can be inserted"),
    }
    let Some(keys) = keys else { return };
    let (first, _) = first.finish().expect("a vector takes all bytes");
    let mut second = new();
    assert_eq!(rewrite(&first, &mut second), Some(keys), "written keys can be read");
    let (second, _) = second.finish().expect("a vector takes all bytes");
    assert_eq!(first.len(), second.len());
});
