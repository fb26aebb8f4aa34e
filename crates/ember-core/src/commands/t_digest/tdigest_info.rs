//! TDIGEST.INFO.

use super::read;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "tdigest.info",
        summary: "Returns the properties of a t-digest.",
        since: "8.0.0",
        group: Group::TDigest,
        arity: 2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        // All nodes are merged when the value is saved, so a loaded copy has other nodes.
        tips: &["nondeterministic_output"],
        syntax: "key",
        example: Example {
            given: &["TDIGEST.CREATE latencies"],
            call: "TDIGEST.INFO latencies",
            reply: " 1) Compression\n 2) (integer) 100\n 3) Capacity\n 4) (integer) 610\n 5) Merged nodes\n 6) (integer) \
                    0\n 7) Unmerged nodes\n 8) (integer) 0\n 9) Merged weight\n10) (integer) 0\n11) Unmerged weight\n12) \
                    (integer) 0\n13) Observations\n14) (integer) 0\n15) Total compressions\n16) (integer) 0\n17) Memory \
                    usage\n18) (integer) 9768",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(tdigest_info),
)];

fn tdigest_info(call: &mut Call<'_, '_>) -> CommandResult {
    let digest = read(call)?;
    let (merged, unmerged) = digest.nodes();
    let (merged_weight, unmerged_weight) = digest.weights();
    let numbers = [
        ("Compression", digest.compression() as i64),
        ("Capacity", digest.capacity() as i64),
        ("Merged nodes", merged as i64),
        ("Unmerged nodes", unmerged as i64),
        ("Merged weight", merged_weight),
        ("Unmerged weight", unmerged_weight),
        ("Observations", merged_weight.saturating_add(unmerged_weight)),
        ("Total compressions", digest.compressions()),
        ("Memory usage", digest.reported_bytes() as i64),
    ];
    call.reply.map(numbers.len());
    for (name, number) in numbers {
        call.reply.simple(name);
        call.reply.integer(number);
    }
    Ok(())
}
