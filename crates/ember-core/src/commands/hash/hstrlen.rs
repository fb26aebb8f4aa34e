//! HSTRLEN.

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hstrlen",
        summary: "Returns the number of bytes of the value of a field of a hash.",
        since: "3.2.0",
        group: Group::Hash,
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field",
        example: Example { given: &["HSET user name Ann"], call: "HSTRLEN user name", reply: "(integer) 3" },
        ..Spec::DEFAULT
    },
    Run::Keys(hstrlen),
)];

fn hstrlen(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    access::read(call, |hash, reply, expired_ms| {
        let field = hash.and_then(|hash| hash.get(name, expired_ms));
        reply.integer(value::len(field.map(|field| field.value)) as i64);
    })
}
