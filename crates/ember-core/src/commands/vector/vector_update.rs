//! VECTOR.UPDATE.

use super::NO_INDEX;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.update",
        summary: "Sets the payload of an element of an index; returns 1 if the element exists.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(log N) for N elements.",
        arity: -4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "index id payload:<keyword:PAYLOAD json | json>",
        example: Example {
            given: &["VECTOR.CREATE films DIM 2", "VECTOR.ADD films alien [0.9,0.1]"],
            call: "VECTOR.UPDATE films alien PAYLOAD '{\"year\":1979}'",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(update),
)];

fn update(call: &mut Call<'_, '_>) -> CommandResult {
    let args = call.args;
    let payload = match args.len() {
        4 => args.at(3),
        5 if is_word(args, 3, "PAYLOAD") => args.at(4),
        _ => return Err(CommandError::Syntax),
    };
    let mut key = call.keys.key(1);
    let is_there = key.edit_value(Event::module("vector.update"), |set: &mut VectorSet| {
        let slot = set.find(args.at(2))?;
        set.set_attributes(slot, payload);
        Some(())
    })?;
    let is_there = is_there.ok_or(NO_INDEX)?.is_some();
    if is_there {
        key.journal("VECTOR.UPDATE", |words| _ = words.word(args.at(2)).word(b"PAYLOAD").word(payload));
    }
    call.reply.integer(i64::from(is_there));
    Ok(())
}
