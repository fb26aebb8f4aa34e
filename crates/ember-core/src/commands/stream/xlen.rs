//! XLEN.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::stream::Stream;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "xlen",
        summary: "Returns the number of entries of a stream.",
        since: "5.0.0",
        group: Group::Stream,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example {
            given: &["XADD readings 1-1 a 1", "XADD readings 2-1 a 2"],
            call: "XLEN readings",
            reply: "(integer) 2",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(xlen),
)];

fn xlen(call: &mut Call<'_, '_>) -> CommandResult {
    let len = call.keys.read_value::<Stream>(1)?.map_or(0, |stream| stream.log().len());
    call.reply.integer(len as i64);
    Ok(())
}
