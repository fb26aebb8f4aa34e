//! BITPOS.

use super::{BYTES_PER_STEP, is_bit_unit, value};
use crate::algorithms::bits;
use crate::call::{Attempt, AttemptResult, Call, DataCommand, Run};
use crate::commands::arguments::integer;
use crate::error::CommandError;
use crate::spec::{Command, Example, Flags, Group, KeyFlags, KeySpec, Spec};

pub(crate) const COMMANDS: &[DataCommand] = &[Command::new(
    Spec {
        name: "bitpos",
        summary: "Finds the first set or the first clear bit of a string value or of a part of it.",
        since: "2.8.7",
        group: Group::Bitmap,
        complexity: "O(N), N being the length of the searched part",
        arity: -3,
        flags: Flags::READONLY,
        keys: &[KeySpec::one(1, KeyFlags::RO.union(KeyFlags::ACCESS))],
        syntax: "key bit index:[start end_index:[end [BYTE | BIT]@7.0.0]]",
        history: &[("7.0.0", "`BYTE` and `BIT` came.")],
        example: Example {
            given: &["SET flags \"\\x00\\xff\\xf0\""],
            call: "BITPOS flags 1",
            reply: "(integer) 8",
        },
        ..Spec::DEFAULT
    },
    Run::Long(bitpos),
)];

/// The part of the string to search.
struct Part {
    start: i64,
    end: Option<i64>,
    in_bits: bool,
}

fn bitpos(call: &mut Call<'_, '_>) -> AttemptResult {
    let steps_max = call.steps_max();
    let bit = match integer(call.args, 2)? {
        0 => false,
        1 => true,
        _ => return Err("ERR The bit argument must be 1 or 0.".into()),
    };
    let part = read_part(call)?;
    let position = match value::string(call.keys.read(1))? {
        // A missing key is treated as an endless string of zeros, whichever part of the string is searched.
        None => (!bit).then_some(0),
        Some(value) => {
            let mut digits = itoa::Buffer::new();
            let bytes = value.bytes(&mut digits);
            if bytes.len() / BYTES_PER_STEP > steps_max {
                return Ok(Attempt::Offload);
            }
            find(bytes, bit, &part)
        }
    };
    call.reply.integer(position.map_or(-1, |position| position as i64));
    Ok(Attempt::Done)
}

fn read_part(call: &Call<'_, '_>) -> Result<Part, CommandError> {
    let args = call.args;
    if args.len() > 6 {
        return Err(CommandError::Syntax);
    }
    let start = if args.len() > 3 { integer(args, 3)? } else { 0 };
    let in_bits = args.len() > 5 && is_bit_unit(args, 5)?;
    let end = if args.len() > 4 { Some(integer(args, 4)?) } else { None };
    Ok(Part { start, end, in_bits })
}

fn find(bytes: &[u8], bit: bool, part: &Part) -> Option<u64> {
    let unit_bits = if part.in_bits { 1 } else { 8 };
    let len = bytes.len() as i64 * (8 / unit_bits);
    let absolute = |index: i64| (if index < 0 { len + index } else { index }).max(0);
    let (start, end) = (absolute(part.start), absolute(part.end.unwrap_or(len - 1)).min(len - 1));
    if start > end {
        return None;
    }
    let range = (start * unit_bits) as u64..((end + 1) * unit_bits) as u64;
    let range_end = range.end;
    // Without an end, the string is treated as if zeros followed it; with an end, no bits follow the range.
    bits::find(bytes, range, bit).or((!bit && part.end.is_none()).then_some(range_end))
}
