//! ZREM.

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::names_many;
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "zrem",
        summary: "Removes members from a sorted set, and the key with the last one.",
        since: "1.2.0",
        group: Group::SortedSet,
        complexity: "O(M*log(N)), N being the number of members in the sorted set and M of those to remove.",
        arity: -3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        elements: Some(ElementArgs::each(2, 1)),
        syntax: "key member [member ...]",
        history: &[("2.4.0", "Takes several members.")],
        example: Example {
            given: &["ZADD board 100 alice 85 bob"],
            call: "ZREM board alice carol",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: names_many, run: zrem },
)];

fn zrem(call: &mut Call<'_, '_>) -> AttemptResult {
    let args = call.args;
    if names_many(args)
        && let Some(set) = call.keys.value::<SortedSet>(1)?
        && call.is_long_change(args.len() - 2, set.len())
    {
        return Ok(Attempt::Offload);
    }
    let edit =
        |set: &mut SortedSet| (2..args.len()).filter(|&arg| set.remove(args.at(arg)).is_some()).count();
    let removed = call.keys.key(1).edit_value(Event::sorted_set("zrem"), edit)?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(Attempt::Done)
}
