//! Any bytes are a filter of vectors or an error, in both languages; what is compiled takes any attributes.
#![no_main]

use emberkv_core::types::vector_set::{Filter, field_text};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (&[u8], &[u8])| {
    let (filter, attributes) = data;
    for compiled in [Filter::compile(filter), Filter::compile_conditions(filter)] {
        match compiled {
            Ok(filter) => _ = filter.matches(attributes),
            Err(error) => assert!(error.0 <= filter.len()),
        }
    }
    field_text(attributes, filter);
});
