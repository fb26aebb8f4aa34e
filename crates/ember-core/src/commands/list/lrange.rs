//! LRANGE.

use super::ends::range;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::List;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lrange",
        summary: "Returns the elements of a list between two positions.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(S+N), S being the number of elements, or of nodes of a large list, from the nearer end to the \
            start, N that of elements returned",
        arity: 4,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key start stop",
        example: Example {
            given: &["RPUSH letters a b c"],
            call: "LRANGE letters 0 1",
            reply: "1) \"a\"\n2) \"b\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(lrange),
)];

fn lrange(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let Call { args, keys, reply, .. } = call;
    let (start, stop) = (integer(*args, 2)?, integer(*args, 3)?);
    let Some(list) = keys.read_value::<List>(1)? else {
        reply.array(0);
        return Ok(Attempt::Done);
    };
    let range = range(start, stop, list.len());
    if range.len() > steps_max {
        return Ok(Attempt::Offload);
    }
    reply.array(range.len());
    list.visit(range, |element| element.write(reply));
    Ok(Attempt::Done)
}
