//! Any bytes are an RDB file or an error; what is read is written and read again the same.
#![no_main]

use std::path::Path;

use ember_persistence::rdb_file::{Batch, RdbReader, RdbWriter, Step};
use emberkv_core::keyspace::entry::Slot;
use emberkv_core::rdb::VERSION_MAX;
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

fuzz_target!(|data: &[u8]| {
    // The header is given, so that the fuzzer need not find it; a checksum of 0 is none.
    let bytes = [&b"REDIS0012"[..], data, b"\xFF\0\0\0\0\0\0\0\0"].concat();
    let new = || RdbWriter::new(Vec::new(), VERSION_MAX, true).expect("a vector takes all bytes");
    let mut first = new();
    let Some(keys) = rewrite(&bytes, &mut first) else { return };
    let (first, _) = first.finish().expect("a vector takes all bytes");
    let mut second = new();
    assert_eq!(rewrite(&first, &mut second), Some(keys), "what was written is read");
    let (second, _) = second.finish().expect("a vector takes all bytes");
    assert_eq!(first.len(), second.len());
});
