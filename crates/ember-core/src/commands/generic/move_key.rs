//! MOVE.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::database;
use crate::effects::events::Event;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "move",
        summary: "Moves a key to another database, unless that database has a key of this name.",
        since: "1.0.0",
        group: Group::Generic,
        complexity: "O(1)",
        arity: 3,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        databases_of: Some(|_| vec![2]),
        syntax: "key db",
        example: Example { given: &["SET hello world"], call: "MOVE hello 1", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(move_key),
)];

fn move_key(call: &mut Call<'_, '_>) -> CommandResult {
    if call.keys.has_slots() && call.keys.databases() == 1 {
        return Err("ERR MOVE is not allowed in cluster mode".into());
    }
    let target = database(call.args, 2, call.keys.databases())?;
    if target == call.keys.database() {
        return Err("ERR source and destination objects are the same".into());
    }
    let taken_there = call.keys.key_in(target, 1).exists();
    let mut source = call.keys.key(1);
    source.touch();
    let mut moved = if taken_there { None } else { source.take() };
    if let Some(slot) = &mut moved {
        let (expire_at_ms, clock) = (slot.entry().expire_at_ms(), slot.entry().clock());
        call.keys.key_in(target, 1).put(slot.moved_value(), expire_at_ms, clock);
        call.keys.notify(Event::generic("move_from"), 1);
        call.keys.key_in(target, 1).notify(Event::generic("move_to"));
    }
    call.reply.integer(moved.is_some().into());
    Ok(())
}
