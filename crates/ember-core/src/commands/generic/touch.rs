//! TOUCH.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "touch",
        summary: "Updates the last access of keys; returns the number of existing keys.",
        since: "3.2.1",
        group: Group::Generic,
        complexity: "O(N) for N keys.",
        arity: -2,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::from(1, 1, KeyFlags::RO)],
        tips: &["request_policy:multi_shard", "response_policy:agg_sum"],
        syntax: "key [key ...]",
        example: Example { given: &["SET here 1"], call: "TOUCH here gone", reply: "(integer) 1" },
        values: Values::Unneeded,
        ..Spec::DEFAULT
    },
    Run::Keys(touch),
)];

fn touch(call: &mut Call<'_, '_>) -> CommandResult {
    // TOUCH updates the eviction clock even for a client in `CLIENT NO-TOUCH` mode.
    let no_touch = std::mem::replace(&mut call.keys.turn.no_touch, false);
    let mut found = 0;
    for arg in 1..call.args.len() {
        found += i64::from(call.keys.read(arg).is_some());
    }
    call.keys.turn.no_touch = no_touch;
    call.reply.integer(found);
    Ok(())
}
