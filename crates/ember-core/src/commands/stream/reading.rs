//! The common arguments and reply of XREAD and XREADGROUP.

use ember_protocol::{Args, Reply};

use super::ids::count;
use crate::call::{Wait, Waiting};
use crate::commands::arguments::{is_word, timeout_in_ms};
use crate::error::CommandError;
use crate::spec::KeyFlags;
use crate::spec::KeySpec;

/// The options of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadOptions<'a> {
    /// The maximum number of entries per stream; 0 means no limit.
    pub(super) count: usize,
    /// The timeout in ms when waiting for entries; 0 means no timeout.
    pub(super) block_ms: Option<u64>,
    /// The group and the consumer.
    pub(super) group: Option<(&'a [u8], &'a [u8])>,
    /// Whether delivered entries are acknowledged at once.
    pub(super) no_ack: bool,
    /// The index of the argument with the first key.
    pub(super) first_key: usize,
    /// The number of keys, which is also the number of the IDs after them.
    pub(super) keys: usize,
}

impl ReadOptions<'_> {
    /// Returns the argument indexes of each key and of its ID.
    pub(super) fn streams(&self) -> impl Iterator<Item = (usize, usize)> + use<> {
        let keys = self.keys;
        (self.first_key..self.first_key + keys).map(move |arg| (arg, arg + keys))
    }

    /// Returns an error if a script's call would wait for entries, as Redis does only for streams.
    ///
    /// # Errors
    /// Returns an error if the call has the option BLOCK and a script makes it.
    pub(super) fn refuse_in_script(&self, waiting: Waiting, args: Args<'_>) -> Result<(), CommandError> {
        if self.block_ms.is_none() || waiting != Waiting::InScript {
            return Ok(());
        }
        let text = [b"ERR ", args.at(0), b" command is not allowed with BLOCK option from scripts"];
        Err(CommandError::Bytes(text.concat()))
    }

    /// Returns the parameters of the wait for entries, if the call has the option BLOCK.
    pub(super) fn wait(&self) -> Option<Wait> {
        let block_ms = self.block_ms?;
        Some(Wait {
            timeout_ms: (block_ms != 0).then_some(block_ms),
            empty_reply: Reply::null_array,
            instead: None,
        })
    }
}

/// Returns the key specification: the keys are the first half of the arguments after STREAMS, which is searched from
/// argument `from` on.
pub(super) const fn keys_from(from: isize) -> KeySpec {
    KeySpec::half_after("STREAMS", from, KeyFlags::RO.union(KeyFlags::ACCESS))
}

/// The words in which XREAD and XREADGROUP differ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Words {
    pub(super) name: &'static str,
    /// The special ID that means entries after the call.
    pub(super) new_entries: char,
    pub(super) takes_group: bool,
}

/// Parses the options of a call.
pub(super) fn read_options<'a>(
    args: Args<'a>,
    words: Words,
    now_ms: i64,
) -> Result<ReadOptions<'a>, CommandError> {
    let mut options =
        ReadOptions { count: 0, block_ms: None, group: None, no_ack: false, first_key: 0, keys: 0 };
    let mut arg = 1;
    while arg < args.len() {
        let following = args.len() - arg - 1;
        if is_word(args, arg, "BLOCK") && following >= 1 {
            options.block_ms = Some(timeout_in_ms(args, arg + 1, now_ms)?);
            arg += 2;
        } else if is_word(args, arg, "COUNT") && following >= 1 {
            options.count = count(args, arg + 1)?;
            arg += 2;
        } else if is_word(args, arg, "STREAMS") && following >= 1 {
            if !following.is_multiple_of(2) {
                return Err(unbalanced(words));
            }
            options.first_key = arg + 1;
            options.keys = following / 2;
            break;
        } else if is_word(args, arg, "GROUP") && following >= 2 {
            refuse_unless_group(words, "GROUP")?;
            options.group = Some((args.at(arg + 1), args.at(arg + 2)));
            arg += 3;
        } else if is_word(args, arg, "NOACK") {
            refuse_unless_group(words, "NOACK")?;
            options.no_ack = true;
            arg += 1;
        } else {
            return Err(CommandError::Syntax);
        }
    }
    if options.keys == 0 {
        return Err(CommandError::Syntax);
    }
    Ok(options)
}

fn refuse_unless_group(words: Words, option: &str) -> Result<(), CommandError> {
    if words.takes_group {
        return Ok(());
    }
    let text = format!("ERR The {option} option is only supported by XREADGROUP. You called XREAD instead.");
    Err(text.into())
}

fn unbalanced(words: Words) -> CommandError {
    let Words { name, new_entries, .. } = words;
    format!(
        "ERR Unbalanced '{name}' list of streams: for each stream key an ID or '{new_entries}' must be specified."
    )
    .into()
}
