//! A call of a data command: arguments in, changes under the shard locks, reply bytes out.

use ember_protocol::{Args, Reply};

use crate::error::CommandError;
use crate::keys::Keys;
use crate::keyspace::Keyspace;
use crate::turn::Turn;

/// What a handler returns: done with its reply written, or an error with nothing written.
pub type CommandResult = Result<(), CommandError>;

/// A call whose keys' shards are locked.
pub struct Call<'c, 'k> {
    /// The arguments; 0 is the name, also when the command is a subcommand (then 1 is the subcommand's).
    pub args: Args<'c>,
    /// The keys.
    pub keys: Keys<'c, 'k>,
    /// Where the reply goes.
    pub reply: &'c mut Reply,
}

/// A call that concerns the keyspace as a whole; no lock is held.
pub struct KeyspaceCall<'c> {
    /// The arguments; 0 is the name.
    pub args: Args<'c>,
    /// All data.
    pub keyspace: &'c Keyspace,
    /// The number of the selected database.
    pub database: usize,
    /// The worker's state.
    pub turn: &'c mut Turn,
    /// Where the reply goes.
    pub reply: &'c mut Reply,
}

/// How a data command is run.
#[derive(Clone, Copy, Debug)]
pub enum Run {
    /// With the shards of the keys in its specification locked.
    Keys(fn(&mut Call<'_, '_>) -> CommandResult),
    /// Without any lock.
    Keyspace(fn(&mut KeyspaceCall<'_>) -> CommandResult),
    /// Not at all: it has subcommands.
    Container,
}

/// A data command.
pub type DataCommand = crate::spec::Command<Run>;
