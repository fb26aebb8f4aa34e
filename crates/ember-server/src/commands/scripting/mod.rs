//! Scripts and functions: EVAL and its variants, SCRIPT, FUNCTION, FCALL.

#[cfg(test)]
mod confinement_tests;
mod eval;
mod fcall;
mod function;
mod script;

use ember_protocol::Args;
use ember_protocol::number::parse_i64;
use emberkv_core::error::CommandError;
use emberkv_core::spec::{Flags, Group, Spec};

use crate::executor::session::ServerCommand;
use crate::server::Server;

/// The family's commands, file by file.
pub(super) const COMMANDS: &[&[ServerCommand]] =
    &[eval::COMMANDS, fcall::COMMANDS, script::COMMANDS, function::COMMANDS];

/// The common part of all commands that run a script.
const RUNNING: Spec = Spec {
    group: Group::Scripting,
    arity: -3,
    flags: Flags::NOSCRIPT
        .union(Flags::STALE)
        .union(Flags::SKIP_MONITOR)
        .union(Flags::NO_MANDATORY_KEYS)
        .union(Flags::MOVABLEKEYS),
    ..Spec::DEFAULT
};

/// The flags of script commands that may write.
const WRITING: Flags = RUNNING.flags.union(Flags::MAY_REPLICATE);

/// The common part of the subcommands of SCRIPT and FUNCTION.
const TEMPLATE: Spec = Spec { group: Group::Scripting, flags: Flags::NOSCRIPT, ..Spec::DEFAULT };

/// Redis's note in the key specification of scripts that may write.
const WRITES_NOTE: &str = "We cannot tell how the keys will be used so we assume the worst, RW and UPDATE";

/// Redis's note in the key specification of scripts that do not write.
const READS_NOTE: &str = "We cannot tell how the keys will be used so we assume the worst, RO and ACCESS";

/// The maximum number of keys of a script that are prefetched: the number of fetches that a processor performs in
/// parallel.
const FETCHED_MAX: usize = 10;

/// The keys and the arguments of a call that runs a script.
struct KeysAndArguments<'a> {
    words: Vec<&'a [u8]>,
    keys: usize,
}

impl<'a> KeysAndArguments<'a> {
    fn keys(&self) -> &[&'a [u8]] {
        &self.words[..self.keys]
    }

    /// Prefetches the memory that lookups of the keys read first. The work before these lookups takes as long as the
    /// fetches.
    fn fetch_ahead(&self, server: &Server) {
        for key in self.keys().iter().take(FETCHED_MAX) {
            server.keyspace.prefetch_group(server.keyspace.hash(key));
        }
    }

    fn both(&self) -> [&[&'a [u8]]; 2] {
        let (keys, arguments) = self.words.split_at(self.keys);
        [keys, arguments]
    }
}

/// Returns the keys and the arguments of a call that runs a script. Both follow argument 2, the number of keys.
///
/// # Errors
/// Returns `not_a_number` if that number is invalid, and another error if it is negative or exceeds the number of
/// arguments.
fn keys_and_arguments(
    args: Args<'_>,
    not_a_number: CommandError,
) -> Result<KeysAndArguments<'_>, CommandError> {
    let count = parse_i64(args.at(2)).ok_or(not_a_number)?;
    if count > args.len() as i64 - 3 {
        return Err("ERR Number of keys can't be greater than number of args".into());
    }
    let keys = usize::try_from(count).map_err(|_| "ERR Number of keys can't be negative")?;
    Ok(KeysAndArguments { words: args.iter().skip(3).collect(), keys })
}

/// Ends a script or function that has been running for long and has not written.
///
/// # Errors
/// Returns an error if none can be ended.
fn kill(server: &Server, functions: bool) -> Result<(), CommandError> {
    server.scripting.running.kill(functions, server.config.snapshot().busy_reply_threshold)
}
