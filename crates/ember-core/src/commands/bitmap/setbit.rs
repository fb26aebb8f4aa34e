//! SETBIT.

use super::{bit_offset, value};
use crate::algorithms::bits;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "setbit",
        summary: "Sets or clears the bit at an offset of a string value; returns the old bit.",
        since: "2.2.0",
        group: Group::Bitmap,
        complexity: "O(1) amortized, plus the zeros that pad a longer string",
        arity: 4,
        flags: Flags::WRITE.union(Flags::DENYOOM),
        keys: &[KeySpec::one(1, KeyFlags::RW.union(KeyFlags::ACCESS).union(KeyFlags::UPDATE))],
        syntax: "key offset value",
        example: Example { given: &[], call: "SETBIT flags 7 1", reply: "(integer) 0" },
        ..Spec::DEFAULT
    },
    Run::Keys(setbit),
)];

fn setbit(call: &mut Call<'_, '_>) -> CommandResult {
    let offset = bit_offset(call.keys.turn, call.args.at(2))?;
    let bit = match call.args.at(3) {
        b"0" => false,
        b"1" => true,
        _ => return Err(CommandError::from("ERR bit is not an integer or out of range")),
    };
    let mut key = call.keys.key(1);
    let mut digits = itoa::Buffer::new();
    let bytes = value::bytes_or_empty(value::string(key.entry())?, &mut digits);
    let (len, old) = ((offset / 8) as usize + 1, bits::get(bytes, offset));
    // Setting a bit to its current value is not a change, unless the string grows; but the encoding of the value is
    // `raw` from then on, as in Redis.
    let is_raw = key.entry().is_some_and(|entry| entry.encoding_name() == "raw");
    let is_change = old != bit || bytes.len() < len;
    if is_change || !is_raw {
        value::edit_bytes_maybe(&mut key, len, |bytes| {
            bits::set(bytes, offset, bit);
            is_change
        });
    }
    if is_change {
        key.notify(super::SETBIT);
    }
    call.reply.integer(i64::from(old));
    Ok(())
}
