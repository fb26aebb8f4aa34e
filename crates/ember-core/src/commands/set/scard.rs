//! SCARD.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "scard",
        summary: "Returns the number of members of a set.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["SADD tags rust cache fast"], call: "SCARD tags", reply: "(integer) 3" },
        ..Spec::DEFAULT
    },
    Run::Keys(scard),
)];

fn scard(call: &mut Call<'_, '_>) -> CommandResult {
    let len = call.keys.read_value::<Set>(1)?.map_or(0, Set::len);
    call.reply.integer(len as i64);
    Ok(())
}
