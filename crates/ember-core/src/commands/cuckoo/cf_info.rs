//! CF.INFO.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::sketch::NOT_FOUND;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sketches::Cuckoo;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "cf.info",
        summary: "Returns the properties of a cuckoo filter.",
        since: "8.0.0",
        group: Group::Cuckoo,
        complexity: "O(T) for T tables.",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["CF.RESERVE seen 1000"],
            call: "CF.INFO seen",
            reply: " 1) Size\n 2) (integer) 1080\n 3) Number of buckets\n 4) (integer) 512\n 5) Number of filters\n \
                    6) (integer) 1\n 7) Number of items inserted\n 8) (integer) 0\n 9) Number of items deleted\n10) \
                    (integer) 0\n11) Bucket size\n12) (integer) 2\n13) Expansion rate\n14) (integer) 1\n15) Max \
                    iterations\n16) (integer) 20",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(cf_info),
)];

fn cf_info(call: &mut Call<'_, '_>) -> CommandResult {
    let filter = call.keys.read_value::<Cuckoo>(1)?.ok_or(NOT_FOUND)?;
    let facts = filter.facts();
    let numbers = [
        ("Size", filter.reported_bytes()),
        ("Number of buckets", facts.buckets),
        ("Number of filters", filter.tables().len() as u64),
        ("Number of items inserted", facts.items),
        ("Number of items deleted", facts.deletes),
        ("Bucket size", facts.bucket_size.into()),
        ("Expansion rate", facts.expansion.into()),
        ("Max iterations", facts.iterations.into()),
    ];
    call.reply.map(numbers.len());
    for (name, number) in numbers {
        call.reply.simple(name);
        call.reply.integer(number.cast_signed());
    }
    Ok(())
}
