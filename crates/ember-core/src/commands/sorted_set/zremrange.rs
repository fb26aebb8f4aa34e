//! ZREMRANGEBYRANK, ZREMRANGEBYSCORE and ZREMRANGEBYLEX.

use super::zrange::{By, lex_range, score_range};
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::sorted_set::SortedSet;

const TEMPLATE: Spec = Spec {
    group: Group::SortedSet,
    complexity: "O(log(N)+M), N being the number of members in the sorted set and M of those removed.",
    arity: 4,
    flags: Flags::WRITE,
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
    syntax: "key min max",
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "zremrangebyrank",
            summary: "Removes the members of a sorted set in a range of ranks.",
            since: "2.0.0",
            syntax: "key start stop",
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZREMRANGEBYRANK board 0 1",
                reply: "(integer) 2",
            },
            ..TEMPLATE
        },
        Run::Long(|call| {
            let by = By::Rank(integer(call.args, 2)?, integer(call.args, 3)?);
            remove(call, "zremrangebyrank", by)
        }),
    ),
    Command::new(
        Spec {
            name: "zremrangebyscore",
            summary: "Removes the members of a sorted set whose scores are in a range.",
            since: "1.2.0",
            example: Example {
                given: &["ZADD board 100 alice 85 bob 70 carol"],
                call: "ZREMRANGEBYSCORE board -inf (85",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Long(|call| {
            let by = By::Score(score_range(call.args, 2, 3)?);
            remove(call, "zremrangebyscore", by)
        }),
    ),
    Command::new(
        Spec {
            name: "zremrangebylex",
            summary: "Removes the members in a lexicographic range of a sorted set with equal scores.",
            since: "2.8.9",
            example: Example {
                given: &["ZADD words 0 apple 0 banana 0 cherry"],
                call: "ZREMRANGEBYLEX words - (banana",
                reply: "(integer) 1",
            },
            ..TEMPLATE
        },
        Run::Long(|call| {
            let by = By::Lex(lex_range(call.args, 2, 3)?);
            remove(call, "zremrangebylex", by)
        }),
    ),
];

fn remove(call: &mut Call<'_, '_>, event: &'static str, by: By<'_>) -> AttemptResult {
    if let Some(set) = call.keys.value::<SortedSet>(1)?
        && call.is_long_change(set.len(), set.len())
        && call.is_long_change(by.ranks(set, false).len(), set.len())
    {
        return Ok(Attempt::Offload);
    }
    let edit = |set: &mut SortedSet| {
        let ranks = by.ranks(set, false);
        let count = ranks.len();
        set.remove_range(ranks);
        count
    };
    let removed = call.keys.key(1).edit_value(Event::sorted_set(event), edit)?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(Attempt::Done)
}
