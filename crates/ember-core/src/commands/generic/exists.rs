//! EXISTS.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::keys::Lookup;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "exists",
        summary: "Returns the number of the given keys that exist; a key given twice counts twice.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(N) for N keys.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::from(1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        syntax: "key [key ...]",
        history: &[("3.0.3", "Takes several keys.")],
        example: Example { given: &["SET here 1"], call: "EXISTS here gone here", reply: "(integer) 2" },
        values: Values::Unneeded,
        ..Spec::DEFAULT
    },
    Run::Keys(exists),
)];

fn exists(call: &mut Call<'_, '_>) -> CommandResult {
    let mut found = 0;
    for arg in 1..call.args.len() {
        found += i64::from(call.keys.read_as(arg, Lookup::NoTouch).is_some());
    }
    call.reply.integer(found);
    Ok(())
}
