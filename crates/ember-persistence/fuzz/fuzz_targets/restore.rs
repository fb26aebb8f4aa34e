//! Any bytes are the payload of RESTORE or an error. Restored values can be dumped and restored again.
#![no_main]

use emberkv_core::keyspace::entry::Slot;
use emberkv_core::rdb::{Kind, PayloadChecks, Reader, VALKEY_VERSION, VERSION_MAX, dump, read_value, restore};
use emberkv_core::types::limits::EncodingLimits;
use libfuzzer_sys::fuzz_target;

const LIMITS: EncodingLimits = EncodingLimits::DEFAULT;

fuzz_target!(|data: &[u8]| {
    assert!(restore(data, &LIMITS, PayloadChecks::ALL).is_err() || data.len() > 10);
    // The value is read without a checksum, which the fuzzer cannot find.
    let Some((&kind, value)) = data.split_first() else { return };
    let Some(kind) = Kind::from_byte(kind) else { return };
    let Ok(value) = read_value(&mut Reader::new(value), kind, &LIMITS) else { return };
    let mut buffer = Vec::new();
    let slot = Slot::new(0, b"key", value.into_new(&mut buffer), None, 0);
    for version in [VERSION_MAX, VALKEY_VERSION] {
        let payload = dump(slot.entry(), version);
        restore(&payload, &LIMITS, PayloadChecks::ALL).expect("dumped values can be restored");
    }
});
