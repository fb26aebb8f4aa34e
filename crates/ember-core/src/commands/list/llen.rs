//! LLEN.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::list::List;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "llen",
        summary: "Returns the number of elements of a list.",
        since: "1.0.0",
        group: Group::List,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["RPUSH letters a b c"], call: "LLEN letters", reply: "(integer) 3" },
        ..Spec::DEFAULT
    },
    Run::Keys(llen),
)];

fn llen(call: &mut Call<'_, '_>) -> CommandResult {
    let len = call.keys.read_value::<List>(1)?.map_or(0, List::len);
    call.reply.integer(len as i64);
    Ok(())
}
