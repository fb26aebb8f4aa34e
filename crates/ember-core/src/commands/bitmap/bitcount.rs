//! BITCOUNT.

use super::{BYTES_PER_STEP, is_bit_unit, value};
use crate::algorithms::bits;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::{index_range, integer};
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bitcount",
        summary: "Counts the set bits of a string value or of a part of it.",
        since: "2.6.0",
        group: Group::Bitmap,
        complexity: "O(N), N being the length of the counted part",
        arity: -2,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key index:[start [end [BYTE | BIT]@7.0.0]@8.0.0]",
        history: &[("7.0.0", "`BYTE` and `BIT` came."), ("8.0.0", "`end` is optional, as in Valkey.")],
        example: Example { given: &["SET word foobar"], call: "BITCOUNT word 0 0", reply: "(integer) 4" },
        ..Spec::DEFAULT
    },
    Run::Long(bitcount),
)];

/// The part of the string to count.
enum Part {
    All,
    Bytes(i64, i64),
    Bits(i64, i64),
}

fn bitcount(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let part = read_part(call)?;
    let mut digits = itoa::Buffer::new();
    let bytes = value::bytes_or_empty(value::string(call.keys.read(1))?, &mut digits);
    if bytes.len() / BYTES_PER_STEP > steps_max {
        return Ok(Attempt::Offload);
    }
    let count = match part {
        Part::All => bits::count(bytes),
        Part::Bytes(start, end) => bits::count(&bytes[index_range(start, end, bytes.len())]),
        Part::Bits(start, end) => {
            let range = index_range(start, end, bytes.len() * 8);
            bits::count_in(bytes, range.start as u64..range.end as u64)
        }
    };
    call.reply.integer(count as i64);
    Ok(Attempt::Done)
}

fn read_part(call: &Call<'_, '_>) -> Result<Part, CommandError> {
    let args = call.args;
    match args.len() {
        2 => Ok(Part::All),
        3 => Ok(Part::Bytes(integer(args, 2)?, -1)),
        4 => Ok(Part::Bytes(integer(args, 2)?, integer(args, 3)?)),
        5 => {
            let (start, end) = (integer(args, 2)?, integer(args, 3)?);
            Ok(if is_bit_unit(args, 4)? { Part::Bits(start, end) } else { Part::Bytes(start, end) })
        }
        _ => Err(CommandError::Syntax),
    }
}
