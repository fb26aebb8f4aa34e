//! What a checkpoint says beside the rows of a store: notes are read as they are written, and nothing else is read as notes.

#![no_main]

use ember_persistence::log_of_store::Notes;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    if let Some(notes) = Notes::decode(input) {
        assert_eq!(notes.encode(), input);
    }
});
