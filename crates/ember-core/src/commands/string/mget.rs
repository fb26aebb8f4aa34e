//! MGET.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "mget",
        summary: "Returns the string values of several keys, null for each that is missing or holds another type.",
        since: "1.0.0",
        group: Group::String,
        complexity: "O(N), N being the number of keys",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::from(1, 1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        tips: &["request_policy:multi_shard"],
        syntax: "key [key ...]",
        example: Example {
            given: &["MSET one 1 two 2"],
            call: "MGET one two three",
            reply: "1) \"1\"\n2) \"2\"\n3) (nil)",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(mget),
)];

fn mget(call: &mut Call<'_, '_>) -> CommandResult {
    call.reply.array(call.args.len() - 1);
    for arg in 1..call.args.len() {
        // A key that holds another type is not an error; its reply is null.
        let value = value::string(call.keys.read(arg)).unwrap_or(None);
        value::reply(call.reply, value);
    }
    Ok(())
}
