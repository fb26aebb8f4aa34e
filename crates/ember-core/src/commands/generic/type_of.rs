//! TYPE.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "type",
        summary: "Returns the type of a key's value.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["SET hello world"], call: "TYPE hello", reply: "string" },
        values: Values::Unneeded,
        ..Spec::DEFAULT
    },
    Run::Keys(type_of),
)];

fn type_of(call: &mut Call<'_, '_>) -> CommandResult {
    let entry = call.keys.read_as(1, Lookup::NoTouch);
    call.reply.simple(entry.map_or("none", |entry| entry.value_type().name()));
    Ok(())
}
