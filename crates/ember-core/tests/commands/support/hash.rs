//! Scripts that test hashes, run for each encoding.

use ember_protocol::Protocol;
use emberkv_core::types::limits::EncodingLimits;

use crate::support::script::{Script, check};

/// Limits with which every hash is a hash table.
pub(crate) const TABLES: EncodingLimits =
    EncodingLimits { hash_max_listpack_entries: 0, ..EncodingLimits::DEFAULT };

/// Runs a script with the configured limits, and with limits with which every hash is a hash table. The encodings that
/// `ENTRY` expects are those of the first run; in the second run, the encoding must be that of a hash table instead.
pub(crate) fn check_encodings(steps: &[(&str, &str)]) {
    check(steps);
    for protocol in [Protocol::Resp2, Protocol::Resp3] {
        let mut script = Script::new(protocol);
        script.local.turn.settings.encoding = TABLES;
        for (line, expected) in steps {
            let expected = match line.starts_with("ENTRY") {
                true => expected.replace("listpackex", "hashtable").replace("listpack", "hashtable"),
                false => (*expected).to_string(),
            };
            assert_eq!(script.step(line), expected, "{line} in {protocol:?} in a table");
        }
        script.local.keyspace.check_invariants();
    }
}
