//! SREM.

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "srem",
        summary: "Removes members from a set, and the key with the last one; returns the number of removed members.",
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
    Run::KeysOrLong { long_if: names_many, run: srem },
)];

fn srem(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if names_many(args)
        && let Some(set) = call.keys.value::<Set>(1)?
        && call.is_long_change(args.len() - 2, set.len())
    {
        return Ok(Attempt::Offload);
    }
    let removed = call.keys.key(1).edit_value(Event::set("srem"), |set: &mut Set| {
        (2..args.len()).filter(|&arg| set.remove(args.at(arg))).count()
    })?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(Attempt::Done)
}
