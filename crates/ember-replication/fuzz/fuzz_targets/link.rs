//! Answers of a primary before its stream. The target `rdb_files` of ember-persistence fuzzes the reader of the RDB
//! file that follows, and `requests` of ember-protocol fuzzes the parser of commands.

#![no_main]

use ember_replication::answers::{Answer, CopyEnd};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: (Vec<u8>, bool)| {
    let (line, holds_data) = input;
    match Answer::parse(&line, holds_data) {
        Some(Answer::Continue(id)) => assert!(holds_data && id.is_none_or(|id| id.len() == 40)),
        Some(Answer::Copy { id, offset }) => assert!(id.len() == 40 && offset <= 1 << 62),
        None => {}
    }
    if let Some(CopyEnd::Mark(mark)) = CopyEnd::parse(&line) {
        assert!(line.ends_with(&mark));
    }
});
