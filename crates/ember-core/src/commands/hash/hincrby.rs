//! HINCRBY.

use ember_protocol::number::parse_i64;

use super::access;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::{Field, Hash, NewExpiry, NewField};
use crate::types::value::StringValue;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hincrby",
        summary: "Adds a number to the integer value of a field of a hash; a missing field counts as 0.",
        since: "2.0.0",
        group: Group::Hash,
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field increment",
        example: Example { given: &["HSET user age 30"], call: "HINCRBY user age 2", reply: "(integer) 32" },
        ..Spec::DEFAULT
    },
    Run::Keys(hincrby),
)];

fn hincrby(call: &mut Call<'_, '_>) -> CommandResult {
    let (name, increment) = (call.args.at(2), integer(call.args, 3)?);
    let (expired_ms, limits) = (call.keys.turn.expired_ms(), call.keys.turn.settings.encoding);
    let mut key = access::key(&mut call.keys)?;
    let sum = key.edit_or_create(Event::hash("hincrby"), |hash: &mut Hash| {
        let sum =
            old_value(hash.get(name, expired_ms))?.checked_add(increment).ok_or(CommandError::Overflow)?;
        let mut digits = itoa::Buffer::new();
        let value = digits.format(sum).as_bytes();
        hash.set(&NewField { name, value, shared: None, expiry: NewExpiry::Kept }, expired_ms, &limits);
        Ok::<_, CommandError>(Edited::changed(sum))
    })??;
    call.reply.integer(sum.result);
    Ok(())
}

/// Returns the integer that a field contains; 0 if the field is missing.
fn old_value(field: Option<Field<'_>>) -> Result<i64, CommandError> {
    let number = match field.map(|field| field.value) {
        None => Some(0),
        Some(StringValue::Int(number)) => Some(number),
        Some(StringValue::Inline(bytes)) => parse_i64(bytes),
        Some(StringValue::Large(_)) => None,
    };
    number.ok_or("ERR hash value is not an integer".into())
}
