//! PERSIST.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec, Values};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "persist",
        summary: "Removes the expiry of a key.",
        since: "2.2.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 2,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
        syntax: "key",
        example: Example { given: &["SET hello world EX 10"], call: "PERSIST hello", reply: "(integer) 1" },
        values: Values::Unneeded,
        ..Spec::DEFAULT
    },
    Run::Keys(persist),
)];

fn persist(call: &mut Call<'_, '_>) -> CommandResult {
    let mut key = call.keys.key(1);
    key.touch();
    let expires = key.expire_at_ms().is_some();
    if expires {
        key.set_expiry(None);
        key.notify(Event::PERSIST);
    }
    call.reply.integer(expires.into());
    Ok(())
}
