//! Decoding arbitrary bytes as a row of a store returns an error, or a value that encodes and decodes to itself.

#![no_main]

use ember_storage::stores::{Facts, Position};
use libfuzzer_sys::fuzz_target;

/// The input is the length of a row's name, the name and the row. The row is also decoded as a position.
fuzz_target!(|input: &[u8]| {
    let Some((&len, rest)) = input.split_first() else { return };
    let (name, row) = rest.split_at(rest.len().min(usize::from(len)));
    if let Ok(facts) = Facts::decode(name, row) {
        let mut again = Vec::new();
        facts.encode(name, &mut again);
        assert_eq!(Facts::decode(name, &again).expect("the row encodes facts"), facts);
    }
    if let Some(position) = Position::decode(row) {
        assert!(position.encode() == row);
    }
});
