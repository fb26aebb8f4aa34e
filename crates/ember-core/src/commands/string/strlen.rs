//! STRLEN.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "strlen",
        summary: "Returns the length of a string value in bytes, 0 for a missing key.",
        since: "2.2.0",
        group: Group::String,
        arity: 2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO)],
        syntax: "key",
        example: Example { given: &["SET hello world"], call: "STRLEN hello", reply: "(integer) 5" },
        ..Spec::DEFAULT
    },
    Run::Keys(strlen),
)];

fn strlen(call: &mut Call<'_, '_>) -> CommandResult {
    let len = value::len(value::string(call.keys.read(1))?);
    call.reply.integer(len as i64);
    Ok(())
}
