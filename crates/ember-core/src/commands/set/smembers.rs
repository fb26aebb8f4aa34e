//! SMEMBERS.

use super::write_member;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "smembers",
        summary: "Returns all members of a set.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(N) for a set of N members.",
        arity: 2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["nondeterministic_output_order"],
        syntax: "key",
        example: Example {
            given: &["SADD tags rust cache fast"],
            call: "SMEMBERS tags",
            reply: "1) \"rust\"\n2) \"cache\"\n3) \"fast\"",
        },
        ..Spec::DEFAULT
    },
    Run::Long(smembers),
)];

fn smembers(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let Some(set) = call.keys.read_value::<Set>(1)? else {
        call.reply.set(0);
        return Ok(Attempt::Done);
    };
    if set.len() > steps_max {
        return Ok(Attempt::Offload);
    }
    call.reply.set(set.len());
    set.for_each(|member| write_member(call.reply, member));
    Ok(Attempt::Done)
}
