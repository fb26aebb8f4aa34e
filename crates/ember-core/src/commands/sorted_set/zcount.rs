//! ZCOUNT and ZLEXCOUNT.

use super::zrange::{lex_range, score_range};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sorted_set::SortedSet;

const ZCOUNT: Spec = Spec {
    name: "zcount",
    summary: "Returns the number of members of a sorted set with scores in a range.",
    since: "2.0.0",
    group: Group::SortedSet,
    complexity: "O(log(N)), N being the number of members in the sorted set.",
    arity: 4,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key min max",
    example: Example {
        given: &["ZADD board 100 alice 85 bob 70 carol"],
        call: "ZCOUNT board (70 +inf",
        reply: "(integer) 2",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(ZCOUNT, Run::Keys(zcount)),
    Command::new(
        Spec {
            name: "zlexcount",
            summary: "Returns the number of members in a lexicographic range of a sorted set with equal scores.",
            since: "2.8.9",
            example: Example {
                given: &["ZADD words 0 apple 0 banana 0 cherry"],
                call: "ZLEXCOUNT words [b +",
                reply: "(integer) 2",
            },
            ..ZCOUNT
        },
        Run::Keys(zlexcount),
    ),
];

fn zcount(call: &mut Call<'_, '_>) -> CommandResult {
    let range = score_range(call.args, 2, 3)?;
    let set = call.keys.read_value::<SortedSet>(1)?;
    let count = set.map_or(0, |set| set.score_range(&range).len());
    call.reply.integer(count as i64);
    Ok(())
}

fn zlexcount(call: &mut Call<'_, '_>) -> CommandResult {
    let range = lex_range(call.args, 2, 3)?;
    let set = call.keys.read_value::<SortedSet>(1)?;
    let count = set.map_or(0, |set| set.lex_range(&range, false).len());
    call.reply.integer(count as i64);
    Ok(())
}
