//! SREM.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "srem",
        summary: "Removes members from a set, and the key with the last one; returns how many were there.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(N) for N members.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        elements: Some(ElementArgs::each(2, 1)),
        syntax: "key member [member ...]",
        history: &[("2.4.0", "Several members.")],
        example: Example {
            given: &["SADD tags rust cache fast"],
            call: "SREM tags cache slow",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(srem),
)];

fn srem(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let removed = call.keys.key(1).edit_value(Event::set("srem"), |set: &mut Set| {
        (2..args.len()).filter(|&arg| set.remove(args.at(arg))).count()
    })?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(())
}
