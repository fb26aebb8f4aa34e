//! ZSCAN.

use ember_protocol::Reply;

use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::cursor;
use crate::commands::element_scan::{
    FEW_ELEMENTS, ScanOptions, count_of, is_long, write_nothing, write_page,
};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "zscan",
        summary: "Returns some members of a sorted set with their scores, and a cursor to continue from.",
        since: "2.8.0",
        group: Group::SortedSet,
        complexity: "O(COUNT) for a call, O(N) for a whole iteration over N members.",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key cursor [MATCH pattern] [COUNT count] [NOSCORES]@8.0.0",
        history: &[("8.0.0", "Option `NOSCORES`, in Valkey.")],
        example: Example {
            given: &["ZADD board 100 alice"],
            call: "ZSCAN board 0",
            reply: "1) \"0\"\n2) 1) \"alice\"\n   2) \"100\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| count_of(args) > FEW_ELEMENTS, run: zscan },
)];

fn zscan(call: &mut Call<'_, '_>) -> AttemptResult {
    let cursor = cursor(call.args, 2)?;
    if is_long::<SortedSet>(call, count_of(call.args)) {
        return Ok(Attempt::Offload);
    }
    let mut members = Reply::new(call.reply.protocol());
    let Some(set) = call.keys.read_value::<SortedSet>(1)? else {
        write_nothing(call.reply);
        return Ok(Attempt::Done);
    };
    let (options, without_scores) = ScanOptions::parse_with(call.args, 3, Some("NOSCORES"))?;
    let mut count = 0;
    let next = set.scan(cursor, options.count, |member, score| {
        if options.accept(member) {
            // Scores are strings in this reply, under both protocols.
            members.bulk(member);
            count += 1;
            if !without_scores {
                members.bulk(score);
                count += 1;
            }
        }
    });
    write_page(call.reply, next, &members, count);
    Ok(Attempt::Done)
}
