//! Any bytes are a vector filter or an error, in both languages. A compiled filter accepts any attributes.
#![no_main]

use emberkv_core::types::vector_set::{FieldPaths, Filter, FilterError};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: (&[u8], &[u8])| {
    let (filter, attributes) = data;
    for compiled in [Filter::compile(filter), Filter::compile_conditions(filter)] {
        match compiled {
            Ok(filter) => _ = filter.matches(attributes),
            Err(FilterError::Syntax(at)) => assert!(at <= filter.len()),
            Err(_) => {}
        }
    }
    if let Some(paths) = FieldPaths::new(vec![filter.into()]) {
        paths.texts(attributes);
    }
});
