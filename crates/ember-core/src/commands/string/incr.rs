//! INCR, DECR, INCRBY and DECRBY, which all add an integer.

use ember_protocol::number::parse_i64;

use super::value;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::effects::events::Event;
use crate::entries::entry::NewValue;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};
use crate::types::value::StringValue;

const INCR: Spec = Spec {
    name: "incr",
    summary: "Adds one to the integer value of a key; a missing key counts as 0.",
    since: "1.0.0",
    group: Group::String,
    arity: 2,
    flags: Flags::WRITE.union(Flags::DENYOOM).union(Flags::FAST),
    keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
    syntax: "key",
    example: Example { given: &["SET counter 10"], call: "INCR counter", reply: "(integer) 11" },
    ..Spec::DEFAULT
};

pub(crate) const COMMANDS: &[DataCommand] = &[
    Command::new(INCR, Run::Keys(|call| add(call, 1))),
    Command::new(
        Spec {
            name: "decr",
            summary: "Subtracts one from the integer value of a key; a missing key counts as 0.",
            example: Example { given: &["SET counter 10"], call: "DECR counter", reply: "(integer) 9" },
            ..INCR
        },
        Run::Keys(|call| add(call, -1)),
    ),
    Command::new(
        Spec {
            name: "incrby",
            summary: "Adds a number to the integer value of a key; a missing key counts as 0.",
            arity: 3,
            syntax: "key increment",
            example: Example { given: &["SET counter 10"], call: "INCRBY counter 5", reply: "(integer) 15" },
            ..INCR
        },
        Run::Keys(|call| add(call, integer(call.args, 2)?)),
    ),
    Command::new(
        Spec {
            name: "decrby",
            summary: "Subtracts a number from the integer value of a key; a missing key counts as 0.",
            arity: 3,
            syntax: "key decrement",
            example: Example { given: &["SET counter 10"], call: "DECRBY counter 3", reply: "(integer) 7" },
            ..INCR
        },
        Run::Keys(|call| {
            let decrement = integer(call.args, 2)?;
            add(call, decrement.checked_neg().ok_or("ERR decrement would overflow")?)
        }),
    ),
];

fn add(call: &mut Call<'_, '_>, increment: i64) -> CommandResult {
    let mut key = call.keys.key(1);
    let (old, is_int) = match value::string(key.entry())? {
        None => (0, false),
        Some(StringValue::Int(number)) => (number, true),
        Some(StringValue::Inline(bytes)) => (parse_i64(bytes).ok_or(CommandError::NotInteger)?, false),
        Some(StringValue::Large(_)) => return Err(CommandError::NotInteger),
    };
    let new = old.checked_add(increment).ok_or(CommandError::Overflow)?;
    if is_int {
        key.edit(|slot| slot.set_int(new));
    } else {
        key.set_value(NewValue::Int(new));
    }
    key.notify(Event::string("incrby"));
    call.reply.integer(new);
    Ok(())
}
