//! ZRANDMEMBER.

use super::reply;
use crate::call::{Attempt, AttemptResult, Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{integer, is_large_count, is_word};
use crate::commands::drawn_reply;
use crate::error::CommandError;
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "zrandmember",
        summary: "Returns one or several members of a sorted set, chosen at random.",
        since: "6.2.0",
        group: Group::SortedSet,
        complexity: "O(N), N being the number of members returned.",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output"],
        syntax: "key options:[count [WITHSCORES]]",
        example: Example {
            given: &["ZADD board 100 alice"],
            call: "ZRANDMEMBER board 5 WITHSCORES",
            reply: "1) \"alice\"\n2) \"100\"",
        },
        ..Spec::DEFAULT
    },
    Run::KeysOrLong { long_if: |args| is_large_count(args, 2), run: zrandmember },
)];

/// The limit of the count, in either direction. The limit is Redis's: beyond it the length of Redis's reply would
/// overflow.
const COUNT_MAX: i64 = i64::MAX / 2;

fn zrandmember(call: &mut Call<'_, '_>) -> AttemptResult {
    let (args, steps_max) = (call.args, call.steps_max());
    if args.len() == 2 {
        return one(call).map(|()| Attempt::Done);
    }
    let count = integer(args, 2)?;
    if count == i64::MIN {
        return Err(
            "ERR value is out of range, value must between -9223372036854775807 and 9223372036854775807"
                .into(),
        );
    }
    let with_scores = args.len() > 3;
    if args.len() > 4 || (with_scores && !is_word(args, 3, "WITHSCORES")) {
        return Err(CommandError::Syntax);
    }
    if with_scores && !(-COUNT_MAX..=COUNT_MAX).contains(&count) {
        return Err("ERR value is out of range".into());
    }
    call.keys.read_as(1, Lookup::Use);
    let draws = usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX);
    let len = call.keys.value::<SortedSet>(1)?.map_or(0, SortedSet::len);
    if (if count < 0 && len > 0 { draws } else { draws.min(len) }) > steps_max {
        return Ok(Attempt::Offload);
    }
    let bytes_max = call.keys.turn.settings.string_bytes_max;
    let mut random = call.keys.turn.random.clone();
    let reply = &mut *call.reply;
    match call.keys.value::<SortedSet>(1)? {
        None => reply.array(0),
        Some(set) if count >= 0 => {
            let ranks = set.random_ranks(count as usize, &mut random);
            reply::members_head(reply, ranks.len(), with_scores);
            for rank in ranks {
                for (member, score) in set.iter(rank..rank + 1) {
                    reply::element(reply, member, score, with_scores);
                }
            }
        }
        Some(set) => {
            let count = count.unsigned_abs();
            drawn_reply::bounded(reply, count, bytes_max, |reply, bound| {
                reply::members_head(reply, count as usize, with_scores);
                for (member, score) in (0..count).map_while(|_| set.random(&mut random)) {
                    reply::element(reply, member, score, with_scores);
                    if !bound.holds(reply) {
                        break;
                    }
                }
            })?;
        }
    }
    call.keys.turn.random = random;
    Ok(Attempt::Done)
}

fn one(call: &mut Call<'_, '_>) -> CommandResult {
    call.keys.read_as(1, Lookup::Use);
    let mut random = call.keys.turn.random.clone();
    match call.keys.value::<SortedSet>(1)?.and_then(|set| set.random(&mut random)) {
        Some((member, _)) => reply::member(call.reply, member),
        None => call.reply.null(),
    }
    call.keys.turn.random = random;
    Ok(())
}
