//! GETRANGE, and its older name SUBSTR.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::{index_range, integer};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

const GETRANGE: Spec = Spec {
    name: "getrange",
    summary: "Returns the part of a string value between two positions.",
    since: "2.4.0",
    group: Group::String,
    complexity: "O(N), N being the length of the returned part",
    arity: 4,
    flags: Flags::READONLY,
    keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
    syntax: "key start end",
    example: Example {
        given: &["SET text \"This is a string\""],
        call: "GETRANGE text -3 -1",
        reply: "\"ing\"",
    },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(GETRANGE, Run::Keys(getrange)),
    Command::new(
        Spec {
            name: "substr",
            since: "1.0.0",
            deprecated: Some(("2.0.0", "`GETRANGE`")),
            example: Example {
                given: &["SET text \"This is a string\""],
                call: "SUBSTR text 0 3",
                reply: "\"This\"",
            },
            ..GETRANGE
        },
        Run::Keys(getrange),
    ),
];

fn getrange(call: &mut Call<'_, '_>) -> CommandResult {
    let (start, end) = (integer(call.args, 2)?, integer(call.args, 3)?);
    let mut digits = itoa::Buffer::new();
    let value = value::string(call.keys.read(1))?;
    if let Some(StringValue::Large(large)) = value {
        let part = index_range(start, end, large.bytes().len());
        call.reply.bulk_shared_part(&large.share(), part);
        return Ok(());
    }
    let bytes = value::bytes_or_empty(value, &mut digits);
    call.reply.bulk(&bytes[index_range(start, end, bytes.len())]);
    Ok(())
}
