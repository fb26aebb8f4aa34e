//! Parts of the commands of all sketches.

use ember_protocol::Args;

use super::arguments::is_word;
use crate::call::{Call, CommandResult};
use crate::error::CommandError;
use crate::turn::Turn;

/// The error of RedisBloom for a missing filter.
pub(super) const NOT_FOUND: &str = "ERR not found";

/// The error for a filter that exists already.
pub(super) const EXISTS: &str = "ERR item exists";

/// The approximate bytes of bits or counters that are read in one step of a call.
const STEP_BYTES: usize = 256;

/// The maximum bytes of a chunk in a reply of SCANDUMP.
pub(super) const CHUNK_BYTES_MAX: usize = 16 << 20;

/// Returns an error if a new sketch would have more bytes of bits or counters than the memory limit allows for the values
/// of a call. They are allocated when they are first set, so this check is for the client, not for the server.
pub(super) fn check_memory(turn: &Turn, bytes: usize) -> CommandResult {
    if bytes > turn.values_bytes_max && !turn.is_replay() { Err(CommandError::OutOfMemory) } else { Ok(()) }
}

/// Returns whether the call must be offloaded because it processes this many bytes.
pub(super) fn is_long(call: &Call<'_, '_>, bytes: usize) -> bool {
    bytes / STEP_BYTES > call.steps_max()
}

/// Returns the index of the first argument from `from` on that is `word`, without regard to case.
pub(super) fn find_word(args: Args<'_>, from: usize, word: &str) -> Option<usize> {
    (from..args.len()).find(|&arg| is_word(args, arg, word))
}

/// Returns the letter in lower case at position `at` of an argument; 0 if the argument is shorter. RedisBloom
/// distinguishes options by single letters.
pub(super) fn letter(args: Args<'_>, arg: usize, at: usize) -> u8 {
    args.at(arg).get(at).map_or(0, u8::to_ascii_lowercase)
}
