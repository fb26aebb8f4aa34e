//! INCRBYFLOAT.

use super::value;
use crate::algorithms::long_double::LongDouble;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::effects::events::Event;
use crate::entries::entry::NewValue;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "incrbyfloat",
        summary: "Adds a floating point number to the value of a key; a missing key counts as 0.",
        since: "2.6.0",
        group: Group::String,
        arity: 3,
        flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        syntax: "key increment",
        example: Example { given: &["SET price 10.50"], call: "INCRBYFLOAT price 0.1", reply: "\"10.6\"" },
        ..Spec::DEFAULT
    },
    Run::Keys(incrbyfloat),
)];

fn incrbyfloat(call: &mut Call<'_, '_>) -> CommandResult {
    let mut key = call.keys.key(1);
    let old = match value::string(key.entry())? {
        None => LongDouble::ZERO,
        Some(StringValue::Int(number)) => LongDouble::from(number),
        Some(StringValue::Inline(bytes)) => LongDouble::parse(bytes).ok_or(CommandError::NotFloat)?,
        Some(StringValue::Large(_)) => return Err(CommandError::NotFloat),
    };
    let increment = LongDouble::parse(call.args.at(2)).ok_or(CommandError::NotFloat)?;
    let sum = old.checked_add(increment).ok_or(CommandError::NanOrInfinity)?;
    let text = sum.to_text();
    key.set_value(NewValue::from_opaque(text.as_bytes()));
    key.journal("SET", |words| _ = words.word(text.as_bytes()).word(b"KEEPTTL"));
    key.notify(Event::string("incrbyfloat"));
    call.reply.bulk(text.as_bytes());
    Ok(())
}
