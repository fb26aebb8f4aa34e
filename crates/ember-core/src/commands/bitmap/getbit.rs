//! GETBIT.

use super::{bit_offset, value};
use crate::algorithms::bits;
use crate::call::{Call, CommandResult, DataCommand, Run};
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "getbit",
        summary: "Returns the bit at an offset of a string value, 0 beyond its end.",
        since: "2.2.0",
        group: Group::Bitmap,
        arity: 3,
        flags: Flags::READONLY.union(Flags::FAST),
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key offset",
        example: Example { given: &["SETBIT flags 7 1"], call: "GETBIT flags 7", reply: "(integer) 1" },
        ..Spec::DEFAULT
    },
    Run::Keys(getbit),
)];

fn getbit(call: &mut Call<'_, '_>) -> CommandResult {
    let offset = bit_offset(call.keys.turn, call.args.at(2))?;
    let mut digits = itoa::Buffer::new();
    let bytes = value::bytes_or_empty(value::string(call.keys.read(1))?, &mut digits);
    call.reply.integer(i64::from(bits::get(bytes, offset)));
    Ok(())
}
