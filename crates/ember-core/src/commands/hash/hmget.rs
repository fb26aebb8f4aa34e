//! HMGET.

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::string::value;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hmget",
        summary: "Returns the values of fields of a hash.",
        since: "2.0.0",
        group: Group::Hash,
        complexity: "O(N) for N fields.",
        arity: -3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        elements: Some(ElementArgs::each(2, 1)),
        syntax: "key field [field ...]",
        example: Example {
            given: &["HSET user name Ann age 30"],
            call: "HMGET user age email",
            reply: "1) \"30\"\n2) (nil)",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hmget),
)];

fn hmget(call: &mut Call<'_, '_>) -> CommandResult {
    let names = call.args.skip(2);
    access::read(call, |hash, reply, expired_ms| {
        reply.array(names.len());
        for name in names.iter() {
            let field = hash.and_then(|hash| hash.get(name, expired_ms));
            value::reply(reply, field.map(|field| field.value));
        }
    })
}
