//! ZRANK and ZREVRANK.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::is_word;
use crate::error::CommandError;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

const ZRANK: Spec = Spec {
    name: "zrank",
    summary: "Returns the rank of a member in a sorted set, 0 for the lowest score.",
    since: "2.0.0",
    group: Group::SortedSet,
    complexity: "O(log(N)), N being the number of members in the sorted set.",
    arity: -3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    elements: Some(ElementArgs::one(2)),
    syntax: "key member [WITHSCORE]@7.2.0",
    history: &[("7.2.0", "`WITHSCORE` came.")],
    example: Example {
        given: &["ZADD board 100 alice 85 bob"],
        call: "ZRANK board alice",
        reply: "(integer) 1",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(ZRANK, Run::Keys(|call| rank(call, false))),
    Command::new(
        Spec {
            name: "zrevrank",
            summary: "Returns the rank of a member in a sorted set, 0 for the highest score.",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZREVRANK board alice",
                reply: "(integer) 0",
            },
            ..ZRANK
        },
        Run::Keys(|call| rank(call, true)),
    ),
];

fn rank(call: &mut Call<'_, '_>, is_reverse: bool) -> CommandResult {
    let args = call.args;
    if args.len() > 4 {
        return Err(CommandError::WrongArity(if is_reverse { "zrevrank" } else { "zrank" }.into()));
    }
    let with_score = args.len() == 4;
    if with_score && !is_word(args, 3, "WITHSCORE") {
        return Err(CommandError::Syntax);
    }
    let set = call.keys.read_value::<SortedSet>(1)?;
    let found = set.and_then(|set| {
        let (rank, score) = set.rank(args.at(2))?;
        Some((if is_reverse { set.len() - 1 - rank } else { rank }, score))
    });
    match found {
        None if with_score => call.reply.null_array(),
        None => call.reply.null(),
        Some((rank, _)) if !with_score => call.reply.integer(rank as i64),
        Some((rank, score)) => {
            call.reply.array(2);
            call.reply.integer(rank as i64);
            call.reply.double(score);
        }
    }
    Ok(())
}
