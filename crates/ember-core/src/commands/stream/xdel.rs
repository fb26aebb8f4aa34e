//! XDEL.

use super::ids::ids;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::Stream;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xdel",
        summary: "Deletes entries of a stream; returns the number of deleted entries.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "O(1) for each entry, whatever the length of the stream",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key id [id ...]",
        example: Example {
            given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2"],
            call: "XDEL readings 1-1 3-1",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: xdel },
)];

fn xdel(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if names_many(args)
        && let Some(stream) = call.keys.value::<Stream>(1)?
        && call.is_long_change(args.len() - 2, stream.len())
    {
        return Ok(Attempt::Offload);
    }
    let mut key = call.keys.key(1);
    if key.value::<Stream>()?.is_none() {
        call.reply.integer(0);
        return Ok(Attempt::Done);
    }
    let ids = ids(args, 2)?;
    let deleted = key.edit_value(Event::stream("xdel"), |stream: &mut Stream| {
        ids.iter().filter(|&&id| stream.log_mut().delete(id)).count() as i64
    })?;
    let deleted = deleted.unwrap_or(0);
    key.count_changes((deleted - 1).max(0) as u64);
    call.reply.integer(deleted);
    Ok(Attempt::Done)
}
