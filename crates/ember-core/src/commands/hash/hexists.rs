//! HEXISTS.

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hexists",
        summary: "Returns whether a hash has a field.",
        since: "2.0.0",
        group: Group::Hash,
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field",
        example: Example { given: &["HSET user name Ann"], call: "HEXISTS user name", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(hexists),
)];

fn hexists(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    access::read(call, |hash, reply, expired_ms| {
        reply.integer(hash.is_some_and(|hash| hash.get(name, expired_ms).is_some()).into());
    })
}
