//! ZSCORE and ZMSCORE.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sorted_set::SortedSet;

const ZSCORE: Spec = Spec {
    name: "zscore",
    summary: "Returns the score of a member of a sorted set.",
    since: "1.2.0",
    group: Group::SortedSet,
    arity: 3,
    flags: Flags::READONLY.union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    elements: Some(ElementArgs::one(2)),
    syntax: "key member",
    example: Example { given: &["ZADD board 100 alice"], call: "ZSCORE board alice", reply: "\"100\"" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(ZSCORE, Run::Keys(zscore)),
    Command::new(
        Spec {
            name: "zmscore",
            summary: "Returns the scores of several members of a sorted set.",
            since: "6.2.0",
            complexity: "O(N), N being the number of given members.",
            arity: -3,
            syntax: "key member [member ...]",
            example: Example {
                given: &["ZADD board 100 alice 85 bob"],
                call: "ZMSCORE board bob carol",
                reply: "1) \"85\"\n2) (nil)",
            },
            elements: Some(ElementArgs::each(2, 1)),
            ..ZSCORE
        },
        Run::Keys(zmscore),
    ),
];

fn zscore(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<SortedSet>(1)?;
    match set.and_then(|set| set.score(call.args.at(2))) {
        Some(score) => call.reply.double(score),
        None => call.reply.null(),
    }
    Ok(())
}

fn zmscore(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<SortedSet>(1)?;
    call.reply.array(call.args.len() - 2);
    for arg in 2..call.args.len() {
        match set.and_then(|set| set.score(call.args.at(arg))) {
            Some(score) => call.reply.double(score),
            None => call.reply.null(),
        }
    }
    Ok(())
}
