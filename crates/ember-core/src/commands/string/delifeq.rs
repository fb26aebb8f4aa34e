//! DELIFEQ.

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "delifeq",
        summary: "Removes a key if its value is the string given.",
        since: "9.0.0",
        group: Group::String,
        complexity: "O(N) for a value of N bytes.",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE))],
        syntax: "key value",
        example: Example { given: &["SET lock mine"], call: "DELIFEQ lock mine", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(delifeq),
)];

fn delifeq(call: &mut Call<'_, '_>) -> CommandResult {
    let mut key = call.keys.key(1);
    let is_equal = value::equals(key.entry(), call.args.at(2))?;
    if is_equal && key.remove().is_some() {
        key.journal_removal();
        key.notify(Event::DEL);
    }
    call.reply.integer(is_equal.into());
    Ok(())
}
