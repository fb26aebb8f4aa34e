//! SMOVE.

use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::Collection;
use crate::types::set::Set;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "smove",
        summary: "Moves a member from one set to another, creating the destination if it is missing.",
        since: "1.0.0",
        group: Group::Set,
        complexity: "O(1)",
        arity: 4,
        flags: Flags::WRITE.union(Flags::FAST),
        keys: &[
            KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::DELETE)),
            KeySpec::one(2, KeyFlags::RW.union(KeyFlags::INSERT)),
        ],
        syntax: "source destination member",
        example: Example {
            given: &["SADD open task:1 task:2"],
            call: "SMOVE open done task:1",
            reply: "(integer) 1",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(smove),
)];

fn smove(call: &mut Call<'_, '_>) -> CommandResult {
    let is_moved = move_member(call)?;
    call.reply.integer(is_moved.into());
    Ok(())
}

fn move_member(call: &mut Call<'_, '_>) -> Result<bool, CommandError> {
    let (member, limits) = (call.args.at(3), call.keys.turn.settings.encoding);
    let source = call.keys.key(1);
    // If the source is missing, the command returns without checking the type of the destination.
    let Some(source) = source.value::<Set>()? else { return Ok(false) };
    if call.args.at(1) == call.args.at(2) {
        return Ok(source.contains(member));
    }
    call.keys.key(2).value::<Set>()?;
    let removed = call.keys.key(1).edit_value(Event::set("srem"), |set: &mut Set| set.remove(member))?;
    if removed != Some(true) {
        return Ok(false);
    }
    call.keys.key(2).edit_or_create(Event::set("sadd"), |set: &mut Set| {
        if set.is_empty() {
            *set = Set::for_members(member, 1, &limits);
        }
        set.insert(member, &limits)
    })?;
    Ok(true)
}
