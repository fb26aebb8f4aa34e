//! VECTOR.DROP.

use super::NO_INDEX;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::vector_set::VectorSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "vector.drop",
        summary: "Removes an index with all its elements.",
        since: "0.1.0",
        group: Group::VectorSet,
        complexity: "O(1); memory is freed in the background.",
        arity: 2,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RM.union(KeyFlags::DELETE))],
        syntax: "index",
        example: Example { given: &["VECTOR.CREATE films DIM 2"], call: "VECTOR.DROP films", reply: "OK" },
        ..Spec::DEFAULT
    },
    Run::Keys(drop_index),
)];

fn drop_index(call: &mut Call<'_, '_>) -> CommandResult {
    let mut key = call.keys.key(1);
    key.value::<VectorSet>()?.ok_or(NO_INDEX)?;
    drop(key.remove());
    key.notify(Event::DEL);
    key.journal_removal();
    call.reply.ok();
    Ok(())
}
