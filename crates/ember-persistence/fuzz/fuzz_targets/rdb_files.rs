//! Any bytes are an RDB file or an error; what is read is written and read again the same, and can be inserted unless a key
//! is there twice.
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

/// Reads all keys and writes them; how many there were, or None if the file is damaged.
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

/// Inserts all keys; how many there were.
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
    // The header is given, so that the fuzzer need not find it; a checksum of 0 is none.
    let bytes = [&b"REDIS0012"[..], data, b"\xFF\0\0\0\0\0\0\0\0"].concat();
    let new = || RdbWriter::new(Vec::new(), VERSION_MAX, true).expect("a vector takes all bytes");
    let mut first = new();
    let keys = rewrite(&bytes, &mut first);
    match insert(&bytes).map_err(|error| error.problem) {
        Ok(inserted) => assert_eq!(keys, Some(inserted), "all keys are inserted or have expired"),
        Err(RdbProblem::DuplicateKey(_) | RdbProblem::Database(_)) => {}
        Err(_) => assert_eq!(keys, None, "what can be read can be inserted"),
    }
    let Some(keys) = keys else { return };
    let (first, _) = first.finish().expect("a vector takes all bytes");
    let mut second = new();
    assert_eq!(rewrite(&first, &mut second), Some(keys), "what was written is read");
    let (second, _) = second.finish().expect("a vector takes all bytes");
    assert_eq!(first.len(), second.len());
});
