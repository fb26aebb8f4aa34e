//! XACK.

use super::ids::ids;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::stream::Stream;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xack",
        summary: "Acknowledges entries of a consumer group; returns the number that was pending.",
        since: "5.0.0",
        group: Group::Stream,
        complexity: "O(log P) for each entry, where P are pending",
        arity: -4,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key group id [id ...]",
        example: Example {
            given: &[
                "XADD readings 1-1 a 1",
                "XGROUP CREATE readings workers 0",
                "XREADGROUP GROUP workers w1 STREAMS readings >",
            ],
            call: "XACK readings workers 1-1 2-1",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: xack },
)];

fn xack(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    call.keys.read_as(1, Lookup::NoTouch);
    if names_many(args)
        && let Some(stream) = call.keys.value::<Stream>(1)?
        && call.is_long_change(args.len() - 3, stream.len())
    {
        return Ok(Attempt::Offload);
    }
    let mut key = call.keys.key(1);
    if key.value::<Stream>()?.and_then(|stream| stream.groups().get(args.at(2))).is_none() {
        call.reply.integer(0);
        return Ok(Attempt::Done);
    }
    let ids = ids(args, 3)?;
    let acknowledged = key.edit_unobserved(|stream: &mut Stream| {
        stream.groups_mut().edit(args.at(2), |group| ids.iter().filter(|&&id| group.acknowledge(id)).count())
    })?;
    let acknowledged = acknowledged.flatten().unwrap_or(0);
    key.count_changes(acknowledged as u64);
    call.reply.integer(acknowledged as i64);
    Ok(Attempt::Done)
}
