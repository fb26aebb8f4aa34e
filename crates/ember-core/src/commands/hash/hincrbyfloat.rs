//! HINCRBYFLOAT.

use super::access;
use crate::algorithms::long_double::LongDouble;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::keys::Edited;
use crate::spec::{Command, ElementArgs, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::hash::{Field, Hash, NewExpiry, NewField};
use crate::types::value::StringValue;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "hincrbyfloat",
        summary: "Adds a floating point number to the value of a field of a hash; a missing field counts as 0.",
        since: "2.6.0",
        group: Group::Hash,
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        elements: Some(ElementArgs::one(2)),
        syntax: "key field increment",
        example: Example {
            given: &["HSET pear price 10.50"],
            call: "HINCRBYFLOAT pear price 0.1",
            reply: "\"10.6\"",
        },
        ..Spec::DEFAULT
    },
    Run::Keys(hincrbyfloat),
)];

fn hincrbyfloat(call: &mut Call<'_, '_>) -> CommandResult {
    let name = call.args.at(2);
    let increment = LongDouble::parse(call.args.at(3)).ok_or(CommandError::NotFloat)?;
    if LongDouble::ZERO.checked_add(increment).is_none() {
        return Err("ERR value is NaN or Infinity".into());
    }
    let (expired_ms, limits) = (call.keys.turn.expired_ms(), call.keys.turn.settings.encoding);
    let mut key = access::key(&mut call.keys)?;
    let mut expire_at_ms = None;
    let sum = key.edit_or_create(Event::hash("hincrbyfloat"), |hash: &mut Hash| {
        let old = hash.get(name, expired_ms);
        expire_at_ms = old.and_then(|field| field.expire_at_ms);
        let sum = old_value(old)?.checked_add(increment);
        let text = sum.ok_or(CommandError::NanOrInfinity)?.to_text();
        let new = NewField { name, value: text.as_bytes(), shared: None, expiry: NewExpiry::Kept };
        hash.set(&new, expired_ms, &limits);
        Ok::<_, CommandError>(Edited::changed(text))
    })??;
    let text = sum.result.as_bytes();
    key.journal("HSET", |words| _ = words.word(name).word(text));
    if let Some(at_ms) = expire_at_ms {
        key.journal_fields_expiry(at_ms, [name].into_iter());
    }
    call.reply.bulk(text);
    Ok(())
}

/// Returns the number that a field contains; 0 if the field is missing.
fn old_value(field: Option<Field<'_>>) -> Result<LongDouble, CommandError> {
    let number = match field.map(|field| field.value) {
        None => Some(LongDouble::ZERO),
        Some(StringValue::Int(number)) => Some(LongDouble::from(number)),
        Some(StringValue::Inline(bytes)) => LongDouble::parse(bytes),
        Some(StringValue::Large(_)) => None,
    };
    number.ok_or("ERR hash value is not a float".into())
}
