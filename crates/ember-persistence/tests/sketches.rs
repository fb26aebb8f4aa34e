//! Sketches in RDB files, in both directions.
//!
//! `redis_stack/sketches.rdb` was written by Redis Stack 7.4.1 after these commands:
//!
//! ```text
//! BF.RESERVE bloom 0.1 2                  BF.MADD bloom a b c d e f           EXPIREAT bloom 33000000000
//! CF.RESERVE cuckoo 4 BUCKETSIZE 1        CF.INSERT cuckoo ITEMS a b c d e f
//! CMS.INITBYDIM counts 10 3               CMS.INCRBY counts a 5 b 7
//! TOPK.RESERVE top 3 10 3 0.9             TOPK.ADD top a b a c d
//! TDIGEST.CREATE digest COMPRESSION 5     TDIGEST.ADD digest 1 2 3 4 5 5 5 8 13 21
//! TDIGEST.CREATE single                   TDIGEST.ADD single 5                SAVE
//! ```

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::path::Path;
use std::sync::Arc;

use ember_persistence::files::{Disk, OsDisk};
use ember_persistence::rdb_file::{FILE_VERSION, RdbReader};
use ember_testkit::{Value, split_arguments};
use emberkv_core::local::Local;
use emberkv_core::types::limits::EncodingLimits;
use support::{load, run, save};

const SKETCHES: &[u8] = include_bytes!("redis_stack/sketches.rdb");

/// Reads of the sketches, with the replies of Redis Stack; the last one follows Redis 8, because Redis Stack replies `nan`.
const READS: [(&str, &str); 8] = [
    ("BF.MEXISTS bloom a b c x", "1 1 1 0"),
    ("BF.CARD bloom", "6"),
    ("EXPIRETIME bloom", "33000000000"),
    ("CF.MEXISTS cuckoo a b x", "1 1 0"),
    ("CMS.QUERY counts a b", "5 7"),
    ("TOPK.LIST top WITHCOUNT", "a 2 c 1 d 1"),
    ("TDIGEST.QUANTILE digest 0.5 0.9", "4.75 21"),
    ("TDIGEST.QUANTILE single 0.5", "5"),
];

fn read(bytes: &[u8]) -> Local {
    let mut reader = RdbReader::new(bytes, Path::new("test.rdb"), EncodingLimits::DEFAULT).unwrap();
    load(&mut reader, 0).unwrap().0
}

fn check(local: &mut Local) {
    for (line, expected) in READS {
        let words = split_arguments(line).unwrap();
        let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
        let reply = run(local, &words);
        let shown = |one: &Value| match one {
            Value::Integer(number) => number.to_string(),
            other => other.text(),
        };
        let parts: Vec<String> =
            reply.elements().map_or_else(|| vec![shown(&reply)], |all| all.iter().map(shown).collect());
        assert_eq!(parts.join(" "), expected, "{line}");
    }
    local.keyspace.check_invariants();
}

#[test]
fn sketches_of_redis_stack_are_loaded_and_saved() {
    let mut loaded = read(SKETCHES);
    check(&mut loaded);
    let directory = ember_testkit::Directory::new("sketches");
    let disk: Arc<dyn Disk> = Arc::new(OsDisk);
    let path = directory.0.join("again.rdb");
    save(&loaded, &disk, &path, FILE_VERSION);
    let bytes = std::fs::read(&path).unwrap();
    check(&mut read(&bytes));
    for len in 9..bytes.len() - 1 {
        let mut reader =
            RdbReader::new(&bytes[..len], Path::new("cut.rdb"), EncodingLimits::DEFAULT).unwrap();
        assert!(load(&mut reader, 0).is_err(), "{len}");
    }
}
