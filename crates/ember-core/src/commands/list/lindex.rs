//! LINDEX.

use super::ends::position;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::List;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "lindex",
        summary: "Returns an element of a list by its position.",
        since: "1.0.0",
        group: Group::List,
        complexity: "O(N), N being the number of elements, or of nodes of a large list, to the nearer end",
        arity: 3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key index",
        example: Example { given: &["RPUSH letters a b c"], call: "LINDEX letters -1", reply: "\"c\"" },
        ..Spec::DEFAULT
    },
    Run::Keys(lindex),
)];

fn lindex(call: &mut Call<'_, '_>) -> CommandResult {
    let Call { args, keys, reply, .. } = call;
    let Some(list) = keys.read_value::<List>(1)? else {
        reply.null();
        return Ok(());
    };
    list.with(position(integer(*args, 2)?, list.len()), |element| match element {
        Some(element) => element.write(reply),
        None => reply.null(),
    });
    Ok(())
}
