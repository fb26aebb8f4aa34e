//! A text parses as an integer only if it is the canonical form of that integer, and writing a parsed double and
//! parsing it again results in the same double.
#![no_main]

use ember_protocol::number::{parse_f64, parse_i64, parse_u64, write_f64, write_i64, write_u64};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let mut out = Vec::new();
    if let Some(number) = parse_i64(data) {
        write_i64(&mut out, number);
        assert_eq!(out, data);
    }
    out.clear();
    if let Some(number) = parse_u64(data) {
        write_u64(&mut out, number);
        assert_eq!(out, data);
    }
    out.clear();
    if let Some(number) = parse_f64(data) {
        write_f64(&mut out, number);
        assert_eq!(parse_f64(&out), Some(number));
    }
});
