//! LREM.

use std::ops::ControlFlow;

use super::ends::limit;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::{End, List, Needle};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lrem",
        summary: "Removes elements of a list that are equal to a given one.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(N), N being the number of elements of the list",
        arity: 4,
        flags: Flags::WRITE,
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::DELETE))],
        syntax: "key count element",
        example: Example {
            given: &["RPUSH words no yes no no"],
            call: "LREM words -2 no",
            reply: "(integer) 2",
        },
        ..Spec::DEFAULT
    },
    Run::Long(lrem),
)];

fn lrem(call: &mut Call<'_, '_>) -> AttemptResult {
    let limit = limit(call.keys.turn);
    let count = integer(call.args, 2)?;
    let needle = Needle::new(call.args.at(3));
    let from = if count < 0 { End::Back } else { End::Front };
    let count =
        if count == 0 { usize::MAX } else { usize::try_from(count.unsigned_abs()).unwrap_or(usize::MAX) };
    if let Some(list) = call.keys.value::<List>(1)?
        && call.is_long_change(list.len(), list.len())
        && !ends_soon(list, &needle, from, count, call.steps_max())
    {
        return Ok(Attempt::Offload);
    }
    let removed = call.keys.key(1).edit_value(Event::list("lrem"), |list: &mut List| {
        list.remove_matching(&needle, from, count, limit)
    })?;
    call.reply.integer(removed.unwrap_or(0) as i64);
    Ok(Attempt::Done)
}

/// Returns whether the first `steps_max` elements of a list, counted from end `from`, contain `count` elements that
/// equal the needle.
fn ends_soon(list: &List, needle: &Needle<'_>, from: End, count: usize, steps_max: usize) -> bool {
    let mut left = count;
    if count <= steps_max {
        list.find(needle, from, steps_max, |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }
    left == 0
}
