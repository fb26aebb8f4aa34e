//! VREM.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vrem",
        summary: "Removes an element from a vector set; returns whether it existed.",
        since: "8.0.0",
        group: Group::VectorSet,
        complexity: "O(log N) for N elements; then O(M²) distances for M links of its node on another thread.",
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
    let mut key = call.keys.key(1);
    let is_mended_later = key.links_later();
    let mut must_notify = false;
    let removed = key.edit_value(Event::module("vrem"), |set: &mut VectorSet| {
        let removed = set.remove(name, is_mended_later);
        must_notify = removed && set.needs_linkers();
        set.keep_up();
        removed
    })?;
    if must_notify {
        key.request_linking();
    }
    call.reply.boolean(removed.unwrap_or(false));
    Ok(())
}
