//! HSETNX.

use super::access::{self, new_field};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::{Hash, NewExpiry};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hsetnx",
        summary: "Sets a field of a hash, only if the field is missing.",
        since: "2.0.0",
        group: Group::Hash,
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::INSERT))],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field value",
        example: Example {
            given: &["HSET user name Ann"],
            call: "HSETNX user name Bob",
            reply: "(integer) 0",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hsetnx),
)];

fn hsetnx(call: &mut Call<'_, '_>) -> CommandResult {
    let (expired_ms, limits) = (call.keys.turn.expired_ms(), call.keys.turn.settings.encoding);
    let field = new_field(call.args, 2, NewExpiry::None);
    let mut key = access::key(&mut call.keys)?;
    let is_new = key.edit_or_create(Event::hash("hset"), |hash: &mut Hash| {
        hash.get(field.name, expired_ms).is_none() && hash.set(&field, expired_ms, &limits)
    })?;
    call.reply.integer(is_new.into());
    Ok(())
}
