//! Scripts about hashes, run for each encoding.

use ember_protocol::Protocol;
use emberkv_core::types::limits::EncodingLimits;

use crate::support::script::{Script, check};

/// The limits that put every field of a hash into a table.
pub(crate) const TABLES: EncodingLimits =
    EncodingLimits { hash_max_listpack_entries: 0, ..EncodingLimits::DEFAULT };

/// Runs a script with the limits of the configuration, and with limits that put every field into a table. The encodings that
/// `ENTRY` shows are those of the first; the second must have tables in their place.
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
