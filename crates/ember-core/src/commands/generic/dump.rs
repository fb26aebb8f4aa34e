//! DUMP.

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::rdb;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Aggregate;

/// The approximate number of bytes of a value that are written in one step of a call: they are encoded, copied, and
/// read again for the checksum.
const BYTES_PER_STEP: usize = 64;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "dump",
        summary: "Returns the value of a key in the binary form that RESTORE takes.",
        since: "2.6.0",
        group: Group::Generic,
        complexity: "O(N) for a value of N bytes.",
        arity: 2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key",
        example: Example {
            given: &["SET number 10"],
            call: "DUMP number",
            reply: "\"\\x00\\xc0\\n\\x06\\x00\\xf8r?\\xc5\\xfb\\xfb_(\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(dump),
)];

/// Returns the number of steps needed to encode or copy a value.
pub(super) fn steps(value: &Aggregate) -> usize {
    value.len().max(value.footprint_bytes() / BYTES_PER_STEP)
}

fn dump(call: &mut Call<'_, '_>) -> AttemptResult {
    let (steps_max, payload_version) = (call.steps_max(), call.keys.turn.settings.payload_version);
    match call.keys.read(1) {
        Some(entry) if entry.aggregate().is_some_and(|value| steps(value) > steps_max) => {
            return Ok(Attempt::Offload);
        }
        Some(entry) => call.reply.bulk(&rdb::dump(entry, payload_version)),
        None => call.reply.null(),
    }
    Ok(Attempt::Done)
}
