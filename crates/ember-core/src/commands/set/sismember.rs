//! SISMEMBER and SMISMEMBER.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "sismember",
            summary: "Returns whether a set contains a member.",
            since: "1.0.0",
            group: Group::Set,
            complexity: "O(1)",
            arity: 3,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO)],
            elements: Some(ElementArgs::one(2)),
            syntax: "key member",
            example: Example {
                given: &["SADD tags rust cache fast"],
                call: "SISMEMBER tags rust",
                reply: "(integer) 1",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(sismember),
    ),
    Command::new(
        Spec {
            name: "smismember",
            summary: "Returns for each given member whether a set contains it.",
            since: "6.2.0",
            group: Group::Set,
            complexity: "O(N) for N given members.",
            arity: -3,
            flags: Flags::READONLY.union(Flags::FAST),
            keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
            elements: Some(ElementArgs::each(2, 1)),
            syntax: "key member [member ...]",
            example: Example {
                given: &["SADD tags rust cache fast"],
                call: "SMISMEMBER tags rust slow",
                reply: "1) (integer) 1\n2) (integer) 0",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(smismember),
    ),
];

fn sismember(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<Set>(1)?;
    let is_member = set.is_some_and(|set| set.contains(call.args.at(2)));
    call.reply.integer(is_member.into());
    Ok(())
}

fn smismember(call: &mut Call<'_, '_>) -> CommandResult {
    let set = call.keys.read_value::<Set>(1)?;
    call.reply.array(call.args.len() - 2);
    for arg in 2..call.args.len() {
        let is_member = set.is_some_and(|set| set.contains(call.args.at(arg)));
        call.reply.integer(is_member.into());
    }
    Ok(())
}
