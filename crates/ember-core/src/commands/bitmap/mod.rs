//! Bitmap commands: strings as arrays of bits.

mod bitcount;
mod bitfield;
mod bitop;
mod bitpos;
mod getbit;
mod setbit;

use ember_protocol::Args;
use ember_protocol::number::parse_i64;

use super::arguments::is_word;
use super::string::value;
use crate::call::DataCommand;
use crate::effects::events::Event;
use crate::error::CommandError;
use crate::turn::Turn;

/// The commands of this family, one list per file.
pub(super) const COMMANDS: &[&[DataCommand]] = &[
    bitcount::COMMANDS,
    bitfield::COMMANDS,
    bitop::COMMANDS,
    bitpos::COMMANDS,
    getbit::COMMANDS,
    setbit::COMMANDS,
];

/// The number of bytes that are counted, searched or combined in the time of one step of a long-running call.
const BYTES_PER_STEP: usize = 512;

const SETBIT: Event = Event::string("setbit");

/// Parses a bit offset, which must be within the maximum size of strings.
fn bit_offset(turn: &Turn, text: &[u8]) -> Result<u64, CommandError> {
    scaled_bit_offset(turn, text, 1)
}

/// Parses a bit offset in units of `unit` bits.
fn scaled_bit_offset(turn: &Turn, text: &[u8], unit: u32) -> Result<u64, CommandError> {
    let offset = parse_i64(text).and_then(|offset| u64::try_from(offset).ok());
    let offset = offset.and_then(|offset| offset.checked_mul(u64::from(unit)));
    let offset = offset.filter(|&offset| offset / 8 < turn.settings.string_bytes_max as u64);
    offset.ok_or(CommandError::BitOffset)
}

/// Returns whether the unit in argument `arg` is `BIT` rather than `BYTE`.
fn is_bit_unit(args: Args<'_>, arg: usize) -> Result<bool, CommandError> {
    if is_word(args, arg, "BIT") {
        Ok(true)
    } else if is_word(args, arg, "BYTE") {
        Ok(false)
    } else {
        Err(CommandError::Syntax)
    }
}
