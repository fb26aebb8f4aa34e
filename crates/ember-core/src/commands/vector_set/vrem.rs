//! VREM.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vrem",
        summary: "Removes an element from a vector set; returns whether it was there.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(M²) distances for M links of its node, and O(log N) for N elements.",
        arity: 3,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key element",
        example: Example {
            given: &["VADD points VALUES 2 1.0 1.0 pt:A"],
            call: "VREM points pt:A",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(vrem),
)];

fn vrem(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    let removed =
        call.keys.key(1).edit_value(Event::module("vrem"), |set: &mut VectorSet| set.remove(name))?;
    call.reply.boolean(removed.unwrap_or(false));
    Ok(())
}
