//! VECTOR.DEL.

use super::NO_INDEX;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.del",
        summary: "Removes elements from an index; returns the number of removed elements.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(log N) for N elements, for each; then O(M²) distances for M links on another thread.",
        arity: -3,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "index id [id ...]",
        example: Example {
            given: &["VECTOR.CREATE films DIM 2", "VECTOR.ADD films alien [0.9,0.1]"],
            call: "VECTOR.DEL films alien brazil",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(del),
)];

fn del(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let mut key = call.keys.key(1);
    let is_mended_later = key.links_later();
    let mut must_notify = false;
    let removed = key.edit_value(Event::module("vector.del"), |set: &mut VectorSet| {
        let removed = (2..args.len()).filter(|&arg| set.remove(args.at(arg), is_mended_later)).count();
        must_notify = removed > 0 && set.dead() > 0;
        set.keep_up();
        removed
    })?;
    if must_notify {
        key.request_linking();
    }
    call.reply.integer(removed.ok_or(NO_INDEX)? as i64);
    Ok(())
}
