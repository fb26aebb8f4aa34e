//! ZCARD.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "zcard",
        summary: "Returns the number of members of a sorted set.",
        since: "1.2.0",
        group: Group::SortedSet,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["ZADD board 100 alice 85 bob"],
            call: "ZCARD board",
            reply: "(integer) 2",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(zcard),
)];

fn zcard(call: &mut Call<'_, '_>) -> CommandResult {
    let len = call.keys.read_value::<SortedSet>(1)?.map_or(0, Collection::len);
    call.reply.integer(len as i64);
    Ok(())
}
