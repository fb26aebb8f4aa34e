//! VISMEMBER.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vismember",
        summary: "Returns whether a vector set contains an element.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(log N) for N elements.",
        arity: 3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key element",
        example: Example {
            given: &["VADD points VALUES 2 1.0 1.0 pt:A"],
            call: "VISMEMBER points pt:A",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(vismember),
)];

fn vismember(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    let found = call.keys.read_value::<VectorSet>(1)?.and_then(|set| set.find(name));
    call.reply.boolean(found.is_some());
    Ok(())
}
