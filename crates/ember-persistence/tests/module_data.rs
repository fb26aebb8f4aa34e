//! RDB files of Redis Stack: auxiliary blocks of modules, and values of modules that are unknown here.
//!
//! `redis_stack/indexed.rdb` was written by Redis Stack 7.4.1 after these commands:
//!
//! ```text
//! SET greeting hello                             TS.CREATE temperature LABELS room 1
//! TS.ADD temperature 1000 20.5                   FT.CREATE books ON HASH PREFIX 1 book: SCHEMA title TEXT
//! HSET book:1 title dune                         SAVE
//! ```

#![allow(clippy::unwrap_used, reason = "a test")]

mod support;

use std::path::Path;

use ember_persistence::rdb_file::{RdbError, RdbProblem, RdbReader, SkippedData, Step};
use ember_testkit::Value as Reply;
use emberkv_core::local::Local;
use emberkv_core::types::limits::EncodingLimits;
use support::{load, run};

const INDEXED: &[u8] = include_bytes!("redis_stack/indexed.rdb");

/// The auxiliary blocks of a file of Redis Stack 7.4.1 without data.
const EMPTY_BLOCKS: &[u8] = b"\xf7\x81\xb1\xc7\x6d\xca\x97\xb4\xd0\x01\x02\x01\x00\
    \xf7\x81\x7e\xdf\xe2\x9d\xd7\xb1\xd0\x17\x02\x01\x02\x00\x00\
    \xf7\x81\xb1\xc7\x6d\xca\x97\xb4\xd0\x01\x02\x02\x02\x00\x00";

/// The number of a nonexistent module.
const UNKNOWN: &[u8] = b"\x81\x9a\x2b\xc3\xd4\xe5\xf6\x00\x01";

fn read(bytes: &[u8], skips_unknown: bool) -> Result<(Local, Vec<Step>), RdbError> {
    let mut reader = RdbReader::new(bytes, Path::new("test.rdb"), EncodingLimits::DEFAULT)?;
    reader.skip_unknown_modules(skips_unknown);
    load(&mut reader, 0)
}

/// Returns an RDB file with `body`, without a checksum.
fn file(body: &[u8]) -> Vec<u8> {
    [b"REDIS0011", body, b"\xFF\0\0\0\0\0\0\0\0"].concat()
}

fn skipped(steps: &[Step]) -> Vec<SkippedData> {
    let of = |step: &Step| if let Step::Skipped(data) = step { Some(data.clone()) } else { None };
    steps.iter().filter_map(of).collect()
}

fn data(module: &str, keys: u64, blocks: u64) -> SkippedData {
    SkippedData { module: module.to_owned(), keys, blocks }
}

#[test]
fn auxiliary_blocks_without_contents_are_skipped_silently() {
    let (mut local, steps) = read(&file(&[EMPTY_BLOCKS, b"\xFE\0\0\x01k\x01v"].concat()), false).unwrap();
    assert_eq!(steps, []);
    assert_eq!(run(&mut local, &[b"GET", b"k"]).text(), "v");
}

#[test]
fn a_file_with_an_index_and_unknown_values_loads_without_them_if_they_are_skipped() {
    let refused = read(INDEXED, false).err().unwrap();
    assert!(matches!(&refused.problem, RdbProblem::Module(name) if name == "TSDB-TYPE"), "{refused}");
    assert!(refused.to_string().contains("rdb-skip-unknown-modules"), "{refused}");
    let (mut local, steps) = read(INDEXED, true).unwrap();
    assert_eq!(skipped(&steps), [data("TSDB-TYPE", 1, 0), data("ft_index0", 0, 1)]);
    assert_eq!(run(&mut local, &[b"GET", b"greeting"]).text(), "hello");
    assert_eq!(run(&mut local, &[b"HGET", b"book:1", b"title"]).text(), "dune");
    assert_eq!(run(&mut local, &[b"DBSIZE"]), Reply::Integer(2));
}

#[test]
fn every_type_of_part_is_skipped() {
    let parts = [
        &b"\x01\x05"[..],
        b"\x02\x81\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x03abcd",
        b"\x04abcdefgh",
        b"\x05\x03abc",
        b"\x05\xC0\x01",
        b"\x05\xC1\x01\x02",
        b"\x05\xC2\x01\x02\x03\x04",
        b"\x05\xC3\x02\x03\x01a",
        b"\x00",
    ]
    .concat();
    let body =
        [b"\xFE\0\x07\x01m", UNKNOWN, &parts, b"\0\x01k\x01v\xF7", UNKNOWN, b"\x02\x02", &parts].concat();
    let whole = file(&body);
    let (_, steps) = read(&whole, true).unwrap();
    assert_eq!(skipped(&steps), [data("mivD1OX2A", 1, 1)]);
    for len in 9..whole.len() - 1 {
        let problem = read(&whole[..len], true).err().unwrap().problem;
        assert!(matches!(problem, RdbProblem::Truncated), "{len}: {problem:?}");
    }
    for part in [&b"\x06"[..], b"\x05\xC4", b"\xC0\x01"] {
        let body = [b"\xFE\0\x07\x01m", UNKNOWN, part, b"\0"].concat();
        assert!(matches!(read(&file(&body), true).err().unwrap().problem, RdbProblem::Corrupt(_)));
    }
    // Values of the oldest form consist of bytes that only the module can interpret.
    let body = [b"\xFE\0\x06\x01m", UNKNOWN, b"\0"].concat();
    assert!(matches!(read(&file(&body), true).err().unwrap().problem, RdbProblem::Module(_)));
    // Records of tiers have kinds that no file has.
    assert!(matches!(
        read(&file(b"\xFE\0\x40\x01m\x00"), true).err().unwrap().problem,
        RdbProblem::UnknownKind(64)
    ));
}
