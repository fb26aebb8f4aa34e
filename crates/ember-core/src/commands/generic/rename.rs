//! RENAME and RENAMENX.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

const SOURCE: KeySpec = KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE));

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(
        Spec {
            name: "rename",
            summary: "Renames a key, replacing a key with the new name.",
            since: "1.0.0",
            group: Group::Generic,
            complexity: "O(1), and O(M) more for a replaced aggregate of M elements.",
            arity: 3,
            flags: Flags::WRITE,
            keys: &[SOURCE, KeySpec::one(2, KeyFlags::OW.union(KeyFlags::UPDATE))],
            syntax: "key newkey",
            example: Example { given: &["SET hello world"], call: "RENAME hello bye", reply: "OK" },
            ..Spec::DEFAULT
        },
        Run::Keys(rename),
    ),
    Command::new(
        Spec {
            name: "renamenx",
            summary: "Renames a key, only if the new name is free.",
            since: "1.0.0",
            group: Group::Generic,
            complexity: "O(1)",
            arity: 3,
            flags: Flags::WRITE.union(Flags::FAST),
            keys: &[SOURCE, KeySpec::one(2, KeyFlags::OW.union(KeyFlags::INSERT))],
            syntax: "key newkey",
            history: &[("3.2.0", "The two names may be the same.")],
            example: Example {
                given: &["SET hello world", "SET bye moon"],
                call: "RENAMENX hello bye",
                reply: "(integer) 0",
            },
            ..Spec::DEFAULT
        },
        Run::Keys(renamenx),
    ),
];

fn rename(call: &mut Call<'_, '_>) -> CommandResult {
    touch_source(call)?;
    if call.args.at(1) != call.args.at(2) {
        move_value(call);
    }
    call.reply.ok();
    Ok(())
}

fn renamenx(call: &mut Call<'_, '_>) -> CommandResult {
    touch_source(call)?;
    let is_free = !call.keys.key(2).exists();
    if is_free {
        move_value(call);
    }
    call.reply.integer(is_free.into());
    Ok(())
}

fn touch_source(call: &mut Call<'_, '_>) -> CommandResult {
    let mut source = call.keys.key(1);
    source.touch();
    if source.exists() { Ok(()) } else { Err(CommandError::NoSuchKey) }
}

/// Moves the value, the expiry and the eviction clock of the key in argument 1, which exists, to the key in argument 2.
fn move_value(call: &mut Call<'_, '_>) {
    let mut slot = call.keys.key(1).take().expect("the callers have seen the key");
    let (expire_at_ms, clock) = (slot.entry().expire_at_ms(), slot.entry().clock());
    call.keys.key(2).put(slot.moved_value(), expire_at_ms, clock);
    call.keys.notify(Event::generic("rename_from"), 1);
    call.keys.notify(Event::generic("rename_to"), 2);
}
