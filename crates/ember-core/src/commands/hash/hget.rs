//! HGET.

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hget",
        summary: "Returns the value of a field of a hash.",
        since: "2.0.0",
        group: Group::Hash,
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field",
        example: Example { given: &["HSET user name Ann age 30"], call: "HGET user name", reply: "\"Ann\"" },
        ..Spec::DEFAULT
    },
    Run::Keys(hget),
)];

fn hget(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    access::read(call, |hash, reply, expired_ms| {
        let field = hash.and_then(|hash| hash.get(name, expired_ms));
        value::reply(reply, field.map(|field| field.value));
    })
}
