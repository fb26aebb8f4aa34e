//! The notes that a checkpoint adds to the rows of a store: only bytes that encode notes are decoded as notes.

#![no_main]

use ember_persistence::log_of_store::Notes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(notes) = Notes::decode(input) {
        assert_eq!(notes.encode(), input);
    }
});
