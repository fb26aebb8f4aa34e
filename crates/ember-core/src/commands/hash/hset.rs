//! HSET, and HMSET, which differs in its reply.

use super::access::{self, new_field};
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::{Hash, NewExpiry};

const HSET: Spec = Spec {
    name: "hset",
    summary: "Sets fields of a hash, creating the key if it is missing; returns the number of new fields.",
    since: "2.0.0",
    group: Group::Hash,
    complexity: "O(N) for N fields.",
    arity: -4,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::UPDATE))],
    elements: Some(ElementArgs::each(2, 2)),
    syntax: "key field value [field value ...]",
    history: &[("4.0.0", "Takes several fields.")],
    example: Example { given: &[], call: "HSET user name Ann age 30", reply: "(integer) 2" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(HSET, Run::Keys(hset)),
    Command::new(
        Spec {
            name: "hmset",
            summary: "Sets fields of a hash.",
            history: &[],
            deprecated: Some(("4.0.0", "`HSET` with multiple field-value pairs")),
            example: Example { given: &[], call: "HMSET user name Ann age 30", reply: "OK" },
            ..HSET
        },
        Run::Keys(hmset),
    ),
];

fn hset(call: &mut Call<'_, '_>) -> CommandResult {
    let added = set_pairs(call, "hset")?;
    call.reply.integer(added as i64);
    Ok(())
}

fn hmset(call: &mut Call<'_, '_>) -> CommandResult {
    set_pairs(call, "hmset")?;
    call.reply.ok();
    Ok(())
}

/// Sets the fields given by the arguments from 2 on, and returns the number of new fields. Errors contain the name
/// `command`.
fn set_pairs(call: &mut Call<'_, '_>, command: &'static str) -> Result<usize, CommandError> {
    let (args, expired_ms, limits) =
        (call.args, call.keys.turn.expired_ms(), call.keys.turn.settings.encoding);
    if args.len() % 2 == 1 {
        return Err(CommandError::WrongArity(command.into()));
    }
    let mut key = access::key(&mut call.keys)?;
    let set = key.edit_or_create(Event::hash("hset"), |hash: &mut Hash| {
        hash.expect_fields((args.len() - 2) / 2, &limits);
        let fields = (2..args.len()).step_by(2).map(|arg| new_field(args, arg, NewExpiry::None));
        Edited::changed(fields.filter(|field| hash.set(field, expired_ms, &limits)).count())
    })?;
    Ok(set.result)
}
